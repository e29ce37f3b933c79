//! Notifications whose bytes are not what one expects: other Content-Types, byte-order marks, times and numbers in other
//! spellings (A08, A09, A10, A12). What is at stake: a message that could be read must count, one that could not must not
//! be taken for read, and whoever runs the shop must be told once which field it was.

use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use serde_json::{Value, json};

use crate::harness::{Answer, Issued, PATIENCE, Setup, World, request, wait_until};

/// A notification with these headers besides its token.
fn send(world: &World, invoice: &Issued, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut all = vec![("X-Notification-Token", invoice.token.as_str())];
    all.extend(headers);
    let target = World::target(&invoice.reference);
    request(world.listen(), "POST", &target, &all, body)
}

/// How many warnings of the daemon hold this.
fn warned(world: &World, text: &str) -> usize {
    let log = world.serve_log();
    log.lines()
        .filter(|line| line.contains("WARN") && line.contains(text))
        .count()
}

/// A08: each new thing is told once, with the name of its field, however many notifications show it.
#[test]
fn one_warning_for_each_new_thing_names_its_field() {
    let world = Setup::new().quiet().start();
    for order in ["A-1", "A-2"] {
        let invoice = world.create(order);
        let odd = [
            json!({ "dealRate": 91.5, "direction": "sideways" }),
            json!({ "dealRate": 92.5, "direction": "sideways", "expireAt": "soon" }),
            json!({ "dealRate": [], "direction": "up\u{1b}[2J", "expireAt": 1_795_860_120 }),
            json!({ "direction": "in", "paymentOption": null, "expireAt": "", "paymentUrl": null }),
        ];
        for (number, fields) in odd.iter().enumerate() {
            let at = invoice.at_us(number + 1);
            let mut all = json!({ "status": format!("step-{number}"), "updatedAt": at });
            let own = all.as_object_mut().expect("fields");
            own.extend(fields.as_object().expect("fields").clone());
            let body = invoice.with(&all).to_string();
            assert_eq!(world.tell(&invoice, &body).status_line, "HTTP/1.1 200 OK");
        }
    }
    for (text, times) in [
        ("`dealRate` is no string", 1),
        ("`direction` is `sideways`", 1),
        (r"`direction` is `up\u{1b}[2J`", 1),
        ("`direction`", 2),
        ("`expireAt` is no time", 1),
        ("`paymentOption`", 0),
        ("`paymentUrl`", 0),
        ("keeps not to its contract", 4),
    ] {
        assert_eq!(warned(&world, text), times, "{text}");
    }
    let now = world.sql("SELECT DISTINCT status, outcome FROM invoices");
    assert_eq!(now, [["step-3", "open"]]);
}

/// A12: the content decides, not what its headers call it.
#[test]
fn a_json_object_is_read_whatever_it_is_called() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let kinds = [
        None,
        Some(""),
        Some("text/plain"),
        Some("APPLICATION/JSON;charset=\"UTF-8\""),
        Some("applications/json"),
        Some("application/octet-stream"),
        // What senders claim who set no type of their own.
        Some("application/x-www-form-urlencoded"),
    ];
    for (number, kind) in kinds.iter().enumerate() {
        for (mark, second) in [("", 2 * number), ("\u{feff}", 2 * number + 1)] {
            let status = format!("step-{second}");
            let at = invoice.at_us(second + 1);
            let body = format!("{mark}{}", invoice.saying(&status, &at));
            let headers: Vec<_> = kind
                .map(|kind| ("Content-Type", kind))
                .into_iter()
                .collect();
            let answer = send(&world, &invoice, &headers, &body);
            assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{kind:?}");
            assert_eq!(world.invoice("A-1", "status"), status, "{kind:?}");
        }
    }
}

/// A12: what is not one plain JSON object is never taken for an empty one, and the log says what to change.
#[test]
fn a_body_that_is_something_else_is_refused_with_a_reason() {
    let world = Setup::new().quiet().start();
    let form = "application/x-www-form-urlencoded";
    for (number, (kind, status, reason)) in [
        (form, 415, "body_form"),
        ("multipart/form-data; boundary=x", 415, "body_form"),
        ("application/json", 400, "body_not_json"),
        ("two marks", 400, "body_not_json"),
        ("a string", 400, "body_not_an_object"),
        ("gzip", 415, "body_compressed"),
    ]
    .into_iter()
    .enumerate()
    {
        let order = format!("A-{number}");
        let invoice = world.create(&order);
        let json = invoice.saying("paid", &invoice.at(1));
        let (headers, body) = match kind {
            "two marks" => (vec![], format!("\u{feff}\u{feff}{json}")),
            "a string" => (vec![], Value::from(format!("payload {json}")).to_string()),
            "gzip" => (vec![("Content-Encoding", "gzip")], json),
            kind => (vec![("Content-Type", kind)], format!("payload={json}")),
        };
        let answer = send(&world, &invoice, &headers, &body);
        assert_eq!(answer.status, status, "{kind}: {answer:?}");
        let kept = format!(
            "SELECT r.reason FROM refusal r JOIN invoice i ON i.id = r.invoice WHERE i.order_id = '{order}'"
        );
        wait_until(PATIENCE, "the refusal to be kept", || {
            world.sql(&kept) == [[reason]]
        });
        assert_eq!(world.invoice(&order, "outcome"), "open");
    }
    // At most one line in ten seconds is a warning; this is the first.
    assert_eq!(warned(&world, "was refused: body_form"), 1);
}

