//! What hooks are owed, and which names mean paid, is the daemon's to say, whoever writes: a command with another config, or with
//! none, records the same. What is at stake: an order that is paid in the ledger and that no hook ever hears of.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Ran, Setup, World, wait_until};

/// A world whose hook wants payments, before it is served.
fn setup() -> Setup {
    Setup::new().quiet().noting_hook("fulfil", &["paid"])
}

/// An order that was paid with another sum than agreed, for the operator to accept.
fn mismatched(world: &World, order: &str) -> Issued {
    let issued = world.create(order);
    let fields = json!({ "status": "paid", "amount": "590.00" });
    let paid = world.dictate_fields(&issued, &fields);
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    wait_until(PATIENCE, "the poll", || {
        world.invoice(order, "outcome || ' ' || attention") == "mismatch mismatch"
    });
    issued
}

/// Hook and state of what is owed for an order because it was paid.
fn owed(world: &World, order: &str) -> Vec<String> {
    let query = format!(
        "SELECT hook || ' ' || state FROM deliveries WHERE order_id = '{order}' AND kind = 'paid' ORDER BY 1"
    );
    world.sql(&query).concat()
}

/// Where a command finds the service when no config says it.
fn service(world: &World) -> String {
    let config = fs::read_to_string(world.dir().join("config.toml")).expect("readable");
    let line = config
        .lines()
        .find_map(|line| line.strip_prefix("service.url = "));
    line.expect("it is set").trim_matches('"').to_owned()
}

#[track_caller]
fn rewrite(world: &World, old: &str, new: &str) {
    let file = world.dir().join("config.toml");
    let text = fs::read_to_string(&file).expect("readable");
    assert!(text.contains(old), "{old}: {text}");
    fs::write(&file, text.replace(old, new)).expect("written");
}

/// What a command says of whose rules hold.
fn says_whose(ran: &Ran) -> Vec<&str> {
    let says = |line: &&str| line.contains("serves by") || line.contains("no daemon has served");
    ran.stderr.lines().filter(says).collect()
}

/// The sentences of `missing` in what `status` says needs an operator.
fn missing(world: &World) -> Vec<String> {
    let status = world.tilld(&["status", "--json"]).json();
    let needs = status.get("needs").and_then(Value::as_array).cloned();
    let needs = needs.unwrap_or_default();
    let told = |need: &Value, key: &str| need.get(key).and_then(Value::as_str).map(str::to_owned);
    let missing = needs
        .iter()
        .filter(|need| told(need, "reason").as_deref() == Some("missing"));
    missing.filter_map(|need| told(need, "told")).collect()
}

#[test]
fn an_amount_accepted_without_the_config_runs_the_hook() {
    let world = setup().start();
    mismatched(&world, "A-1");
    let accepted =
        world.tilld_without_config(&[], &["invoice", "accept-amount", "A-1", "--amount", "590"]);
    let accepted = accepted.ends_with(0);
    assert!(
        accepted.stderr.contains("the outcome is paid"),
        "{accepted:?}"
    );
    assert_eq!(
        says_whose(&accepted),
        [""; 0],
        "nothing contradicts the daemon"
    );
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    world.settle();
    assert_eq!(owed(&world, "A-1"), ["fulfil done"]);
}

#[test]
fn a_config_that_the_daemon_has_not_taken_up_decides_nothing_and_is_named() {
    let world = setup().start();
    mismatched(&world, "A-1");
    rewrite(&world, "on = [\"paid\"]", "on = [\"failed\"]");
    rewrite(
        &world,
        "statuses.paid = [\"paid\"]",
        "statuses.paid = [\"settled\"]",
    );
    let accepted = world
        .tilld(&["invoice", "accept-amount", "A-1", "--amount", "590"])
        .ends_with(0);
    assert!(
        accepted.stderr.contains("the outcome is paid"),
        "{accepted:?}"
    );
    let file = world.dir().join("config.toml");
    assert_eq!(
        says_whose(&accepted),
        [format!(
            "the daemon serves by other `[statuses]`, `[[hook]]` than `{}`: what it serves by is used",
            file.display()
        )]
    );
    world.settle();
    assert_eq!(owed(&world, "A-1"), ["fulfil done"]);
    // What decides nothing has nothing to say.
    for args in [
        ["delivery", "replay", "--order=A-1"].as_slice(),
        &["invoice", "show", "A-1"],
    ] {
        assert_eq!(
            says_whose(&world.tilld(args).ends_with(0)),
            [""; 0],
            "{args:?}"
        );
    }
    world.settle();
}

