//! Each example from create to paid, and what it makes of a tilld that answers no, or not at all.

use serde_json::{Value, json};

use super::{
    ALL, Beside, Example, NODE, PHP_CURL, PHP_STREAMS, PYTHON, SH, SHOP, no_other_user, shows,
};
use crate::harness::{PATIENCE, Process, Setup, skip, wait_until};

/// From create to paid, the requisites shown in between.
fn plays(example: Example) {
    if let Some(why) = no_other_user().or_else(|| example.lacks()) {
        skip!("{why}");
    }
    let shop = Beside::start(Setup::new().quiet());
    let mut running = shop.client(example, "A-1");
    let shown = shows(&mut running);
    let (_, _, invoice) = shop.ask("GET", "/v1/orders/A-1", "");
    let phone = invoice
        .pointer("/requisites/phoneNumber")
        .and_then(Value::as_str);
    let phone = phone.expect("requisites");
    assert!(shown.starts_with("pay 150.00 RUB to "), "{shown}");
    assert!(shown.contains(phone), "{shown} has not {phone}");
    assert!(running.ended().is_none(), "it waits");
    let marks: &[char] = &['{', '"'];
    assert!(example.program != "sh" || !shown.contains(marks), "{shown}");
    shop.is_paid("A-1");
    let code = running.wait(PATIENCE);
    let said = running.stdout();
    assert_eq!(code, 0, "{said}{}", running.stderr());
    assert_eq!(said.lines().nth(1), Some("order A-1: paid"), "{said}");
    let as_shop = format!("for uid {SHOP} gid {SHOP}");
    assert!(shop.world.serve_log().contains(&as_shop), "{as_shop}");
    // The customer loads the page again.
    let mut again = shop.client(example, "A-1");
    let code = again.wait(PATIENCE);
    // Behind what the first run left in the same file.
    let all = again.stdout();
    let more = all.strip_prefix(&said);
    assert_eq!(
        (code, more),
        (0, Some("order A-1: paid\n")),
        "{}",
        again.stderr()
    );
}

#[test]
fn a_shell_script_with_curl_takes_a_payment() {
    plays(SH);
}

#[test]
fn php_with_its_curl_extension_takes_a_payment() {
    plays(PHP_CURL);
}

#[test]
fn php_without_an_extension_takes_a_payment() {
    plays(PHP_STREAMS);
}

#[test]
fn python_takes_a_payment() {
    plays(PYTHON);
}

#[test]
fn node_takes_a_payment() {
    plays(NODE);
}

/// The examples that can be run here, with an order each.
fn all() -> Result<[(Example, String); 5], String> {
    let lacks = || ALL.into_iter().find_map(Example::lacks);
    match no_other_user().or_else(lacks) {
        Some(why) => Err(why),
        None => Ok(ALL.map(|example| (example, example.file.replace('_', "-")))),
    }
}

/// A 503 is asked again after its `Retry-After`, and a daemon that is started anew loses nobody who waits.
#[test]
fn they_wait_out_a_503_and_a_new_start() {
    let all = match all() {
        Ok(all) => all,
        Err(why) => skip!("{why}"),
    };
    let mut shop = Beside::start(Setup::new().quiet().logged_out());
    let mut running: Vec<Process> = all
        .iter()
        .map(|(one, order)| shop.client(*one, order))
        .collect();
    wait_until(PATIENCE, "each to be answered 503", || {
        let log = shop.world.serve_log();
        log.matches("POST /v1/invoices: 503, for").count() >= running.len()
    });
    shop.world.login();
    for one in &mut running {
        shows(one);
    }
    assert_eq!(shop.world.stop_serve(PATIENCE), 0);
    shop.world.start_serve();
    for (_, order) in &all {
        shop.is_paid(order);
    }
    for (one, (example, order)) in running.iter_mut().zip(&all) {
        let code = one.wait(PATIENCE);
        let said = one.stdout();
        assert_eq!(code, 0, "{example:?}: {said}{}", one.stderr());
        assert!(said.ends_with(&format!("order {order}: paid\n")), "{said}");
    }
}

/// Why there is no invoice stands on stderr, with the way out, and nothing is shown to the customer.
#[test]
fn they_say_why_nothing_was_opened() {
    if let Err(why) = all() {
        skip!("{why}");
    }
    let mut shop = Beside::start(Setup::new().quiet());
    let ends_with = |running: &mut Process, example: Example, said: &str| {
        let code = running.wait(PATIENCE);
        let (stdout, stderr) = (running.stdout(), running.stderr());
        assert!(
            code != 0 && stdout.is_empty(),
            "{example:?}: {code} {stdout}"
        );
        assert!(stderr.contains(said), "{example:?}: {stderr}");
    };
    // Of another amount than the examples' own.
    let dear = json!({ "order_id": "dear", "amount": "9.00", "currency": "RUB", "method": "SBP" });
    assert_eq!(shop.ask("POST", "/v1/invoices", &dear.to_string()).0, 201);
    for example in ALL {
        let mut refused = shop.client(example, "dear");
        ends_with(&mut refused, example, "409 error: order `dear` has");
        assert!(
            refused.stderr().contains("opens another invoice"),
            "the way out"
        );
        let mut stranger = shop.run(example, "stranger", SHOP);
        ends_with(
            &mut stranger,
            example,
            if example.program == "sh" {
                "curl: (7)"
            } else {
                "tilld does not answer at"
            },
        );
    }
    assert!(shop.world.issued("stranger").is_none());
    assert_eq!(shop.world.stop_serve(PATIENCE), 0);
    for example in ALL {
        let mut alone = shop.client(example, "alone");
        ends_with(
            &mut alone,
            example,
            if example.program == "sh" {
                "curl: (7)"
            } else {
                "tilld does not answer at"
            },
        );
    }
}

/// A create whose answer was lost shows the customer nothing, and opens no second invoice.
#[test]
fn they_show_nothing_of_a_lost_create() {
    let all = match all() {
        Ok(all) => all,
        Err(why) => skip!("{why}"),
    };
    let shop = Beside::start(Setup::new().quiet());
    for (example, order) in all {
        shop.world.faults(&json!({ "drop_create_answer": 1 }));
        let mut running = shop.client(example, &order);
        let code = running.wait(PATIENCE);
        let said = running.stdout();
        assert!(code != 0, "{example:?}: {said}");
        assert!(
            said.starts_with("not known yet whether"),
            "{said}{}",
            running.stderr()
        );
        assert!(!said.contains("pay 150.00"), "{said}");
    }
    assert_eq!(shop.world.requests("create"), 5, "none was sent again");
}
