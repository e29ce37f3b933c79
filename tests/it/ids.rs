//! The service's ids, of which contract 2.3 says that they are strings: whatever one holds, an invoice is opened,
//! told of, asked for, waited for, shown and adopted by it.

use serde_json::json;

use crate::harness::{Issued, PATIENCE, Setup, wait_until};

/// Half of the sandbox's ids look as most services' do. Among so many are odd ones of most forms.
const INVOICES: usize = 40;
/// What an id may hold that means something in an address.
const ODD: [&str; 6] = ["/", "#", " ", "%2F", "?", "+"];

/// The flag that names it.
fn by_id(issued: &Issued) -> String {
    format!("--id={}", issued.id)
}

/// What is at stake: the invoice exists when its create is answered. An id that is not understood leaves an order whose
/// customer can pay, and nobody knows of it.
#[test]
fn an_id_of_any_form_names_its_invoice_from_the_create_to_the_hook() {
    let world = Setup::new()
        .sandbox(&[&format!("--pool={INVOICES}")])
        .noting_hook("fulfil", &["paid"])
        .start();
    let orders: Vec<String> = (0..INVOICES).map(|order| format!("A-{order}")).collect();
    let all = world.create_all(&orders);
    let is_odd = |id: &str| ODD.into_iter().any(|odd| id.contains(odd));
    let odd = all.iter().filter(|issued| is_odd(&issued.id)).count();
    assert!(odd > INVOICES / 8, "{odd} odd ids among {all:?}");
    for (place, issued) in all.iter().enumerate() {
        // By a notification, by a poll of the daemon, by one of the command.
        match place % 3 {
            0 => world.happens(issued, &json!({ "status": "paid" })),
            1 => {
                world.dictate(issued, "paid");
                let target = format!("/v1/invoices/by-id/{}/poll", issued.segment());
                assert_eq!(world.call("POST", &target, "").status, 200, "{issued:?}");
            }
            _ => {
                world.dictate(issued, "paid");
                let polled = world.tilld(&["invoice", "poll", &by_id(issued)]);
                polled.ends_with(0);
            }
        }
    }
    wait_until(PATIENCE, "every hook", || {
        world.hook_log("fulfil").len() == INVOICES
    });
    for issued in &all {
        let shown = world.tilld(&["invoice", "show", "--json", &by_id(issued)]);
        let shown = shown.ends_with(0);
        assert_eq!(shown.text("order_id"), issued.order, "{issued:?}");
        assert_eq!(shown.text("invoice_id"), issued.id);
        assert_eq!(shown.text("outcome"), "paid");
        let plain = world.tilld(&["invoice", "show", "--json", "--", &issued.id]);
        assert_eq!(plain.ends_with(0).stdout, shown.stdout);
        let waited = world.wait(&by_id(issued), "0s");
        waited.ends_with(0);
    }
}

#[test]
fn an_invoice_whose_answer_was_lost_is_adopted_by_an_id_of_any_form() {
    let world = Setup::new().sandbox(&["--pool=40"]).start();
    for order in 0..INVOICES {
        let order = format!("A-{order}");
        world.faults(&json!({ "drop_create_answer": 1 }));
        world.try_create(&order).ends_with(9);
        let issued = world.issued(&order).expect("the service has it");
        let id = format!("--id={}", issued.id);
        let adopted = world.tilld(&["invoice", "adopt", &order, &id, "--json"]);
        let adopted = adopted.ends_with(0);
        assert_eq!(adopted.text("invoice_id"), issued.id);
    }
}
