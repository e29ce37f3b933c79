//! Amounts in every spelling, and payments without one.
//! Relies on `till`.
//! Promises that equal is equal, and that what is written down is a plain decimal or nothing.

use serde_json::json;

use super::till::{Till, status};
use crate::harness::World;

/// What is no amount.
const UNREADABLE: [&str; 8] = [
    "true",
    "false",
    "[1000]",
    "{}",
    "\"NaN\"",
    "\"1 000\"",
    "\"Infinity\"",
    "1e99999999999",
];

/// Every amount that readers see, in views and in variables, is a plain decimal or nothing.
#[track_caller]
fn all_are_plain(world: &World) {
    let stored = "SELECT amount_reported FROM invoices UNION ALL SELECT amount_reported FROM events \
        UNION ALL SELECT amount_reported FROM heard";
    let is_plain = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        [whole, fraction]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for row in world.sql(&format!(
        "SELECT coalesce(amount_reported, '0') FROM ({stored})"
    )) {
        assert!(row.iter().all(|text| is_plain(text)), "{row:?}");
    }
    for line in world.hook_log("note") {
        let told = line
            .split_once('[')
            .map(|(_, told)| told.trim_end_matches(']'));
        let told = told.expect("the variable is always set");
        assert!(told.is_empty() || is_plain(told), "{line}");
    }
}

#[test]
fn equal_by_value_is_equal_in_every_spelling() {
    let till = Till::start();
    let long = format!("1000.{}", "0".repeat(200));
    let forms = [
        "1e3",
        "1E+3",
        "1000",
        "1000.00",
        "10.00e2",
        "1000000e-3",
        "\"1000\"",
        "\"1e3\"",
        "\"01000.0\"",
        &long,
    ];
    for (number, form) in forms.iter().enumerate() {
        let order = format!("A-{number}");
        till.open(&order, "1000");
        till.says_and_tells(&order, &status("paid", 5), form);
        till.becomes(&order, &["outcome", "doubt"], "paid 0");
    }
    till.open("B-1", "1000");
    till.says_and_tells("B-1", &status("paid", 5), "1.001e3");
    till.becomes("B-1", &["outcome", "amount_reported"], "mismatch 1001");
    till.world.settle();
    all_are_plain(&till.world);
    let noted = till.world.hook_log("note");
    assert!(noted.contains(&"A-0 paid [1000]".to_owned()), "{noted:?}");
    let accept = ["invoice", "accept-amount", "B-1", "--amount", "1001"];
    till.world.tilld(&accept).ends_with(0);
    till.becomes("B-1", &["outcome"], "paid");
}

#[test]
fn a_payment_without_an_amount_is_doubt_until_a_poll_names_one() {
    let till = Till::start();
    let forms = UNREADABLE.iter().chain(&["null", "\"\""]);
    let forms: Vec<&&str> = forms.collect();
    for (number, form) in forms.iter().enumerate() {
        let order = format!("A-{number}");
        till.open(&order, "1000");
        till.says_and_tells(&order, &status("paid", 5), form);
        // A poll came at once, and named none either.
        till.becomes(
            &order,
            &["outcome", "doubt", "attention"],
            "open 1 amount_missing",
        );
    }
    till.world.settle();
    all_are_plain(&till.world);
    let status_of = till.world.tilld(&["status"]).ends_with(16);
    assert!(status_of.stdout.contains("amount_missing"), "{status_of:?}");
    let shown = till.world.tilld(&["invoice", "show", "A-0"]).ends_with(0);
    let line = "`tilld invoice accept-amount --id inv-A-0 --amount AMOUNT`";
    assert!(shown.stdout.contains(line), "{shown:?}");
    // A second one without an amount settles nothing.
    let polled = till.poll("A-0");
    let remark = "names no amount that can be read: a later poll must name it";
    assert!(polled.stderr.contains(remark), "{polled:?}");
    assert_eq!(
        till.world.invoice("A-0", "outcome || ' ' || doubt"),
        "open 1"
    );
    for (number, _) in forms.iter().enumerate() {
        let order = format!("A-{number}");
        till.says(&order, &status("paid", 5), "1e3");
        till.poll(&order);
        till.becomes(&order, &["outcome", "doubt", "attention"], "paid 0 ");
    }
    till.world.settle();
    all_are_plain(&till.world);
    let noted = till.world.hook_log("note");
    let paid = noted.iter().filter(|line| line.ends_with("paid [1000]"));
    assert_eq!(paid.count(), forms.len(), "{noted:?}");
}

#[test]
fn a_paid_order_stays_paid_when_polls_name_no_amount() {
    let till = Till::start();
    for (number, form) in UNREADABLE.iter().chain(&["null"]).enumerate() {
        let order = format!("A-{number}");
        till.open(&order, "1000");
        till.says_and_tells(&order, &status("paid", 5), "\"1000\"");
        till.becomes(&order, &["outcome"], "paid");
        for second in [5, 5, 6, 7] {
            let body = till.says(&order, &status("paid", second), form);
            till.poll(&order);
            assert_eq!(till.tell(&order, &body).status, 200);
            let now = till
                .world
                .invoice(&order, "outcome || ' ' || doubt || ' ' || attention");
            assert_eq!(now, "paid 0 ", "{form}");
        }
    }
    till.world.settle();
    all_are_plain(&till.world);
    assert_eq!(
        till.world
            .value("SELECT count(*) FROM events WHERE kind = 'paid'"),
        "9"
    );
}

#[test]
fn an_amount_that_cannot_be_read_lends_no_other() {
    let till = Till::start();
    till.open("A-1", "1000");
    let fields = json!({ "status": "on_hold", "updatedAt": "2026-01-01T10:00:05.000Z" });
    till.says_and_tells("A-1", &fields, "[1000]");
    till.becomes(
        "A-1",
        &["status", "doubt", "amount_reported"],
        "on_hold 0 null",
    );
    till.world.settle();
    let noted = till.world.hook_log("note");
    assert_eq!(noted.last().map(String::as_str), Some("A-1 status []"));
    let event = "SELECT coalesce(amount_reported, 'null') FROM events ORDER BY seq DESC LIMIT 1";
    assert_eq!(till.world.value(event), "null");
    let story = till.world.tilld(&["explain", "A-1"]).ends_with(0);
    assert!(!story.stdout.contains("[1000]"), "{story:?}");
}
