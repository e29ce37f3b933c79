//! Strangers at the notification address: requests of every shape, made by schemathesis. What is at stake: the address is
//! open to the world, and whoever finds it must neither bring the daemon down, nor learn anything, nor change an order.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::harness::{Issued, PATIENCE, Probe, Setup, World, cannot_probe, dice, skip, wait_until};

/// What the description cannot say of a right notification: that its token is this invoice's, which nobody here knows.
const NOT_SAID: &str = "positive_data_acceptance";

/// The address as the world sees it, with this invoice in its examples.
fn description(known: &Issued) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("tests/fixtures/notifications.openapi.json");
    let text = fs::read_to_string(path).expect("the description");
    text.replace("\"REF\"", &format!("{:?}", known.reference))
        .replace("\"ID\"", &format!("{:?}", known.id))
        .replace("\"ORDER\"", &format!("{:?}", known.order))
}

/// All a notification could change: the invoices, their events, and what hooks are owed for them.
fn standing(world: &World) -> Vec<Vec<String>> {
    let invoices = "SELECT order_id, invoice_id, status, outcome, amount_reported FROM invoices";
    let mut rows = world.sql(invoices);
    rows.extend(world.sql("SELECT seq, event_id, kind, order_id FROM events"));
    rows.extend(world.sql("SELECT event_id, hook, state FROM deliveries"));
    rows
}

/// No 5xx, no answer that is not described, and nothing in the ledger but refusals, though the invoice is known and the
/// examples say that it is paid. `TILLD_SEED` makes other requests up.
#[test]
fn schemathesis_changes_nothing_and_is_answered_as_described() {
    if let Some(why) = cannot_probe() {
        skip!("{why}");
    }
    let setup = Setup::new().plain().quiet().noting_hook("fulfil", &["*"]);
    let world = setup.set("log_level", "\"info\"").start();
    let known = world.create("1042");
    world.settle();
    let before = standing(&world);
    let probe = Probe {
        dir: world.dir(),
        description: &description(&known),
        url: &format!("http://{}", world.listen()),
        headers: &[],
        parameters: "",
        without: NOT_SAID,
        phases: "examples,coverage,fuzzing",
        examples: 50,
        seed: dice::number("TILLD_SEED").unwrap_or(1),
    };
    probe.finds_nothing().tried(4, 60);
    // It is really the token that was doubted, of this very invoice and of one that is unknown.
    for refused in [
        "invoice IS NOT NULL AND reason LIKE 'token%'",
        "invoice IS NULL AND reason = 'ref_unknown'",
    ] {
        let count = format!("SELECT count(*) FROM refusal WHERE {refused}");
        wait_until(PATIENCE, refused, || world.value(&count) != "0");
    }
    assert_eq!(standing(&world), before);
}

/// Whoever has the right token may say what he likes of his own invoice: he is answered as described, and what is stored
/// keeps the ledger's invariants, which are looked at when the world ends.
#[test]
fn schemathesis_with_the_right_token_is_answered_as_described() {
    if let Some(why) = cannot_probe() {
        skip!("{why}");
    }
    // One of twelve ids is not ASCII otherwise, which schemathesis does not take from its settings.
    let setup = Setup::new().plain().quiet().noting_hook("fulfil", &["*"]);
    let world = setup.set("log_level", "\"info\"").start();
    let known = world.create("1042");
    // Paid before anything else: which of two statuses of one instant is right would be the service's to decide, and it knows
    // of no payment.
    let paid = json!({
        "id": known.id,
        "direction": "in",
        "status": "paid",
        "amount": "599.80",
        "currency": "RUB",
        "updatedAt": known.at(1),
    });
    let token = [("x-notification-token", known.token.as_str())];
    let answer = world.notify(&known.reference, &token, &paid.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let parameters = format!(
        "[parameters]\n\"path.ref\" = {:?}\n\"body.id\" = {:?}\n",
        known.reference, known.id
    );
    let probe = Probe {
        dir: world.dir(),
        description: &description(&known),
        url: &format!("http://{}", world.listen()),
        headers: &[&format!("X-Notification-Token: {}", known.token)],
        parameters: &parameters,
        // Each request has the right token, also where it is taken for one without; and what is odd about a field that is
        // not needed costs that field alone.
        without: "positive_data_acceptance,ignored_auth,negative_data_rejection",
        phases: "examples,coverage",
        examples: 1,
        seed: dice::number("TILLD_SEED").unwrap_or(1),
    };
    let said = probe.finds_nothing();
    said.tried(4, 60);
    let heard = "SELECT count(*) > 20 FROM history WHERE source = 'notification'";
    let heard = world.value(heard) == "1";
    assert!(heard, "the probe was heard: {said:?}");
    // Whatever it said, the goods go out once.
    let events = world.value("SELECT count(*) FROM events WHERE kind = 'paid'");
    assert_eq!(events, "1", "{:?}", standing(&world));
    world.settle();
}
