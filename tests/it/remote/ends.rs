//! The ends of commands that go over the socket: the exit codes scripts rely on, with the same words.

use serde_json::json;

use super::{Booth, CREATE, lacks};
use crate::harness::{Setup, skip, wait_until};

#[test]
fn every_end_has_its_code_over_the_socket() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    let world = &booth.world;
    for (order, change) in [
        ("paid", json!({ "status": "paid" })),
        ("canceled", json!({ "status": "canceled" })),
    ] {
        booth.open(order, &[]).ends_with(0);
        let issued = world.issued(order).expect("the service has it");
        world.happens(&issued, &change);
        let code = if order == "paid" { 0 } else { 5 };
        booth.shop(&["invoice", "wait", order]).ends_with(code);
    }
    booth.shop(&["status"]).ends_with(0);

    let paid = booth.open("paid", &[]).ends_with(1);
    assert_eq!(paid.text("outcome"), "paid", "it is shown");
    assert!(paid.stderr.contains("is paid already"), "{paid:?}");
    assert!(paid.stderr.contains("\nhint: `--new` opens"), "{paid:?}");

    for args in [
        &["invoice", "show", "absent"] as &[&str],
        &["invoice", "wait", "absent"],
        &["invoice", "poll", "absent"],
        &["invoice", "poll", "a/b?c"],
    ] {
        let absent = booth.shop(args).ends_with(3);
        assert!(
            absent.stderr.contains("hint: `tilld invoice list`"),
            "{absent:?}"
        );
    }

    world.control("POST", "/pool", &json!({ "free": 0 }));
    let full = booth.open("full", &[]).ends_with(7);
    assert!(full.stderr.contains("`--wait 90s`"), "{full:?}");
    booth.shop(&["invoice", "wait", "full"]).ends_with(5);
    let waited = booth.open("patient", &["--wait=2s"]).ends_with(7);
    assert!(
        waited.stderr.contains("trying again for up to 2 s"),
        "{waited:?}"
    );
    assert!(!waited.stderr.contains("`--wait 90s`"), "{waited:?}");
    let page = [
        "--fallback=redirect",
        "--success-url=https://shop.example/s",
        "--cancel-url=https://shop.example/c",
        "--error-url=https://shop.example/e",
    ];
    let page = booth.open("page", &page).ends_with(0);
    assert_eq!(page.text("mode"), "redirect");
    assert!(page.stderr.contains("in the Redirect mode"), "{page:?}");
    world.control("POST", "/pool", &json!({ "free": 5 }));

    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    let lost = booth.open("lost", &[]).ends_with(9);
    assert_eq!(lost.text("opening"), "unknown");
    let why = "error: could not open an invoice for order `lost`: ";
    assert!(lost.stderr.starts_with(why), "{lost:?}");
    let still = booth.open("lost", &[]).ends_with(9);
    assert!(
        still.stderr.contains("whether the last create"),
        "{still:?}"
    );
    booth.shop(&["invoice", "wait", "lost"]).ends_with(9);
    let unknown = booth.shop(&["invoice", "poll", "lost"]).ends_with(9);
    assert!(unknown.stderr.contains("no id to ask for"), "{unknown:?}");
    let status = booth.shop(&["status"]).ends_with(16);
    assert!(status.stdout.contains("outcome_unknown"), "{status:?}");

    world.control("POST", "/tokens/revoke", &serde_json::Value::Null);
    let refused = booth.open("refused", &[]).ends_with(4);
    assert!(
        refused.stderr.contains("hint: run `sudo -u root tilld "),
        "{refused:?}"
    );
}

#[test]
fn a_named_socket_is_asked_and_nothing_else() {
    let world = Setup::new().start();
    let socket = world.state_dir().join("control.sock");
    let socket = socket.to_str().expect("UTF-8");
    let nobody = "/nonexistent/control.sock";
    world.create("1");
    for command in [
        &[&CREATE as &[&str], &["--order", "2"]].concat() as &[&str],
        &["invoice", "show", "1"],
        &["invoice", "list"],
        &["invoice", "wait", "1", "--timeout=0"],
        &["invoice", "poll", "1"],
        &["event", "list"],
        &["event", "follow"],
        &["status"],
    ] {
        let ran = world.tilld(&[&["--socket", nobody], command].concat());
        let ran = ran.ends_with(8);
        assert!(
            ran.stderr
                .starts_with("error: no daemon answers on `/nonexistent/control.sock`: "),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("`tilld serve`"), "{ran:?}");
    }
    let shown = world.tilld(&["--socket", socket, "invoice", "show", "1"]);
    shown.ends_with(0);
    // The daemon tells nobody of the login.
    let status = world.tilld(&["--socket", socket, "status", "--json"]);
    let state = status.json().pointer("/login/state").cloned();
    assert_eq!(state, Some(json!("hidden")));
    for command in ["login", "whoami", "explain 1", "invoice track 1", "serve"] {
        let words: Vec<&str> = command.split(' ').collect();
        let words = [&["--socket", socket], words.as_slice()].concat();
        let ran = world.tilld(&words);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
}

#[test]
fn a_token_of_the_environment_is_the_commands_own_unless_a_socket_is_named() {
    let world = Setup::new().quiet().start();
    let socket = world.state_dir().join("control.sock");
    let socket = socket.to_str().expect("UTF-8");
    let variables = [("SERVICE_TOKEN", "shop:nonsense")];
    let create = [&CREATE as &[&str], &["--order", "1"]].concat();
    let ran = world.tilld_with(&variables, &create).ends_with(4);
    assert!(ran.stderr.contains("`SERVICE_TOKEN`"), "{ran:?}");
    let named = [&["--socket", socket], create.as_slice()].concat();
    world.tilld_with(&variables, &named).ends_with(0);
    wait_until(crate::harness::PATIENCE, "its log", || {
        world.serve_log().contains("POST /v1/invoices: 201")
    });
}

#[test]
fn more_invoices_than_a_daemon_gives_at_once_come_from_the_ledger() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    let args = ["invoice", "list", "--limit", "1001"];
    let refused = booth.shop(&args).ends_with(2);
    assert!(
        refused
            .stderr
            .contains("hint: give a whole number from 1 to 1000"),
        "{refused:?}"
    );
    let listed = booth.world.tilld(&args).ends_with(0);
    assert_eq!(listed.stdout.lines().count(), 2, "{listed:?}");
}
