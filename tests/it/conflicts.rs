//! Notifications that contradict each other, or what was agreed (A04, A05, A07). What is at stake: goods leave the shop for
//! money that did not come, or an order that was paid is undone, because a message was believed that should have been asked
//! about.

use std::thread;

use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Setup, World, wait_until};

fn tells(world: &World, invoice: &Issued, status: &str, at: &str) {
    let answer = world.tell(invoice, &invoice.saying(status, at));
    assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{status} {at}");
}

/// What was decided on each notification of an order, in the order they came.
fn decisions(world: &World, order: &str) -> Vec<Vec<String>> {
    world.sql(&format!(
        "SELECT h.status, h.decision FROM heard h JOIN invoice i ON i.id = h.invoice \
         WHERE i.order_id = '{order}' AND h.source = 'notification' ORDER BY h.id"
    ))
}

fn ends(world: &World, order: &str, wanted: &str) {
    let end = "status || ' ' || outcome || ' ' || doubt";
    wait_until(PATIENCE * 3, &format!("{order}: {wanted}"), || {
        world.invoice(order, end) == wanted
    });
}

/// Each waits half a minute for a second poll, beside the others.
#[test]
fn what_contradicts_itself_ends_as_the_service_says() {
    thread::scope(|scope| {
        scope.spawn(of_two_statuses_at_one_instant_the_service_tells_which_holds);
        scope.spawn(a_late_failure_does_not_undo_a_payment_the_service_stands_by);
        scope.spawn(what_the_service_takes_back_itself_is_believed_when_it_says_so_twice);
    });
}

/// A04: the second of two statuses with one instant is stored, and the service itself is asked which of them holds.
fn of_two_statuses_at_one_instant_the_service_tells_which_holds() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let orders = [("A-1", ["paid", "waiting"]), ("A-2", ["waiting", "paid"])];
    for (order, told) in orders {
        let created = world.create(order);
        let truth = json!({ "status": "paid", "updatedAt": created.at(120) });
        let invoice = world.dictate_fields(&created, &truth);
        let asked = world.requests("fetch");
        for status in told {
            tells(&world, &invoice, status, &invoice.at(0));
        }
        let decided = [[told[0], "advance"], [told[1], "doubt"]];
        assert_eq!(decisions(&world, order), decided);
        wait_until(PATIENCE, "the service to be asked", || {
            world.requests("fetch") > asked
        });
    }
    for (order, _) in orders {
        ends(&world, order, "paid paid 0");
    }
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
    let undone = "SELECT count(*) FROM events WHERE order_id = 'A-1' AND status = 'waiting'";
    assert_eq!(world.value(undone), "0");
}

/// A05: an expiry and a failure after the payment, both authentic and newer, while the service still says paid.
fn a_late_failure_does_not_undo_a_payment_the_service_stands_by() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .noting_hook("undo", &["failed", "reversed"])
        .start();
    let invoice = world.pay("A-1");
    world.settle();
    let events = world.sql("SELECT kind, status FROM events");
    let late = [("expired", 3_600), ("canceled", 3_900)];
    for (status, ms) in late {
        tells(&world, &invoice, status, &invoice.at(ms));
    }
    let decided = decisions(&world, "A-1");
    assert!(
        decided.ends_with(&late.map(|(status, _)| [status, "doubt"].map(str::to_owned).to_vec()))
    );
    // Older than what it denies, the service's answer is asked for twice: this takes half a minute.
    ends(&world, "A-1", "paid paid 0");
    world.settle();
    assert_eq!(world.sql("SELECT kind, status FROM events"), events);
    assert_eq!(world.hook_log("undo"), Vec::<String>::new());
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

