//! Deliveries where none are owed: what is said, and with which exit code.

use crate::shop::Shop;

#[test]
fn an_unknown_event_is_not_found() {
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    for action in ["show", "retry", "replay", "release", "abandon"] {
        for event in ["7", "01a21fb8-d930-714b-8c39-2f5e1400c501"] {
            let said = shop.tilld(&["delivery", action, event], 3);
            said.told(&[&format!("`{event}`"), "hint: `tilld delivery list`"]);
        }
    }
}

#[test]
fn an_empty_list_is_no_failure() {
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    let table = shop.tilld(&["delivery", "list"], 0).stdout;
    assert!(
        table.starts_with("EVENT") && table.lines().count() == 1,
        "{table}"
    );
    let json = shop.tilld(&["delivery", "list", "--json", "--state", "abandoned"], 0);
    assert!(json.stdout.is_empty(), "{}", json.stdout);
    shop.tilld(&["delivery", "list", "--state", "lost"], 2)
        .told(&["waiting, running, done, abandoned"]);
}
