//! HTTP/1.1 by hand over plain sockets: a scenario says every byte that goes out and sees the status line that comes back.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use super::PATIENCE;

/// An answer as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The first line, without its end.
    pub(crate) status_line: String,
    /// The code in it.
    pub(crate) status: u16,
    /// The header lines, in their order; names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Answer {
    /// The first header of this name, which is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// All that a sender can tell answers apart by: everything but the date.
    pub(crate) fn without_date(mut self) -> Self {
        self.headers.retain(|(name, _)| name != "date");
        self
    }
}

/// One request on a connection of its own, and the answer to it.
#[track_caller]
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    request_to("shop.example", address, method, target, headers, body)
}

/// [`request`] with this `Host`.
#[track_caller]
pub(crate) fn request_to(
    host: &str,
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut wire = Wire::open(address);
    wire.send(&head(host, method, target, headers, Some(body.len())));
    wire.send(body);
    wire.answer().expect("an answer")
}

/// The head of a request, with its last empty line. The connection is kept unless `headers` say otherwise.
pub(crate) fn head(
    host: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    length: Option<usize>,
) -> String {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    let length = length.map(|length| ("Content-Length".to_owned(), length.to_string()));
    let given = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    for (name, value) in given.chain(length) {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    head.push_str("\r\n");
    head
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Wire(BufReader<TcpStream>);

impl Wire {
    /// Connects. What is read later must come within [`PATIENCE`].
    #[track_caller]
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .unwrap_or_else(|error| panic!("could not connect to {address}: {error}"));
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_nodelay(true))
            .expect("a socket option");
        Self(BufReader::new(stream))
    }

    /// Sends text as it is.
    #[track_caller]
    pub(crate) fn send(&mut self, text: &str) {
        self.0
            .get_mut()
            .write_all(text.as_bytes())
            .expect("the other side reads");
    }

    /// Sends what it can, for a side that may have hung up.
    pub(crate) fn try_send(&mut self, text: &str) -> bool {
        self.0.get_mut().write_all(text.as_bytes()).is_ok()
    }

    /// Reads one answer; `None` when the connection ends before one is whole.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.byte()?);
        }
        let head = String::from_utf8(head).expect("a head in UTF-8");
        let mut lines = head.lines();
        let status_line = lines.next().expect("a status line").to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let code = status_line.split(' ').nth(1);
        let mut answer = Answer {
            status: code.and_then(|code| code.parse().ok()).expect("a code"),
            status_line,
            headers,
            body: String::new(),
        };
        let length = answer.header("content-length").unwrap_or("0");
        let mut body = vec![0; length.parse().expect("a length")];
        self.0.read_exact(&mut body).ok()?;
        answer.body = String::from_utf8(body).expect("a body in UTF-8");
        Some(answer)
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0; 1];
        self.0.read_exact(&mut byte).ok()?;
        byte.first().copied()
    }

    /// Waits until the other side closes; what it says before is thrown away. False when it did not within `PATIENCE`.
    pub(crate) fn is_closed_in_time(&mut self) -> bool {
        let mut rest = [0; 1024];
        loop {
            match self.0.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => {
                    return !matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    );
                }
            }
        }
    }

    /// Hangs up, as a sender whose patience is over.
    pub(crate) fn hang_up(self) {
        // The other side may have closed first.
        drop(self.0.get_ref().shutdown(Shutdown::Both));
    }
}
