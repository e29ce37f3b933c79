//! `tilld invoice accept-amount`: a reported amount is agreed, and what was paid in it is paid, once.

use serde_json::json;

use super::kinds;
use crate::harness::{PATIENCE, Setup, World, wait_until};
use crate::shop::Shop;

#[test]
fn an_accepted_amount_is_paid_once_and_told_once() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .noting_hook("by-name", &["status:paid"])
        .hook("look", &["*"], "cat >> \"$1\"")
        .start();
    let issued = world.create("A-1");
    let fields = json!({ "status": "paid", "amount": "590.00" });
    let paid = world.dictate_fields(&issued, &fields);
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    wait_until(PATIENCE, "the poll", || {
        world.invoice("A-1", "outcome || ' ' || attention") == "mismatch mismatch"
    });
    let shown = world.tilld(&["invoice", "show", "A-1"]).ends_with(0).stdout;
    let line = format!(
        "tilld invoice accept-amount --id {} --amount 590.00",
        issued.typed()
    );
    assert!(shown.contains(&line), "{shown}");

    let accept = |more: &[&str]| {
        let mut args = vec!["invoice", "accept-amount", "A-1", "--json"];
        args.extend(more);
        world.tilld(&args)
    };
    for guard in [
        &["--amount", "599.80"][..],
        &["--amount", "590", "--currency", "USD"],
    ] {
        let ran = accept(guard).ends_with(1);
        assert!(ran.stderr.contains("reported 590.00 RUB"), "{ran:?}");
    }
    accept(&["--amount", "nothing"]).ends_with(2);
    assert_eq!(
        world.invoice("A-1", "amount_agreed || ' ' || outcome"),
        "599.80 mismatch"
    );

    let accepted = accept(&["--amount", "590", "--currency", "RUB"]).ends_with(0);
    assert!(
        accepted.stderr.contains("590.00 RUB is agreed"),
        "{accepted:?}"
    );
    assert_eq!(accepted.text("outcome"), "paid");
    assert_eq!(accepted.json().get("attention"), Some(&json!([])));
    assert_eq!(
        kinds(&world, "A-1"),
        ["opened", "mismatch", "operator", "paid"]
    );
    assert_eq!(
        world.invoice(
            "A-1",
            "amount_asked || ' ' || amount_agreed || ' ' || found_by"
        ),
        "599.80 590.00 operator"
    );
    wait_until(PATIENCE, "the hooks", || {
        world.hook_log("fulfil").len() == 1 && world.hook_log("look").len() == 4
    });
    told(&world);

    let story = world.tilld(&["explain", "A-1"]).ends_with(0).stdout;
    assert!(
        story.contains("a person accepted the reported figures"),
        "{story}"
    );

    let again = accept(&["--amount", "590"]).ends_with(0);
    assert!(again.stderr.contains("already"), "{again:?}");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    world.wait("A-1", "5s").ends_with(0);
    world.settle();
    assert_eq!(kinds(&world, "A-1").len(), 4);
    assert_eq!(world.hook_log("fulfil").len(), 1);
    assert_eq!(
        world.hook_log("by-name").len(),
        2,
        "a person's hand is no word of the service"
    );
}

/// What the hook that wants everything was told of the acceptance, and of the payment it made.
fn told(world: &World) {
    let documents: Vec<serde_json::Value> = world
        .hook_log("look")
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let [_, _, operator, paid] = documents.as_slice() else {
        panic!("four: {documents:?}");
    };
    for (document, pointer, wanted) in [
        (operator, "/event/kind", json!("operator")),
        (operator, "/event/source", json!("operator")),
        (operator, "/event/outcome", json!("mismatch")),
        (operator, "/event/previous_outcome", json!("mismatch")),
        (operator, "/event/status", json!("paid")),
        (operator, "/event/previous_status", json!("paid")),
        (operator, "/invoice/amount_agreed", json!("590.00")),
        (operator, "/service", json!(null)),
        (paid, "/event/kind", json!("paid")),
        (paid, "/event/previous_outcome", json!("mismatch")),
        (paid, "/invoice/amount_reported", json!("590.00")),
        (paid, "/service/status", json!("paid")),
    ] {
        assert_eq!(
            document.pointer(pointer),
            Some(&wanted),
            "{pointer}: {document}"
        );
    }
}

