//! The section on the sandbox: its pages, what it takes on its control listener, and its files.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::{block, column, docs, page, table};
use crate::harness::{PATIENCE, Setup, World, request_to, run, skip, wait_until};

/// A sandbox with an invoice of order A-1.
fn with_an_invoice() -> World {
    let world = Setup::new().quiet().not_served().start();
    world.open("A-1", "150.00", &[]).ends_with(0);
    world
}

/// What the control listener shows of faults.
fn set_now(world: &World) -> Value {
    let state = world.control("GET", "/state", &Value::Null);
    state.get("faults").cloned().unwrap_or_default()
}

#[test]
fn the_pages_it_lists_are_there() {
    let world = with_an_invoice();
    let state = world.control("GET", "/state", &Value::Null);
    let page = state.pointer("/invoices/0/page").and_then(Value::as_str);
    let (_, opaque) = page.and_then(|page| page.rsplit_once('/')).expect("a page");
    let service = world.address("service");
    let listed = column(&table(&docs(), "page"), 0);
    for page in &listed {
        let page = page.replace('…', opaque);
        let answer = request_to(&service.to_string(), service, "GET", &page, &[], "");
        assert_eq!(answer.status, 200, "{page}");
        // Whatever the pages link to is listed.
        let links = answer.body.split("href=\"/").skip(1);
        for link in links.filter_map(|rest| rest.split('"').next()) {
            let path = format!("/{link}").replace(opaque, "…");
            let path = path.split(['?', '#']).next().unwrap_or_default().to_owned();
            assert!(
                listed.contains(&path) || path == "/style.css",
                "{page} leads to {path}"
            );
        }
    }
}

/// Each request of the table does what it says as it is shown there, and none is left out.
#[test]
fn the_requests_it_lists_are_those_of_the_control_listener() {
    let world = with_an_invoice();
    let service = world.address("service");
    let code = || {
        let login = json!({ "clientName": "ci" }).to_string();
        let json = [("Content-Type", "application/json")];
        let path = "/api/v1/agent/login";
        let answer = request_to(&service.to_string(), service, "POST", path, &json, &login);
        let code = answer.json().get("userCode").cloned();
        code.and_then(|code| code.as_str().map(str::to_owned))
            .expect("a code")
    };
    let rows = table(&docs(), "request | such as");
    for row in &rows {
        let [request, body, _] = row.as_slice() else {
            panic!("{row:?}");
        };
        let (method, path) = request.split_once(' ').expect("a method and a path");
        let body = body.replace("WXYZ-1234", &code());
        let body: Value = match body.as_str() {
            "" => Value::Null,
            body => serde_json::from_str(body).unwrap_or_else(|_| panic!("{row:?}")),
        };
        // It asserts that it is answered with success.
        world.control(method, &path.replace("ID", "A-1"), &body);
    }
    let state = world.control("GET", "/state", &Value::Null);
    let at = |pointer| state.pointer(pointer).and_then(Value::as_str);
    assert_eq!(at("/invoices/0/invoice/status"), Some("paid"), "{state}");
    let told = world.control("GET", "/", &Value::Null);
    let told = told.get("requests").and_then(Value::as_array).cloned();
    let told: BTreeSet<String> = told
        .unwrap_or_default()
        .iter()
        .filter_map(|one| one.get("request")?.as_str().map(str::to_owned))
        .filter(|request| request != "GET /")
        .collect();
    assert_eq!(column(&rows, 0).into_iter().collect::<BTreeSet<_>>(), told);
}

