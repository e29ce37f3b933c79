//! `tilld invoice poll`, and what counts as an answer of the service (A31). What is at stake: a maintenance page read as
//! "paid", "failed" or "no such invoice", and an access token carried to a host nobody configured.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{ACCESS_TOKEN, CUT, HELD, PATIENCE, RAW, Service, Setup, World, wait_until};

/// A service that answers fetches and creates with what it was told last.
struct Odd {
    service: Service,
    says: Arc<Mutex<(u16, String)>>,
}

/// Its invoice of an order.
fn invoice(id: &str, order: &str) -> String {
    json!({
        "id": id, "direction": "in", "status": "new", "paymentMethod": "SBP", "amount": "599.80", "currency": "RUB",
        "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z", "internalId": order,
    })
    .to_string()
}

impl Odd {
    fn start() -> Self {
        let says = Arc::new(Mutex::new((201, invoice("inv-1", "A-1"))));
        let told = Arc::clone(&says);
        let service = Service::start(move |_heard| told.lock().expect("no panic there").clone());
        Self { service, says }
    }

    fn says(&self, status: u16, text: impl Into<String>) {
        *self.says.lock().expect("no panic there") = (status, text.into());
    }

    /// The creates that arrived.
    fn creates(&self) -> usize {
        let heard = self.service.heard();
        let is_create = |line: &str| line.starts_with("POST /api/v1/invoices ");
        heard.iter().filter(|heard| is_create(&heard.line)).count()
    }

    /// A world that is logged in at it.
    fn world(&self) -> World {
        let world = Setup::new()
            .quiet()
            .service(&self.service.url())
            .set("service.connect_timeout_s", 1)
            .set("service.request_timeout_s", 2)
            .not_served()
            .start();
        world.tilld(&["login"]).ends_with(0);
        world
    }
}

/// Answers that are not the service's word about `inv-1` of order A-1, each with what is said of it.
fn foreign() -> Vec<(&'static str, u16, String, &'static str)> {
    let page = "<!doctype html><html>back soon</html>".to_owned();
    let huge = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}",
        " ".repeat(2 * 1024 * 1024)
    );
    let slow = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"id\":".to_owned();
    let not_its_own = "the answer is not the payment service's";
    vec![
        ("a page", 200, page.clone(), "answered 200 with a web page"),
        ("nothing", 200, String::new(), not_its_own),
        ("an empty object", 200, "{}".to_owned(), not_its_own),
        (
            "a list",
            200,
            format!("[{}]", invoice("inv-1", "A-1")),
            not_its_own,
        ),
        (
            "an error with 200",
            200,
            "{\"error\":\"x\"}".to_owned(),
            not_its_own,
        ),
        (
            "an id that is no id",
            200,
            invoice("..", "A-1"),
            not_its_own,
        ),
        ("an endless body", RAW, huge, "larger than 256 KiB"),
        (
            "half a document",
            CUT,
            invoice("inv-1", "A-1"),
            "no complete answer",
        ),
        ("a body that never ends", HELD, slow, "no complete answer"),
        ("a proxy's 502", 502, page.clone(), "answered 502"),
        ("a proxy's 503", 503, page, "answered 503"),
    ]
}

fn redirect(status: &str, to: &TcpListener) -> String {
    let address = to.local_addr().expect("bound");
    format!(
        "HTTP/1.1 {status}\r\nLocation: http://{address}/api/v1/invoices/inv-1?code=secret\r\nContent-Length: 0\r\n\r\n"
    )
}

/// A host nobody configured. [`is_left_alone`] tells whether anybody called.
fn elsewhere() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.2:0").expect("a loopback address");
    listener.set_nonblocking(true).expect("a socket option");
    listener
}