#[test]
fn figures_that_cannot_be_agreed_to_are_named() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let accept = |name: &[&str], code: i32, why: &str| {
        let ran = world
            .tilld(&[&["invoice", "accept-amount", "--amount", "599.8"], name].concat())
            .ends_with(code);
        assert!(ran.stderr.contains(why), "{ran:?}");
    };
    accept(&["A-1"], 0, "is agreed for order A-1 already");
    accept(&["--ref", &issued.reference], 0, "already");
    accept(&["Z-9"], 3, "no order `Z-9`");
    let odd = issued.with(&json!({ "amount": "1 499,90", "updatedAt": issued.at(1) }));
    world.next_fetch(200, &odd.to_string());
    let heard = "SELECT count(*) FROM heard WHERE source = 'poll'";
    let stranger = [("X-Notification-Token", "of-a-stranger")];
    let nudge = world.notify(&issued.reference, &stranger, &issued.object.to_string());
    assert_eq!(nudge.status, 401);
    wait_until(PATIENCE, "the poll", || world.value(heard) == "1");
    // What cannot be read is not reported: the amount before it stands.
    accept(&["--id", &issued.id], 0, "already");
    assert!(
        !world
            .value("SELECT amount_reported FROM invoices")
            .contains(',')
    );
    assert_eq!(world.invoice("A-1", "amount_agreed"), "599.80");

    // Nothing was reported where nothing was opened.
    let shop = Shop::new("");
    shop.tilld(&["invoice", "accept-amount", "1042", "--amount", "5"], 3)
        .told(&["there is no ledger"]);
    shop.refused_invoice("1042");
    shop.tilld(&["invoice", "accept-amount", "1042", "--amount", "5"], 1)
        .told(&["has reported no amount", "hint: "]);
    shop.tilld(&["invoice", "adopt", "1042", "--id", "inv-1"], 1)
        .told(&["no invoice whose outcome is unknown", "hint: "]);
}

#[test]
fn which_of_several_invoices_is_meant_is_asked() {
    let world = Setup::new().quiet().start();
    let first = world.create("A-1");
    let anew = world.open("A-1", "599.80", &["--new"]).ends_with(0);
    let second = world.issued("A-1").expect("the service has it");
    assert_eq!(anew.text("invoice_id"), second.id);
    let mismatches = || world.value("SELECT count(*) FROM invoices WHERE outcome = 'mismatch'");
    for (issued, amount, count) in [(&first, "590.00", "1"), (&second, "580.00", "2")] {
        let fields = json!({ "status": "paid", "amount": amount });
        let paid = world.dictate_fields(issued, &fields);
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
        wait_until(PATIENCE, "the poll", || mismatches() == count);
    }
    let accept = |name: &[&str], amount: &str| {
        let command = ["invoice", "accept-amount", "--amount", amount, "--json"];
        world.tilld(&[&command, name].concat())
    };
    let which = accept(&["A-1"], "590").ends_with(1);
    for issued in [&first, &second] {
        let flag = format!("`--id {}`", issued.typed());
        assert!(which.stderr.contains(&flag), "{which:?}");
    }
    assert_eq!(mismatches(), "2");
    let named = accept(&["--id", &first.id], "590").ends_with(0);
    assert_eq!(named.text("amount_agreed"), "590.00");
    // The order is paid with it: the other one is not taken as well.
    let left = accept(&["A-1"], "580").ends_with(1);
    assert!(left.stderr.contains("another invoice has paid"), "{left:?}");
    assert_eq!(mismatches(), "1");
}
