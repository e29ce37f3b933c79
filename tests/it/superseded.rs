//! An order with more than one invoice: one of them stands for it. What is at stake: goods for the wrong sum, and goods twice.

use std::thread;

use serde_json::{Value, json};

use crate::control::client::text;
use crate::harness::{Issued, PATIENCE, Setup, World, wait_until};

/// A world with a hook that fulfils, one that undoes and one that hears of second payments, and nobody notified by itself.
fn world(flags: &[&str]) -> World {
    Setup::new()
        .quiet()
        .plain()
        .noting_hook("fulfil", &["paid", "paid_again"])
        .noting_hook("undo", &["failed", "reversed"])
        .noting_hook("look", &["second_payment", "mismatch"])
        .sandbox(flags)
        .start()
}

/// The order's first invoice over 599.80 and its newer one over `amount`.
fn two(world: &World, amount: &str) -> [Issued; 2] {
    let first = world.create("A-1");
    world.open("A-1", amount, &["--new"]).ends_with(0);
    [first, world.issued("A-1").expect("the service has it")]
}

/// The service has it paid and says so.
#[track_caller]
fn paid(world: &World, issued: &Issued) {
    says(world, issued, "paid");
}

#[track_caller]
fn says(world: &World, issued: &Issued, status: &str) {
    let issued = world.dictate(issued, status);
    assert_eq!(world.tell_as_it_is(&issued).status, 200);
}

/// The order as a shop sees it, in the one line of the view.
fn order(world: &World) -> String {
    world.value(
        "SELECT outcome || ' ' || amount || ' of ' || received || ' ' || currency || ' ' || attention FROM orders \
         WHERE order_id = 'A-1'",
    )
}

fn of(world: &World, issued: &Issued, column: &str) -> String {
    let id = &issued.id;
    world.value(&format!(
        "SELECT {column} FROM invoices WHERE invoice_id = '{id}'"
    ))
}

fn runs(world: &World, hook: &str) -> usize {
    world.settle();
    world.hook_log(hook).len()
}

/// What `status` says needs an operator, by its word.
fn alerts(world: &World) -> Vec<String> {
    let status = world.tilld(&["status", "--json"]).json();
    let needs = status.get("needs").and_then(Value::as_array).cloned();
    let reason = |one: &Value| one.get("reason")?.as_str().map(str::to_owned);
    needs.iter().flatten().filter_map(reason).collect()
}

/// The cart has changed: the older invoice's sum is not the order's any more.
#[test]
fn the_older_sum_does_not_pay_the_order() {
    let world = world(&[]);
    let [first, second] = two(&world, "160");
    paid(&world, &first);
    assert_eq!(runs(&world, "fulfil"), 0);
    assert_eq!(runs(&world, "look"), 1);
    assert_eq!(order(&world), "open 160 of 599.80 RUB mismatch");
    assert_eq!(of(&world, &first, "outcome"), "mismatch");
    assert_ne!(world.wait("A-1", "0").code, 0);
    assert!(alerts(&world).contains(&"mismatch".to_owned()));
    for command in [
        &["explain", "A-1"] as &[&str],
        &["invoice", "show", "--id", &first.id],
    ] {
        let shown = world.tilld(command);
        let newer = format!("has the newer invoice `{}` over 160 RUB", second.id);
        assert!(shown.stdout.contains(&newer), "{}", shown.stdout);
    }
    // The shop asks once more: neither a third one, nor the old link.
    let again = world.open("A-1", "160", &[]).ends_with(1);
    assert!(again.stderr.contains("superseded"), "{again:?}");
    let again = world.wish("A-1");
    assert_eq!(again.status, 409, "{again:?}");
    assert_eq!(text(&again, "/type"), "urn:tilld:problem:superseded");
    assert_eq!(text(&again, "/invoice/invoice_id"), first.id);
    // The order on the socket is what the view says.
    let shown = world.call("GET", "/v1/orders/A-1", "");
    assert_eq!(text(&shown, "/outcome"), "open");
    assert_eq!(text(&shown, "/received"), "599.80");
    assert_eq!(text(&shown, "/invoice_id"), second.id);
    assert_eq!(text(&shown, "/invoices/1/outcome"), "mismatch");
    assert_eq!(
        shown.json().pointer("/invoices/1/superseded"),
        Some(&json!(true))
    );
    let older = world.call(
        "GET",
        &format!("/v1/invoices/by-id/{}", first.segment()),
        "",
    );
    assert_eq!(text(&older, "/superseded_by/invoice_id"), second.id);

    paid(&world, &second);
    assert_eq!(runs(&world, "fulfil"), 1);
    assert_eq!(order(&world), "paid 160 of 759.80 RUB mismatch");
    world.wait("A-1", "0").ends_with(0);
}

