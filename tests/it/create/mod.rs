//! `tilld invoice create` as a shop meets it: one order, one invoice, however often and from wherever it is asked for.
//! What is at stake: a customer who pays two invoices of one order, or one of another sum.

mod earlier;
mod lost;
mod pressure;
pub(crate) mod stub;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Ran, Setup, wait_until};

/// The return addresses of the Redirect mode.
const ADDRESSES: [&str; 3] = [
    "--success-url=https://shop.example/ok",
    "--cancel-url=https://shop.example/cancel",
    "--error-url=https://shop.example/error",
];

fn redirect() -> Vec<&'static str> {
    [&["--redirect"], ADDRESSES.as_slice()].concat()
}

/// `invoice create` of 599.80 RUB by SBP, for people.
fn for_people<'a>(order: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["invoice", "create", "--order", order, "--amount", "599.80"];
    args.extend(["--currency", "RUB", "--method", "SBP"]);
    args.extend(more);
    args
}

#[test]
fn a_fresh_invoice_shows_what_the_customer_needs() {
    let world = Setup::new().plain().quiet().not_served().start();
    let h2h = world.open("H-1", "599.80", &[]).ends_with(0);
    assert!(h2h.stderr.contains("no `tilld serve` runs"), "{h2h:?}");
    let json = h2h.json();
    let at = |json: &Value, pointer: &str| json.pointer(pointer).cloned().unwrap_or_default();
    for (pointer, wanted) in [
        ("/order_id", json!("H-1")),
        ("/mode", json!("h2h")),
        ("/method", json!("SBP")),
        ("/status", json!("new")),
        ("/outcome", json!("open")),
        ("/opening", json!("answered")),
        ("/amount_asked", json!("599.80")),
        ("/amount_reported", json!("599.80")),
        ("/currency", json!("RUB")),
        ("/attention", json!([])),
        ("/payment_url", Value::Null),
    ] {
        assert_eq!(at(&json, pointer), wanted, "{pointer}: {json}");
    }
    for field in ["bankName", "phoneNumber", "fullName"] {
        let shown = at(&json, &format!("/requisites/{field}"));
        assert!(
            shown.as_str().is_some_and(|text| !text.is_empty()),
            "{json}"
        );
    }
    // Every contract field is in the service's own document, its inner document still a text.
    assert!(at(&json, "/service/dealRequisites").is_string(), "{json}");

    let issued = world.issued("H-1").expect("the service has it");
    assert_eq!(json!(issued.id), at(&json, "/invoice_id"));
    assert_eq!(json!(issued.reference), at(&json, "/ref"));
    assert!(issued.token.len() >= 43, "256 bits of entropy");
    let state = world.control("GET", "/state", &Value::Null);
    assert_eq!(
        at(&state, "/invoices/0/for_tests/notificationUrl"),
        json!(format!("http://{}/n/{}", world.listen(), issued.reference)),
    );

    let page = world.open("R-1", "1500", &redirect()).ends_with(0).json();
    assert_eq!(at(&page, "/mode"), "redirect");
    assert_eq!(at(&page, "/requisites"), Value::Null);
    let url = at(&page, "/payment_url");
    assert!(
        url.as_str().is_some_and(|url| url.contains("/pay/")),
        "{page}"
    );

    // For people: what is to be paid and where to comes first, then how it stands, then all the service said.
    let table = world.tilld(&for_people("H-2", &[])).ends_with(0).stdout;
    let first = table.lines().next().unwrap_or_default();
    assert_eq!(first, "Pay 599.80 RUB by SBP:");
    for word in [
        "phoneNumber",
        "outcome",
        "pay until",
        "dealRate",
        "merchantName",
    ] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    let table = world
        .tilld(&for_people("R-2", &redirect()))
        .ends_with(0)
        .stdout;
    assert!(
        table.contains("/pay/") && !table.contains("phoneNumber"),
        "{table}"
    );
}

