//! `tilld invoice track`: an invoice that the shop's own code opened is watched over, and its notify token stays unseen.

use std::fs::{self, File};
use std::process::Command;

use serde_json::json;

use super::{TOKEN, kinds};
use crate::harness::holding;
use crate::harness::{PATIENCE, Setup, World, under_test, wait_until};

/// Where the token lies for tilld. Its name keeps it out of the search for leaks.
const TOKEN_FILE: &str = "shops-own.token";

/// Puts the token where `--token-file` finds it.
fn token_file(world: &World, text: &str) -> String {
    let path = world.dir().join(TOKEN_FILE);
    fs::write(&path, text).expect("written");
    path.to_string_lossy().into_owned()
}

/// `invoice track` of 599.80 RUB, with these flags besides.
fn track<'a>(id: &'a str, order: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["invoice", "track", order, "--json", "--id", id];
    for (flag, value) in [("--amount", "599.80"), ("--currency", "RUB")] {
        if !more.contains(&flag) {
            args.extend([flag, value]);
        }
    }
    args.extend(more);
    args
}

#[test]
fn a_payment_of_an_invoice_the_shops_own_code_opened_is_found_by_a_poll() {
    let world = Setup::new()
        .set("log_level", "\"trace\"")
        .noting_hook("fulfil", &["paid"])
        .start();
    world.faults(&json!({ "lose": true }));
    let issued = world.create_past_tilld("A-1", TOKEN, &json!({}));
    let file = token_file(&world, &format!("{TOKEN}\n"));
    // The daemon runs: another process writes, and it sees it by itself.
    let more = ["--token-file", file.as_str()];
    let tracked = world.tilld(&track(&issued.id, "A-1", &more)).ends_with(0);
    assert_eq!(tracked.stderr, "");
    assert_eq!(
        tracked.text("notification_url"),
        format!("http://{}/n", world.listen())
    );
    for (field, wanted) in [
        ("opening", "tracked"),
        ("order_id", "A-1"),
        ("invoice_id", issued.id.as_str()),
        ("amount_agreed", "599.80"),
    ] {
        assert_eq!(tracked.text(field), wanted, "{field}");
    }
    wait_until(PATIENCE, "the first answer", || {
        world.invoice("A-1", "opening || ' ' || mode || ' ' || method") == "tracked h2h SBP"
    });
    assert_eq!(world.invoice("A-1", "status || attention"), "new");
    let paid = world.dictate(&issued, "paid");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    assert_eq!(kinds(&world, "A-1"), ["opened", "paid"]);
    assert_eq!(world.invoice("A-1", "found_by"), "poll");

    // Its token authenticates, on its ref as well.
    let reference = world.invoice("A-1", "ref");
    let body = paid.object.to_string();
    let told = |token: &str| {
        let headers = [("X-Notification-Token", token)];
        world.notify(&reference, &headers, &body).status
    };
    assert_eq!(
        (told(TOKEN), told("another-token-of-the-same-length-000001")),
        (200, 401)
    );
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);

    // Repeated, it shows how the invoice stands.
    let again = world.tilld(&track(&issued.id, "A-1", &more)).ends_with(0);
    assert_eq!(again.text("outcome"), "paid");
    assert_eq!(
        again.json().pointer("/service/dealRate"),
        issued.object.get("dealRate")
    );

    let found = holding(world.dir(), TOKEN, &[TOKEN_FILE]);
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(
        holding(world.dir(), TOKEN, &[]).len(),
        1,
        "the search finds"
    );
    let for_people = world.tilld(&["invoice", "show", "A-1"]).ends_with(0);
    assert!(!for_people.stdout.contains(TOKEN), "{for_people:?}");
}

#[test]
fn the_address_it_prints_is_where_its_notifications_are_heard() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let issued = world.create_past_tilld("A-1", TOKEN, &json!({}));
    let file = token_file(&world, TOKEN);
    let more = ["--token-file", file.as_str()];
    world.tilld(&track(&issued.id, "A-1", &more)).ends_with(0);
    // Asked about once, and not again for a day: what comes now, the service told by itself.
    wait_until(PATIENCE, "the first answer", || {
        world.invoice("A-1", "status") == "new"
    });
    world.happens(&issued, &json!({ "status": "paid" }));
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    assert_eq!(world.invoice("A-1", "found_by"), "notification");
}

