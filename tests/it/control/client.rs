//! HTTP/1.1 over the Unix socket by hand: every byte is the scenario's, and a stream of events is read as it comes.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Answer, PATIENCE, World, head};

/// What problem documents are called.
pub(super) const PROBLEM: &str = "application/problem+json";

impl World {
    /// The control socket where no setting says otherwise.
    pub(crate) fn control_socket(&self) -> PathBuf {
        self.state_dir().join("control.sock")
    }

    /// One request on a connection of its own.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, target: &str, body: &str) -> Answer {
        self.call_with(method, target, &[], body)
    }

    /// [`World::call`] with these headers.
    #[track_caller]
    pub(super) fn call_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut line = Line::ask(&self.control_socket(), method, target, headers, body);
        line.answer().expect("an answer")
    }

    /// `POST /v1/invoices` for 599.80 RUB by SBP.
    #[track_caller]
    pub(crate) fn wish(&self, order: &str) -> Answer {
        self.call("POST", "/v1/invoices", &wish(order, &json!("599.80")))
    }

    /// Everything that came before has been looked at: each connection is read in its turn.
    #[track_caller]
    pub(crate) fn round_trips(&self) {
        for _ in 0..2 {
            assert_eq!(self.call("GET", "/v1/status", "").status, 200);
        }
    }
}

/// The body of a create.
pub(crate) fn wish(order: &str, amount: &Value) -> String {
    json!({ "order_id": order, "amount": amount, "currency": "RUB", "method": "SBP" }).to_string()
}

/// One text of an answer's JSON.
#[track_caller]
pub(crate) fn text(answer: &Answer, pointer: &str) -> String {
    let json = answer.json();
    let value = json.pointer(pointer).and_then(Value::as_str);
    value
        .unwrap_or_else(|| panic!("no `{pointer}`: {json}"))
        .to_owned()
}

/// A problem document of this status and name, whose members agree with the answer's own.
#[track_caller]
pub(crate) fn problem(answer: &Answer, status: u16, name: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some(PROBLEM), "{answer:?}");
    let json = answer.json();
    assert_eq!(json.get("status"), Some(&json!(status)), "{json}");
    assert_eq!(json.get("error"), Some(&json!(name)), "{json}");
    for member in ["type", "title", "detail", "hint"] {
        let text = json.get(member).and_then(Value::as_str);
        assert!(
            text.is_some_and(|text| !text.is_empty()),
            "{member}: {json}"
        );
    }
}

/// A connection.
pub(crate) struct Line(BufReader<UnixStream>);

impl Line {
    /// Connects. What is read later must come within [`PATIENCE`].
    #[track_caller]
    pub(super) fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        Self(BufReader::with_capacity(1024, stream))
    }

    /// Connects and sends one request.
    #[track_caller]
    pub(crate) fn ask(
        socket: &Path,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let mut line = Self::open(socket);
        // A shop's program says what it likes there: nothing but this machine reaches the socket.
        let head = head("tilld", method, target, headers, Some(body.len()));
        line.send(&(head + body));
        line
    }

    #[track_caller]
    pub(super) fn send(&mut self, text: &str) {
        let sent = self.0.get_mut().write_all(text.as_bytes());
        sent.expect("the other side reads");
    }

    /// Reads the head of an answer.
    pub(super) fn head(&mut self) -> Option<Answer> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let status_line = line.trim_end().to_owned();
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.0.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let code = status_line.split(' ').nth(1);
        Some(Answer {
            status: code.and_then(|code| code.parse().ok()).expect("a code"),
            status_line,
            headers,
            body: String::new(),
        })
    }

    /// Reads one answer; `None` when the connection ends before one is whole.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut answer = self.head()?;
        let length = answer.header("content-length").unwrap_or("0");
        let mut body = vec![0; length.parse().expect("a length")];
        self.0.read_exact(&mut body).ok()?;
        answer.body = String::from_utf8(body).expect("UTF-8");
        Some(answer)
    }
}

/// One event as the stream told it.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The number in the line `id`.
    pub(super) id: i64,
    /// The line `id`: the ledger's generation and the number.
    pub(super) position: String,
    /// The line `event`.
    pub(super) event: String,
    /// The line `data`.
    pub(super) data: Value,
}

/// A stream of events.
pub(super) struct Stream(BufReader<Chunks>);

impl Stream {
    /// Follows; panics when it may not.
    #[track_caller]
    pub(super) fn follow(socket: &Path, target: &str, headers: &[(&str, &str)]) -> Self {
        Self::try_follow(socket, target, headers)
            .unwrap_or_else(|refused| panic!("{target}: {refused:?}"))
    }

    /// Follows, or gives what was answered instead.
    #[track_caller]
    pub(super) fn try_follow(
        socket: &Path,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, Answer> {
        let mut all = vec![("Accept", "text/event-stream")];
        all.extend(headers);
        let mut line = Line::ask(socket, "GET", target, &all, "");
        let head = line.head().expect("an answer");
        if head.status != 200 {
            return Err(head);
        }
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        let chunks = Chunks {
            line,
            left: 0,
            is_ended: false,
        };
        Ok(Self(BufReader::with_capacity(1024, chunks)))
    }

    /// The next event; `None` when the stream has ended. Comments are passed over.
    pub(super) fn next(&mut self) -> Option<Told> {
        let (mut id, mut event, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", text)) => id = Some(text.to_owned()),
                Some(("event", text)) => event = Some(text.to_owned()),
                Some(("data", text)) => data = serde_json::from_str(text).ok(),
                None if data.is_some() => {
                    let position = id.expect("an id");
                    let (_generation, number) = position.split_once('.').expect("two numbers");
                    return Some(Told {
                        id: number.parse().expect("a number"),
                        position,
                        event: event.expect("an event"),
                        data: data.expect("JSON"),
                    });
                }
                Some(_) | None => {}
            }
        }
    }

    /// Reads to the end of the stream. True when the other side ended it properly.
    pub(super) fn ends(mut self) -> bool {
        let started = Instant::now();
        while self.next().is_some() {
            assert!(started.elapsed() < PATIENCE, "it goes on");
        }
        self.0.get_ref().is_ended
    }
}

/// The body of an answer whose length nobody knows.
struct Chunks {
    line: Line,
    left: usize,
    /// The last chunk has come.
    is_ended: bool,
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.is_ended {
            return Ok(0);
        }
        if self.left == 0 {
            let mut size = String::new();
            // The end of the chunk before stands in front of a size.
            while size.trim_end().is_empty() {
                size.clear();
                if self.line.0.read_line(&mut size)? == 0 {
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(size.trim_end(), 16).expect("a size");
            if self.left == 0 {
                self.is_ended = true;
                return Ok(0);
            }
        }
        let most = into.len().min(self.left);
        let into = into.get_mut(..most).expect("within");
        let read = self.line.0.read(into)?;
        self.left -= read;
        Ok(read)
    }
}
