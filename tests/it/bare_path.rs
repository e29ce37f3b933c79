//! The address without a ref: for invoices whose notificationUrl was not made by tilld. What is at stake is the same as on
//! an invoice's own address (A01, A15): nothing authentic is lost, and nothing is learnt from a refusal.

use serde_json::json;

use crate::harness::{Answer, Issued, PATIENCE, Setup, World, request, wait_until};

/// A notification to the bare path.
fn tell(world: &World, headers: &[(&str, &str)], body: &str) -> Answer {
    let target = World::target("");
    request(world.listen(), "POST", &target, headers, body)
}

fn with_token(invoice: &Issued) -> [(&'static str, &str); 1] {
    [("X-Notification-Token", invoice.token.as_str())]
}

#[test]
fn whatever_is_stored_is_answered_exactly_200() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.create("A-1");
    let closed = world.create("A-2");
    let other = world.create("A-3");
    let check = |what: &str, invoice: &Issued, status: &str, ms: i64| {
        let body = invoice.saying(status, &invoice.at(ms));
        let answer = tell(&world, &with_token(invoice), &body);
        assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{what}");
        assert_eq!(answer.body, "ok\n", "{what}");
    };
    check("new", &invoice, "waiting", 10);
    check("a duplicate", &invoice, "waiting", 10);
    check("a stale one", &invoice, "new", 5);
    check("an unknown status", &invoice, "PARTIALLY_REVERSED", 20);
    check(
        "another status at the same instant",
        &invoice,
        "waiting",
        20,
    );
    check("the end of an invoice", &closed, "canceled", 10);
    check("a closed invoice that is paid", &closed, "paid", 30);
    world.control("POST", "/tokens/revoke", &json!({}));
    check("with the login revoked", &other, "paid", 10);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
    assert_eq!(world.value("SELECT count(*) FROM refusal"), "0");
}

#[test]
fn every_doubt_is_answered_as_on_an_address_of_its_own() {
    let world = Setup::new().quiet().start();
    let (invoice, other) = (world.create("A-1"), world.create("A-2"));
    let wrong = [("X-Notification-Token", "not-the-token-of-this-invoice")];
    let body = invoice.saying("paid", &invoice.at(120));
    let own = world.notify(&invoice.reference, &wrong, &body);
    let own = own.without_date();
    assert_eq!(own.status_line, "HTTP/1.1 401 Unauthorized");
    let change = |fields| invoice.with(&fields).to_string();
    let unknown = change(json!({ "id": "inv-of-nobody", "internalId": "no-order" }));
    let known_order = change(json!({ "id": "inv-of-nobody" }));
    let other_order = change(json!({ "internalId": "A-2", "status": "paid" }));
    for (headers, body, what) in [
        (&wrong[..], &body, "a wrong token"),
        (&[], &body, "no token"),
        (&with_token(&other), &body, "another invoice's token"),
        (&with_token(&invoice), &unknown, "an unknown invoice"),
        (&[], &unknown, "an unknown invoice without a token"),
        // Its id is known, so its order does not lead to it.
        (&with_token(&invoice), &known_order, "an unknown id"),
        (&with_token(&invoice), &other_order, "another order"),
    ] {
        let answer = tell(&world, headers, body).without_date();
        assert_eq!(answer, own, "{what}");
    }
    let events = "SELECT count(*) FROM events WHERE kind <> 'opened'";
    assert_eq!(world.value(events), "0");
    let misshapen = tell(&world, &with_token(&invoice), "[]");
    assert_eq!(misshapen.status, 400);
    let told = "SELECT reason, ref_hash, invoice FROM refusal ORDER BY id LIMIT -1 OFFSET 1";
    let wanted = [
        ["token_wrong", "", "1"],
        ["token_missing", "", "1"],
        ["token_wrong", "", "1"],
        ["invoice_unknown", "", ""],
        ["invoice_unknown", "", ""],
        ["invoice_unknown", "", ""],
        ["not_this_invoice", "", "1"],
        ["body_not_an_object", "", ""],
    ];
    wait_until(PATIENCE, "the refusals to be written", || {
        world.sql(told).len() == wanted.len()
    });
    assert_eq!(world.sql(told), wanted);
}

/// A01: the answer to the create is lost, so only the order leads from the notification to the invoice.
#[test]
fn an_invoice_without_an_id_is_found_by_its_order_if_it_is_the_only_one() {
    let world = Setup::new().quiet().start();
    world.faults(&json!({ "lose": true, "drop_create_answer": 1 }));
    world.try_create("A-1").ends_with(9);
    let lost = world.issued("A-1").expect("the service made it");
    assert_eq!(world.invoice("A-1", "invoice_id"), "");
    let lost = world.dictate(&lost, "paid");
    let body = lost.object.to_string();
    assert_eq!(tell(&world, &[], &body).status, 401);
    assert_eq!(tell(&world, &with_token(&lost), &body).status, 200);
    let known = "SELECT invoice_id, outcome, opening FROM invoices";
    assert_eq!(
        world.sql(known),
        [[lost.id.as_str(), "paid", "answered"]],
        "it has its id now"
    );

    // Two of one order: nobody can tell which one is meant.
    world.faults(&json!({ "drop_create_answer": 2 }));
    world.try_create("A-2").ends_with(9);
    world.open("A-2", "599.80", &["--new"]).ends_with(9);
    let newest = world.issued("A-2").expect("the service made it");
    let newest = world.dictate(&newest, "paid");
    let body = newest.object.to_string();
    assert_eq!(tell(&world, &with_token(&newest), &body).status, 401);
    // Its own address still leads to it, and leaves the other alone under the order.
    assert_eq!(world.tell_as_it_is(&newest).status, 200);
    assert_eq!(tell(&world, &with_token(&newest), &body).status, 200);
}

#[test]
fn a_refused_notification_is_a_reason_to_ask() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    let body = invoice.object.to_string();
    assert_eq!(tell(&world, &[], &body).status, 401);
    wait_until(PATIENCE, "the poll to find the payment", || {
        world.invoice("A-1", "found_by") == "poll"
    });
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

#[test]
fn a_look_has_no_effect_and_other_methods_are_not_there() {
    let world = Setup::new().quiet().start();
    let slash = World::target("");
    for path in [slash.as_str(), slash.trim_end_matches('/')] {
        let ask = |method: &str| request(world.listen(), method, path, &[], "");
        let look = ask("GET");
        assert_eq!((look.status, look.body.as_str()), (200, ""), "{path}");
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
            let answer = ask(method);
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"));
        }
        assert_eq!(ask("POST").status, 400, "{path}");
    }
    for path in ["/", "/n//", "/nn", "/n/x/y"] {
        let answer = request(world.listen(), "POST", path, &[], "{}");
        assert_eq!(answer.status, 404, "{path}");
    }
}
