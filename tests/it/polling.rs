//! When nobody tells, tilld asks: soon enough, politely, and never believing what is not the service's word.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{CUT, Heard, PATIENCE, Service, Setup, World, wait_until};

/// An answer of the service's own form: another one's wish is not heeded.
const SLOW_DOWN: &str = r#"{"error":"slow down"}"#;

/// How the poller says it stands.
fn standing(world: &World, what: &str) -> String {
    world.value(&format!(
        "SELECT coalesce((SELECT json_extract(value, '{what}') FROM meta WHERE key = 'poller'), '')"
    ))
}

/// How many lines of the daemon's log hold this.
fn logged(world: &World, text: &str) -> usize {
    world.serve_log().matches(text).count()
}

/// Lines of the level that is written by default.
fn warned(world: &World, text: &str) -> usize {
    let log = world.serve_log();
    let warned = |line: &&str| line.contains(" WARN ") && line.contains(text);
    log.lines().filter(warned).count()
}

#[test]
fn with_every_notification_lost_a_payment_is_found_within_silence_and_cadence() {
    let world = Setup::new().noting_hook("fulfil", &["paid"]).start();
    world.faults(&json!({ "lose": true }));
    let issued = world.create("A-1");
    world.happens(&issued, &json!({ "status": "paid" }));
    let paid = Instant::now();
    wait_until(PATIENCE, "the script", || {
        world.hook_log("fulfil").len() == 1
    });
    // Silence of 2 s, a cadence of 1 s, and what a busy machine takes.
    assert!(
        paid.elapsed() < Duration::from_secs(2 + 1 + 4),
        "{:?}",
        paid.elapsed()
    );
    assert_eq!(world.invoice("A-1", "found_by"), "poll");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    // A paid invoice is not asked for any more: another one that is shows that the poller still looks.
    let asked = world.requests("fetch");
    world.create("A-2");
    wait_until(PATIENCE, "questions about another one", || {
        world.requests("fetch") >= asked + 2
    });
    let told = world.value(
        "SELECT count(*) FROM heard h JOIN invoice i ON i.id = h.invoice \
         WHERE i.order_id = 'A-1' AND h.source = 'poll'",
    );
    assert!(told == "1" || told == "2", "{told}");
}

