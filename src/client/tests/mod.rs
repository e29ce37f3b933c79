//! The client over real connections: what it sends, and what it makes of every kind of answer (A30, A31, A32).

use tokio::net::TcpListener;

use super::*;
use stub::{INVOICE, NOTIFY_TOKEN, PATIENT, Reply, Stub, TOKEN, client, response};

mod network;
mod stub;

#[tokio::test]
async fn the_requests_are_the_contracts() {
    let stub = Stub::answering("201 Created", "", INVOICE).await;
    let created = stub.create().await.expect("created");
    assert_eq!(created.raw, INVOICE);
    stub.fetch().await.expect("fetched");
    assert!(matches!(
        stub.client.start_login("shop").await,
        Err(Error::NotTheService { .. })
    ));
    assert!(matches!(
        stub.client.poll_token(&Secret::new("dc_1")).await,
        Err(Error::NotTheService { .. })
    ));

    let requests = stub.requests();
    let [create, fetch, login, token] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert!(
        create.starts_with("POST /gw/api/v1/invoices HTTP/1.1\r\n"),
        "{create}"
    );
    assert!(
        create.contains("\r\nauthorization: Bearer shop:very-secret-token\r\n"),
        "{create}"
    );
    assert!(
        create.contains("\r\ncontent-type: application/json\r\n"),
        "{create}"
    );
    assert!(
        create.contains(concat!(
            "\r\nuser-agent: tilld/",
            env!("CARGO_PKG_VERSION"),
            "\r\n"
        )),
        "{create}"
    );
    assert!(create.contains("\"amount\":599.80,"), "{create}");
    assert!(
        fetch.starts_with("GET /gw/api/v1/invoices/inv-1 HTTP/1.1\r\n"),
        "{fetch}"
    );
    assert!(
        fetch.contains("\r\nauthorization: Bearer shop:very-secret-token\r\n"),
        "{fetch}"
    );
    assert!(
        login.starts_with("POST /gw/api/v1/agent/login HTTP/1.1\r\n"),
        "{login}"
    );
    assert!(login.ends_with("{\"clientName\":\"shop\"}"), "{login}");
    assert!(
        token.starts_with("POST /gw/api/v1/agent/token HTTP/1.1\r\n"),
        "{token}"
    );
    for open in [login, token] {
        assert!(!open.contains("authorization"), "contract 5: {open}");
    }
}

#[tokio::test]
async fn only_the_invoice_asked_for_in_a_2xx_json_object_is_an_answer() {
    let other = INVOICE.replace("inv-1", "inv-2");
    let cut = INVOICE.get(..30).expect("long enough");
    let cases = [
        (
            "please wait",
            Foreign::Shape(wire::json::ShapeError::NotJson),
        ),
        ("", Foreign::Shape(wire::json::ShapeError::Empty)),
        ("{}", Foreign::Invoice(wire::invoice::NotAnInvoice::Id)),
        (
            "{\"error\":\"oops\"}",
            Foreign::Invoice(wire::invoice::NotAnInvoice::Id),
        ),
        (cut, Foreign::Shape(wire::json::ShapeError::NotJson)),
        (other.as_str(), Foreign::OtherInvoice),
    ];
    for (body, wanted) in cases {
        let error = Stub::answering("200 OK", "", body)
            .await
            .fetch()
            .await
            .expect_err(body);
        assert!(
            matches!(&error, Error::NotTheService { why } if *why == wanted),
            "{body}: {error:?}"
        );
        assert!(error.is_transient(), "{body}");
    }
}

