//! Requests in all their forms: what is not known is refused everywhere, what HTTP allows is understood.

use serde_json::{Value, json};

use super::client::{Line, problem, text, wish};
use crate::harness::{Service, Setup, segment};

#[test]
fn a_parameter_or_a_body_that_is_not_known_is_refused_by_every_call() {
    let world = Setup::new().quiet().start();
    let invoice = world.wish("A-1");
    let (id, reference) = (text(&invoice, "/invoice_id"), text(&invoice, "/ref"));
    for (method, target) in [
        ("GET", "/v1/invoices"),
        ("GET", "/v1/orders/A-1"),
        ("GET", "/v1/orders/A-1/wait"),
        ("POST", "/v1/orders/A-1/poll"),
        ("GET", "/v1/invoices/by-id/ID"),
        ("GET", "/v1/invoices/by-id/ID/wait"),
        ("POST", "/v1/invoices/by-id/ID/poll"),
        ("GET", "/v1/invoices/by-ref/REF"),
        ("GET", "/v1/invoices/by-ref/REF/wait"),
        ("POST", "/v1/invoices/by-ref/REF/poll"),
        ("GET", "/v1/events"),
        ("GET", "/v1/status"),
        ("GET", "/v1/openapi.json"),
    ] {
        let target = target.replace("ID", &segment(&id));
        let target = target.replace("REF", &reference);
        for query in ["?colour=red", "?=", "?x"] {
            let answer = world.call(method, &format!("{target}{query}"), "");
            problem(&answer, 400, "usage");
        }
        for body in ["{}", "{\"new\":true}"] {
            problem(&world.call(method, &target, body), 400, "usage");
        }
    }
    let body = wish("A-2", &json!("5.00"));
    problem(
        &world.call("POST", "/v1/invoices?new=true", &body),
        400,
        "usage",
    );
    let more = body.replace('}', ",\"colour\":\"red\"}");
    problem(&world.call("POST", "/v1/invoices", &more), 400, "usage");
    assert_eq!(world.requests("create"), 1, "nothing was sent");
    assert_eq!(world.requests("fetch"), 0, "nobody was asked");
}

#[test]
fn a_wait_is_preferred_in_any_line_and_told_to_be_applied() {
    let world = Setup::new().quiet().start();
    world.control("POST", "/pool", &json!({ "free": 0 }));
    for (at, (lines, applied)) in [
        (&["respond-async", "wait=1"][..], Some("wait=1")),
        (&["wait=1;foo=bar"], Some("wait=1")),
        (&["foo=\"wait=9\""], None),
        (&[], None),
    ]
    .into_iter()
    .enumerate()
    {
        let headers: Vec<(&str, &str)> = lines.iter().map(|line| ("Prefer", *line)).collect();
        let order = format!("A-{at}");
        let body = wish(&order, &json!("5.00"));
        let answer = world.call_with("POST", "/v1/invoices", &headers, &body);
        problem(&answer, 503, "no_requisites");
        assert_eq!(answer.header("preference-applied"), applied, "{lines:?}");
    }
    world.control("POST", "/pool", &json!({ "free": 5 }));
    // Longer than it may be: what is done instead is said.
    let body = wish("B-1", &json!("5.00"));
    let answer = world.call_with("POST", "/v1/invoices", &[("Prefer", "wait=900")], &body);
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.header("preference-applied"), Some("wait=300"));
}

#[test]
fn a_stream_is_for_those_who_accept_it() {
    let world = Setup::new().quiet().start();
    let target = "/v1/events?after=0";
    for lines in [
        &["application/json, text/event-stream;q=0"][..],
        &["application/json", "text/event-stream;q=0.1"],
        &["*/*"],
        &[],
    ] {
        let headers: Vec<(&str, &str)> = lines.iter().map(|line| ("Accept", *line)).collect();
        let answer = world.call_with("GET", target, &headers, "");
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{lines:?}"
        );
    }
    // The harness asks for it in its first line; here it stands in the second.
    let headers = [
        ("Accept", "application/json;q=0.5"),
        ("Accept", "text/event-stream"),
    ];
    let mut line = Line::ask(&world.control_socket(), "GET", target, &headers, "");
    let head = line.head().expect("an answer");
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
}

