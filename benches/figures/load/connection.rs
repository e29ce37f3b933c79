//! One kept-alive connection: writes a request as far as the socket takes it, reads an answer's status and length.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// The longest answer, head and body: ours are a line. Bytes.
const ANSWER_BYTES: usize = 8 * 1024;

/// A connection, with at most one request on it.
pub(super) struct Connection {
    stream: TcpStream,
    /// Bytes of the request that were written.
    written: usize,
    answer: [u8; ANSWER_BYTES],
    /// Bytes of the answer that were read.
    read: usize,
}

/// An answer that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) status: u16,
    /// No other request goes over this connection.
    pub(super) closes: bool,
}

impl Connection {
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            written: 0,
            answer: [0; ANSWER_BYTES],
            read: 0,
        })
    }

    /// Begins with a request. Whether all of it was taken.
    pub(super) fn begin(&mut self, request: &[u8]) -> io::Result<bool> {
        self.written = 0;
        self.read = 0;
        self.go_on(request)
    }

    /// Goes on with the request.
    pub(super) fn go_on(&mut self, request: &[u8]) -> io::Result<bool> {
        loop {
            let rest = request.get(self.written..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(true);
            }
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => self.written += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what is there. `None`: the answer is not whole yet.
    pub(super) fn hear(&mut self) -> io::Result<Option<Whole>> {
        let room = self.answer.get_mut(self.read..).unwrap_or_default();
        match self.stream.read(room) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.read += read;
                whole(self.answer.get(..self.read).unwrap_or_default())
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn whole(bytes: &[u8]) -> io::Result<Option<Whole>> {
    let end = b"\r\n\r\n";
    let Some(head) = bytes.windows(end.len()).position(|four| four == end) else {
        return Ok(None);
    };
    let no_answer = || io::Error::from(ErrorKind::InvalidData);
    let text = bytes.get(..head).and_then(|head| str::from_utf8(head).ok());
    let mut lines = text.ok_or_else(no_answer)?.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok());
    let status = status.ok_or_else(no_answer)?;
    let (mut length, mut closes) = (None, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok();
        } else if name.eq_ignore_ascii_case("connection") {
            closes = value.trim().eq_ignore_ascii_case("close");
        }
    }
    // Every subject says the length; one that did not would be no subject for this sender.
    let length = length.ok_or_else(no_answer)?;
    let is_whole = bytes.len() >= head + end.len() + length;
    Ok(is_whole.then_some(Whole { status, closes }))
}

/// Fails when an answer is misread.
pub(super) fn check() {
    let text =
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno\n";
    for cut in 0..text.len() {
        let part = text.get(..cut).expect("shorter");
        assert_eq!(
            whole(part).expect("no error"),
            None,
            "{cut} bytes are not all"
        );
    }
    let found = whole(text).expect("no error").expect("all of it");
    assert_eq!((found.status, found.closes), (503, true), "read");
    assert!(whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "no length");
}