#[test]
fn a_config_that_the_daemon_takes_up_while_it_runs_holds_for_commands_too() {
    let mut world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        .noting_hook("fulfil", &["paid", "late"])
        .start();
    mismatched(&world, "A-1");
    rewrite(&world, "name = \"fulfil\"", "name = \"ship\"");
    world.signal_serve(Signal::HUP);
    wait_until(PATIENCE, "the settings", || {
        world
            .serve_log()
            .contains("the settings were read again: `hook` changed")
    });
    let accepted =
        world.tilld_without_config(&[], &["invoice", "accept-amount", "A-1", "--amount", "590"]);
    accepted.ends_with(0);
    world.settle();
    assert_eq!(owed(&world, "A-1"), ["ship done"]);
    assert_eq!(missing(&world), [""; 0]);
    // A new start changes nothing of it.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.start_serve();
    assert_eq!(missing(&world), [""; 0]);
}

#[test]
fn commands_without_a_daemon_and_a_config_go_by_what_it_served_by() {
    let mut world = setup().noting_hook("look", &["*"]).start();
    let asked = world.create("A-1");
    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    world.open("B-1", "599.80", &[]).ends_with(9);
    let lost = world.issued("B-1").expect("the service made it");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.dictate(&asked, "paid");
    world.dictate(&lost, "paid");
    let service = service(&world);
    let variables = [
        ("TILLD_SERVICE__URL", service.as_str()),
        ("TILLD_LISTENER__PUBLIC_URL", "http://127.0.0.1:1/n"),
    ];
    let create = ["invoice", "create", "--order=C-1", "--amount=10.00"];
    let create = [create.as_slice(), &["--currency=RUB", "--method=SBP"]].concat();
    for args in [
        ["invoice", "poll", "A-1"].as_slice(),
        &["invoice", "adopt", "B-1", "--id", &lost.id],
        &create,
    ] {
        let ran = world.tilld_without_config(&variables, args).ends_with(0);
        assert_eq!(says_whose(&ran), [""; 0], "{args:?}");
    }
    // Who looks without the config sees no hook that is gone and no name that is not mapped.
    let status = world
        .tilld_without_config(&[], &["status", "--json"])
        .ends_with(16);
    let needs = status
        .json()
        .get("needs")
        .and_then(Value::as_array)
        .cloned();
    let reasons = needs.unwrap_or_default();
    let reasons: Vec<_> = reasons
        .iter()
        .filter_map(|need| need.get("reason"))
        .collect();
    assert_eq!(reasons, ["daemon"]);
    for order in ["A-1", "B-1"] {
        assert_eq!(
            owed(&world, order),
            ["fulfil waiting", "look waiting"],
            "{order}"
        );
    }
    let of_new = "SELECT kind || ' ' || hook FROM deliveries WHERE order_id = 'C-1'";
    assert_eq!(world.sql(of_new).concat(), ["opened look"]);
    world.start_serve();
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
    assert_eq!(missing(&world), [""; 0]);
}

#[test]
fn until_a_daemon_has_served_a_command_goes_by_its_own_config_and_says_so() {
    let mut world = setup().not_served().start();
    let opened = world.open("A-1", "599.80", &[]).ends_with(0);
    let file = world.dir().join("config.toml");
    let says = format!(
        "no daemon has served this ledger yet: `{}` decides what is paid and which hooks are owed",
        file.display()
    );
    assert_eq!(says_whose(&opened), [says.as_str()]);
    let issued = world.issued("A-1").expect("the service made it");
    world.dictate(&issued, "paid");
    let polled = world.tilld(&["invoice", "poll", "A-1"]).ends_with(0);
    assert_eq!(says_whose(&polled), [says.as_str()]);
    assert_eq!(owed(&world, "A-1"), ["fulfil waiting"]);
    let shown = world.tilld(&["delivery", "list"]).ends_with(0);
    assert_eq!(says_whose(&shown), [""; 0]);
    world.start_serve();
    world.settle();
    assert_eq!(
        missing(&world),
        [""; 0],
        "what was recorded before is not the daemon's"
    );
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let polled = world.tilld(&["invoice", "poll", "A-1"]).ends_with(0);
    assert_eq!(says_whose(&polled), [""; 0]);
}

