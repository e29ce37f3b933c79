//! Creates under pressure: `--wait` tries again what certainly created nothing, `--fallback redirect` ends on the payment
//! page. What is at stake: a second invoice for an order whose first request may have arrived.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ADDRESSES, for_people};
use crate::harness::{CUT, PATIENCE, Service, Setup, World, wait_until};

fn free(world: &World, requisites: u64) {
    world.control("POST", "/pool", &json!({ "free": requisites }));
}

/// The next create, or all of them, are answered with this.
fn answers(world: &World, status: u16, body: &str, more: &Value) {
    let mut fault = json!({ "endpoint": "create", "status": status, "body": body });
    let fields = more.as_object().expect("fields").clone();
    fault.as_object_mut().expect("fields").extend(fields);
    world.faults(&json!({ "api_status": fault }));
}

fn with_fallback(more: &[&'static str]) -> Vec<&'static str> {
    [&["--fallback=redirect"], more, ADDRESSES.as_slice()].concat()
}

#[test]
fn a_create_waits_for_requisites_and_is_one_row_however_often_it_tries() {
    let world = Setup::new().quiet().not_served().start();
    free(&world, 0);
    let mut create = world.start_tilld(&for_people("A-1", &["--wait=60s", "--json"]));
    wait_until(PATIENCE, "three tries", || world.requests("create") >= 3);
    free(&world, 5);
    assert_eq!(create.wait(PATIENCE), 0, "{}", create.stderr());
    let talk = create.stderr();
    assert_eq!(
        talk.matches("trying again for up to 60 s").count(),
        1,
        "{talk}"
    );
    assert!(talk.contains("Нет доступных реквизитов"), "{talk}");
    let opening = "opening || coalesce(opening_note, '') || mode || status";
    assert_eq!(
        world.value(&format!("SELECT {opening} FROM invoice")),
        "answeredh2hnew"
    );
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "1");
    // The notificationUrl and token that were sent last are the row's.
    let issued = world.issued("A-1").expect("the service has it");
    assert_eq!(issued.reference, world.invoice("A-1", "ref"));
    let told = world.tilld(&["explain", "A-1"]).ends_with(0).stdout;
    assert_eq!(told.matches("  create  ").count(), 1, "{told}");
}

#[test]
fn the_end_of_the_wait_says_what_was_missing() {
    let world = Setup::new().quiet().not_served().start();
    free(&world, 0);
    let full = world.open("A-1", "599.80", &["--wait=2"]).ends_with(7);
    assert!(full.stderr.contains("`--fallback redirect`"), "{full:?}");
    // A hint names what was not tried yet.
    assert!(!full.stderr.contains("`--wait"), "{full:?}");
    let tries = world.requests("create");
    assert!(tries >= 2, "{tries}");
    let query =
        format!("SELECT opening || ' ' || (opening_note LIKE '%(try {tries})') FROM invoice");
    assert_eq!(world.value(&query), "refused 1");
    let told = world.tilld(&["explain", "A-1"]).ends_with(0).stdout;
    assert!(told.contains(&format!("(try {tries})")), "{told}");
    assert_eq!(told.matches("  create  ").count(), 1, "{told}");

    // Longer than is waited for: there is no use in waiting.
    let body = "{\"error\":\"Нет доступных реквизитов\"}";
    answers(&world, 503, body, &json!({ "retry_after_s": 600 }));
    let before = world.requests("create");
    let full = world.open("A-2", "599.80", &["--wait=5m"]).ends_with(7);
    assert!(!full.stderr.contains("trying again"), "{full:?}");
    assert_eq!(world.requests("create"), before + 1);

    // Never reached is another end.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let url = format!("http://{}", nobody.expect("a port"));
    let variables = [
        ("SERVICE_TOKEN", "shop:token"),
        ("TILLD_SERVICE__URL", url.as_str()),
    ];
    let args = for_people("A-3", &["--wait=1s"]);
    let unreachable = world.tilld_with(&variables, &args).ends_with(8);
    assert!(
        unreachable.stderr.contains("trying again for up to 1 s"),
        "{unreachable:?}"
    );
    for wait in ["--wait=2h", "--wait=61m", "--wait=soon", "--wait=-1"] {
        world.open("A-4", "599.80", &[wait]).ends_with(2);
    }
}

#[test]
fn ctrl_c_ends_the_waiting_and_the_command_may_be_repeated() {
    let world = Setup::new().quiet().not_served().start();
    // A pause that no test outlasts: the signal meets it and no request.
    let body = "{\"error\":\"none\"}";
    answers(&world, 503, body, &json!({ "retry_after_s": 600 }));
    let mut create = world.start_tilld(&for_people("A-1", &["--wait=60m"]));
    wait_until(PATIENCE, "the waiting", || {
        create.stderr().contains("trying again")
    });
    create.signal(Signal::INT);
    wait_until(PATIENCE, "its end", || create.ended().is_some());
    let opened = world.open("A-1", "599.80", &["--wait=60m"]).ends_with(0);
    assert!(!opened.stderr.contains("nothing was sent"), "{opened:?}");
    assert_eq!(world.all_issued().len(), 1);
}

#[test]
fn without_requisites_the_hint_names_what_was_not_tried() {
    let world = Setup::new().quiet().not_served().start();
    let (wait, fallback) = ("`--wait 90s`", "`--fallback redirect`");
    let page = [&["--redirect"], ADDRESSES.as_slice()].concat();
    for (more, named) in [
        (vec![], [true, true]),
        (vec!["--wait=1s"], [false, true]),
        (page, [true, false]),
        (with_fallback(&[]), [true, false]),
        (with_fallback(&["--wait=1s"]), [false, false]),
    ] {
        let body = "{\"error\":\"none\"}";
        answers(&world, 503, body, &json!({ "times": true }));
        let full = world.open("A-1", "599.80", &more).ends_with(7);
        let hints = [wait, fallback].map(|flag| full.stderr.contains(flag));
        assert_eq!(hints, named, "{more:?}: {full:?}");
        assert!(full.stderr.contains("another amount"), "{full:?}");
    }
}

#[test]
fn the_services_wish_to_be_left_alone_is_kept() {
    let world = Setup::new().quiet().not_served().start();
    answers(
        &world,
        429,
        "{\"error\":\"slow down\"}",
        &json!({ "retry_after_s": 3 }),
    );
    let busy = world.open("A-0", "599.80", &[]).ends_with(8);
    assert!(busy.stderr.contains("try again in 3 s"), "{busy:?}");
    answers(
        &world,
        429,
        "{\"error\":\"slow down\"}",
        &json!({ "retry_after_s": 3 }),
    );
    let before = world.requests("create");
    let start = std::time::Instant::now();
    world.open("A-1", "599.80", &["--wait=20s"]).ends_with(0);
    assert!(
        start.elapsed() >= Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(world.requests("create"), before + 2);
    answers(
        &world,
        503,
        "{\"error\":\"none\"}",
        &json!({ "retry_after_s": 3 }),
    );
    let start = std::time::Instant::now();
    world.open("A-2", "599.80", &["--wait=20s"]).ends_with(0);
    assert!(
        start.elapsed() >= Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn only_what_certainly_created_nothing_is_tried_again() {
    let world = Setup::new().quiet().not_served().start();
    let more = with_fallback(&["--wait=30s"]);
    for (number, (status, body, code)) in [
        (500, "{\"error\":\"oops\"}", 9),
        (502, "<html>", 9),
        (503, "<html>", 9),
        (504, "", 9),
        (408, "{}", 8),
        (422, "{\"error\":\"too small\"}", 1),
    ]
    .into_iter()
    .enumerate()
    {
        answers(&world, status, body, &json!({}));
        let order = format!("A-{number}");
        let before = world.requests("create");
        let ended = world.open(&order, "599.80", &more).ends_with(code);
        assert!(
            !ended.stderr.contains("trying again"),
            "{status}: {ended:?}"
        );
        assert_eq!(world.requests("create"), before + 1, "{status}");
        assert!(ended.stderr.contains("hint: "), "{status}: {ended:?}");
    }
    // After a refusal as well: the second try's answer is lost, and that is the end.
    free(&world, 0);
    let mut create = world.start_tilld(&for_people("lost", &more));
    wait_until(PATIENCE, "the first try", || {
        create.stderr().contains("trying again")
    });
    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    free(&world, 5);
    assert_eq!(create.wait(PATIENCE), 9, "{}", create.stderr());
    let before = world.requests("create");
    assert_eq!(
        world
            .all_issued()
            .iter()
            .filter(|one| one.order == "lost")
            .count(),
        1
    );
    world.open("lost", "599.80", &more).ends_with(9);
    assert_eq!(
        world.requests("create"),
        before,
        "never posted again by itself"
    );
}

#[test]
fn without_requisites_it_falls_back_to_the_payment_page_once() {
    let world = Setup::new().quiet().not_served().start();
    free(&world, 0);
    let more = with_fallback(&[]);
    let opened = world.open("A-1", "599.80", &more).ends_with(0);
    assert!(opened.stderr.contains("in the Redirect mode"), "{opened:?}");
    assert_eq!(opened.text("mode"), "redirect");
    assert!(opened.text("payment_url").contains("/pay/"), "{opened:?}");
    // Repeated, it is the order's invoice, with requisites free or not.
    let before = world.requests("create");
    let again = world.open("A-1", "599.80", &more).ends_with(0);
    assert_eq!(again.text("invoice_id"), opened.text("invoice_id"));
    // Without the fallback another mode is another wish.
    let other = world.open("A-1", "599.80", &[]).ends_with(1);
    assert!(
        other
            .stderr
            .contains("`--fallback redirect` gives it again"),
        "{other:?}"
    );
    assert_eq!(world.requests("create"), before);
    let modes = "SELECT mode || opening FROM invoices ORDER BY 1";
    assert_eq!(
        world.sql(modes).concat(),
        ["h2hrefused", "redirectanswered"]
    );
    // With requisites there is nothing to fall back from.
    free(&world, 5);
    let opened = world
        .open("A-3", "599.80", &with_fallback(&[]))
        .ends_with(0);
    assert_eq!(opened.text("mode"), "h2h");
    assert!(!opened.stderr.contains("Redirect"), "{opened:?}");
    let page = [&["--redirect"], ADDRESSES.as_slice()].concat();
    let other = world.open("A-3", "599.80", &page).ends_with(1);
    assert!(other.stderr.contains("without `--redirect`"), "{other:?}");
    let again = world
        .open("A-3", "599.80", &with_fallback(&[]))
        .ends_with(0);
    assert_eq!(again.text("invoice_id"), opened.text("invoice_id"));
    // Another sum is another wish with a fallback too.
    world.open("A-1", "5", &with_fallback(&[])).ends_with(1);

    // Nobody there is no lack of requisites.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let url = format!("http://{}", nobody.expect("a port"));
    let variables = [
        ("SERVICE_TOKEN", "shop:token"),
        ("TILLD_SERVICE__URL", url.as_str()),
    ];
    let args = for_people("A-4", &with_fallback(&[]));
    world.tilld_with(&variables, &args).ends_with(8);

    // The addresses belong to it, all three of them.
    world
        .open("A-5", "5", &["--fallback=redirect"])
        .ends_with(2);
    for left_out in ADDRESSES {
        let mut more = with_fallback(&[]);
        more.retain(|flag| *flag != left_out);
        world.open("A-5", "5", &more).ends_with(2);
    }
    let both = with_fallback(&["--redirect"]);
    world.open("A-5", "5", &both).ends_with(2);
}

/// The payment page comes when the wait is over, once; its lost answer is as unknown as any.
#[test]
fn the_payment_page_is_the_end_of_the_wait() {
    let service = Service::start(|heard| {
        let body: Value = serde_json::from_str(&heard.body).unwrap_or_default();
        if body.get("successUrl").is_none() {
            return (503, "{\"error\":\"none\"}".to_owned());
        }
        let order = body.get("internalId").cloned().unwrap_or_default();
        let status = if order == "lost" { CUT } else { 201 };
        let document = json!({
            "id": "inv-1", "status": "new", "amount": "599.80", "currency": "RUB", "internalId": order,
            "paymentUrl": "https://pay.example/1",
        });
        (status, document.to_string())
    });
    let posted = |order: &str| {
        let heard = service.heard();
        let named = format!("\"{order}\"");
        let modes = heard.iter().filter(|heard| heard.body.contains(&named));
        let modes = modes.map(|heard| heard.body.contains("successUrl"));
        modes.collect::<Vec<bool>>()
    };
    let world = Setup::new()
        .quiet()
        .service(&service.url())
        .not_served()
        .start();
    world.tilld(&["login"]).ends_with(0);
    let more = with_fallback(&["--wait=3s"]);
    for (order, code, mode) in [("A-1", 0, "redirect"), ("lost", 9, "redirect")] {
        let ended = world.open(order, "599.80", &more).ends_with(code);
        let talk = &ended.stderr;
        assert!(talk.contains("trying again for up to 3 s"), "{talk}");
        assert!(talk.contains("in the Redirect mode"), "{talk}");
        let modes = posted(order);
        assert!(modes.len() >= 3, "{modes:?}");
        let pages = modes.iter().filter(|is_page| **is_page).count();
        assert_eq!((pages, modes.last()), (1, Some(&true)), "{modes:?}");
        let again = world.open(order, "599.80", &more).ends_with(code);
        assert_eq!(again.text("mode"), mode);
        assert_eq!(posted(order), modes, "nothing was sent");
    }
}

/// The service said no and did it all the same: its notification comes while the next try is waited for.
#[test]
fn a_notification_that_gives_a_refusal_the_lie_ends_the_waiting() {
    let world = Setup::new().quiet().start();
    let service = Service::start(|_heard| (503, "{\"error\":\"none\"}".to_owned()));
    let url = service.url();
    let variables = [
        ("SERVICE_TOKEN", "shop:token"),
        ("TILLD_SERVICE__URL", url.as_str()),
    ];
    let args = for_people("A-1", &["--wait=10s", "--new", "--json"]);
    let ran = thread::scope(|scope| {
        let create = scope.spawn(|| world.tilld_with(&variables, &args));
        wait_until(PATIENCE, "the refusal", || {
            world.ledger().exists()
                && world
                    .sql("SELECT 1 FROM invoices WHERE opening = 'refused'")
                    .len()
                    == 1
        });
        let request = service.heard();
        let request: Value =
            serde_json::from_str(&request.first().expect("a create").body).expect("JSON");
        let token = request.get("notificationToken").and_then(Value::as_str);
        let document = json!({ "id": "inv-9", "status": "new", "internalId": "A-1" });
        let told = world.notify(
            &world.invoice("A-1", "ref"),
            &[("X-Notification-Token", token.expect("a token"))],
            &document.to_string(),
        );
        assert_eq!(told.status, 200);
        create.join().expect("no panic there")
    });
    let ran = ran.ends_with(0);
    assert_eq!(ran.text("invoice_id"), "inv-9");
    assert_eq!(world.invoice("A-1", "opening"), "answered");
}