/// RFC 9110, section 9.3.2: the head of the answer to GET, and nothing behind it.
#[test]
fn what_is_read_at_once_has_a_head() {
    let world = Setup::new().quiet().start();
    world.wish("A-1");
    for target in [
        "/v1/invoices",
        "/v1/orders/A-1",
        "/v1/openapi.json",
        "/v1/orders/none",
    ] {
        let whole = world.call("GET", target, "");
        let socket = world.control_socket();
        let mut line = Line::ask(&socket, "HEAD", target, &[], "");
        let head = line.head().expect("an answer");
        assert_eq!(head.status, whole.status, "{target}");
        for name in ["content-type", "content-length"] {
            assert_eq!(head.header(name), whole.header(name), "{target} {name}");
        }
        // The next answer on the connection begins where the head ends.
        let next = crate::harness::head("tilld", "GET", "/v1/invoices", &[], Some(0));
        line.send(&next);
        assert_eq!(line.answer().expect("an answer").status, 200, "{target}");
    }
    for target in ["/v1/events", "/v1/orders/A-1/wait"] {
        let socket = world.control_socket();
        let mut line = Line::ask(&socket, "HEAD", target, &[], "");
        let head = line.head().expect("an answer");
        assert_eq!(
            (head.status, head.header("allow")),
            (405, Some("GET")),
            "{target}"
        );
    }
}

/// A page that shows an invoice and one that waits for it speak of the same.
#[test]
fn a_name_means_the_same_invoice_to_every_call() {
    let world = Setup::new().quiet().start();
    let first = text(&world.wish("A-1"), "/ref");
    let issued = world.issued("A-1").expect("the service has it");
    let named = |target: &str| {
        let answer = world.call("GET", target, "");
        text(&answer, "/ref")
    };
    let another = wish("A-1", &json!("599.80")).replace('}', ",\"new\":true}");
    let second = text(&world.call("POST", "/v1/invoices", &another), "/ref");
    assert_ne!(first, second);
    assert_eq!(
        named("/v1/orders/A-1"),
        second,
        "the newest, while none is paid"
    );
    assert_eq!(named("/v1/orders/A-1/wait?timeout=0"), second);
    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    assert_eq!(
        named("/v1/orders/A-1/wait?timeout=300"),
        first,
        "the one that is paid"
    );
    assert_eq!(named("/v1/orders/A-1"), first);
    let polled: Value = world.call("POST", "/v1/orders/A-1/poll", "").json();
    assert_eq!(polled.get("ref"), Some(&json!(first)));
}

/// A tree of values took what is in such a name for a document of its own, and tilld panicked when that was none.
#[test]
fn an_invoice_is_told_in_a_problem_whatever_names_the_service_wrote() {
    let service = Service::start(|heard| {
        if !heard.path().ends_with("/create") && heard.line.starts_with("GET") {
            return (500, String::new());
        }
        // Spelt so that it is seen only by who reads the text within the text.
        let name = r"\u005cu0024serde_json::private::RawValue";
        let requisites = format!(r#"{{\"bankName\":{{\"{name}\":\"x\"}}}}"#);
        let begin = r#"{"id":"inv-1","status":"new","internalId":"A-1","amount":"599.80","currency":"RUB","#;
        (200, format!(r#"{begin}"dealRequisites":"{requisites}"}}"#))
    });
    let world = Setup::new().quiet().service(&service.url()).start();
    assert_eq!(world.tilld(&["login"]).code, 0);
    assert_eq!(world.wish("A-1").status, 201);
    let answer = world.call("POST", "/v1/orders/A-1/poll", "");
    problem(&answer, 503, "unreachable");
    assert_eq!(text(&answer, "/invoice/order_id"), "A-1");
    assert_eq!(text(&answer, "/invoice/service/id"), "inv-1");
    let told = world.tilld(&["invoice", "poll", "A-1", "--json"]);
    assert!(told.stdout.contains("\"inv-1\""), "{told:?}");
}