fn is_left_alone(elsewhere: &TcpListener) -> bool {
    elsewhere
        .accept()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// All the ledger knows about invoices. An answer that names another order is noted in the history as discarded.
fn everything(world: &World) -> Vec<Vec<Vec<String>>> {
    [
        "SELECT * FROM invoices",
        "SELECT * FROM events",
        "SELECT * FROM heard WHERE decision <> 'not_this_invoice'",
    ]
    .map(|query| world.sql(query))
    .to_vec()
}

#[test]
fn only_the_invoice_asked_for_in_a_2xx_json_object_is_an_answer() {
    let shop = Odd::start();
    let world = shop.world();
    world.open("A-1", "599.80", &[]).ends_with(0);
    let before = everything(&world);
    let poll = || world.tilld(&["invoice", "poll", "A-1", "--json"]);
    let mut cases = foreign();
    let other = "the answer is not the payment service's: it is about another invoice";
    cases.push(("another invoice", 200, invoice("inv-2", "A-1"), other));
    cases.push((
        "another order",
        200,
        invoice("inv-1", "A-2"),
        "names another order",
    ));
    for (what, status, text, said) in cases {
        shop.says(status, text);
        let polled = poll().ends_with(8);
        assert!(polled.stderr.contains(said), "{what}: {polled:?}");
        assert_eq!(polled.text("status"), "new", "{what}: shown as it stands");
        assert_eq!(everything(&world), before, "{what}");
    }

    let host = elsewhere();
    let there = host.local_addr().expect("an address");
    let points = format!("points to http://{there}, which");
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        shop.says(RAW, redirect(status, &host));
        let polled = poll().ends_with(10);
        assert!(polled.stderr.contains(&points), "{polled:?}");
        assert!(!polled.stderr.contains("secret"), "{polled:?}");
        assert_eq!(everything(&world), before, "{status}");
    }
    // A script that waits sees the same and goes on waiting.
    for (status, text) in [(200, "{}".to_owned()), (RAW, redirect("302 Found", &host))] {
        shop.says(status, text);
        let waited = world.wait("A-1", "1s").ends_with(6);
        assert!(waited.stderr.contains("no answer yet"), "{waited:?}");
        assert_eq!(everything(&world), before);
    }
    assert!(is_left_alone(&host), "no redirect is followed");

    // About this invoice alone, and the ledger keeps what it has.
    for (status, code, said) in [(404, 3, "knows no such invoice"), (403, 1, "does not let")] {
        shop.says(status, "{\"error\":\"why\"}");
        let polled = poll().ends_with(code);
        assert!(polled.stderr.contains(said), "{polled:?}");
        assert!(
            polled.stderr.contains("hint: look for the id"),
            "{polled:?}"
        );
        assert_eq!(everything(&world), before, "{status}");
    }
    shop.says(200, invoice("inv-1", "A-1").replace("\"new\"", "\"paid\""));
    assert_eq!(poll().ends_with(0).text("outcome"), "paid");
}

#[test]
fn an_answer_to_a_create_that_is_not_the_services_leaves_it_unknown() {
    let shop = Odd::start();
    let world = shop.world();
    let mut cases = foreign();
    cases.push((
        "another order",
        201,
        invoice("inv-1", "Z-9"),
        "about another order",
    ));
    let mut posted = 0;
    for (number, (what, status, text, said)) in cases.into_iter().enumerate() {
        let order = format!("A-{}", number + 10);
        shop.says(status, text.replace("A-1\"", &format!("{order}\"")));
        let created = world.open(&order, "599.80", &[]).ends_with(9);
        assert!(created.stderr.contains(said), "{what}: {created:?}");
        posted += 1;
        let stored = world.invoice(
            &order,
            "opening || ' ' || attention || coalesce(invoice_id, '')",
        );
        assert_eq!(stored, "unknown outcome_unknown", "{what}");
        // Not even by somebody who would put up with anything.
        let more = [
            "--wait=1s",
            "--fallback=redirect",
            URLS[0],
            URLS[1],
            URLS[2],
        ];
        world.open(&order, "599.80", &more).ends_with(9);
        assert_eq!(shop.creates(), posted, "{what}: posted once");
    }
    let host = elsewhere();
    let there = host.local_addr().expect("an address");
    let points = format!("points to http://{there}, which");
    for (order, status, code, opening) in [
        ("R-1", "302 Found", 9, "unknown"),
        ("R-2", "303 See Other", 9, "unknown"),
        ("R-3", "307 Temporary", 10, "refused"),
        ("R-4", "308 Permanent", 10, "refused"),
    ] {
        shop.says(RAW, redirect(status, &host));
        let created = world.open(order, "599.80", &[]).ends_with(code);
        assert!(created.stderr.contains(&points), "{created:?}");
        assert_eq!(world.invoice(order, "opening"), opening, "{status}");
    }
    assert!(is_left_alone(&host), "no redirect is followed");
    let told = |heard: &crate::harness::Heard| heard.headers.contains(ACCESS_TOKEN);
    assert!(
        shop.service.heard().iter().any(told),
        "it was there to be carried off"
    );
}

const URLS: [&str; 3] = [
    "--success-url=https://shop.example/ok",
    "--cancel-url=https://shop.example/cancel",
    "--error-url=https://shop.example/error",
];

