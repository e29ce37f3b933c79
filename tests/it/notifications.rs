//! Notifications in every order, number and company, and what comes of them in the ledger and in the hooks (A01, A02, A03,
//! A23). What is at stake: one payment is one event and one run of the script.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use jiff::Span;
use jiff::tz::Offset;
use serde_json::json;

use crate::harness::{Issued, PATIENCE, Setup, Wire, World, head, wait_until};

/// Senders at once in A02.
const AT_ONCE: usize = 20;

#[test]
fn a_paid_notification_runs_the_script_once() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    world.settle();
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    assert_eq!(world.hook_log("fulfil"), [format!("{event} paid A-1 1")]);
}

/// A01: the right token on the right address is enough, before the service has answered.
#[test]
fn a_payment_that_outruns_the_create_answer_is_kept() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    // Longer than any machine needs for the rest, and cut short by nothing: this test takes that long.
    world.faults(&json!({ "hold_create_ms": 5_000 }));
    let mut create = world.start_open("A-1");
    wait_until(PATIENCE, "the service to make the invoice", || {
        world.issued("A-1").is_some()
    });
    let invoice = world.issued("A-1").expect("made");
    world.happens(&invoice, &json!({ "status": "paid" }));
    let paid = "SELECT count(*) FROM events WHERE kind = 'paid'";
    wait_until(PATIENCE, "the payment to be recorded", || {
        world.value(paid) == "1"
    });
    assert_eq!(
        create.ended(),
        None,
        "the answer to the create is still held"
    );
    let known = world.sql("SELECT invoice_id, status, outcome, opening FROM invoices");
    assert_eq!(known, [[invoice.id.as_str(), "paid", "paid", "creating"]]);

    assert_eq!(create.wait(PATIENCE), 0, "{}", create.stderr());
    world.settle();
    assert_eq!(world.value("SELECT status FROM invoices"), "paid");
    assert_eq!(world.value("SELECT opening FROM invoices"), "answered");
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

/// A01: what was refused before the id was known is asked about as soon as it is.
#[test]
fn a_refused_notification_that_outruns_the_create_answer_is_asked_about() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    world.faults(&json!({ "hold_create_ms": 3_000, "lose": true }));
    let mut create = world.start_open("A-1");
    wait_until(PATIENCE, "the service to make the invoice", || {
        world.issued("A-1").is_some()
    });
    let invoice = world.issued("A-1").expect("made");
    let body = invoice.saying("paid", &invoice.at(120));
    assert_eq!(world.notify(&invoice.reference, &[], &body).status, 401);
    let refused = "SELECT count(*) FROM refusal WHERE invoice = 1";
    wait_until(PATIENCE, "the refusal to be kept", || {
        world.value(refused) == "1"
    });
    assert_eq!(create.ended(), None, "the answer is still held");
    assert_eq!(world.requests("fetch"), 0, "there is no id to ask for");
    world.dictate(&invoice, "paid");
    assert_eq!(create.wait(PATIENCE), 0, "{}", create.stderr());
    wait_until(PATIENCE, "the service to be asked", || {
        world.requests("fetch") > 0
    });
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

/// A02: side by side, again, and again after a restart.
#[test]
fn twenty_at_once_are_one_payment_and_one_run() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    let body = invoice.object.to_string();
    let (most, last) = body.split_at(body.len() - 1);
    let target = World::target(&invoice.reference);
    let headers = [("X-Notification-Token", invoice.token.as_str())];
    let start = head("shop.example", "POST", &target, &headers, Some(body.len()));
    let (together, listen) = (Barrier::new(AT_ONCE), world.listen());
    let answered = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let mut wire = Wire::open(listen);
                wire.send(&start);
                wire.send(most);
                together.wait();
                wire.send(last);
                assert_eq!(wire.answer().expect("an answer").status, 200);
                answered.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(answered.into_inner(), 20);
    let once = |world: &World| {
        world.settle();
        let events = "SELECT count(*) FROM events WHERE kind <> 'opened'";
        assert_eq!(world.value(events), "1");
        assert_eq!(world.value("SELECT count(*) FROM deliveries"), "1");
        assert_eq!(world.hook_log("fulfil").len(), 1);
    };
    once(&world);
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    world.kill9_serve();
    world.start_serve();
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    once(&world);
}

/// A03: instants are compared, not the order of arrival.
#[test]
fn what_comes_late_does_not_undo_what_is_newer() {
    let world = Setup::new().quiet().noting_hook("all", &["*"]).start();
    let created = world.create("A-1");
    let newer = json!({ "status": "paid", "updatedAt": created.at(2_000) });
    let invoice = world.dictate_fields(&created, &newer);
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    world.settle();
    let runs = world.hook_log("all");
    // The same second, written in another zone: instants are compared, not texts.
    let earlier = invoice.updated_at() - Span::new().milliseconds(1);
    let there = Offset::constant(3).to_datetime(earlier);
    for late in [created.at(1_000), format!("{there:.3}+03:00")] {
        let answer = world.tell(&invoice, &invoice.saying("waiting", &late));
        assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{late}");
        let last = "SELECT status, decision FROM heard ORDER BY id DESC LIMIT 1";
        assert_eq!(world.sql(last), [["waiting", "stale"]], "{late}");
    }
    let now = world.sql("SELECT status, outcome FROM invoices");
    assert_eq!(now, [["paid", "paid"]]);
    world.settle();
    assert_eq!(world.hook_log("all"), runs);
}

