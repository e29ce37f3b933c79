//! A stand-in for the payment service that answers every poll at once, with what it said before: that the invoice is open. A
//! create is answered after a time it was started with. And the login that makes a daemon send it requests.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::daemon::Home;

/// Where a [`Home`] that nobody serves says that its service is.
const NOWHERE: &str = "http://127.0.0.1:9";
/// What is added to the config of one that is served: the most requests a second that may be set.
const POLLER: &str = "\n[poller]\nrequests_per_second = 100\n";

/// Connections that are served at once.
const CONNECTIONS: usize = 256;

/// A service. It listens until this process ends.
pub(crate) struct Service {
    address: SocketAddr,
    answered: Arc<AtomicU64>,
}

impl Service {
    /// Starts one that answers a create after so long.
    pub(crate) fn start(create: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let answered = Arc::new(AtomicU64::new(0));
        for _ in 0..CONNECTIONS {
            let listener = listener.try_clone().expect("a descriptor");
            let count = Arc::clone(&answered);
            // Started ahead: a thread for each connection would cost more than the answer.
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    // Its client may be killed in the middle of it.
                    drop(answer_all(&stream, create, &count));
                }
            });
        }
        Self { address, answered }
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests it has answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Logs the shop in at this service, until what is given is dropped. No daemon may run.
    pub(crate) fn log_in<'a>(&self, home: &'a Home) -> LoggedIn<'a> {
        let origin = format!("http://{}", self.address);
        let config = fs::read_to_string(home.config()).expect("a config");
        let served = config.replace(NOWHERE, &origin) + POLLER;
        fs::write(home.config(), served).expect("written");
        let login = format!(
            r#"{{"token":"shop:token","shop_name":"","service":"{origin}","stored_at":"2024-01-01T00:00:00Z"}}"#
        );
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create(true).truncate(true).mode(0o600);
        let file = file.open(credentials(home));
        let written = file.and_then(|mut file| file.write_all(login.as_bytes()));
        written.expect("a login");
        LoggedIn { home, config }
    }
}

fn credentials(home: &Home) -> std::path::PathBuf {
    home.state().join("secret").join("credentials")
}

/// A shop that is logged in. Logged out, and nobody's again, when it is dropped.
pub(crate) struct LoggedIn<'a> {
    home: &'a Home,
    config: String,
}

impl Drop for LoggedIn<'_> {
    fn drop(&mut self) {
        fs::write(self.home.config(), &self.config).expect("written");
        fs::remove_file(credentials(self.home)).expect("removed");
    }
}

/// Answers what comes on one connection.
fn answer_all(stream: &TcpStream, create: Duration, count: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reading = BufReader::new(stream);
    loop {
        let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
        if reading.read_line(&mut first)? == 0 {
            return Ok(());
        }
        // The head ends with an empty line.
        while line != "\r\n" {
            line.clear();
            if reading.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let lower = line.to_ascii_lowercase();
            if let Some(said) = lower.strip_prefix("content-length:") {
                length = said.trim().parse().unwrap_or(0);
            }
        }
        let mut asked = vec![0; length];
        reading.read_exact(&mut asked)?;
        let (status, body) = if first.starts_with("POST") {
            thread::sleep(create);
            ("201 Created", opened(&asked))
        } else {
            let path = first.split(' ').nth(1).unwrap_or_default();
            let id = path.rsplit('/').next().unwrap_or_default();
            let body = format!(
                r#"{{"id":"{id}","status":"new","updatedAt":"2023-11-14T22:13:20.000Z","amount":"1500.00","currency":"RUB"}}"#
            );
            ("200 OK", body)
        };
        let mut writing = stream;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        writing.write_all(answer.as_bytes())?;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The answer to a create.
fn opened(asked: &[u8]) -> String {
    let asked: Value = serde_json::from_slice(asked).unwrap_or_default();
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let order = field("internalId");
    json!({
        "id": format!("inv-{}", order.as_str().unwrap_or_default()),
        "direction": "in", "status": "new", "paymentMethod": field("paymentMethod"),
        "amount": field("amount").to_string(), "currency": field("currency"),
        "createdAt": "2023-11-14T22:13:20.000Z", "updatedAt": "2023-11-14T22:13:20.000Z",
        "internalId": order, "merchantName": "Shop",
        "paymentDetails": {"phoneNumber": "+7 000 000-00-01", "bankName": "Bank", "fullName": "A. B."},
    })
    .to_string()
}