#[test]
fn a_person_may_take_the_older_payment_for_the_order() {
    let world = world(&[]);
    let [first, second] = two(&world, "160");
    paid(&world, &first);
    let accept = [
        "invoice",
        "accept-amount",
        // The order is enough: of its invoices this one has something to accept.
        "A-1",
        "--amount",
        "599.80",
    ];
    world.tilld(&accept).ends_with(0);
    assert_eq!(runs(&world, "fulfil"), 1);
    assert_eq!(order(&world), "paid 599.80 of 599.80 RUB ");
    world.wait("A-1", "0").ends_with(0);
    paid(&world, &second);
    assert_eq!(of(&world, &second, "outcome"), "second_payment");
    assert_eq!(runs(&world, "fulfil"), 1);
}

/// Whichever is paid first, also when the newer one came after the end of the older one.
#[test]
fn a_second_payment_is_never_paid() {
    // Each waits for half a minute, and none for another.
    thread::scope(|scope| {
        for (flags, newest_first) in [
            (&[] as &[&str], false),
            (&[], true),
            (&["--window=1"], false),
        ] {
            scope.spawn(move || a_second_payment(flags, newest_first));
        }
    });
}

fn a_second_payment(flags: &[&str], newest_first: bool) {
    let world = world(flags);
    let [mut one, mut other] = if flags.is_empty() {
        two(&world, "599.80")
    } else {
        let first = world.create("A-1");
        wait_until(PATIENCE, "room after the end", || {
            let ran = world.try_create("A-1");
            ran.code == 0 && ran.text("invoice_id") != first.id
        });
        [first, world.issued("A-1").expect("the service has it")]
    };
    if newest_first {
        std::mem::swap(&mut one, &mut other);
    }
    paid(&world, &one);
    assert_eq!(runs(&world, "fulfil"), 1);
    paid(&world, &other);
    assert_eq!(runs(&world, "fulfil"), 1, "{flags:?}");
    assert_eq!(runs(&world, "look"), 1);
    let kinds = "SELECT group_concat(kind || ' ' || order_outcome, ', ') FROM events WHERE kind LIKE '%pa%' \
                 OR kind = 'late' ORDER BY seq";
    let kinds = world.value(kinds);
    assert!(kinds.ends_with(", second_payment paid"), "{kinds}");
    assert_eq!(order(&world), "paid 599.80 of 1199.60 RUB second_payment");
    assert!(alerts(&world).contains(&"second_payment".to_owned()));
    world.wait("A-1", "0").ends_with(0);

    if newest_first {
        return;
    }
    // Its money goes back: the order stays paid, and the alert ends. A second poll must agree, 30 s later.
    says(&world, &other, "refunded");
    wait_until(2 * PATIENCE, "the refund", || {
        of(&world, &other, "outcome") == "reversed"
    });
    assert_eq!(order(&world), "paid 599.80 of 599.80 RUB ");
    world.settle();
    let undone = world.hook_log("undo").join("\n");
    assert!(!undone.contains(" reversed "), "{undone}");
}

#[test]
fn an_order_does_not_fail_with_its_older_invoice() {
    let world = world(&[]);
    let [first, second] = two(&world, "599.80");
    says(&world, &first, "canceled");
    assert_eq!(runs(&world, "undo"), 0);
    assert_eq!(of(&world, &first, "outcome"), "failed");
    assert_eq!(order(&world), "open 599.80 of 0 RUB ");
    // Money on the older one pays, since the sums are equal; the newer one fails beside it.
    paid(&world, &first);
    assert_eq!(order(&world), "paid 599.80 of 599.80 RUB ");
    says(&world, &second, "canceled");
    assert_eq!((runs(&world, "undo"), runs(&world, "fulfil")), (0, 1));
    assert_eq!(order(&world), "paid 599.80 of 599.80 RUB ");
    // What paid it goes back.
    says(&world, &first, "refunded");
    wait_until(2 * PATIENCE, "the refund", || {
        order(&world).starts_with("reversed")
    });
    assert_eq!(runs(&world, "undo"), 1);
}

/// The service opened nothing: the older invoice is the order's again.
#[test]
fn one_that_was_not_opened_supersedes_nothing() {
    let world = world(&[]);
    let first = world.create("A-1");
    world.control("POST", "/pool", &json!({ "free": 0 }));
    world.open("A-1", "160", &["--new"]).ends_with(7);
    assert_eq!(order(&world), "open 599.80 of 0 RUB ");
    paid(&world, &first);
    assert_eq!(runs(&world, "fulfil"), 1);
}

/// Answers of creates that say no although the invoice was opened.
fn rejects(world: &World, times: u32) {
    let fault = json!({ "endpoint": "create", "status": 400, "body": "{}", "times": times });
    world.faults(&json!({ "api_status": fault }));
}