/// Each word of the table is taken as it is shown there, and none is left out.
#[test]
fn the_faults_it_lists_are_those_that_can_be_set() {
    let world = with_an_invoice();
    let rows = table(&docs(), "word | such as");
    for row in &rows {
        let [key, value, _] = row.as_slice() else {
            panic!("{row:?}");
        };
        let value: Value = serde_json::from_str(value).unwrap_or_else(|_| panic!("{row:?}"));
        world.faults(&json!({ key.as_str(): value }));
        let now = set_now(&world);
        match key.as_str() {
            // It says for whom, and all off.
            "invoice" | "reset" => {}
            "api_status" => {
                let answers = now.get(key).and_then(Value::as_array).expect("a list");
                assert_eq!(answers.len(), 1, "{now}");
            }
            key => assert_eq!(now.get(key), Some(&value), "{now}"),
        }
    }
    // The last row is `reset`: all is as at the start, where nothing was set.
    let usual = set_now(&world);
    assert_eq!(
        usual,
        set_now(&Setup::new().logged_out().not_served().start())
    );
    let mut known: BTreeSet<String> = usual.as_object().expect("faults").keys().cloned().collect();
    // Shown as the invoices that have faults of their own, set by naming one.
    assert!(known.remove("own"));
    known.extend(["invoice", "reset"].map(str::to_owned));
    assert_eq!(column(&rows, 0).into_iter().collect::<BTreeSet<_>>(), known);
}

/// What it says may go wrong by chance can.
#[test]
fn the_chances_it_lists_can_be_set() {
    let world = with_an_invoice();
    let docs = docs();
    let (_, list) = docs.split_once("**By chance** go ").expect("the list");
    let list = list.split("\n\n").next().unwrap_or_default();
    let answers = ["html", "redirect", "hang", "cut", "drop_answer"];
    for word in list.split('`').skip(1).step_by(2) {
        // An answer's word stands behind an endpoint's.
        let is_answer = answers.contains(&word) || word.parse::<u16>().is_ok();
        let word = if is_answer {
            format!("api.{word}")
        } else {
            word.to_owned()
        };
        world.faults(&json!({ "rates": { word.as_str(): 1 } }));
        let shown = set_now(&world);
        assert!(
            shown.get("rates").is_some_and(|rates| rates != &json!({})),
            "{word}: {shown}"
        );
        world.faults(&json!({ "reset": true }));
    }
}

#[test]
fn the_requests_it_shows_can_be_pasted() {
    if Command::new("curl").arg("--version").output().is_err() {
        skip!("curl is not installed");
    }
    let world = with_an_invoice();
    let control = format!("http://{}/", world.address("control"));
    let text = block(&docs(), "faults");
    assert!(text.lines().all(|line| line.starts_with("curl ")), "{text}");
    let text = text
        .replace("http://127.0.0.1:8491/", &control)
        .replace("curl ", "curl -sS --fail ");
    let mut command = Command::new("sh");
    command.args(["-e", "-c", &text]);
    let ran = run(&mut command, world.dir(), "pasted").ends_with(0);
    assert!(ran.stdout.contains("\"internalId\":\"A-1\""), "{ran:?}");
    let state = world.control("GET", "/state", &Value::Null);
    assert_eq!(state.pointer("/pool/free"), Some(&json!(0)), "{state}");
    let revoked = state.pointer("/tokens/0/revokedAt").expect("a token");
    assert!(revoked.is_string(), "{revoked}");
}

/// What it says of their places holds: the first failed one is a cancelled order's, the last an expired one's.
#[test]
fn the_status_names_it_shows_are_taken() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("names.toml");
    std::fs::write(&file, block(&docs(), "statuses")).expect("written");
    let flag = format!("--statuses={}", file.display());
    let world = Setup::new()
        .quiet()
        .not_served()
        .sandbox(&[&flag, "--window=1"])
        .start();
    world.open("A-1", "150.00", &[]).ends_with(0);
    wait_until(PATIENCE, "the end of its time", || {
        let state = world.control("GET", "/state", &Value::Null);
        state.pointer("/invoices/0/invoice/status") == Some(&json!("timed_out"))
    });
}

#[test]
fn the_flags_of_the_sandbox_it_names_are_there() {
    let section = page("docs/sandbox.md");
    let help = Command::new(env!("CARGO_BIN_EXE_tilld"))
        .args(["sandbox", "--help"])
        .output();
    let help = String::from_utf8(help.expect("tilld runs").stdout).expect("UTF-8");
    let named = section.split('`').filter(|code| code.starts_with("--"));
    let flags: BTreeSet<&str> = named.filter_map(|code| code.split(' ').next()).collect();
    assert!(flags.len() > 5, "{flags:?}");
    for flag in flags {
        assert!(
            help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n")),
            "{flag}"
        );
    }
}
