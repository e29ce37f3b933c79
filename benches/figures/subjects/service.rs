//! A stand-in for the payment service that answers every question at once, with what it said before: that the invoice is
//! open. And the login that makes a daemon ask it.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::daemon::Home;

/// Where a [`Home`] that nobody serves says that its service is.
const NOWHERE: &str = "http://127.0.0.1:9";
/// What is added to the config of one that is served: the most requests a second that may be set.
const POLLER: &str = "\n[poller]\nrequests_per_second = 100\n";

/// A service. It listens until this process ends.
pub(crate) struct Service {
    address: SocketAddr,
    answered: Arc<AtomicU64>,
}

impl Service {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let answered = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&answered);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                // Whoever asked may be killed in the middle of it.
                thread::spawn(move || answer_all(&stream, &count).ok());
            }
        });
        Self { address, answered }
    }

    /// Questions it has answered.
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
fn answer_all(stream: &TcpStream, count: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(first) = lines.next() {
        let first = first?;
        // The head ends with an empty line; a fetch has no body.
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let id = path.rsplit('/').next().unwrap_or_default();
        let body = format!(
            r#"{{"id":"{id}","status":"new","updatedAt":"2023-11-14T22:13:20.000Z","amount":"1500.00","currency":"RUB"}}"#
        );
        let mut writing = stream;
        write!(
            writing,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