#[test]
fn what_is_not_the_services_word_changes_nothing() {
    let world = Setup::new().noting_hook("all", &["*"]).start();
    world.faults(&json!({ "lose": true }));
    let issued = world.create("A-0");
    // So many that one of them is always about to be asked for: a refused answer moves its invoice back.
    for order in 1..12 {
        world.create(&format!("A-{order}"));
    }
    let put_aside =
        || logged(&world, "nothing learnt about order") + logged(&world, "names another order");
    let object = issued.object.to_string();
    for (status, body) in [
        (200, "<html>maintenance</html>".to_owned()),
        (500, r#"{"error":"oops"}"#.to_owned()),
        (502, "<html>bad gateway</html>".to_owned()),
        (
            200,
            issued
                .with(&json!({ "id": "someone-else", "status": "paid" }))
                .to_string(),
        ),
        (
            200,
            format!("[{}]", issued.with(&json!({ "status": "paid" }))),
        ),
        (200, object.replace('}', "")),
        (200, object.replace("\"status\"", "\"state\"")),
        (302, String::new()),
        (404, r#"{"error":"not_found"}"#.to_owned()),
        (403, String::new()),
        (204, String::new()),
    ] {
        let before = put_aside();
        world.next_fetch(status, &body);
        wait_until(
            PATIENCE,
            &format!("{status} {body} to be put aside"),
            || put_aside() > before,
        );
    }
    // The invoice that was asked for, but of another order.
    let other_order = issued.with(&json!({ "internalId": "B-0", "status": "paid" }));
    let always = json!({ "endpoint": "fetch", "status": 200, "body": other_order.to_string(), "times": true });
    world.faults(&json!({ "api_status": always }));
    wait_until(PATIENCE, "another order", || {
        logged(&world, "names another order") > 0
    });
    // It is remembered as what it is, and nothing came of it.
    assert_eq!(
        world
            .sql("SELECT DISTINCT status || ' ' || (decision = 'not_this_invoice') FROM heard ORDER BY 1")
            .concat(),
        ["new 0", "paid 1"]
    );
    let stand = "SELECT DISTINCT status || outcome || doubt || attention FROM invoices";
    assert_eq!(world.sql(stand).concat(), ["newopen0"]);
    assert_eq!(world.value("SELECT count(*) FROM events"), "12");
    world.settle();
    assert_eq!(world.hook_log("all").len(), 12);
}

#[test]
fn an_answer_that_breaks_off_changes_nothing() {
    let object = json!({
        "id": "inv-1", "status": "new", "amount": "599.80", "currency": "RUB", "internalId": "A-1",
    });
    let shop = Service::start(move |heard: &Heard| {
        let mut object = object.clone();
        if heard.path().ends_with("/invoices") {
            return (201, object.to_string());
        }
        // Whole in itself: only the length before it says that more was to come.
        if let Some(status) = object.get_mut("status") {
            *status = json!("paid");
        }
        (CUT, object.to_string())
    });
    let mut world = Setup::new().service(&shop.url()).not_served().start();
    world.tilld(&["login"]).ends_with(0);
    world.open("A-1", "599.80", &[]).ends_with(0);
    world.start_serve();
    wait_until(PATIENCE, "the answer to be put aside", || {
        logged(&world, "the payment service gave no complete answer") > 0
    });
    assert_eq!(world.invoice("A-1", "outcome"), "open");
}

#[test]
fn the_service_is_left_alone_as_long_as_it_asks() {
    let world = Setup::new().start();
    let busy = json!({ "endpoint": "fetch", "status": 429, "body": SLOW_DOWN, "retry_after_s": 4, "times": 1 });
    world.faults(&json!({ "lose": true, "api_status": busy }));
    let (first, second) = (world.create("A-1"), world.create("A-2"));
    wait_until(PATIENCE, "the wish", || {
        logged(&world, "wants to be left alone") == 1
    });
    let wished = Instant::now();
    for issued in [&first, &second] {
        world.happens(issued, &json!({ "status": "paid" }));
    }
    // One question may have been under way beside the one that was told.
    let asked = world.requests("fetch");
    wait_until(PATIENCE, "the next question", || {
        world.requests("fetch") > asked
    });
    // Seen by looking, so it may be noticed late, and the wish may have been noticed late as well.
    assert!(
        wished.elapsed() > Duration::from_millis(3_500),
        "{:?}",
        wished.elapsed()
    );
    for order in ["A-1", "A-2"] {
        wait_until(PATIENCE, "the payment", || {
            world.invoice(order, "outcome") == "paid"
        });
    }
}

/// A29: a restart is no way around what the service asked for.
#[test]
fn a_wish_to_be_left_alone_outlives_the_daemon() {
    let mut world = Setup::new().start();
    let busy = json!({ "endpoint": "fetch", "status": 429, "body": SLOW_DOWN, "retry_after_s": 600, "times": 1 });
    world.faults(&json!({ "lose": true, "api_status": busy }));
    world.create("A-1");
    wait_until(PATIENCE, "the wish to be written down", || {
        !standing(&world, "$.no_polls").is_empty()
    });
    world.kill9_serve();
    let asked = world.requests("fetch");
    world.start_serve();
    wait_until(PATIENCE, "the wish to be remembered", || {
        logged(&world, "still wants to be left alone") == 1
    });
    // Creates are no polls: the daemon opens invoices meanwhile.
    world.open("A-2", "599.80", &[]).ends_with(0);
    // All else goes on, commands of their own too; what is due is not asked about.
    for order in ["A-2", "A-3"] {
        let create = ["invoice", "create", "--order", order, "--amount=599.80"];
        let create = [create.as_slice(), &["--currency=RUB", "--method=SBP"]].concat();
        let no_socket = [("TILLD_CONTROL__SOCKET", "/nonexistent/control.sock")];
        world.tilld_with(&no_socket, &create).ends_with(0);
        let issued = world.issued(order).expect("the service has it");
        let issued = world.dictate(&issued, "paid");
        assert_eq!(world.tell_as_it_is(&issued).status, 200);
        world.settle();
    }
    assert_eq!(world.requests("fetch"), asked);
}

#[test]
fn a_refused_login_stops_the_questions_and_nothing_else() {
    let world = Setup::new().noting_hook("fulfil", &["paid"]).start();
    world.faults(&json!({ "lose": true }));
    let (told, silent) = (world.create("A-1"), world.create("A-2"));
    world.control("POST", "/tokens/revoke", &Value::Null);
    wait_until(PATIENCE, "the refusal to be noticed", || {
        logged(&world, "login needed") == 1
    });
    // Each look at what is due says so at this level. From the first on no question is under way any more.
    let quiet = || logged(&world, "nothing is asked: the access token was refused");
    wait_until(PATIENCE, "a look that asks nothing", || quiet() > 0);
    let asked = world.requests("fetch");
    wait_until(PATIENCE, "the refusal to be written down", || {
        standing(&world, "$.login") == "refused"
    });

    // A notification is stored, acknowledged, and its hook runs.
    let paid = world.dictate(&told, "paid");
    assert_eq!(world.tell(&told, &paid.object.to_string()).status, 200);
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    let looks = quiet();
    wait_until(PATIENCE, "more looks", || quiet() >= looks + 3);
    assert_eq!(world.requests("fetch"), asked, "no question is asked");
    assert_eq!(logged(&world, "login needed"), 1, "it is said once");

    world.dictate(&silent, "paid");
    world.login();
    wait_until(PATIENCE, "questions again", || {
        world.invoice("A-2", "outcome") == "paid"
    });
    assert_eq!(logged(&world, "login needed"), 1);
    assert_eq!(standing(&world, "$.login"), "good");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 2);
}

/// A30: a proxy that refuses once must not stop polling until somebody notices.
#[test]
fn one_refused_login_is_confirmed_before_polling_stops() {
    let world = Setup::new().start();
    world.faults(&json!({ "lose": true }));
    let issued = world.create("A-1");
    world.next_fetch(401, r#"{"error":"unauthorized"}"#);
    wait_until(PATIENCE, "the doubt", || {
        logged(&world, "refused the access token: asking once more") == 1
    });
    world.dictate(&issued, "paid");
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    // The answer is in the ledger first, and then what it says of the token is believed.
    wait_until(PATIENCE, "the end of the doubt", || {
        logged(&world, "accepts the access token again") == 1
    });
    assert_eq!(logged(&world, "login needed"), 0);
    assert_eq!(standing(&world, "$.login"), "good");
}

/// A29: what waits through an outage is neither asked about nor dated anew, and goes on by itself when it is over.
#[test]
fn a_service_that_is_out_is_tried_one_by_one() {
    const INVOICES: u64 = 20;
    let world = Setup::new().noting_hook("fulfil", &["paid"]).start();
    world.faults(&json!({ "lose": true }));
    let issued: Vec<_> = (0..INVOICES)
        .map(|order| world.create(&format!("A-{order}")))
        .collect();
    let out = json!({ "endpoint": "fetch", "status": 502, "body": "<html>bad gateway</html>", "times": true });
    world.faults(&json!({ "api_status": out }));
    wait_until(PATIENCE, "the outage to be noticed", || {
        logged(&world, "the payment service gives no answers") == 1
    });
    wait_until(PATIENCE, "the outage to be written down", || {
        standing(&world, "$.outage.reason").contains("502")
    });
    let noticed = world.requests("fetch");
    wait_until(PATIENCE, "a try", || world.requests("fetch") > noticed);
    // Three to notice it, up to three beside them, and one a try: the rest was left as it stood.
    let failed = world.value("SELECT count(*) FROM poll WHERE failures > 0");
    assert!(
        failed.parse::<u64>().is_ok_and(|failed| failed < 15),
        "{failed}"
    );

    world.faults(&json!({ "reset": true, "lose": true }));
    for issued in &issued {
        world.dictate(issued, "paid");
    }
    wait_until(PATIENCE * 4, "all payments", || {
        world.value("SELECT count(*) FROM invoices WHERE outcome = 'paid'") == INVOICES.to_string()
    });
    for said in [
        "the payment service gives no answers",
        "the payment service answers again",
    ] {
        assert_eq!(logged(&world, said), 1, "{said}");
    }
    // What showed the outage is told, and of its tries nothing that is not known.
    let shown = warned(&world, "nothing learnt about order");
    assert!(
        shown < logged(&world, "nothing learnt about order"),
        "{shown}"
    );
    wait_until(PATIENCE, "the end to be written down", || {
        standing(&world, "$.outage").is_empty()
    });
}

/// A service that knows none of a million old invoices must not fill the log.
#[test]
fn many_questions_without_an_answer_are_a_few_lines() {
    let world = Setup::new().start();
    world.faults(&json!({ "lose": true }));
    for order in 0..12 {
        world.create(&format!("A-{order}"));
    }
    let unknown = json!({ "endpoint": "fetch", "status": 404, "body": r#"{"error":"not_found"}"#, "times": true });
    world.faults(&json!({ "api_status": unknown }));
    wait_until(PATIENCE, "many questions", || {
        logged(&world, "nothing learnt about order") > 12
    });
    assert_eq!(warned(&world, "nothing learnt about order"), 5);
}

#[test]
fn an_invoice_the_service_does_not_know_holds_up_no_other() {
    one_refused_invoice_holds_up_no_other(404, r#"{"error":"not_found"}"#);
}

#[test]
fn an_invoice_the_shop_may_not_see_holds_up_no_other() {
    one_refused_invoice_holds_up_no_other(403, r#"{"error":"forbidden"}"#);
}

fn one_refused_invoice_holds_up_no_other(status: u16, body: &str) {
    let world = Setup::new().set("poller.concurrency", 1).start();
    world.faults(&json!({ "lose": true }));
    // Asked for first, and refused: the others come all the same.
    let unknown = json!({ "endpoint": "fetch", "status": status, "body": body });
    world.create("A-1");
    world.faults(&json!({ "api_status": unknown }));
    let others = ["A-2", "A-3"].map(|order| world.create(order));
    wait_until(PATIENCE, "the refusal", || {
        logged(&world, "nothing learnt about order") == 1
    });
    for issued in &others {
        world.dictate(issued, "paid");
    }
    for order in ["A-2", "A-3"] {
        wait_until(PATIENCE, "the payment", || {
            world.invoice(order, "outcome") == "paid"
        });
    }
    assert_eq!(logged(&world, "login needed"), 0);
    assert_eq!(world.invoice("A-1", "outcome || attention"), "open");
}