#[test]
fn a_second_payment_stays_one_when_the_first_went_back_and_a_create_is_rejected() {
    let world = world(&[]);
    let [first, second] = two(&world, "599.80");
    paid(&world, &first);
    paid(&world, &second);
    says(&world, &first, "refunded");
    wait_until(2 * PATIENCE, "the refund", || {
        order(&world).starts_with("reversed")
    });
    rejects(&world, 1);
    let rejected = world.open("A-1", "599.80", &["--new"]);
    assert_ne!(rejected.code, 0, "{rejected:?}");
    // A repetition of what was heard changes nothing either.
    paid(&world, &second);
    assert_eq!(of(&world, &second, "outcome"), "second_payment");
    assert!(order(&world).starts_with("reversed"), "{}", order(&world));
    assert_eq!((runs(&world, "fulfil"), runs(&world, "undo")), (1, 1));
}

/// What a person has looked at is not taken for the order by a repetition.
#[test]
fn a_repetition_does_not_pay_what_was_another_sum() {
    let world = world(&[]);
    let [first, _second] = two(&world, "160");
    paid(&world, &first);
    world.tilld(&["ack", "A-1"]).ends_with(0);
    world.open("A-1", "599.80", &["--new"]).ends_with(0);
    paid(&world, &first);
    assert_eq!(of(&world, &first, "outcome"), "mismatch");
    assert_eq!(runs(&world, "fulfil"), 0);
}

/// An older invoice that is handed out again stands for the order.
#[test]
fn what_a_create_hands_out_is_what_is_waited_for() {
    let world = world(&[]);
    let [first, second] = two(&world, "599.80");
    says(&world, &second, "canceled");
    assert!(order(&world).starts_with("failed"), "{}", order(&world));
    let again = world.try_create("A-1").ends_with(0);
    assert_eq!(again.text("invoice_id"), first.id);
    assert!(
        again
            .json()
            .get("superseded_by")
            .is_some_and(Value::is_null)
    );
    assert!(order(&world).starts_with("open"), "{}", order(&world));
    world.wait("A-1", "0").ends_with(6);
    paid(&world, &first);
    world.wait("A-1", "0").ends_with(0);
    assert_eq!(
        world.value("SELECT kind FROM events ORDER BY seq DESC LIMIT 1"),
        "late"
    );
}

#[test]
fn remapping_pays_an_order_once() {
    let mut world = world(&[]);
    let [first, second] = two(&world, "599.80");
    paid(&world, &second);
    paid(&world, &first);
    assert_eq!(runs(&world, "fulfil"), 1);
    let config = world.dir().join("config.toml");
    let right = std::fs::read_to_string(&config).expect("readable");
    let wrong = right
        .replace(r#"statuses.paid = ["paid"]"#, "statuses.paid = []")
        .replace("statuses.failed = [", r#"statuses.failed = ["paid", "#);
    assert_ne!(right, wrong, "{right}");
    for (text, outcomes) in [(&wrong, "failed failed"), (&right, "second_payment paid")] {
        assert_eq!(world.stop_serve(PATIENCE), 0);
        std::fs::write(&config, text).expect("written");
        world.start_serve();
        wait_until(PATIENCE, "the pass", || {
            let both = [&first, &second].map(|issued| of(&world, issued, "outcome"));
            both.join(" ").replace("reversed", "failed") == outcomes
        });
    }
    let paid = "SELECT count(*) FROM events WHERE kind IN ('paid', 'late')";
    assert_eq!(world.value(paid), "1");
}

/// The customer pays the older invoice while the newer one is being opened: the shop must not hand that one out.
#[test]
fn an_order_that_is_paid_while_another_invoice_is_opened_is_said_to_be_paid() {
    let world = world(&[]);
    let first = world.create("A-1");
    world.faults(&json!({ "lose": true, "hold_create_ms": 5_000 }));
    let args = "invoice create --json --order A-1 --amount 160 --currency RUB --method SBP --new";
    let args: Vec<&str> = args.split(' ').collect();
    let mut opening = world.start_tilld(&args);
    wait_until(PATIENCE, "the second row", || {
        world.value("SELECT count(*) FROM invoices") == "2"
    });
    // Over the older sum it does not pay the order, so a person takes it.
    paid(&world, &first);
    let accept = ["invoice", "accept-amount", "A-1", "--amount", "599.80"];
    world.tilld(&accept).ends_with(0);
    assert_eq!(opening.wait(PATIENCE), 1, "{}", opening.stderr());
    let said = opening.stderr();
    assert!(said.contains("another invoice paid order `A-1`"), "{said}");
    world.wait("A-1", "0").ends_with(0);
}