#[test]
fn what_cannot_be_asked_is_not_asked() {
    let world = Setup::new().quiet().not_served().start();
    for amount in [
        "0", "-1", "1e3", "1,5", "007", "+5", ".5", "", "NaN", "0.00",
    ] {
        let amount = format!("--amount={amount}");
        let order = ["invoice", "create", "--order=A-1", amount.as_str()];
        let rest = ["--currency=RUB", "--method=SBP"];
        world
            .tilld(&[order.as_slice(), &rest].concat())
            .ends_with(2);
    }
    for more in [
        ["--currency", "rub"],
        ["--currency", "RUBL"],
        ["--currency", ""],
        ["--method", "sbp"],
    ] {
        world.open("A-1", "5", &more).ends_with(2);
    }
    world.open("", "5", &[]).ends_with(2);
    // The Redirect mode needs all three addresses, and they need the mode.
    for left_out in ADDRESSES {
        let mut more = redirect();
        more.retain(|flag| *flag != left_out);
        world.open("A-1", "5", &more).ends_with(2);
    }
    world.open("A-1", "5", &ADDRESSES).ends_with(2);
    assert_eq!(world.requests("create"), 0);
    assert!(!world.ledger().exists(), "no row was written");
}

#[test]
fn settings_that_are_missing_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("config.toml");
    for (settings, key) in [
        (
            "[listener]\npublic_url = \"https://shop.example/n\"\n",
            "service.url",
        ),
        (
            "[service]\nurl = \"https://service.example\"\n",
            "listener.public_url",
        ),
    ] {
        std::fs::write(&file, settings).expect("written");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tilld"));
        command.env_clear().env("HOME", dir.path());
        command.args(for_people("A-1", &["--config"])).arg(&file);
        let ended = command.output().expect("tilld runs");
        let talk = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(10), "{talk}");
        assert!(talk.contains(&format!("`{key}`")), "{talk}");
    }
}

#[test]
fn an_open_invoice_is_given_again_and_another_wish_is_refused() {
    let world = Setup::new().quiet().start();
    let first = world.open("A-1", "599.80", &[]).ends_with(0);
    assert!(!first.stderr.contains("no `tilld serve` runs"), "{first:?}");
    // The same sum in another spelling is the same wish.
    for amount in ["599.80", "599.8"] {
        let again = world.open("A-1", amount, &[]).ends_with(0);
        assert!(
            again.stderr.contains("has this open invoice already"),
            "{again:?}"
        );
        assert_eq!(again.stdout, first.stdout);
    }
    let to_card = ["--method", "TO_CARD"];
    let wishes = [
        ("599.81", [].as_slice(), "amount"),
        ("599.80", &["--currency", "USD"], "currency"),
        ("599.80", &to_card, "method"),
        ("599.80", &redirect(), "mode"),
    ];
    for (amount, more, what) in wishes {
        let refused = world.open("A-1", amount, more).ends_with(1);
        assert!(
            refused.stderr.contains(&format!("another {what}")),
            "{refused:?}"
        );
        assert_eq!(
            refused.text("invoice_id"),
            first.text("invoice_id"),
            "it is shown"
        );
    }
    assert_eq!(world.requests("create"), 1);

    let issued = world.issued("A-1").expect("the service has it");
    world.happens(&issued, &json!({ "status": "paid" }));
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    let paid = world.open("A-1", "599.80", &[]).ends_with(1);
    assert!(paid.stderr.contains("is paid already"), "{paid:?}");
    assert_eq!(paid.text("outcome"), "paid", "it is shown");
    assert_eq!(world.requests("create"), 1);

    let anew = world.open("A-1", "599.80", &["--new"]).ends_with(0);
    assert_ne!(anew.text("invoice_id"), first.text("invoice_id"));
    assert_eq!(world.requests("create"), 2);
}

#[test]
fn an_expired_invoice_makes_room_for_another_and_is_watched_on() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .sandbox(&["--window=1"])
        .not_served()
        .start();
    // No notification says that it is over: the create polls it.
    world.faults(&json!({ "lose": true }));
    let old = world.create("A-1");
    let mut newer = None;
    wait_until(PATIENCE, "the window to close", || {
        let ran = world.open("A-1", "599.80", &[]).ends_with(0);
        newer = (ran.text("invoice_id") != old.id).then_some(ran);
        newer.is_some()
    });
    let newer = newer.expect("another one");
    assert!(!newer.stderr.contains("already"), "{newer:?}");
    assert_eq!(world.requests("create"), 2);

    // The customer pays the old one all the same.
    world.faults(&json!({ "reset": true }));
    world.start_serve();
    world.happens(&old, &json!({ "status": "paid" }));
    wait_until(PATIENCE, "the late payment", || {
        world.hook_log("fulfil").len() == 1
    });
    let outcome = format!(
        "SELECT outcome FROM invoices WHERE invoice_id = '{}'",
        old.id
    );
    assert_eq!(world.value(&outcome), "paid");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

