//! The description's schemas beside what the daemon really answers: the same fields, none more and none fewer.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::Beside;
use crate::harness::{PATIENCE, Setup};

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

/// Where an answer has this header, the description says so.
#[test]
fn a_remark_is_described_where_it_is_answered() {
    let shop = Beside::start(Setup::new().quiet());
    let (_, _, text) = shop.ask("GET", "/v1/openapi.json", "");
    let describes = |call: &str, status: u16| {
        let at = format!("{call}/responses/{status}/headers/tilld-remark");
        text.pointer(&format!("/paths/{at}")).is_some()
    };
    shop.world.faults(&json!({ "drop_create_answer": 1 }));
    let wish = json!({ "order_id": "1", "amount": "5.00", "currency": "RUB", "method": "SBP" });
    let (status, head, lost) = shop.ask("POST", "/v1/invoices", &wish.to_string());
    assert_eq!(status, 202, "{lost}");
    assert!(head.contains("tilld-remark: "), "{head}");
    assert!(describes("~1v1~1invoices/post", status));

    let issued = shop.world.create("2");
    let paid = shop.world.dictate(&issued, "paid");
    assert_eq!(shop.world.tell_as_it_is(&paid).status, 200);
    // Older than what stands, and contradicting it.
    shop.world
        .dictate_fields(&issued, &json!({ "status": "canceled" }));
    let (status, head, doubted) = shop.ask("POST", "/v1/orders/2/poll", "");
    assert_eq!(status, 200, "{doubted}");
    assert!(head.contains("tilld-remark: "), "{head} {doubted}");
    assert!(describes("~1v1~1orders~1{order_id}~1poll/post", status));
}

/// The status stands in the document as in the answer, also where HTTP has one of its own for it.
#[test]
fn problems_bear_the_status_of_their_answer() {
    let shop = Beside::start(Setup::new().quiet().set("control.followers", 1));
    let large = " ".repeat(64 * 1024 + 1);
    for (method, path, body, status) in [
        ("PUT", "/v1/invoices", "", 405),
        ("GET", "/v1/nothing", "", 404),
        ("GET", "/v1/orders/none", "", 404),
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
    let follow = |more: &str| {
        let mut stream = UnixStream::connect(shop.socket()).expect("the socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        write!(
            stream,
            "GET /v1/events HTTP/1.1\r\nHost: tilld\r\nAccept: text/event-stream\r\n{more}\r\n"
        )
        .expect("it reads");
        BufReader::new(stream)
    };
    let mut first = follow("");
    let follows = first.by_ref().lines().map_while(Result::ok);
    assert!({ follows }.any(|line| line == "retry: 2000"), "it follows");
    let mut second = String::new();
    let read = follow("Connection: close\r\n").read_to_string(&mut second);
    read.expect("an answer");
    assert!(second.starts_with("HTTP/1.1 429 "), "{second}");
    assert!(second.contains("retry-after: "), "{second}");
    assert!(second.contains("\"status\":429"), "{second}");
}

/// Two refusals come before there is a request, and hold no document.
#[test]
fn what_is_no_request_is_refused_without_a_document_and_a_doubtful_one_with_one() {
    let shop = Beside::start(Setup::new().quiet());
    let get = "GET /v1/status HTTP/1.1\r\n";
    let long = format!(
        "{get}Host: tilld\r\nX-Long: {}\r\n\r\n",
        "x".repeat(16 * 1024)
    );
    let without = format!("{get}\r\n");
    for (request, begins, ends) in [
        ("no request\r\n\r\n", "HTTP/1.1 400 ", "\r\n\r\n"),
        (long.as_str(), "HTTP/1.1 431 ", "\r\n\r\n"),
        (
            without.as_str(),
            "HTTP/1.1 400 ",
            "urn:tilld:problem:usage\"}",
        ),
    ] {
        let mut stream = UnixStream::connect(shop.socket()).expect("the socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        write!(stream, "{request}").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(
            answer.starts_with(begins) && answer.ends_with(ends),
            "{answer}"
        );
    }
}
