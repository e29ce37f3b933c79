//! What the sender of a notification is answered, to the byte (A15, A19). What is at stake: senders count 200 and nothing
//! else as delivered, switch off addresses that answer otherwise, and must not learn from a refusal.

use serde_json::json;

use crate::harness::{Answer, Issued, PATIENCE, Setup, World, request, wait_until};

/// A notification that differs from an authentic one by what a case says.
struct Sent<'a> {
    target: String,
    headers: Vec<(&'a str, &'a str)>,
    body: String,
}

impl Sent<'_> {
    fn to(self, world: &World) -> Answer {
        request(
            world.listen(),
            "POST",
            &self.target,
            &self.headers,
            &self.body,
        )
        .without_date()
    }
}

fn without_token(invoice: &Issued) -> Sent<'static> {
    Sent {
        target: World::target(&invoice.reference),
        headers: Vec::new(),
        body: invoice.saying("paid", &invoice.at(120)),
    }
}

/// A15: new, known, stale, unsorted, after the end, and without a login.
#[test]
fn whatever_is_stored_is_answered_exactly_200() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let closed = world.create("A-2");
    let other = world.create("A-3");
    let check = |what: &str, invoice: &Issued, status: &str, ms: i64| {
        let answer = world.tell(invoice, &invoice.saying(status, &invoice.at(ms)));
        assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{what}");
        assert_eq!(answer.body, "ok\n", "{what}");
    };
    check("new", &invoice, "waiting", 10);
    check("a duplicate", &invoice, "waiting", 10);
    check("a stale one", &invoice, "new", 5);
    check("an unknown status", &invoice, "PARTIALLY_REVERSED", 20);
    check(
        "another status at the same instant",
        &invoice,
        "waiting",
        20,
    );
    check("the end of an invoice", &closed, "canceled", 10);
    check("a closed invoice", &closed, "expired", 20);
    check("a closed invoice that is paid", &closed, "paid", 30);
    world.control("POST", "/tokens/revoke", &json!({}));
    check("with the login revoked", &other, "paid", 10);
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind = 'late'"),
        "1"
    );
    let paid = "SELECT count(*) FROM events WHERE kind = 'paid' AND order_id = 'A-3'";
    assert_eq!(world.value(paid), "1");
}

/// A01: what is unknown and what is wrong cannot be told apart.
#[test]
fn every_doubt_about_the_token_is_answered_the_same() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let wrong = [(
        "X-Notification-Token",
        "not-the-token-of-this-invoice-at-all",
    )];
    let to = |target: &str, headers: &[(&'static str, &'static str)]| {
        let sent = without_token(&invoice);
        let (target, headers) = (target.to_owned(), headers.to_vec());
        Sent {
            target,
            headers,
            ..sent
        }
        .to(&world)
    };
    let own = World::target(&invoice.reference);
    let first = to(&own, &wrong);
    assert_eq!(first.status_line, "HTTP/1.1 401 Unauthorized");
    let unknown = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    for (target, headers) in [
        (own.as_str(), &[] as &[_]),
        (&format!("{own}/"), &wrong),
        (&unknown, &wrong),
        (&unknown, &[]),
        (&World::target("no-ref-at-all"), &wrong),
    ] {
        assert_eq!(to(target, headers), first, "{target}");
    }
    // An authentic message about another invoice is a doubt as well.
    let other = world.create("A-2");
    let answer = world.tell(&invoice, &other.object.to_string());
    assert_eq!(answer.without_date(), first);
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind <> 'opened'"),
        "0"
    );
}

/// A19: each place is judged on its own, and an empty one is none.
#[test]
fn an_empty_token_is_no_token() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let base = || without_token(&invoice);
    let header = |name: &'static str, value: &'static str| Sent {
        headers: vec![(name, value)],
        ..base()
    };
    let query = |query: &str| Sent {
        target: format!("{}?{query}", World::target(&invoice.reference)),
        ..base()
    };
    let body = |token: serde_json::Value| Sent {
        body: invoice
            .with(&json!({ "status": "paid", "notificationToken": token }))
            .to_string(),
        ..base()
    };
    // HMAC-SHA256 of nothing under an empty key: valid for whoever forgot to set one.
    let hmac = "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
    let all = || {
        [
            base(),
            header("X-Notification-Token", ""),
            header("X-Notification-Token", "  \t "),
            header("X-Webhook-Token", ""),
            header("Authorization", "Bearer "),
            header("Authorization", "Bearer"),
            header("Authorization", "Basic Og=="),
            header("X-Hub-Signature-256", hmac),
            query("token="),
            query("token"),
            query("token=%20"),
            query("notificationToken="),
            body("".into()),
            body("  ".into()),
            body(serde_json::Value::Null),
            body(json!([])),
        ]
    };
    let first = base().to(&world);
    assert_eq!(first.status, 401);
    for (at, sent) in all().into_iter().enumerate() {
        assert_eq!(sent.to(&world), first, "{at}");
    }
    // Without its own copy of the token tilld cannot judge: an honest sender must come again.
    world.neighbour().tamper("DELETE FROM secret");
    for (at, sent) in all().into_iter().enumerate() {
        let answer = sent.to(&world);
        assert_eq!(answer.status, 503, "without a token of its own: {at}");
    }
    assert_eq!(world.tell_as_it_is(&invoice).status, 503);
    let reasons = "SELECT DISTINCT reason FROM refusal ORDER BY reason";
    wait_until(PATIENCE, "the refusals to be written", || {
        let told = [["signature_wrong"], ["token_missing"], ["token_unreadable"]];
        world.sql(reasons) == told
    });
    assert_eq!(world.value("SELECT outcome FROM invoices"), "open");
}