#[test]
fn a_forged_notification_only_makes_tilld_ask() {
    let world = Setup::new()
        .plain()
        .quiet()
        .noting_hook("all", &["*"])
        .start();
    let invoice = world.create("A-1");
    world.settle();
    let standing = "SELECT status, outcome, doubt, attention, amount_reported FROM invoices";
    let (runs, before) = (world.hook_log("all"), world.sql(standing));
    let asked = world.requests("fetch");
    let wrong = [(
        "X-Notification-Token",
        "not-the-token-of-this-invoice-at-all",
    )];
    let body = invoice.saying("paid", &invoice.at(120));
    assert_eq!(world.notify(&invoice.reference, &wrong, &body).status, 401);
    wait_until(PATIENCE, "the service to be asked", || {
        world.requests("fetch") > asked
    });
    let refusals = world.sql("SELECT reason, invoice, body_bytes FROM refusal");
    assert_eq!(refusals, [["token_wrong", "1", &body.len().to_string()]]);
    let asked_at = "SELECT count(*) FROM heard WHERE source = 'poll'";
    wait_until(PATIENCE, "the answer to be recorded", || {
        world.value(asked_at) == "1"
    });
    assert_eq!(world.requests("fetch"), asked + 1);
    assert_eq!(world.sql(standing), before);
    assert_eq!(world.value("SELECT count(*) FROM events"), "1");
    assert_eq!(world.hook_log("all"), runs);
}

#[test]
fn a_payment_told_with_a_wrong_token_is_found_by_asking() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    let body = invoice.object.to_string();
    assert_eq!(world.notify(&invoice.reference, &[], &body).status, 401);
    let found = "SELECT count(*) FROM events WHERE kind = 'paid' AND source = 'poll'";
    wait_until(PATIENCE, "the poll to find it", || {
        world.value(found) == "1"
    });
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

#[test]
fn a_neighbour_that_writes_all_the_time_costs_nothing() {
    const INVOICES: usize = 10;
    const EACH: usize = 20;
    // How often the neighbour gets its turn is for the machine to say: the bustle lasts until it had this many.
    const TURNS: u32 = 20;
    let pool = format!("--pool={INVOICES}");
    // Longer than any wait for a gap on a loaded machine; what never finds one does not find it in this time either.
    let world = Setup::new()
        .quiet()
        .sandbox(&[&pool])
        .set("ledger.busy_budget_ms", "20000")
        .start();
    let orders: Vec<String> = (0..INVOICES).map(|number| format!("A-{number}")).collect();
    let invoices: Vec<Issued> = orders.iter().map(|order| world.create(order)).collect();
    let neighbour = world.neighbour();
    let (done, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    let enough = |sent: usize| sent >= EACH && turns.load(Ordering::Relaxed) >= TURNS;
    let told = thread::scope(|scope| {
        let busy = scope.spawn(|| {
            // The connection moves here: it is this thread's own.
            let neighbour = neighbour;
            while !done.load(Ordering::Relaxed) {
                neighbour.write();
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
        let senders: Vec<_> = invoices
            .iter()
            .map(|invoice| scope.spawn(|| tell_until(&world, invoice, &enough)))
            .collect();
        let ended: Vec<_> = senders.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        busy.join().expect("the neighbour is served");
        let sent = ended.into_iter().map(|sent| sent.expect("served"));
        sent.sum::<usize>()
    });
    let told = told.to_string();
    let kept =
        "SELECT count(*), count(DISTINCT order_id || status) FROM events WHERE kind = 'status'";
    assert_eq!(world.sql(kept), [[told.as_str(), told.as_str()]]);
    let notes = world.value("SELECT count(*) FROM shop_notes");
    assert_eq!(notes, turns.load(Ordering::Relaxed).to_string());
}

/// Tells one new status after another until it is enough, and says how many were acknowledged.
fn tell_until(world: &World, invoice: &Issued, enough: &(dyn Fn(usize) -> bool + Sync)) -> usize {
    let mut sent = 0;
    while !enough(sent) {
        let body = invoice.saying(&format!("step-{sent}"), &invoice.at_us(sent + 1));
        let answer = world.tell(invoice, &body);
        assert_eq!(
            answer.status, 200,
            "{sent} of {}: {answer:?}",
            invoice.order
        );
        sent += 1;
    }
    sent
}

#[test]
fn an_answer_does_not_wait_for_a_script() {
    let world = Setup::new()
        .quiet()
        .hook("slow", &["*"], "exec sleep 300")
        .start();
    let invoice = world.create("A-1");
    let running = "SELECT count(*) FROM deliveries WHERE state = 'running'";
    wait_until(PATIENCE, "the script to run", || {
        world.value(running) == "1"
    });
    let began = std::time::Instant::now();
    let invoice = world.dictate(&invoice, "paid");
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    let other = world.dictate(&world.create("A-2"), "paid");
    assert_eq!(world.tell_as_it_is(&other).status, 200);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind = 'paid'"),
        "2"
    );
}