#[test]
fn what_the_service_refused_may_be_tried_again() {
    let world = Setup::new().quiet().not_served().start();
    world.control("POST", "/pool", &json!({ "free": 0 }));
    let full = world.open("A-1", "599.80", &[]).ends_with(7);
    assert!(full.stderr.contains("Нет доступных реквизитов"), "{full:?}");
    world.control("POST", "/pool", &json!({ "free": 5 }));
    world.open("A-1", "599.80", &[]).ends_with(0);

    let refuses = |status: u16, body: &str| {
        let fault = json!({ "endpoint": "create", "status": status, "body": body });
        world.faults(&json!({ "api_status": fault }));
    };
    refuses(422, r#"{"error":"amount too small"}"#);
    let refused = world.open("A-2", "599.80", &[]).ends_with(1);
    assert!(refused.stderr.contains("amount too small"), "{refused:?}");
    world.open("A-2", "599.80", &[]).ends_with(0);

    // A proxy's 503 is not the service's word: what became of the request nobody knows.
    refuses(503, "<html>busy</html>");
    world.open("A-3", "599.80", &[]).ends_with(9);

    world.control("POST", "/tokens/revoke", &Value::Null);
    let login = world.open("A-4", "599.80", &[]).ends_with(4);
    assert!(
        login.stderr.contains("hint: run `tilld --config "),
        "{login:?}"
    );
    world.login();
    world.open("A-4", "599.80", &[]).ends_with(0);
    let openings = |order: &str| {
        let query = format!("SELECT opening FROM invoices WHERE order_id = '{order}' ORDER BY 1");
        world.sql(&query).concat()
    };
    for order in ["A-1", "A-2", "A-4"] {
        assert_eq!(openings(order), ["answered", "refused"], "{order}");
    }
    assert_eq!(openings("A-3"), ["unknown"]);
}

#[test]
fn twenty_creates_at_once_open_one_invoice() {
    let world = Setup::new().quiet().not_served().start();
    world.faults(&json!({ "lose": true, "hold_create_ms": 500 }));
    let mut creates: Vec<_> = (0..20).map(|_| world.start_open("A-1")).collect();
    let codes: Vec<i32> = creates.iter_mut().map(|one| one.wait(PATIENCE)).collect();
    assert_eq!(codes, [0; 20]);
    assert_eq!(world.requests("create"), 1);
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "1");
    let answers: Vec<String> = creates
        .iter()
        .map(crate::harness::Process::stdout)
        .collect();
    let first = answers.first().expect("twenty");
    assert!(first.contains("\"opening\":\"answered\""), "{first}");
    assert!(answers.iter().all(|answer| answer == first), "{answers:?}");
    let fresh = |one: &crate::harness::Process| !one.stderr().contains("already");
    assert_eq!(creates.iter().filter(|one| fresh(one)).count(), 1);
}

#[test]
fn a_payment_that_overtakes_the_create_answer_counts_once() {
    let world = Setup::new().noting_hook("fulfil", &["paid"]).start();
    world.faults(&json!({ "hold_create_ms": 2_000 }));
    let mut create = world.start_open("A-1");
    wait_until(PATIENCE, "the service to have it", || {
        world.issued("A-1").is_some()
    });
    let issued = world.issued("A-1").expect("the service has it");
    world.happens(&issued, &json!({ "status": "paid" }));
    // The row has its ref and its token before the request leaves, so the notification is authentic already.
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    assert_eq!(world.invoice("A-1", "opening"), "creating");
    assert_eq!(create.wait(PATIENCE), 0, "{}", create.stderr());
    let shown = Ran {
        code: 0,
        stdout: create.stdout(),
        stderr: create.stderr(),
    };
    assert_eq!(shown.text("outcome"), "paid");
    assert_eq!(world.invoice("A-1", "opening"), "answered");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    let kinds = world.sql("SELECT kind FROM events ORDER BY seq").concat();
    assert_eq!(kinds, ["opened", "paid"]);
}