/// A10: claims are ordered by their instants in whatever form these come, and the zone this process is in has no part in
/// it. Its clocks leave out the hour that is now.
#[test]
fn instants_count_in_every_form_and_in_no_zone_of_ours() {
    let now = Offset::UTC.to_datetime(Timestamp::now());
    let day = now.date().day_of_year_no_leap().unwrap_or(59);
    let hour = now.hour();
    let zone = format!("TZ=STD0DST-1,J{day}/{hour},J{}/{hour}", day % 365 + 1);
    let world = Setup::new().quiet().under(&["/usr/bin/env", &zone]).start();
    let invoice = world.create("A-1");
    let start = invoice.updated_at() + Span::new().milliseconds(1);
    // Where a form says no zone, how it is written, how far the place is from Greenwich.
    let ascending = [
        (0, "%FT%T%.3fZ", 0),
        (50, "%FT%T%.3f000000Z", 0),
        (1_000, "%FT%T%.3f+03:00", 180),
        (1_100, "%FT%T%.3f", 0),
        (1_200, "%F %T%.3f", 0),
        (1_300, "%Ft%T%.3f+05:30", 330),
        (1_400, "%FT%T%.3f-04:00", -240),
        (1_500, "%FT%T%.3f-00:00", 0),
    ];
    let ascending = ascending.map(|(ms, form, minutes)| {
        let at = start + Span::new().milliseconds(ms);
        let there = at + Span::new().minutes(minutes);
        let text = Offset::UTC.to_datetime(there).strftime(form).to_string();
        (text, format!("{at:.3}"))
    });
    for (number, (text, shown)) in ascending.iter().enumerate() {
        let status = format!("step-{number}");
        let fields = json!({ "status": status, "updatedAt": text, "expireAt": text });
        let body = invoice.with(&fields).to_string();
        assert_eq!(world.tell(&invoice, &body).status, 200, "{text}");
        let now = world.sql("SELECT status, doubt, expire_at FROM invoices");
        assert_eq!(now, [[status.as_str(), "0", shown]], "{text}");
    }
    // The same instants once more, in one form: each is known, none is newer.
    for (number, (_, shown)) in ascending.iter().enumerate().rev() {
        let body = invoice.saying(&format!("step-{number}"), shown);
        assert_eq!(world.tell(&invoice, &body).status, 200, "{shown}");
        let last = "SELECT decision FROM heard ORDER BY id DESC LIMIT 1";
        assert_eq!(world.value(last), "repeat", "{shown}");
    }
    // Less than a millisecond later is later.
    let at = start + Span::new().milliseconds(1_500);
    let text = format!("{:.6}", at + Span::new().microseconds(1));
    let fields = json!({ "status": "newer", "updatedAt": text, "expireAt": text });
    let body = invoice.with(&fields).to_string();
    assert_eq!(world.tell(&invoice, &body).status, 200);
    assert_eq!(world.invoice("A-1", "status"), "newer");
    for field in ["updatedAt", "expireAt"] {
        let text = format!("`{field}` has no time zone and was taken as UTC");
        assert_eq!(warned(&world, &text), 1, "{field}");
    }
    let berlin = [("TZ", "Europe/Berlin")];
    let shown = world.tilld_with(&berlin, &["invoice", "show", "A-1", "--json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stdout.contains(&format!("{at:.3}")), "{shown:?}");
}

/// A10: a claim whose time cannot be read is kept as it was written, marked, and asked about.
#[test]
fn an_unreadable_time_loses_no_claim() {
    // Dates of whole seconds would run ahead of the clock: each change is dated later than the one before.
    let world = Setup::new().plain().quiet().start();
    let created = world.create("A-1");
    let unreadable = [
        (json!("1743298200"), "1743298200"),
        (json!(1_743_298_200), "1743298200"),
        (json!("9999-12-31T23:59:59Z"), "9999-12-31T23:59:59Z"),
        (
            json!("2025-03-30T01:30:00.1234567891Z"),
            "2025-03-30T01:30:00.1234567891Z",
        ),
        (json!(["2025"]), "[\"2025\"]"),
        (json!("soon"), "soon"),
        (json!(""), ""),
        (Value::Null, ""),
    ];
    for (number, (written, kept)) in unreadable.iter().enumerate() {
        let status = format!("step-{number}");
        let invoice = world.dictate(&created, &status);
        let body = invoice.with(&json!({ "updatedAt": written })).to_string();
        let answer = world.tell(&invoice, &body);
        assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{written}");
        let last = "SELECT status, decision, coalesce(updated_at_text, ''), claim_ns FROM heard \
                    WHERE source = 'notification' ORDER BY id DESC LIMIT 1";
        assert_eq!(
            world.sql(last),
            [[&status, "doubt", *kept, ""]],
            "{written}"
        );
        wait_until(PATIENCE, "the service to be asked", || {
            world.sql("SELECT status, doubt FROM invoices") == [[status.as_str(), "0"]]
        });
    }
    assert_eq!(warned(&world, "`updatedAt` is no time"), 1);
}

/// A09: an amount that is no decimal, or none we can hold, is believed by nobody; what is stored is a plain decimal or nothing.
#[test]
fn an_amount_that_cannot_be_held_is_asked_about() {
    let world = Setup::new().plain().quiet().start();
    // Nobody answers: what is in doubt stays so.
    let down = json!({ "endpoint": "fetch", "status": 503, "times": true });
    world.faults(&json!({ "api_status": down }));
    let invoice = world.create("A-1");
    let own = Value::from("599.80").to_string();
    let digits = "1234567890123456789012345678901234567890";
    let cases = [
        (json!(digits).to_string(), ""),
        (digits.to_owned(), ""),
        (format!("0.{digits}"), ""),
        (json!("79228162514264337593543950336").to_string(), ""),
        (json!("1e3").to_string(), "1000"),
        (json!("1E+2").to_string(), "100"),
        ("1E400".to_owned(), ""),
        (json!("+599.80").to_string(), ""),
        (json!(" 599.80").to_string(), ""),
        (json!("599.80 ").to_string(), ""),
        (json!("599,80").to_string(), ""),
        (json!("５９９.80").to_string(), ""),
        (json!("-599.80").to_string(), "-599.80"),
        ("-599.80".to_owned(), "-599.80"),
        (json!("NaN").to_string(), ""),
        (json!(" ").to_string(), ""),
        ("[599.80]".to_owned(), ""),
        ("true".to_owned(), ""),
        ("599.8000000000000001".to_owned(), "599.8000000000000001"),
    ];
    for (number, (written, kept)) in cases.iter().enumerate() {
        let body = invoice.saying("paid", &invoice.at_us(number + 1));
        assert!(body.contains(&own));
        let answer = world.tell(&invoice, &body.replace(&own, written));
        assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{written}");
        let last = "SELECT status, decision, coalesce(amount_reported, '') FROM heard ORDER BY id DESC LIMIT 1";
        assert_eq!(world.sql(last), [["paid", "doubt", *kept]], "{written}");
    }
    let now = world.sql("SELECT status, outcome, doubt, amount_reported FROM invoices");
    assert_eq!(now, [["new", "open", "1", "599.80"]]);
    // The same amount in other digits is the same amount, as a number too.
    for (number, written) in ["599.8", "599.80", "599.800", "\"599.800\""]
        .iter()
        .enumerate()
    {
        let order = format!("B-{number}");
        let invoice = world.create(&order);
        let body = invoice.saying("paid", &invoice.at(1));
        let answer = world.tell(&invoice, &body.replace(&own, written));
        assert_eq!(answer.status, 200, "{written}");
        let now = world.invoice(&order, "outcome || ' ' || amount_reported");
        assert_eq!(now, format!("paid {}", written.trim_matches('"')));
    }
}

/// A09: nothing is asked of the service for an amount that could not be sent digit by digit.
#[test]
fn an_amount_that_could_not_be_sent_as_typed_is_refused_before_it_is_sent() {
    let world = Setup::new().quiet().start();
    let long = "9".repeat(29);
    for amount in [
        "1e3", "1E+2", "-5", "+5", "0", "0.00", "007", " 5", "5 ", "5.", ".5", "5,00", "５", "NaN",
        "", &long,
    ] {
        let amount = format!("--amount={amount}");
        let rest = ["--order=A-1", "--currency=RUB", "--method=SBP", "--json"];
        let ran = world.tilld(&[&["invoice", "create", &amount], rest.as_slice()].concat());
        assert_eq!(ran.code, 2, "{amount}: {ran:?}");
    }
    assert_eq!(world.requests("create"), 0);
}