/// A04, A05: the service itself takes a payment back. It is asked twice, half a minute apart, which is what this test
/// takes; then the orders of arrival have one end, and the failure of what was paid is a reversal.
fn what_the_service_takes_back_itself_is_believed_when_it_says_so_twice() {
    let world = Setup::new()
        .quiet()
        .noting_hook("undo", &["reversed"])
        .noting_hook("failed", &["failed"])
        .start();
    let paid = world.pay("A-1");
    let expired = json!({ "status": "expired", "updatedAt": paid.at(1) });
    let expired = world.dictate_fields(&paid, &expired);
    assert_eq!(world.tell_as_it_is(&expired).status, 200);
    for (order, told) in [("A-2", ["paid", "waiting"]), ("A-3", ["waiting", "paid"])] {
        let created = world.create(order);
        let truth = json!({ "status": "waiting", "updatedAt": created.at(120) });
        let invoice = world.dictate_fields(&created, &truth);
        for status in told {
            tells(&world, &invoice, status, &invoice.at(0));
        }
    }
    // Of this status the service knows nothing: it goes back to an older one.
    let ahead = world.create("A-4").as_if("waiting");
    assert_eq!(world.tell_as_it_is(&ahead).status, 200);
    world.tilld(&["invoice", "poll", "A-4"]).ends_with(0);
    let pending = "SELECT count(*) FROM heard WHERE decision = 'pending'";
    wait_until(PATIENCE, "the first answers", || {
        world.value(pending) == "3"
    });
    // One answer alone undoes nothing.
    for order in ["A-1", "A-2"] {
        assert_eq!(
            world.invoice(order, "status || ' ' || outcome"),
            "paid paid"
        );
    }
    ends(&world, "A-1", "expired reversed 0");
    ends(&world, "A-2", "waiting open 0");
    ends(&world, "A-3", "waiting open 0");
    ends(&world, "A-4", "new open 0");
    assert_eq!(world.invoice("A-4", "attention"), "rewound");
    world.tilld(&["ack", "A-4"]).ends_with(0);
    assert_eq!(world.invoice("A-4", "attention"), "");
    world.settle();
    let reversed = "SELECT event_id FROM events WHERE kind = 'reversed'";
    let undone = format!("{} reversed A-1 1", world.value(reversed));
    assert_eq!(world.hook_log("undo"), [undone]);
    assert_eq!(world.hook_log("failed"), Vec::<String>::new());
}

/// A07: what was asked for, what was agreed and what was reported are three things; a payment that is not what was agreed
/// is no payment.
#[test]
fn a_payment_of_another_sum_is_a_mismatch_and_never_paid() {
    let world = Setup::new()
        .plain()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .hook("look", &["mismatch"], "cat >> \"$1\"")
        .start();
    for (order, amount, currency) in [("A-1", "0.05", "EUR"), ("A-2", "1500.00", "VND")] {
        let eur = ["--currency", "EUR"];
        assert_eq!(world.open(order, "1500.00", &eur).code, 0);
        let open = world.issued(order).expect("made");
        let wrong = json!({ "status": "paid", "amount": amount, "currency": currency });
        let later = json!({ "updatedAt": open.at(1) });
        let sums = "amount_asked || ' ' || amount_agreed || ' ' || coalesce(amount_reported, '') \
                    || ' ' || currency || ' ' || coalesce(attention, '')";

        // Pushed, and not what the service says when it is asked: nothing comes of it.
        let open = world.dictate_fields(&open, &json!({ "updatedAt": open.at(30) }));
        let asked = world.requests("fetch");
        let body = open.with(&wrong);
        let body = with(&body, &later).to_string();
        assert_eq!(world.tell(&open, &body).status, 200);
        wait_until(PATIENCE, "the service to be asked", || {
            world.requests("fetch") > asked
        });
        ends(&world, order, "new open 0");
        assert_eq!(world.invoice(order, sums), "1500.00 1500.00 1500.00 EUR ");

        // The service says so itself.
        let later = json!({ "updatedAt": open.at(30) });
        let truth = world.dictate_fields(&open, &with(&wrong, &later));
        assert_eq!(world.tell_as_it_is(&truth).status, 200);
        ends(&world, order, "paid mismatch 0");
        let kept = format!("1500.00 1500.00 {amount} EUR mismatch");
        assert_eq!(world.invoice(order, sums), kept);
        world.settle();
        let told = world.hook_log("look").pop().expect("a document");
        let told: Value = serde_json::from_str(&told).expect("one document a line");
        for (pointer, value) in [
            ("/event/kind", "mismatch"),
            ("/invoice/amount_asked", "1500.00"),
            ("/invoice/amount_agreed", "1500.00"),
            ("/invoice/amount_reported", amount),
            ("/invoice/currency", "EUR"),
            ("/invoice/currency_reported", currency),
            ("/service/amount", amount),
        ] {
            assert_eq!(told.pointer(pointer), Some(&json!(value)), "{pointer}");
        }
        assert_eq!(world.wait(order, "5s").code, 5, "final, and not paid");
    }
    assert_eq!(world.hook_log("look").len(), 2);
    assert_eq!(world.hook_log("fulfil"), Vec::<String>::new());
}

fn with(object: &Value, fields: &Value) -> Value {
    let mut object = object.clone();
    let own = object.as_object_mut().expect("an object");
    own.extend(fields.as_object().expect("fields").clone());
    object
}
