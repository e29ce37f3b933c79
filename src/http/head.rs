//! Where a request's head ends and what it says of its body's length, read off the bytes themselves. Pure.
//!
//! hyper decides between two ways to tell a length, then hands over the one it took: with `Transfer-Encoding` beside
//! `Content-Length` the pair cannot be seen any more. A reader in front that took the other one would see other requests on
//! the same connection than we do (RFC 9112 6.3), so whoever judges needs what was there. Promises to know where each head
//! begins: the one before said how long its body is, or else is the connection's last.

use memchr::memchr;

/// What a head says, as far as two readers could differ over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Lines that name `Content-Length` or `Transfer-Encoding`.
    pub(super) lengths: usize,
    /// A line ended without a carriage return, which some take for an end and some do not (RFC 9112 2.2), or no end was
    /// found where hyper found one.
    pub(super) is_ragged: bool,
    /// The target has a fragment, which no target may have (RFC 9112 3.2) and hyper cuts off.
    pub(super) has_fragment: bool,
}

/// How a request says that its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// After so many bytes; 0 without a body.
    Known(u64),
    /// By itself.
    Chunked,
}

/// What one connection has received, as far as it belongs to a head.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// Begins where a head does.
    bytes: Vec<u8>,
    /// Bytes of a body that come before the next head.
    body: u64,
    /// A body came whose end only hyper knows: the connection ends with its answer, and no head follows.
    is_over: bool,
}

impl Heads {
    /// Bytes came in.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        if self.is_over {
            return;
        }
        let of_body = usize::try_from(self.body)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.body -= u64::try_from(of_body).unwrap_or_default();
        let (_body, head) = bytes.split_at(of_body);
        self.bytes.extend_from_slice(head);
    }

    /// Something of a head has come that is not complete.
    pub(super) const fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// More of a body may come before the next head.
    pub(super) const fn is_body_to_come(&self) -> bool {
        self.body > 0 || self.is_over
    }

    /// A head is complete, and this is how hyper will find the end of its body.
    pub(super) fn complete(&mut self, length: Length) -> Told {
        // Given back: a connection holds a head's bytes only while it comes.
        let bytes = std::mem::take(&mut self.bytes);
        let Some((end, told)) = read(&bytes) else {
            self.is_over = true;
            return Told {
                is_ragged: true,
                ..Told::default()
            };
        };
        match length {
            Length::Chunked => self.is_over = true,
            Length::Known(length) => {
                self.body = length;
                let (_head, behind) = bytes.split_at(end);
                self.received(behind);
            }
        }
        told
    }
}

/// Where the head ends that these bytes begin with, and what it says; `None` when its end is not among them.
fn read(bytes: &[u8]) -> Option<(usize, Told)> {
    // Empty lines in front of a request are passed over (RFC 9112 2.2), by hyper too.
    let begin = bytes
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let mut told = Told::default();
    let (_empty, mut rest) = bytes.split_at(begin);
    let mut is_first = true;
    while let Some(at) = memchr(b'\n', rest) {
        let (line, behind) = rest.split_at(at);
        rest = behind.get(1..).unwrap_or_default();
        if std::mem::take(&mut is_first) {
            told.has_fragment = memchr(b'#', line).is_some();
        }
        let Some(line) = line.strip_suffix(b"\r") else {
            told.is_ragged = true;
            if line.is_empty() {
                break;
            }
            continue;
        };
        if line.is_empty() {
            return Some((bytes.len() - rest.len(), told));
        }
        told.lengths += usize::from(tells_a_length(line));
    }
    told.is_ragged.then_some((bytes.len() - rest.len(), told))
}

fn tells_a_length(line: &[u8]) -> bool {
    let is_named = |name: &[u8]| {
        line.get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    };
    match line.first() {
        Some(b'c' | b'C') => is_named(b"content-length"),
        Some(b't' | b'T') => is_named(b"transfer-encoding"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    fn sized(length: usize) -> String {
        format!("POST / HTTP/1.1\r\nHost: a\r\ncontent-length: {length}\r\n\r\n")
    }

    fn told(lengths: usize, is_ragged: bool) -> Told {
        Told {
            lengths,
            is_ragged,
            has_fragment: false,
        }
    }

    #[test]
    fn a_fragment_is_seen_in_the_first_line_alone() {
        for (line, has_fragment) in [
            ("\r\nPOST /n/ref#x HTTP/1.1", true),
            ("POST http://a/n?b#c HTTP/1.1", true),
            ("POST /n/ref HTTP/1.1", false),
        ] {
            let head = format!("{line}\r\nHost: a\r\nReferer: /a#b\r\n\r\n");
            let (_end, seen) = read(head.as_bytes()).expect("an end");
            let wanted = Told {
                has_fragment,
                ..Told::default()
            };
            assert_eq!(seen, wanted, "{line}");
        }
    }

    #[test]
    fn both_lengths_are_seen_whichever_comes_first() {
        for (lines, lengths) in [
            ("", 0),
            ("Content-Length: 1\r\n", 1),
            ("CONTENT-LENGTH:1\r\n", 1),
            ("Content-Length: 1\r\nContent-Length: 1\r\n", 2),
            ("Transfer-Encoding: chunked\r\ncontent-length: 1\r\n", 2),
            (
                "content-length: 1\r\nX: y\r\ntransfer-encoding:\tchunked\r\n",
                2,
            ),
            (
                "X-Content-Length: 1\r\nX: Transfer-Encoding: chunked\r\n",
                0,
            ),
        ] {
            let head = format!("POST / HTTP/1.1\r\n{lines}\r\nContent-Length: 5\r\n\r\n");
            let (end, seen) = read(head.as_bytes()).expect("an end");
            assert_eq!(seen, told(lengths, false), "{lines}");
            assert_eq!(end, 17 + lines.len() + 2, "{lines}");
        }
    }

    #[test]
    fn a_line_without_a_carriage_return_is_ragged() {
        for head in [
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
        ] {
            let seen = read(head.as_bytes()).expect("an end");
            assert_eq!(seen, (head.len(), told(0, true)), "{head:?}");
        }
        assert_eq!(read(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(read(b"\r\n\r\n"), None);
    }

    /// However the bytes are cut: pieces of each size from one byte to all at once.
    #[test]
    fn each_head_is_read_from_its_own_beginning() {
        let second = format!("\r\n{CHUNKED}");
        let first = sized(9);
        let all = [first.as_str(), "a\r\n\r\nb\r\nc", &second].concat();
        let body_at = first.len() + 9;
        for size in 1..=all.len() {
            let mut heads = Heads::default();
            let (mut begun, mut seen) = (0, 0);
            for piece in all.as_bytes().chunks(size) {
                heads.received(piece);
                seen += piece.len();
                if begun == 0 && seen >= first.len() {
                    begun = 1;
                    assert_eq!(heads.complete(Length::Known(9)), told(1, false), "{size}");
                }
            }
            assert!(body_at < seen);
            assert_eq!(heads.complete(Length::Chunked), told(1, false), "{size}");
            heads.received(b"rest");
            assert!(heads.bytes.is_empty() && heads.is_over);
            // What cannot be known is told as what may not be.
            assert!(heads.complete(Length::Known(0)).is_ragged);
        }
    }
}
