//! The description's schemas beside what the daemon really answers: the same fields, none more and none fewer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Beside;
use crate::harness::Setup;

/// The fields of an object.
fn fields(object: &Value) -> BTreeSet<&str> {
    let fields = object.as_object().expect("an object");
    fields.keys().map(String::as_str).collect()
}

/// The fields a schema has, all of which it says are always there.
#[track_caller]
fn schema<'a>(text: &'a Value, name: &str) -> BTreeSet<&'a str> {
    let schema = text.pointer(&format!("/components/schemas/{name}"));
    let schema = schema.expect("a schema");
    let required = schema.get("required").and_then(Value::as_array);
    let required: BTreeSet<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = fields(schema.get("properties").expect("properties"));
    assert_eq!(properties, required, "{name}");
    required
}

#[test]
fn invoices_events_and_the_report_have_the_fields_it_describes() {
    let shop = Beside::start(Setup::new().quiet());
    let opened = shop.open("1042");
    let (_, _, text) = shop.ask("GET", "/v1/openapi.json", "");
    assert_eq!(fields(&opened), schema(&text, "Invoice"));
    let (_, _, events) = shop.ask("GET", "/v1/events?after=0", "");
    let event = events.pointer("/events/0").expect("an event");
    assert_eq!(fields(event), schema(&text, "Event"));
    let (_, _, report) = shop.ask("GET", "/v1/status", "");
    assert_eq!(fields(&report), schema(&text, "Status"));
    let printed = shop.world.tilld(&["control", "openapi"]).ends_with(0);
    let printed: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    assert_eq!(printed, text);
}

/// The status stands in the document as in the answer, also where HTTP has one of its own for it.
#[test]
fn problems_bear_the_status_of_their_answer() {
    let shop = Beside::start(Setup::new().quiet().set("control.followers", 1));
    let large = " ".repeat(64 * 1024 + 1);
    for (method, path, body, status) in [
        ("PUT", "/v1/invoices", "", 405),
        ("GET", "/v1/nothing", "", 404),
        ("GET", "/v1/invoices/none", "", 404),
        ("GET", "/v1/events?limit=0", "", 400),
        ("POST", "/v1/invoices", "{}", 400),
        ("POST", "/v1/invoices", large.as_str(), 413),
    ] {
        let (answered, head, problem) = shop.ask(method, path, body);
        assert_eq!(answered, status, "{problem}");
        assert_eq!(problem.get("status"), Some(&json!(status)), "{problem}");
        assert!(
            head.contains("content-type: application/problem+json"),
            "{head}"
        );
    }
}