/// The event of another program that wrote to the ledger: as tilld's own, but that nothing is owed.
fn written_by_another(world: &World, order: &str) {
    let event = format!(
        "INSERT INTO event (event_id, invoice, kind, rewound, status, outcome, previous_outcome, source, at_ms) \
         SELECT 'event-of-' || order_id, id, 'paid', 0, 'paid', 'paid', 'open', 'operator', created_ms \
         FROM invoice WHERE order_id = '{order}'"
    );
    world.neighbour().tamper(&event);
}

#[test]
fn an_event_without_its_delivery_is_an_alert_until_that_is_made_or_given_up() {
    let mut world = setup().start();
    for order in ["A-1", "B-1"] {
        world.create(order);
    }
    assert_eq!(missing(&world), [""; 0]);
    written_by_another(&world, "A-1");
    let told = "no delivery stands for event 3 of order A-1 for hook fulfil, though the hook is owed it: another program wrote \
                to the ledger";
    assert_eq!(missing(&world), [told]);
    let shown = world.tilld(&["delivery", "show", "3"]).ends_with(3);
    assert!(
        shown
            .stderr
            .contains("event 3 is owed to hook `fulfil` and has no delivery"),
        "{shown:?}"
    );
    let shown = world
        .tilld(&["delivery", "replay", "3", "--dry-run"])
        .ends_with(0);
    assert!(
        shown
            .stderr
            .contains("event 3 of order A-1 is without its delivery to hook fulfil"),
        "{shown:?}"
    );
    assert_eq!(missing(&world), [told], "only shown");
    world
        .tilld(&["delivery", "replay", "3", "--hook", "look"])
        .ends_with(3);
    let made = world
        .tilld(&["delivery", "replay", "3", "--json"])
        .ends_with(0);
    assert_eq!(made.json().get("replayed"), Some(&json!(1)));
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    assert_eq!(missing(&world), [""; 0]);

    // The same without a daemon, and the other way out.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    written_by_another(&world, "B-1");
    assert_eq!(missing(&world).len(), 1);
    let made = world
        .tilld(&["delivery", "abandon", "4", "--json"])
        .ends_with(0);
    assert_eq!(made.json().get("abandoned"), Some(&json!(1)));
    assert_eq!(owed(&world, "B-1"), ["fulfil abandoned"]);
    assert_eq!(missing(&world), [""; 0]);
    world.start_serve();
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    let status = world.tilld(&["status", "--json"]).json();
    assert_eq!(status.get("needs_person"), Some(&json!(false)), "{status}");
}

#[test]
fn a_delivery_that_another_program_took_away_is_missing() {
    let world = setup().start();
    world.pay("A-1");
    world.settle();
    let taken = "DELETE FROM attempt; DELETE FROM delivery WHERE hook = 'fulfil'";
    world.neighbour().tamper(taken);
    assert_eq!(missing(&world).len(), 1);
    world
        .tilld(&["delivery", "replay", "--order=A-1"])
        .ends_with(0);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
    assert_eq!(missing(&world), [""; 0]);
}

#[test]
fn a_hook_is_missed_for_events_of_its_own_time_alone() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid", "late"])
        .start();
    world.pay("A-1");
    world.settle();
    // Another hook comes, and the one that was there goes.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    rewrite(&world, "name = \"fulfil\"", "name = \"ship\"");
    world.start_serve();
    world.create("B-1");
    written_by_another(&world, "B-1");
    let told = missing(&world).concat();
    assert!(
        told.contains("for event 4 of order B-1 for hook ship,"),
        "{told}"
    );
    // What the hook of before was owed in its time still is.
    world
        .neighbour()
        .tamper("DELETE FROM attempt; DELETE FROM delivery WHERE hook = 'fulfil'");
    let told = missing(&world).concat();
    assert!(
        told.contains("event 4 of order B-1 for hook ship, event 2 of order A-1 for hook fulfil,"),
        "{told}"
    );
    world
        .tilld(&["delivery", "abandon", "--all", "--hook=fulfil"])
        .ends_with(0);
    world.tilld(&["delivery", "replay", "4"]).ends_with(0);
    world.settle();
    assert_eq!(missing(&world), [""; 0]);
}
