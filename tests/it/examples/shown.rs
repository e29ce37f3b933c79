//! The pages about the shop: the examples to the letter, the lines that take one payment, and the tables of the socket as its
//! description has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{ALL, Beside, SH};
use crate::docs::{example, rows};
use crate::harness::{PATIENCE, Process, Setup, run, skip, wait_until};

#[test]
fn the_examples_are_those_of_the_files() {
    for one in ALL {
        assert_eq!(example(one.file), one.text(), "{}", one.file);
    }
    let there = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples"));
    assert_eq!(
        there.expect("a directory").count(),
        ALL.len(),
        "all of them are run"
    );
}

fn description() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/control/openapi.json");
    let text = fs::read_to_string(path).expect("the description");
    serde_json::from_str(&text).expect("JSON")
}

/// The call of a row: its method and path.
fn call(cell: &str) -> (String, String) {
    let (method, path) = cell.split_once(' ').unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    (method.to_lowercase(), path.to_owned())
}

#[test]
fn the_calls_and_their_answers_are_those_of_the_description() {
    let described = description();
    let paths = described
        .get("paths")
        .and_then(Value::as_object)
        .expect("paths");
    let mut left: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flat_map(|item| item.keys());
            let methods = methods.filter(|name| *name != "parameters");
            methods.map(|method| (method.clone(), path.clone()))
        })
        .collect();
    for row in rows("call") {
        let [asked, _, answers] = row.as_slice() else {
            panic!("three cells: {row:?}");
        };
        let (method, path) = call(asked);
        assert!(left.remove(&(method.clone(), path.clone())), "{asked}");
        let responses = paths
            .get(&path)
            .and_then(|item| item.get(&method)?.get("responses"));
        let responses = responses.and_then(Value::as_object).expect("responses");
        // What any call may be answered is told below the table.
        let any = ["400", "405", "408", "413", "431", "500", "503"];
        let own: BTreeSet<&str> = responses
            .keys()
            .map(String::as_str)
            .filter(|status| !any.contains(status))
            .collect();
        let digits =
            |word: &&str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
        let told: BTreeSet<&str> = answers
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(digits)
            .collect();
        assert_eq!(told, own, "{asked}");
    }
    assert_eq!(left, BTreeSet::new(), "all of them");
}

#[test]
fn the_names_of_problems_are_those_of_the_description() {
    let described = description();
    let names = described.pointer("/components/schemas/Problem/properties/error/enum");
    // In the order of their numbers.
    let names: Vec<&str> = names
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for row in rows("name") {
        let [name, code, status, _] = row.as_slice() else {
            panic!("four cells: {row:?}");
        };
        let at = names.iter().position(|known| known == name);
        let number = at.map(|at| (at + 1).to_string());
        assert_eq!(number.as_ref(), Some(code), "{name}");
        assert!(
            status.parse::<u16>().is_ok_and(|status| status >= 400),
            "{name}: {status}"
        );
    }
}

#[test]
fn the_types_of_a_create_are_the_programs_own() {
    let table = include_str!("../../../src/answer/problem.rs");
    let named = table.lines().filter_map(|line| {
        let words = line.trim_start().trim_start_matches("Self::");
        let (_, names) = words.split_once("=> (").or_else(|| {
            let alone = words.starts_with('"') && words.ends_with("\",");
            alone.then_some(("", words))
        })?;
        let name = names.split('"').nth(1)?;
        (!name.contains(' ')).then(|| name.to_owned())
    });
    let known: BTreeSet<String> = named.collect();
    assert!(known.len() > 5, "{known:?}");
    let shown: BTreeSet<String> = rows("type")
        .iter()
        .filter_map(|row| row.first().cloned())
        .collect();
    assert_eq!(shown, known);
}

#[test]
fn the_problem_it_shows_is_one_that_is_answered() {
    let shop = Beside::start(Setup::new().quiet());
    shop.world.control("POST", "/pool", &json!({ "free": 0 }));
    let wish =
        json!({ "order_id": "1042", "amount": "150.00", "currency": "RUB", "method": "SBP" });
    let (status, head, problem) = shop.ask("POST", "/v1/invoices", &wish.to_string());
    let shown: Value = serde_json::from_str(&example("problem")).expect("JSON");
    assert_eq!((status, problem), (503, shown));
    assert!(head.contains("retry-after: "), "{head}");
}

#[test]
fn the_lines_of_one_payment_take_it() {
    if let Some(why) = SH.lacks() {
        skip!("{why}");
    }
    let shop = Beside::start(Setup::new().quiet());
    let (socket, control) = ("state/control.sock", "http://127.0.0.1:8491/");
    let lines = example("one-payment");
    assert!(lines.contains(socket) && lines.contains(control), "{lines}");
    let there = format!("http://{}/", shop.world.address("control"));
    let lines = lines
        .replace(socket, &shop.socket().to_string_lossy())
        .replace(control, &there)
        .replace("curl ", "curl -sS --fail ");
    let mut command = Command::new("sh");
    command.args(["-e", "-c", &lines]);
    let said = run(&mut command, shop.world.dir(), "payment").ends_with(0);
    let shows = |part: &str| said.stdout.contains(part);
    assert!(shows("\"requisites\":{\"bankName\""), "{said:?}");
    assert!(shows("\"outcome\":\"paid\""), "{said:?}");
}

#[test]
fn the_line_of_a_first_shop_opens_an_invoice() {
    if let Some(why) = SH.lacks() {
        skip!("{why}");
    }
    let shop = Beside::start(Setup::new().quiet());
    let line = example("first-shop");
    let line = line
        .replace("state/control.sock", &shop.socket().to_string_lossy())
        .replace("curl ", "curl -sS --fail ");
    let mut command = Command::new("sh");
    command.args(["-e", "-c", &line]);
    let answer = run(&mut command, shop.world.dir(), "shop").ends_with(0);
    let answer = answer.json();
    let shown = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    assert_eq!(shown("/order_id"), Some("A-2"));
    assert_eq!(shown("/amount_agreed"), Some("99.90"));
    assert!(shown("/requisites/bankName").is_some(), "{answer}");
}

#[test]
fn the_line_that_follows_events_prints_them_as_they_happen() {
    if let Some(why) = SH.lacks() {
        skip!("{why}");
    }
    let shop = Beside::start(Setup::new().quiet());
    shop.open("1042");
    let usual = "/run/tilld/control.sock";
    let line = example("follow");
    assert!(line.contains(usual), "{line}");
    let line = line.replace(usual, &shop.socket().to_string_lossy());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {line}")]);
    let follows = Process::spawn(&mut command, &shop.world.log_dir(), "follow");
    let hears = |event: &str| {
        wait_until(PATIENCE, event, || follows.stdout().contains(event));
    };
    hears("id: 0.1\nevent: opened\ndata: {\"seq\":1,");
    shop.is_paid("1042");
    hears("id: 0.2\nevent: paid\ndata: {\"seq\":2,");
}
