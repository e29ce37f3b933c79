//! The table of answers over real sockets, with a ledger that only remembers what it was told.

mod bare;
mod ledger;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::Source;

const REF: &str = "AAAAAAAAAAAAAAAAAAAAAA";
const UNKNOWN: &str = "BBBBBBBBBBBBBBBBBBBBBB";
const UNREADABLE: &str = "CCCCCCCCCCCCCCCCCCCCCC";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const BODY: &str =
    r#"{"id":"i-1","status":"paid","amount":"10.50","updatedAt":"2026-11-27T10:00:00.000Z"}"#;
const BOUND: Duration = Duration::from_secs(5);

/// A ledger that remembers.
#[derive(Clone, Default)]
struct Memory(Arc<MemoryInner>);

#[derive(Default)]
struct MemoryInner {
    recorded: Mutex<Vec<(InvoiceKey, Observation)>>,
    refusals: Mutex<Vec<Refusal>>,
    presentations: Mutex<Vec<String>>,
    /// Nothing can be stored.
    locked: AtomicBool,
    /// Nothing can be read.
    unreadable: AtomicBool,
    /// Another ledger lies in its place.
    replaced: AtomicBool,
    /// Storing waits for `release`.
    held: AtomicBool,
    arrived: Notify,
    release: Notify,
}

impl Memory {
    fn recorded(&self) -> Vec<(InvoiceKey, Observation)> {
        self.0.recorded.lock().expect("not poisoned").clone()
    }

    /// Every presentation that was remembered, the last one last.
    fn presentations(&self) -> Vec<String> {
        self.0.presentations.lock().expect("not poisoned").clone()
    }

    /// The refusals so far, as invoice and reason, and forgets them.
    fn refusals(&self) -> Vec<(Option<i64>, &'static str)> {
        let refusals = std::mem::take(&mut *self.0.refusals.lock().expect("not poisoned"));
        refusals
            .into_iter()
            .map(|refusal| (refusal.invoice.map(|key| key.0), refusal.reason))
            .collect()
    }
}

impl Book for Memory {
    async fn watched(&self, reference: InvoiceRef) -> Result<Option<Watched>, Unavailable> {
        if self.0.unreadable.load(Ordering::SeqCst) {
            return Err(Unavailable);
        }
        Ok(match reference.as_str() {
            REF => Some(seven()),
            UNREADABLE => Some(Watched {
                key: InvoiceKey(8),
                token: None,
            }),
            _ => None,
        })
    }

    async fn watched_by_names(
        &self,
        id: InvoiceId,
        order_id: Option<String>,
    ) -> Result<Option<Watched>, Unavailable> {
        if self.0.unreadable.load(Ordering::SeqCst) {
            return Err(Unavailable);
        }
        let known = id.as_str() == "i-1" || order_id.as_deref() == Some("order-7");
        Ok(known.then(seven))
    }

    fn is_own(&self, _reference: &InvoiceRef, _mark: &[u8]) -> bool {
        false
    }

    async fn stands(&self) -> bool {
        !self.0.replaced.load(Ordering::SeqCst)
    }

    async fn record(
        &self,
        invoice: InvoiceKey,
        observation: Observation,
    ) -> Result<Decision, Unavailable> {
        if self.0.held.load(Ordering::SeqCst) {
            self.0.arrived.notify_one();
            self.0.release.notified().await;
        }
        if self.0.locked.load(Ordering::SeqCst) {
            return Err(Unavailable);
        }
        assert_ne!(observation.report.id.as_str(), "i-panic", "on purpose");
        if observation.report.id.as_str() != "i-1" {
            return Ok(Decision::NotThisInvoice);
        }
        let mut recorded = self.0.recorded.lock().expect("not poisoned");
        recorded.push((invoice, observation));
        Ok(if recorded.len() == 1 {
            Decision::Advance
        } else {
            Decision::Repeat
        })
    }

    fn refuse(&self, refusal: Refusal) {
        let mut refusals = self.0.refusals.lock().expect("not poisoned");
        refusals.push(refusal);
    }

    async fn presentation(&self) -> Result<Option<String>, Unavailable> {
        Ok(self.presentations().last().cloned())
    }