/// A20: a token of another length, in other letters or of strange bytes is wrong, and nothing worse.
#[test]
fn a_token_that_is_almost_right_is_wrong() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let token = invoice.token.as_str();
    let swapped: String = token
        .chars()
        .map(|letter| match letter {
            'a'..='z' => letter.to_ascii_uppercase(),
            other => other.to_ascii_lowercase(),
        })
        .collect();
    assert_ne!(swapped, token);
    let shorter: String = token.chars().skip(1).collect();
    let almost = [
        format!("{token}x"),
        format!("x{token}"),
        shorter,
        swapped,
        format!("{token}{token}"),
        format!("{token} {token}"),
        format!("\"{token}\""),
        format!("{token},"),
        format!("{token}é"),
        token.repeat(100),
        "é".repeat(token.len()),
    ];
    let first = without_token(&invoice).to(&world);
    assert_eq!(first.status_line, "HTTP/1.1 401 Unauthorized");
    for value in &almost {
        let bearer = format!("BEARER {value}");
        for (name, value) in [("X-Notification-Token", value), ("Authorization", &bearer)] {
            let sent = Sent {
                headers: vec![(name, value)],
                ..without_token(&invoice)
            };
            assert_eq!(sent.to(&world), first, "{name}: {value}");
        }
        let long = format!("{value}\u{0}\n{}", "z".repeat(10_000));
        for value in [value, &long] {
            let fields = json!({ "status": "paid", "notificationToken": value });
            let sent = Sent {
                body: invoice.with(&fields).to_string(),
                ..without_token(&invoice)
            };
            assert_eq!(sent.to(&world), first, "in the body: {value}");
        }
    }
    assert_eq!(world.invoice("A-1", "outcome"), "open");
    let bearer = format!("BEARER \t {token} ");
    let sent = Sent {
        headers: vec![("authorization", &bearer)],
        ..without_token(&invoice)
    };
    assert_eq!(sent.to(&world).status, 200);
}

#[test]
fn a_right_token_counts_wherever_it_usually_stands() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let bearer = format!("Bearer {}", invoice.token);
    let target = World::target(&invoice.reference);
    let plain = |headers: Vec<(&'static str, String)>| (target.clone(), headers, json!({}));
    let query = |query: String| (format!("{target}?{query}"), Vec::new(), json!({}));
    let token = || invoice.token.clone();
    let cases = [
        plain(vec![("X-Notification-Token", token())]),
        plain(vec![("x-notification-token", format!(" {} ", token()))]),
        plain(vec![("X-Webhook-Token", token())]),
        plain(vec![("X-Webhook-Secret", token())]),
        plain(vec![("Authorization", bearer.clone())]),
        plain(vec![("Authorization", bearer.replace("Bearer", "bearer"))]),
        // A proxy's own sign-in takes nothing away.
        plain(vec![
            ("Authorization", "Basic dTpw".to_owned()),
            ("X-Notification-Token", token()),
        ]),
        query(format!("token={}", token())),
        query(format!("x=1&notificationToken={}", token())),
        (
            target.clone(),
            Vec::new(),
            json!({ "notificationToken": token() }),
        ),
    ];
    for (number, (target, headers, fields)) in cases.into_iter().enumerate() {
        let status = format!("step-{number}");
        let mut all = json!({ "status": status, "updatedAt": invoice.at_us(number + 1) });
        let given = fields.as_object().expect("fields").clone();
        all.as_object_mut().expect("fields").extend(given);
        let body = invoice.with(&all).to_string();
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answer = request(world.listen(), "POST", &target, &headers, &body);
        assert_eq!(answer.status, 200, "{target} {headers:?}: {answer:?}");
        assert_eq!(world.value("SELECT status FROM invoices"), status);
    }
    // One right place does not make up for a wrong one.
    let wrong = format!("{target}?token=not-the-token-of-this-invoice-at-all");
    let right = [("X-Notification-Token", invoice.token.as_str())];
    let body = invoice.saying("paid", &invoice.at(120));
    assert_eq!(
        request(world.listen(), "POST", &wrong, &right, &body).status,
        401
    );
}
