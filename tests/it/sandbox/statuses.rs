//! `--statuses FILE`: the service's names are not known, so a shop must work with any.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Merchant, Started, file, tilld};
use crate::harness::{PATIENCE, next_name, run};

const NAMES: &str = "open = [\"new\", \"ждёт\"]\npaid = [\"Оплачен\"]\nfailed = [\"no\", \"too late\"]\nreversed = [\"back\"]\n";

/// From the sandbox's file by the config it writes into the ledger; on ports of its own, beside another tilld that has 8480.
#[test]
fn names_of_ones_own_come_through_to_the_ledger_by_the_written_config() {
    let dir = tempfile::tempdir().expect("a directory");
    let names = file(dir.path(), "names.toml", NAMES);
    let config = dir.path().join("deep/sandbox.toml").display().to_string();
    // Somebody has it, whether by this line or from elsewhere.
    let _usual = TcpListener::bind("127.0.0.1:8480");
    let sandbox = Started::new(&[
        &format!("--statuses={names}"),
        &format!("--write-config={config}"),
        "--config-listen=127.0.0.1:0",
    ]);
    let merchant = Merchant::logs_in(&sandbox);
    let mut serve = merchant.serves();
    for (order, button, status, outcome, code) in [
        ("A-1", "paid", "Оплачен", "paid", 0),
        ("A-2", "cancel", "no", "failed", 5),
    ] {
        let order_flag = format!("--order={order}");
        let create = [
            "invoice",
            "create",
            "--amount=150",
            "--currency=RUB",
            "--method=SBP",
        ];
        let create = [&create[..], &[order_flag.as_str()]].concat();
        merchant.runs(&create).ends_with(0);
        let state = sandbox.control("GET", "/state", &json!({}));
        let invoices = state.get("invoices").and_then(Value::as_array);
        let page = invoices.and_then(|all| all.last()?.get("page")?.as_str());
        let (_, path) = page
            .and_then(|page| page.split_once("/pay/"))
            .expect("a page");
        let path = format!("/pay/{path}");
        assert_eq!(
            sandbox.press(&path, &format!("happening={button}")).status,
            303
        );
        merchant
            .runs(&["invoice", "wait", order, "--timeout=30s"])
            .ends_with(code);
        let shown = merchant.shows(order);
        assert_eq!(shown.get("status"), Some(&json!(status)), "{shown}");
        assert_eq!(shown.get("outcome"), Some(&json!(outcome)), "{shown}");
        // By the name of the sandbox's own lists the customer's page says it, too.
        let said = sandbox.ask("GET", &path, &[], "").body;
        assert!(said.contains(status), "{status}: {said}");
    }
    serve.signal(rustix::process::Signal::TERM);
    assert_eq!(serve.wait(PATIENCE), 0);
    sandbox.ends();
}

#[test]
fn a_file_that_will_not_do_is_named_with_what_would() {
    let dir = tempfile::tempdir().expect("a directory");
    for (text, what) in [
        (None, "could not read the status names"),
        (Some("open = [\n"), "could not read the status names"),
        (
            Some("open = [\"new\"]\npaid = [\"x\"]\nfailed = [\"y\"]\n"),
            "reversed",
        ),
        (Some(&*NAMES.replace("paid", "payed")), "payed"),
        (
            Some(&*NAMES.replace("\"no\"", "\"\"")),
            "must hold names of 1 to 128 bytes",
        ),
        (
            Some(&*NAMES.replace("\"new\", ", "")),
            "must begin with `new`",
        ),
        (
            Some(&*NAMES.replace("\"back\"", "")),
            "at least one status name each",
        ),
    ] {
        let names = match text {
            Some(text) => file(dir.path(), "names.toml", text),
            None => dir.path().join("none.toml").display().to_string(),
        };
        let mut command = tilld(dir.path());
        command.args(["sandbox", "--listen=127.0.0.1:0", "--control=127.0.0.1:0"]);
        command.arg("--statuses").arg(&names);
        let ran = run(&mut command, dir.path(), &next_name());
        assert!(ran.code == 1 || ran.code == 2, "{text:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{text:?}: {ran:?}");
        assert!(ran.stderr.contains(what), "{text:?}: {ran:?}");
        assert!(ran.stderr.contains("\nhint: "), "{text:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{text:?}");
    }
}
