//! Invoices of which the service says as much as a body may have. What is at stake: one who lists them must not have the daemon hold
//! all of that at once.

use serde_json::{Value, json};

use crate::harness::{Setup, World};

/// Just under `listener.body_limit_bytes`.
const TEXT: usize = 1_000_000;
/// Invoices: more than one answer may hold.
const INVOICES: usize = 6;
/// What an answer may take: the bound of the documents, and the rest of the invoices.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024 + 100_000;

/// Follows a list to its end; gives the order ids in their order, and how many answers they came in.
fn pages(world: &World, target: &str) -> (Vec<Value>, usize) {
    let (mut orders, mut answers, mut before) = (Vec::new(), 0, String::new());
    loop {
        let answer = world.call("GET", &format!("{target}{before}"), "");
        assert_eq!(answer.status, 200, "{}", answer.status_line);
        assert!(answer.body.len() < LONGEST_ANSWER, "{}", answer.body.len());
        answers += 1;
        let page = answer.json();
        let listed = page.get("invoices").and_then(Value::as_array);
        let listed = listed.expect("a list");
        assert!(!listed.is_empty(), "{target}{before}");
        orders.extend(listed.iter().map(|row| row["order_id"].clone()));
        match page.get("next_before").and_then(Value::as_str) {
            Some(next) => before = format!("&before={next}"),
            None => return (orders, answers),
        }
    }
}

#[test]
fn a_list_of_large_documents_comes_in_pages_and_is_whole() {
    let world = Setup::new().quiet().start();
    for number in 1..=INVOICES {
        let issued = world.create(&format!("A-{number}"));
        let said = json!({ "merchantName": "x".repeat(TEXT), "updatedAt": issued.at(1) });
        let body = issued.with(&said).to_string();
        assert_eq!(world.tell(&issued, &body).status, 200);
    }
    let (orders, answers) = pages(&world, "/v1/invoices?limit=1000");
    let newest_first = (1..=INVOICES).rev().map(|number| format!("A-{number}"));
    assert_eq!(orders, newest_first.collect::<Vec<_>>());
    assert_eq!(answers, 2);
    // An event is listed without its document.
    let events = world.call("GET", "/v1/events?after=0&limit=1000", "");
    assert!(events.body.len() < 100_000, "{}", events.body.len());
    // For people a page is cut with a word, and a document's text as well.
    let listed = world.tilld(&["invoice", "list"]).ends_with(0);
    assert_eq!(listed.stdout.lines().count(), 1 + 4);
    assert!(
        listed.stderr.contains("there are more"),
        "{}",
        listed.stderr
    );
    let shown = world.tilld(&["invoice", "show", "A-1"]).ends_with(0).stdout;
    assert!(shown.len() < 20_000, "{}", shown.len());
    assert!(shown.contains("characters more)"), "{shown}");
}