#[test]
fn an_id_is_tracked_once_and_a_token_that_cannot_be_one_is_refused() {
    let world = Setup::new().quiet().not_served().start();
    let other = world.create("B-1");
    let file = token_file(&world, TOKEN);
    let args = |id, order, more: &[&'static str]| {
        let mut more = more.to_vec();
        more.extend(["--token-file", TOKEN_FILE]);
        track(id, order, &more)
            .into_iter()
            .map(|arg| {
                if arg == TOKEN_FILE {
                    file.as_str()
                } else {
                    arg
                }
            })
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |args: Vec<String>| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        world.tilld(&args)
    };
    let first = run(args("inv-7", "A-1", &[])).ends_with(0);
    assert!(first.stderr.contains("no `tilld serve` runs"), "{first:?}");
    assert_eq!(
        (first.text("mode"), first.text("method")),
        ("unknown".into(), String::new())
    );
    let again = run(args("inv-7", "A-1", &["--amount", "599.8"])).ends_with(0);
    assert!(again.stderr.contains("is tracked already"), "{again:?}");
    assert_eq!(again.text("ref"), first.text("ref"));
    let told = |ran: crate::harness::Ran, text: &str| {
        assert!(
            ran.stderr.contains(text) && ran.stderr.contains("hint: "),
            "{ran:?}"
        );
    };
    let sum = run(args("inv-7", "A-1", &["--amount", "5"])).ends_with(1);
    told(sum, "in the ledger with 599.80 RUB");
    let order = run(args("inv-7", "A-2", &[])).ends_with(1);
    told(order, "belongs to order `A-1`");
    let taken = run(args(other.id.clone().leak(), "A-1", &[])).ends_with(1);
    told(taken, "belongs to order `B-1`");

    let refused = [
        ("", 2, "it is empty"),
        ("short\n", 2, "at least 32 characters"),
        (&format!("{TOKEN}\n{TOKEN}\n"), 2, "more than one line"),
        (
            "another-token-that-was-never-sent-0001",
            1,
            "another notify token",
        ),
    ];
    for (text, code, why) in refused {
        token_file(&world, text);
        let ran = run(args("inv-7", "A-1", &[])).ends_with(code);
        assert!(
            !ran.stderr.contains(TOKEN) && !ran.stdout.contains(TOKEN),
            "{ran:?}"
        );
        told(ran, why);
    }
    fs::remove_file(&file).expect("it was there");
    let missing = run(args("inv-8", "A-1", &[])).ends_with(1);
    assert!(missing.stderr.contains(TOKEN_FILE), "{missing:?}");
    // It never stands in an argument.
    let flag = format!("--token={TOKEN}");
    world.tilld(&track("inv-8", "A-1", &[&flag])).ends_with(2);
    run(args("..", "A-1", &[])).ends_with(2);
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "2");

    // What an answer would show is not known yet: there is nothing to give the customer, and nothing is opened beside it.
    let create = world.open("A-1", "599.80", &[]).ends_with(1);
    told(create, "was opened elsewhere");
    assert_eq!(world.requests("create"), 1, "B-1's");
    let shown = world.tilld(&["invoice", "show", "A-1"]).ends_with(0).stdout;
    assert!(
        shown.contains("unknown") && shown.contains("inv-7"),
        "{shown}"
    );
}

#[test]
fn a_token_is_read_from_standard_input_and_no_login_is_needed() {
    let mut world = Setup::new().start();
    world.faults(&json!({ "lose": true }));
    let urls = json!({ "successUrl": "https://shop.example/1", "cancelUrl": "https://shop.example/2",
                       "errorUrl": "https://shop.example/3" });
    let issued = world.create_past_tilld("R-1", TOKEN, &urls);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let credentials = world.state_dir().join("secret/credentials");
    let aside = world.dir().join("credentials.aside");
    fs::rename(&credentials, &aside).expect("moved");
    let input = File::open(token_file(&world, TOKEN)).expect("readable");
    let mut command = Command::new(under_test());
    command
        .env_clear()
        .env("HOME", world.dir())
        .arg("--config")
        .arg(world.dir().join("config.toml"))
        .arg("--state-dir")
        .arg(world.state_dir())
        .args(track(&issued.id, "R-1", &["--token-file", "-"]))
        .stdin(input);
    let ended = command.output().expect("tilld runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");

    fs::rename(&aside, &credentials).expect("moved back");
    world.start_serve();
    wait_until(PATIENCE, "the first answer", || {
        world.invoice("R-1", "mode") == "redirect"
    });
    // A redirect answer names no method.
    assert_eq!(world.invoice("R-1", "method"), "");
    let shown = world.tilld(&["invoice", "show", "R-1"]).ends_with(0).stdout;
    assert!(shown.starts_with("Pay 599.80 RUB:\n"), "{shown}");
}

#[test]
fn an_id_the_service_does_not_have_wants_a_person() {
    let world = Setup::new().start();
    let file = token_file(&world, TOKEN);
    let more = ["--token-file", file.as_str()];
    let mistyped = "00000000-0000-4000-8000-000000000000";
    world.tilld(&track(mistyped, "A-1", &more)).ends_with(0);
    let refusals = |count: u64| {
        let so_far = world.requests("fetch");
        wait_until(PATIENCE, "refusals", || {
            world.requests("fetch") >= so_far + count
        });
    };
    refusals(3);
    // Ten minutes, since the service may need some to find its own.
    assert_eq!(world.invoice("A-1", "coalesce(attention, '')"), "");
    world
        .neighbour()
        .tamper("UPDATE poll SET gone_since_ms = gone_since_ms - 600000, due_ms = 1, asked_ms = 1");
    wait_until(PATIENCE, "the alert", || {
        world.invoice("A-1", "attention") == "not_found"
    });
    let told = world.tilld(&["invoice", "show", "A-1"]).ends_with(0);
    assert!(
        told.stdout
            .contains(&format!("the service has no invoice {mistyped}")),
        "{}",
        told.stdout
    );
    assert!(
        world
            .tilld(&["status"])
            .ends_with(16)
            .stdout
            .contains("not_found")
    );
    // Whoever has looked hears no more of it, whatever the service says again.
    world.tilld(&["ack", "A-1"]).ends_with(0);
    world.tilld(&["invoice", "poll", "A-1"]).ends_with(3);
    assert_eq!(world.invoice("A-1", "attention"), "");
    world.tilld(&["status"]).ends_with(0);
}