    async fn remember_presentation(&self, place: String) -> Result<(), Unavailable> {
        let mut presentations = self.0.presentations.lock().expect("not poisoned");
        presentations.push(place);
        Ok(())
    }

    async fn remember_heard(&self, _at_ms: i64, _invoice: InvoiceKey) -> Result<(), Unavailable> {
        Ok(())
    }
}

fn seven() -> Watched {
    Watched {
        key: InvoiceKey(7),
        token: NotifyToken::from_stored(TOKEN.to_owned()),
    }
}

struct Running<B = Memory> {
    at: SocketAddr,
    book: B,
    shutdown: Shutdown,
    task: JoinHandle<Served>,
}

impl Running {
    async fn start() -> Self {
        Self::start_on(Memory::default(), BOUND).await
    }
}

impl<B: Book> Running<B> {
    async fn start_on(book: B, drain: Duration) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = socket.local_addr().expect("an address");
        let settings = Settings {
            certificates: None,
            trusted: Trusted::default(),
            public: PublicAddress::of("https://shop.example/pay/n"),
            presentations: Presentations::auto(),
            limits: Limits {
                body_bytes: 4096,
                body_time: Duration::from_millis(200),
                ..Limits::default()
            },
            bodies_bytes: 64 * 1024,
            drain,
            hidden: Hidden::default(),
            heard: Arc::default(),
        };
        let shutdown = Shutdown::new();
        let task = tokio::spawn(run(socket, settings, book.clone(), shutdown.clone()));
        Self {
            at,
            book,
            shutdown,
            task,
        }
    }

    /// Sends one request and returns the answer without its date, which is the only part that may change.
    async fn send(&self, line: &str, headers: &str, body: &str) -> String {
        let mut client = TcpStream::connect(self.at).await.expect("a connection");
        let request = request(line, headers, body);
        client.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        timeout(BOUND, client.read_to_string(&mut answer))
            .await
            .expect("answered in time")
            .expect("an answer");
        answer
            .lines()
            .filter(|line| !line.starts_with("date:"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    async fn post(&self, reference: &str, headers: &str, body: &str) -> String {
        let line = format!("POST /pay/n/{reference}");
        self.send(&line, headers, body).await
    }
}

fn request(line: &str, headers: &str, body: &str) -> String {
    let headers = headers.replace("{T}", &format!("x-notification-token: {TOKEN}"));
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}

#[tokio::test]
async fn an_authentic_notification_is_stored_and_answered_exactly_200() {
    let running = Running::start().await;
    for (target, headers, body) in [
        (REF.to_owned(), "{T}\r\n", BODY.to_owned()),
        (
            format!("{REF}/"),
            "{T}\r\ncontent-type: text/plain\r\n",
            format!("\u{feff}{BODY}"),
        ),
        (
            REF.to_owned(),
            "{T}\r\ncontent-encoding: identity\r\n",
            BODY.to_owned(),
        ),
        (format!("{REF}?token={TOKEN}"), "", BODY.to_owned()),
        (
            REF.to_owned(),
            "",
            BODY.replace('}', &format!(",\"notificationToken\":\"{TOKEN}\"}}")),
        ),
    ] {
        let answer = running.post(&target, headers, &body).await;
        assert_eq!(status(&answer), "200", "{target} {headers} {body}");
        assert!(answer.ends_with("\n\nok"), "{answer}");
    }
    let recorded = running.book.recorded();
    assert_eq!(recorded.len(), 5);
    for (invoice, observation) in recorded {
        assert_eq!(invoice, InvoiceKey(7));
        assert_eq!(observation.source, Source::Notification);
        assert!(!observation.report.raw.contains(TOKEN));
    }
    assert_eq!(running.book.refusals(), []);
}

/// R29: whatever is wrong with the token or the ref, the sender reads the same bytes; only the ledger is told more.
#[tokio::test]
async fn any_doubt_is_the_same_401() {
    let running = Running::start().await;
    let other = BODY.replace("i-1", "i-2");
    let long = format!("x-notification-token: {}\r\n", "x".repeat(10_000));
    let mut answers = BTreeSet::new();
    for (reference, headers, body, refusal) in [
        (REF, "", BODY, (Some(7), "token_missing")),
        (
            REF,
            "x-notification-token:\r\n",
            BODY,
            (Some(7), "token_missing"),
        ),
        (
            REF,
            "x-notification-token: wrong\r\n",
            BODY,
            (Some(7), "token_wrong"),
        ),
        (REF, &long, BODY, (Some(7), "token_wrong")),
        (
            REF,
            "{T}\r\nx-notification-token: x\r\n",
            BODY,
            (Some(7), "token_doubled"),
        ),
        (
            REF,
            "x-signature: 00\r\n",
            BODY,
            (Some(7), "signature_wrong"),
        ),
        (
            REF,
            "{T}\r\nauthorization: Bearer x\r\n",
            BODY,
            (Some(7), "token_contradicting"),
        ),
        (
            REF,
            "{T}\r\n",
            other.as_str(),
            (Some(7), "not_this_invoice"),
        ),
        (UNKNOWN, "{T}\r\n", BODY, (None, "ref_unknown")),
        (UNKNOWN, "", BODY, (None, "ref_unknown")),
        ("not-a-ref", "{T}\r\n", BODY, (None, "ref_unknown")),
    ] {
        let answer = running.post(reference, headers, body).await;
        assert_eq!(status(&answer), "401", "{reference} {headers}");
        assert_eq!(running.book.refusals(), [refusal]);
        answers.insert(answer);
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(running.book.recorded(), []);
}

/// Without its own copy of the token tilld can judge nothing: the sender must come again.
#[tokio::test]
async fn a_token_that_cannot_be_opened_is_answered_503() {
    let running = Running::start().await;
    for headers in ["{T}\r\n", ""] {
        let answer = running.post(UNREADABLE, headers, BODY).await;
        assert_eq!(status(&answer), "503", "{headers}");
        assert_eq!(running.book.refusals(), [(Some(8), "token_unreadable")]);
    }
}

/// The answer to a misshapen POST never depends on the ref, and a known one is nudged by it all the same.
#[tokio::test]
async fn a_misshapen_body_is_refused_alike_for_every_ref() {
    let running = Running::start().await;
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(4096));
    let gzip = "{T}\r\ncontent-encoding: gzip\r\n";
    let form = "{T}\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    for (headers, body, code, reason) in [
        ("{T}\r\n", "", "400", "body_empty"),
        ("{T}\r\n", "null", "400", "body_not_an_object"),
        ("{T}\r\n", "[]", "400", "body_not_an_object"),
        ("{T}\r\n", "{}", "400", "invoice_id_unreadable"),
        (
            "{T}\r\n",
            r#"{"id":"i-1","status":"a","status":"b"}"#,
            "400",
            "body_doubled_name",
        ),
        (
            "{T}\r\n",
            r#"{"id":"i-1","status":"a"} {}"#,
            "400",
            "body_not_json",
        ),
        ("{T}\r\n", large.as_str(), "413", "body_too_large"),
        (gzip, BODY, "415", "body_compressed"),
        (form, "payload=%7B%7D", "415", "body_form"),
    ] {
        let known = running.post(REF, headers, body).await;
        assert_eq!(running.book.refusals(), [(Some(7), reason)]);
        let unknown = running.post(UNKNOWN, headers, body).await;
        assert_eq!(running.book.refusals(), [(None, reason)]);
        assert_eq!(status(&known), code, "{reason}");
        assert_eq!(known, unknown);
    }
    assert_eq!(running.book.recorded(), []);
}

#[tokio::test]
async fn other_methods_and_other_paths_have_no_effect() {
    let running = Running::start().await;
    for (line, code) in [
        (format!("GET /pay/n/{REF}"), "200"),
        (format!("HEAD /pay/n/{UNKNOWN}"), "200"),
        (format!("OPTIONS /pay/n/{REF}"), "405"),
        (format!("PUT /pay/n/{REF}"), "405"),
        (format!("POST /pay/n/{REF}//"), "404"),
        (format!("POST /pay//n/{REF}"), "404"),
        ("GET /pay/n".to_owned(), "200"),
        ("HEAD /pay/n/".to_owned(), "200"),
        ("DELETE /pay/n".to_owned(), "405"),
        ("POST /pay/n//".to_owned(), "404"),
        ("POST /pay".to_owned(), "404"),
        ("GET /".to_owned(), "404"),
        ("OPTIONS *".to_owned(), "404"),
    ] {
        let answer = running.send(&line, "{T}\r\n", "").await;
        assert_eq!(status(&answer), code, "{line}");
        assert_eq!(
            answer.contains("allow: GET, HEAD, POST"),
            code == "405",
            "{answer}"
        );
        if code == "200" {
            // Nothing stands behind the blank line.
            assert!(answer.ends_with('\n'), "{answer}");
        }
    }
    assert_eq!(running.book.recorded(), []);
    assert_eq!(running.book.refusals(), []);
}

#[tokio::test]
async fn what_cannot_be_stored_is_503_and_nudges() {
    let running = Running::start().await;
    running.book.0.locked.store(true, Ordering::SeqCst);
    let answer = running.post(REF, "{T}\r\n", BODY).await;
    assert_eq!(status(&answer), "503");
    assert!(answer.contains("retry-after: 10"), "{answer}");
    assert_eq!(running.book.refusals(), [(Some(7), "ledger_unavailable")]);
    running.book.0.locked.store(false, Ordering::SeqCst);
    assert_eq!(status(&running.post(REF, "{T}\r\n", BODY).await), "200");
    running.book.0.unreadable.store(true, Ordering::SeqCst);
    assert_eq!(status(&running.post(REF, "{T}\r\n", BODY).await), "503");
    // The shape is told even then.
    assert_eq!(status(&running.post(REF, "{T}\r\n", "[]").await), "400");
    // What another ledger does not know was never looked for.
    running.book.0.unreadable.store(false, Ordering::SeqCst);
    running.book.0.replaced.store(true, Ordering::SeqCst);
    for unknown in ["nobodys", REF] {
        assert_eq!(status(&running.post(unknown, "", BODY).await), "503");
    }
}

#[tokio::test]
async fn only_a_stored_notification_says_which_place_works() {
    let running = Running::start().await;
    let other = BODY.replace("i-1", "i-2");
    assert_eq!(status(&running.post(REF, "{T}\r\n", &other).await), "401");
    running.book.0.locked.store(true, Ordering::SeqCst);
    let query = format!("{REF}?token={TOKEN}");
    assert_eq!(status(&running.post(&query, "", BODY).await), "503");
    running.book.0.locked.store(false, Ordering::SeqCst);
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    for _ in 0..3 {
        assert_eq!(status(&running.post(REF, &bearer, BODY).await), "200");
    }
    running.shutdown.request();
    // The stop waits for what is still being written.
    timeout(BOUND, running.task)
        .await
        .expect("ends")
        .expect("served");
    assert_eq!(running.book.presentations(), ["bearer"]);
}

#[tokio::test]
async fn a_panic_while_storing_ends_one_request() {
    let running = Running::start().await;
    let body = BODY.replace("i-1", "i-panic");
    assert_eq!(status(&running.post(REF, "{T}\r\n", &body).await), "500");
    assert_eq!(status(&running.post(REF, "{T}\r\n", BODY).await), "200");
    running.shutdown.request();
    let served = timeout(BOUND, running.task)
        .await
        .expect("ends")
        .expect("served");
    assert_eq!(served.panics, 1);
}

/// A17: the connection is gone while the ledger is busy; what it brought is stored all the same, and the stop waits.
#[tokio::test]
async fn storing_outlives_the_connection_and_the_stop_waits_for_it() {
    let mut running = Running::start_on(Memory::default(), Duration::from_millis(50)).await;
    running.book.0.held.store(true, Ordering::SeqCst);
    let mut client = TcpStream::connect(running.at).await.expect("a connection");
    let bytes = request(&format!("POST /pay/n/{REF}"), "{T}\r\n", BODY);
    client.write_all(bytes.as_bytes()).await.expect("sent");
    running.book.0.arrived.notified().await;
    drop(client);
    // The drain cuts the connection, and with it the future that was answering.
    running.shutdown.request();
    let early = timeout(Duration::from_millis(200), &mut running.task).await;
    assert!(early.is_err(), "the stop did not wait for the storing");
    running.book.0.release.notify_one();
    let served = timeout(BOUND, running.task)
        .await
        .expect("ends")
        .expect("served");
    assert_eq!(served.cut, 1);
    assert_eq!(running.book.recorded().len(), 1);
}