#[test]
fn any_invoice_is_asked_about_beside_a_daemon_whatever_its_outcome() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .sandbox(&["--window=1"])
        .set("poller.horizon_s", 1)
        .start();
    world.faults(&json!({ "lose": true }));
    let poll = |name: &str| {
        world
            .tilld(&["invoice", "poll", name, "--json"])
            .ends_with(0)
    };
    let issued = world.create("A-1");
    assert_eq!(poll("A-1").text("outcome"), "open");
    // The sandbox expires it by itself; nobody says so.
    wait_until(PATIENCE, "the service to give it up", || {
        poll("A-1").text("outcome") == "failed"
    });
    world.dictate(&issued, "paid");
    let late = poll(&format!("--id={}", issued.id));
    assert_eq!(late.text("outcome"), "paid");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    // Paid, and asked all the same.
    let asked = world.requests("fetch");
    assert_eq!(
        poll(&format!("--ref={}", issued.reference)).text("outcome"),
        "paid"
    );
    assert_eq!(world.requests("fetch"), asked + 1);

    // For people: how it stands, as `show` has it.
    let told = world.tilld(&["invoice", "poll", "A-1"]).ends_with(0);
    assert!(
        told.stdout.contains("outcome") && told.stdout.contains("paid"),
        "{told:?}"
    );
}

#[test]
fn an_unresolved_invoice_is_asked_about() {
    let world = Setup::new().quiet().set("poller.horizon_s", 1).start();
    world.faults(&json!({ "lose": true }));
    // Without a window of the service's own.
    let more = [&["--redirect"], URLS.as_slice()].concat();
    world.open("A-1", "599.80", &more).ends_with(0);
    wait_until(PATIENCE, "it to be given up", || {
        world.invoice("A-1", "attention") == "unresolved"
    });
    let issued = world.issued("A-1").expect("the service has it");
    world.dictate(&issued, "paid");
    let polled = world
        .tilld(&["invoice", "poll", "A-1", "--json"])
        .ends_with(0);
    assert_eq!(polled.text("outcome"), "paid");
    assert_eq!(polled.json().get("attention"), Some(&json!([])));
}

#[test]
fn each_end_of_a_poll_has_its_code() {
    let world = Setup::new().quiet().not_served().start();
    let poll = |name: &str| world.tilld(&["invoice", "poll", name]);
    // Nothing is made of nothing.
    poll("A-1").ends_with(3);
    assert!(!world.ledger().exists());

    world.create("A-1");
    let full = json!({ "free": 0 });
    world.control("POST", "/pool", &full);
    world.open("full", "599.80", &[]).ends_with(7);
    world.control("POST", "/pool", &json!({ "free": 5 }));
    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    world.open("lost", "599.80", &[]).ends_with(9);
    let asked = world.requests("fetch");
    let refused = poll("full").ends_with(5);
    assert!(refused.stderr.contains("opened no invoice"), "{refused:?}");
    let lost = poll("lost").ends_with(9);
    assert!(
        lost.stderr.contains("`tilld invoice adopt ORDER --id ID`"),
        "{lost:?}"
    );

    // What can be no id of its kind is a mistake, and an id is one segment of a path whatever it holds.
    for name in ["", &"x".repeat(256), "a\nb"] {
        for (arg, rule) in [
            (name.to_owned(), "order id must be 1 to 128 bytes"),
            (format!("--id={name}"), "invoice id must be 1 to 255 bytes"),
            (format!("--ref={name}"), "a ref has 22 characters"),
        ] {
            let mistake = poll(&arg).ends_with(2);
            assert!(mistake.stderr.contains(rule), "{mistake:?}");
        }
    }
    for name in ["../x", "a/b", "%2e"] {
        for arg in [name.to_owned(), format!("--id={name}")] {
            let absent = poll(&arg).ends_with(3);
            assert!(absent.stderr.contains(&format!("`{name}`")), "{absent:?}");
        }
    }
    for name in [".", ".."] {
        let adopt = ["invoice", "adopt", "lost", &format!("--id={name}")];
        let track = [
            "invoice",
            "track",
            "T-1",
            &format!("--id={name}"),
            "--amount=1",
            "--currency=RUB",
            "--token-file=/dev/null",
        ];
        for refused in [world.tilld(&adopt), world.tilld(&track)] {
            let refused = refused.ends_with(2);
            assert!(refused.stderr.contains("not `.` or `..`"), "{refused:?}");
        }
    }
    let help = world.tilld(&["invoice", "--help"]).ends_with(0);
    assert!(help.stdout.contains("1 to 255 bytes"), "{help:?}");
    assert_eq!(world.requests("fetch"), asked, "nobody was asked");

    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let url = format!("http://{}", nobody.expect("a port"));
    let variables = [
        ("SERVICE_TOKEN", "shop:token"),
        ("TILLD_SERVICE__URL", url.as_str()),
    ];
    world
        .tilld_with(&variables, &["invoice", "poll", "A-1"])
        .ends_with(8);
    world.control("POST", "/tokens/revoke", &Value::Null);
    let login = poll("A-1").ends_with(4);
    assert!(login.stderr.contains("hint: run `tilld "), "{login:?}");
    assert_eq!(world.invoice("A-1", "outcome"), "open");
}
