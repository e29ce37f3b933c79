//! `tilld invoice adopt`: a create whose answer was lost is settled by the id a person found.

use rustix::process::Signal;
use serde_json::json;

use super::{TOKEN, kinds};
use crate::harness::{Issued, PATIENCE, Setup, World, wait_until};

/// A create whose answer is lost; gives it as the service has it.
fn lost(world: &World, order: &str, more: &[&str]) -> Issued {
    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    let ran = world.open(order, "599.80", more).ends_with(9);
    assert!(
        ran.stderr.contains("`tilld invoice adopt ORDER --id ID`"),
        "{ran:?}"
    );
    world.issued(order).expect("the service made it")
}

#[test]
fn a_lost_create_is_settled_by_the_id_a_person_found() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .noting_hook("look", &["*"])
        .start();
    let lost = lost(&world, "A-1", &[]);
    world.dictate(&lost, "paid");
    let adopt = ["invoice", "adopt", "A-1", "--id", &lost.id, "--json"];
    let adopted = world.tilld(&adopt).ends_with(0);
    for (field, wanted) in [
        ("opening", "answered"),
        ("outcome", "paid"),
        ("invoice_id", lost.id.as_str()),
    ] {
        assert_eq!(adopted.text(field), wanted, "{field}");
    }
    assert_eq!(adopted.json().get("attention"), Some(&json!([])));
    assert_eq!(kinds(&world, "A-1"), ["operator", "paid"]);
    assert_eq!(
        world.sql("SELECT source FROM events ORDER BY seq").concat(),
        ["operator", "poll"]
    );
    wait_until(PATIENCE, "the hooks", || {
        world.hook_log("look").len() == 2 && world.hook_log("fulfil").len() == 1
    });
    let again = world.tilld(&adopt).ends_with(0);
    assert!(again.stderr.contains("already"), "{again:?}");
    assert_eq!(again.text("outcome"), "paid");
    assert_eq!(kinds(&world, "A-1").len(), 2);
    assert_eq!(world.requests("create"), 1, "nothing was posted");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

#[test]
fn an_id_that_is_not_the_orders_is_not_adopted() {
    let world = Setup::new().quiet().not_served().start();
    let settled = world.create("B-1");
    let stranger = world.create_past_tilld("C-1", TOKEN, &json!({}));
    let first = lost(&world, "A-1", &[]);
    let adopt = |order: &str, id: &str, more: &[&str]| {
        let mut args = vec!["invoice", "adopt", order, "--id", id, "--json"];
        args.extend(more);
        world.tilld(&args)
    };
    let refused = |order: &str, id: &str, code: i32, why: &str| {
        let ran = adopt(order, id, &[]).ends_with(code);
        assert!(
            ran.stderr.contains(why) && ran.stderr.contains("hint: "),
            "{ran:?}"
        );
    };
    refused("A-1", &stranger.id, 1, "belongs to order `C-1`, not `A-1`");
    refused(
        "A-1",
        &settled.id,
        1,
        "belongs to order `B-1` in the ledger",
    );
    refused(
        "A-1",
        "00000000-no-such-invoice",
        3,
        "knows no such invoice",
    );
    refused(
        "B-1",
        &first.id,
        1,
        "has no invoice whose outcome is unknown",
    );
    refused("Z-9", &first.id, 3, "no order `Z-9`");
    assert_eq!(
        world.invoice("A-1", "opening || ' ' || attention"),
        "unknown outcome_unknown"
    );
    let unreachable = [
        ("TILLD_SERVICE__URL", "http://127.0.0.1:1"),
        ("SERVICE_TOKEN", "shop:token"),
    ];
    let args = ["invoice", "adopt", "A-1", "--id", &first.id];
    world.tilld_with(&unreachable, &args).ends_with(8);
    world
        .tilld_with(&[("SERVICE_TOKEN", "shop:a-token-nobody-granted")], &args)
        .ends_with(4);

    // Two lost creates of one order: a person says which by its ref.
    let second = lost(&world, "A-1", &["--new"]);
    let which = adopt("A-1", &second.id, &[]).ends_with(1);
    for lost in [&first, &second] {
        let flag = format!("`--ref {}`", lost.reference);
        assert!(which.stderr.contains(&flag), "{which:?}");
    }
    let other_ref = ["--ref", "AAAAAAAAAAAAAAAAAAAAAA"];
    adopt("A-1", &second.id, &other_ref).ends_with(3);
    let chosen = format!("--ref={}", second.reference);
    let adopted = adopt("A-1", &second.id, &[&chosen]).ends_with(0);
    assert_eq!(adopted.text("ref"), second.reference);
    // One is left, and needs no ref any more.
    let left = adopt("A-1", &first.id, &[]).ends_with(0);
    assert_eq!(left.text("ref"), first.reference);
}

#[test]
fn a_create_that_was_killed_is_settled_as_well_but_not_while_it_is_under_way() {
    let world = Setup::new().quiet().not_served().start();
    world.faults(&json!({ "lose": true, "hold_create_ms": 20_000 }));
    let mut create = world.start_open("A-1");
    wait_until(PATIENCE, "the request", || world.issued("A-1").is_some());
    let issued = world.issued("A-1").expect("the service has it");
    let adopt = ["invoice", "adopt", "A-1", "--id", &issued.id, "--json"];
    let early = world.tilld(&adopt).ends_with(1);
    assert!(early.stderr.contains("still under way"), "{early:?}");
    create.signal(Signal::KILL);
    create.wait(PATIENCE);
    // Nobody has written down yet that its creator is gone.
    assert_eq!(world.invoice("A-1", "opening"), "creating");
    let adopted = world.tilld(&adopt).ends_with(0);
    assert_eq!(adopted.text("opening"), "answered");
    assert_eq!(kinds(&world, "A-1"), ["operator", "opened"]);
}

#[test]
fn an_adopted_invoice_of_another_sum_is_not_handed_on() {
    let world = Setup::new().quiet().not_served().start();
    let lost = lost(&world, "A-1", &[]);
    world.dictate_fields(&lost, &json!({ "status": "waiting", "amount": "590.00" }));
    let adopt = ["invoice", "adopt", "A-1", "--id", &lost.id, "--json"];
    for _ in 0..2 {
        let adopted = world.tilld(&adopt).ends_with(1);
        assert!(adopted.stderr.contains("with 590.00 RUB"), "{adopted:?}");
        assert!(adopted.stderr.contains("accept-amount"), "{adopted:?}");
        assert_eq!(adopted.text("opening"), "answered");
        assert_eq!(
            adopted.json().get("attention"),
            Some(&json!(["amount_differs"]))
        );
    }
    let accept = [
        "invoice",
        "accept-amount",
        "--id",
        &lost.id,
        "--amount=590",
        "--json",
    ];
    let accepted = world.tilld(&accept).ends_with(0);
    assert_eq!(accepted.json().get("attention"), Some(&json!([])));
    assert_eq!(accepted.text("outcome"), "open");
    // Nothing stands against it any more.
    world.tilld(&adopt).ends_with(0);
}