#[tokio::test]
async fn the_status_class_decides() {
    for (status, wanted) in [
        ("401 Unauthorized", "LoginNeeded"),
        (
            "403 Forbidden",
            "Forbidden { service_ms: Some(784111777000), text: Some(\"why\") }",
        ),
        (
            "404 Not Found",
            "NotFound { service_ms: Some(784111777000), text: Some(\"why\") }",
        ),
        (
            "410 Gone",
            "NotFound { service_ms: Some(784111777000), text: Some(\"why\") }",
        ),
        (
            "422 Unprocessable",
            "Refused { status: 422, text: Some(\"why\") }",
        ),
        (
            "408 Timeout",
            "Busy { status: 408, retry_after: Some(30s), text: Some(\"why\") }",
        ),
        (
            "429 Too Many",
            "Busy { status: 429, retry_after: Some(30s), text: Some(\"why\") }",
        ),
        (
            "502 Bad Gateway",
            "Busy { status: 502, retry_after: Some(30s), text: Some(\"why\") }",
        ),
    ] {
        let stub = Stub::answering(
            status,
            "Retry-After: 30\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "{\"error\":\"why\"}",
        )
        .await;
        let error = stub.fetch().await.expect_err(status);
        assert_eq!(format!("{error:?}"), wanted);
    }
}

#[tokio::test]
async fn an_answer_tells_the_services_clock_when_it_is_dated() {
    for (date, wanted) in [
        (
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            Some(784_111_777_000),
        ),
        ("Date: yesterday\r\n", None),
        ("", None),
    ] {
        let stub = Stub::answering("200 OK", date, INVOICE).await;
        let told = stub.fetch().await.expect("an invoice");
        assert_eq!(told.service_ms, wanted, "{date}");
        let told = stub.create().await.expect("an invoice");
        assert_eq!(told.service_ms, wanted, "{date}");
    }
}

#[tokio::test]
async fn a_redirect_is_reported_and_never_followed() {
    let target = Stub::answering("200 OK", "", INVOICE).await;
    let location = format!(
        "Location: http://{}/x?code=secret\r\n",
        target.client.origin().replace("http://", "")
    );
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let stub = Stub::answering(status, &location, "").await;
        let error = stub.fetch().await.expect_err(status);
        assert!(
            matches!(&error, Error::Redirected { target: Some(to), .. } if *to == target.client.origin()),
            "{error:?}"
        );
        assert!(!format!("{error}{error:?}").contains("secret"));
        let only_points = !status.starts_with("302");
        assert!(matches!(
            (stub.create().await, only_points),
            (Err(CreateError::NotCreated { .. }), true)
                | (Err(CreateError::OutcomeUnknown { .. }), false)
        ));
    }
    assert_eq!(target.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_lost_answer_is_told_apart_from_a_connection_that_never_stood() {
    let half = response("200 OK", "", INVOICE);
    let half = half.get(..half.len() - 10).expect("long enough").to_owned();
    for reply in [
        Reply::Reset,
        Reply::Stall(String::new()),
        Reply::Stall(half.clone()),
        Reply::Text(half),
    ] {
        let stub = Stub::new(reply).await;
        let error = stub.fetch().await.expect_err("no whole answer");
        assert!(matches!(error, Error::Unanswered { .. }), "{error:?}");
        assert!(
            !format!("{error:?}").contains("/gw/"),
            "no address: {error:?}"
        );
    }
    let gone = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port")
        .local_addr()
        .expect("bound");
    for base in [
        format!("http://{gone}"),
        "http://no-such-host.invalid".to_owned(),
    ] {
        let client = client(base, PATIENT);
        let id = InvoiceId::new("inv-1").expect("an id");
        let error = client
            .fetch_invoice((&Secret::new(TOKEN), None), &id)
            .await
            .expect_err("nobody there");
        assert!(
            matches!(error, Error::NotSent { .. }) && error.is_transient(),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn tls_that_fails_was_never_a_request() {
    // A server that speaks no TLS: the handshake fails before anything of the request is written.
    let stub = Stub::answering("200 OK", "", INVOICE).await;
    let Ok(client) = Client::new(&Settings {
        base_url: stub.client.origin().replace("http:", "https:"),
        connect_timeout: Duration::from_secs(1),
        request_timeout: PATIENT,
        allow_plain_http: false,
        proxy: Proxy::Straight,
    }) else {
        // No root certificates on this machine: then the settings are refused, which is right as well.
        return;
    };
    let id = InvoiceId::new("inv-1").expect("an id");
    let error = client
        .fetch_invoice((&stub.token, None), &id)
        .await
        .expect_err("no TLS");
    assert!(matches!(error, Error::NotSent { .. }), "{error:?}");
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let error = Stub::new(Reply::Endless)
        .await
        .fetch()
        .await
        .expect_err("too large");
    assert!(
        matches!(
            error,
            Error::NotTheService {
                why: Foreign::TooLarge
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_create_is_posted_once_and_its_outcome_is_unknown_when_the_service_may_have_acted() {
    let answer = |status, body| Reply::Text(response(status, "", body));
    for (name, reply) in [
        ("reset", Reply::Reset),
        ("slow", Reply::Stall(String::new())),
        (
            "cut",
            Reply::Text("HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{\"id\":".into()),
        ),
        ("html", answer("200 OK", "<html></html>")),
        ("proxy 502", answer("502 Bad Gateway", "<html></html>")),
        ("proxy 503", answer("503 Unavailable", "<html></html>")),
        ("500", answer("500 Internal", "{\"error\":\"oops\"}")),
        (
            "other order",
            answer("201 Created", &INVOICE.replace("order-1", "order-2")),
        ),
    ] {
        let stub = Stub::new(reply).await;
        let error = stub.create().await.expect_err(name);
        assert!(
            matches!(error, CreateError::OutcomeUnknown { .. }),
            "{name}: {error:?}"
        );
        assert_eq!(stub.requests().len(), 1, "{name}");
    }
    for status in [
        "400 Bad", "401 No", "403 No", "404 No", "408 Slow", "422 No", "429 Busy",
    ] {
        let error = Stub::answering(status, "", "{}")
            .await
            .create()
            .await
            .expect_err(status);
        assert!(
            matches!(error, CreateError::NotCreated { .. }),
            "{status}: {error:?}"
        );
    }
    let full = Stub::answering(
        "503 Unavailable",
        "",
        "{\"error\":\"Нет доступных реквизитов\"}",
    )
    .await;
    let error = full.create().await.expect_err("none free");
    assert!(
        matches!(&error, CreateError::NoRequisites { text, .. } if text == "Нет доступных реквизитов"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_create_never_takes_a_connection_that_was_used_before() {
    let open = response("201 Created", "", INVOICE).replace("Connection: close\r\n", "");
    let kinds = |stub: &Stub| -> Vec<String> {
        let first_word = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
        stub.requests().iter().map(first_word).collect()
    };
    let stub = Stub::new(Reply::KeepAlive(open.clone())).await;
    for _ in 0..2 {
        stub.create().await.expect("created");
    }
    assert_eq!(kinds(&stub), ["connection", "POST", "connection", "POST"]);
    // The server can keep one open: fetches do use it again.
    let stub = Stub::new(Reply::KeepAlive(open)).await;
    for _ in 0..2 {
        stub.fetch().await.expect("fetched");
    }
    assert_eq!(kinds(&stub), ["connection", "GET", "GET"]);
}

#[tokio::test]
async fn the_token_polls_answers_are_the_rfcs() {
    for (status, body, wanted) in [
        (
            "400 Bad",
            "{\"error\":\"authorization_pending\"}",
            "Pending",
        ),
        ("400 Bad", "{\"error\":\"slow_down\"}", "SlowDown"),
        ("400 Bad", "{\"error\":\"expired_token\"}", "Expired"),
        ("403 No", "{\"error\":\"access_denied\"}", "Denied"),
        (
            "400 Bad",
            "{\"error\":\"odd\"}",
            "Ended { status: 400, text: Some(\"odd\") }",
        ),
        ("400 Bad", "no JSON", "Ended { status: 400, text: None }"),
        ("401 No", "{}", "Ended { status: 401, text: None }"),
    ] {
        let stub = Stub::answering(status, "", body).await;
        let poll = stub
            .client
            .poll_token(&Secret::new("device-code-1"))
            .await
            .expect(body);
        assert_eq!(format!("{poll:?}"), wanted);
    }
    let stub = Stub::answering(
        "200 OK",
        "",
        "{\"token\":\"shop:very-secret-token\",\"shopName\":\"S\"}",
    )
    .await;
    let poll = stub
        .client
        .poll_token(&Secret::new("device-code-1"))
        .await
        .expect("issued");
    assert!(!format!("{poll:?}").contains(TOKEN));
    assert!(matches!(poll, TokenPoll::Issued(issued) if issued.token.expose() == TOKEN));
    let cut = Stub::new(Reply::Text(
        "HTTP/1.1 400 Bad\r\nContent-Length: 99\r\n\r\n{\"error\":".into(),
    ))
    .await;
    let error = cut
        .client
        .poll_token(&Secret::new("device-code-1"))
        .await
        .expect_err("cut");
    assert!(
        matches!(error, Error::Unanswered { .. }),
        "a cut refusal may have said `pending`: {error:?}"
    );
}

#[tokio::test]
async fn a_service_that_echoes_the_request_puts_no_secret_into_an_error() {
    let echo = format!("{{\"error\":\"bad header Bearer {TOKEN} and {NOTIFY_TOKEN}\"}}");
    for status in ["400 Bad", "500 Internal", "503 Unavailable"] {
        let error = Stub::answering(status, "", &echo)
            .await
            .create()
            .await
            .expect_err(status);
        let source = std::error::Error::source(&error)
            .map(ToString::to_string)
            .unwrap_or_default();
        let shown = format!("{error} {source} {error:?}");
        assert!(shown.contains("bad header"), "{shown}");
        assert!(
            !shown.contains(TOKEN) && !shown.contains(NOTIFY_TOKEN),
            "{shown}"
        );
    }
    let stub = Stub::answering("200 OK", "", INVOICE).await;
    let unusable = Secret::new("shop:very-secret\ntoken");
    let error = stub
        .client
        .fetch_invoice((&unusable, None), &InvoiceId::new("a").expect("an id"))
        .await;
    assert!(matches!(error, Err(Error::TokenUnusable)));
    assert!(!format!("{:?}", stub.client).contains("secret"));
}

#[test]
fn no_time_at_all_is_refused() {
    for (connect, request) in [(0, 10), (10, 0)] {
        let settings = Settings {
            base_url: "http://127.0.0.1:1".into(),
            connect_timeout: Duration::from_secs(connect),
            request_timeout: Duration::from_secs(request),
            allow_plain_http: false,
            proxy: Proxy::Straight,
        };
        assert!(matches!(
            Client::new(&settings),
            Err(SettingsError::Timeouts)
        ));
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends_was_never_a_request() {
    // Accepts, and says nothing: the time-out of the connection strikes, and must not pass for a lost answer.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let Ok(client) = Client::new(&Settings {
        base_url: format!("https://{address}"),
        connect_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(2),
        allow_plain_http: false,
        proxy: Proxy::Straight,
    }) else {
        return;
    };
    let id = InvoiceId::new("inv-1").expect("an id");
    let error = client
        .fetch_invoice((&Secret::new(TOKEN), None), &id)
        .await
        .expect_err("no TLS");
    assert!(matches!(error, Error::NotSent { .. }), "{error:?}");
}
