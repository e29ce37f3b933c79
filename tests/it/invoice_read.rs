//! Reading invoices from the ledger where no daemon runs: what is found, and what is said when nothing is.

use serde_json::Value;

use crate::shop::Shop;

#[test]
fn without_a_ledger_nothing_is_found_and_none_is_made() {
    let shop = Shop::new("");
    for args in [
        &["invoice", "list"][..],
        &["invoice", "show", "1042"],
        &["delivery", "list"],
        &["delivery", "show", "1"],
        &["delivery", "retry", "1"],
    ] {
        let said = shop.tilld(args, 3);
        said.told(&["error: there is no ledger at `", "hint: "]);
        assert!(said.stdout.is_empty(), "{}", said.stdout);
    }
    assert!(!shop.state_dir().exists());
}

#[test]
fn an_invoice_is_found_by_its_order_and_by_its_ref() {
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    let by_order = shop.tilld(&["invoice", "show", "1042", "--json"], 0);
    let lines = by_order.lines();
    let [shown] = lines.as_slice() else {
        panic!("not one line: {}", by_order.stdout);
    };
    let text = |name: &str| shown.get(name).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(text("order_id"), "1042");
    assert_eq!(text("opening"), "refused");
    assert_eq!(text("outcome"), "open");
    assert_eq!(text("amount_asked"), "599.80");
    assert_eq!(shown.get("service"), Some(&Value::Null));
    let by_ref = shop.tilld(&["invoice", "show", text("ref"), "--json"], 0);
    assert_eq!(by_ref.stdout, by_order.stdout);
    let people = shop.tilld(&["invoice", "show", "1042"], 0).stdout;
    assert!(people.contains("asked"), "{people}");
    assert!(people.contains("599.80 RUB"), "{people}");
    assert!(people.contains("(refused)"), "{people}");

    let nothing = shop.tilld(&["invoice", "show", "1043\u{1b}[2J"], 3);
    nothing.told(&["`1043\\u001b[2J`", "hint: `tilld invoice list`"]);
}

#[test]
fn older_invoices_of_an_order_are_mentioned_and_shown_on_request() {
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    let first = shop.tilld(&["invoice", "show", "1042", "--json"], 0);
    shop.refused_invoice("1042");
    let newest = shop.tilld(&["invoice", "show", "1042", "--json"], 0);
    newest.told(&["1 other invoice", "`--all`"]);
    let all = shop.tilld(&["invoice", "show", "1042", "--all", "--json"], 0);
    let lines = all.lines();
    let (first, newest) = (first.lines(), newest.lines());
    let field = |lines: &[Value], line: usize, at: &str| {
        lines.get(line).and_then(|line| line.pointer(at).cloned())
    };
    assert_eq!(lines.len(), 2);
    assert_eq!(lines.first(), newest.first());
    assert_eq!(field(&lines, 1, "/ref"), field(&first, 0, "/ref"));
    // Neither was opened, so neither supersedes the other.
    assert_eq!(field(&lines, 1, "/superseded_by"), Some(Value::Null));
    assert!(all.stderr.is_empty(), "{}", all.stderr);
}

#[test]
fn a_list_is_newest_first_filtered_and_limited() {
    let shop = Shop::new("");
    for order in ["a", "b", "c"] {
        shop.refused_invoice(order);
    }
    let orders = |args: &[&str]| -> Vec<String> {
        let all: Vec<&str> = ["invoice", "list", "--json"]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        let lines = shop.tilld(&all, 0).lines();
        let order = |line: &Value| line.get("order_id")?.as_str().map(str::to_owned);
        lines.iter().filter_map(order).collect()
    };
    assert_eq!(orders(&[]), ["c", "b", "a"]);
    assert_eq!(orders(&["--limit", "2"]), ["c", "b"]);
    assert!(orders(&["--attention"]).is_empty());
    // Their creates were refused: there is nothing to pay.
    assert!(orders(&["--open"]).is_empty());
    let table = shop.tilld(&["invoice", "list"], 0).stdout;
    let first = table.lines().next().unwrap_or_default();
    assert!(first.starts_with("ORDER"), "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");
    shop.tilld(&["invoice", "list", "--limit", "0"], 2);
    shop.tilld(&["invoice", "list", "--open", "--attention"], 2);
}
