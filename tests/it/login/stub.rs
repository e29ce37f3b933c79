//! A service that logs in: it says to each poll what a case wants, to the byte, and remembers what it was asked and when.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

/// The shop's name as the service gives it.
pub(super) const SHOP: &str = "Shop\u{1b}[31m\u{202e}";
pub(super) const TOKEN: &str = "shop-1:token-that-nobody-sees";
pub(super) const DEVICE_CODE: &str = "dc_code-that-nobody-sees";

/// What it says to a poll.
#[derive(Clone, Debug)]
pub(super) enum Say {
    /// A status with this body, and with this `Retry-After`.
    Answer(u16, String, Option<u64>),
    /// Reads the request and closes without an answer.
    Lost,
    /// Resets the connection.
    Reset,
    /// Never answers.
    Silent,
}

pub(super) fn says(status: u16, error: &str) -> Say {
    Say::Answer(status, json!({ "error": error }).to_string(), None)
}

pub(super) fn pending() -> Say {
    says(400, "authorization_pending")
}

pub(super) fn granted() -> Say {
    let body = json!({ "token": TOKEN, "shopName": SHOP });
    Say::Answer(200, body.to_string(), None)
}

/// A page of some proxy.
pub(super) fn page(status: u16) -> Say {
    Say::Answer(status, "<html>sorry</html>".to_owned(), None)
}

/// What it was asked, and what it will say. Locked for a moment by its thread and by the test.
#[derive(Debug)]
struct Talk {
    started: Value,
    polls: VecDeque<Say>,
    /// The bodies of the login requests.
    begun: Vec<Value>,
    polled: Vec<Instant>,
}

/// A running one. Ends with the test process: it holds nothing but its port.
#[derive(Debug)]
pub(super) struct Stub {
    address: SocketAddr,
    talk: Arc<Mutex<Talk>>,
}

impl Stub {
    /// Starts one that says `polls` in their order, the last one for ever.
    pub(super) fn start(polls: &[Say]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let talk = Arc::new(Mutex::new(Talk {
            started: json!({
                "deviceCode": DEVICE_CODE,
                "userCode": "ABCD-EFGH",
                "verificationUrl": "https://cabinet.example/activate?code=ABCD-EFGH",
                "expiresIn": 60,
                "interval": 1,
            }),
            polls: polls.iter().cloned().collect(),
            begun: Vec::new(),
            polled: Vec::new(),
        }));
        let kept = Arc::clone(&talk);
        drop(thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                // A client that went away half-way is its own trouble.
                let held = stream.and_then(|stream| answer(stream, &kept));
                silent.extend(held.ok().flatten());
            }
        }));
        Self { address, talk }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes fields of what it says to a login request; `null` leaves one out.
    pub(super) fn start_with(&self, fields: &Value) {
        let mut talk = self.talk.lock().expect("no panic there");
        let started = talk.started.as_object_mut().expect("an object");
        for (name, value) in fields.as_object().expect("an object") {
            started.insert(name.clone(), value.clone());
        }
        started.retain(|_, value| !value.is_null());
    }

    /// What the next polls are told.
    pub(super) fn say(&self, polls: &[Say]) {
        self.talk.lock().expect("no panic there").polls = polls.iter().cloned().collect();
    }

    /// The bodies of the login requests so far.
    pub(super) fn begun(&self) -> Vec<Value> {
        self.talk.lock().expect("no panic there").begun.clone()
    }

    /// When it was polled so far.
    pub(super) fn polled(&self) -> Vec<Instant> {
        self.talk.lock().expect("no panic there").polled.clone()
    }
}

fn answer(mut stream: TcpStream, talk: &Mutex<Talk>) -> std::io::Result<Option<TcpStream>> {
    let mut head = [0; 64];
    let length = stream.peek(&mut head)?;
    let begins = String::from_utf8_lossy(&head).contains("/agent/login") && length > 0;
    let say = {
        let mut talk = talk.lock().expect("no panic there");
        if begins {
            Say::Answer(201, talk.started.to_string(), None)
        } else {
            talk.polled.push(Instant::now());
            let next = talk.polls.pop_front().expect("never empty");
            if talk.polls.is_empty() {
                talk.polls.push_back(next.clone());
            }
            next
        }
    };
    if matches!(say, Say::Reset) {
        // Closed with something unread, a connection is reset.
        return Ok(None);
    }
    let body = read_request(&stream)?;
    if begins {
        let body = serde_json::from_slice(&body).expect("JSON");
        talk.lock().expect("no panic there").begun.push(body);
    }
    match say {
        Say::Answer(status, body, retry_after) => {
            let length = body.len();
            let wish = retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n"));
            let wish = wish.unwrap_or_default();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\n{wish}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )?;
            Ok(None)
        }
        Say::Lost | Say::Reset => Ok(None),
        Say::Silent => Ok(Some(stream)),
    }
}

/// Reads one request whole and gives its body.
fn read_request(stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}
