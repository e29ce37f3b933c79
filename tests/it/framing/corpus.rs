//! Requests that two readers could understand differently, and some whose reading was decided. Each is beyond doubt but for
//! its framing: the token and the body are an authentic notification's, so that whatever is let through is stored.

use crate::harness::{Issued, World};

/// One request, as bytes.
pub(crate) struct Case {
    /// What is odd about it.
    pub(crate) name: &'static str,
    /// All that is sent.
    pub(crate) bytes: Vec<u8>,
    /// What it is answered by tilld itself: a status for each answer.
    pub(crate) answers: &'static [u16],
    /// It may be stored: it can be read in one way only.
    pub(crate) is_clear: bool,
}

/// What the cases are made of.
struct Parts<'a> {
    target: String,
    token: &'a str,
    body: String,
    /// What would be a request of its own to a reader that takes another end than we do.
    inner: &'a str,
}

/// All cases, notifications of `known`. Some carry the request `inner` behind them.
pub(crate) fn corpus(known: &Issued, inner: &str) -> Vec<Case> {
    let parts = Parts {
        target: World::target(&known.reference),
        token: &known.token,
        body: known.object.to_string(),
        inner,
    };
    let mut cases = parts.lengths();
    cases.extend(parts.codings());
    cases.extend(parts.lines());
    cases.extend(parts.decided());
    cases.extend(parts.outsized());
    cases
}

impl Parts<'_> {
    fn head(&self, line: &str, headers: &str) -> String {
        let token = self.token;
        format!(
            "{line}\r\nHost: shop.example\r\nX-Notification-Token: {token}\r\nContent-Type: application/json\r\n{headers}\r\n"
        )
    }

    fn post(&self, headers: &str, rest: &str) -> Vec<u8> {
        let line = format!("POST {} HTTP/1.1", self.target);
        [self.head(&line, headers).as_str(), rest]
            .concat()
            .into_bytes()
    }

    fn sized(&self) -> String {
        format!("Content-Length: {}\r\n", self.body.len())
    }

    fn chunked(&self) -> String {
        format!("{:x}\r\n{}\r\n0\r\n\r\n", self.body.len(), self.body)
    }

    /// More than one length, or one that is no number.
    fn lengths(&self) -> Vec<Case> {
        let length = self.body.len();
        let both = self.chunked() + self.inner;
        let refused = |name, headers: String, rest: &str| refused(name, self.post(&headers, rest));
        let body = &self.body;
        vec![
            refused(
                "CL.TE",
                format!(
                    "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n",
                    both.len()
                ),
                &both,
            ),
            refused(
                "TE.CL",
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n".to_owned(),
                &both,
            ),
            refused(
                "TE tab",
                format!("Transfer-Encoding:\tchunked\r\nContent-Length: {length}\r\n"),
                &both,
            ),
            refused(
                "two CL that differ",
                format!(
                    "Content-Length: {length}\r\nContent-Length: {}\r\n",
                    length + 5
                ),
                body,
            ),
            refused(
                "CL list",
                format!("Content-Length: {length}, {length}\r\n"),
                body,
            ),
            refused("CL +", format!("Content-Length: +{length}\r\n"), body),
            refused("CL -", format!("Content-Length: -{length}\r\n"), body),
            refused("CL hex", format!("Content-Length: 0x{length:x}\r\n"), body),
            refused(
                "CL 2^64",
                "Content-Length: 18446744073709551616\r\n".to_owned(),
                body,
            ),
            refused("CL empty", "Content-Length: \r\n".to_owned(), body),
            refused(
                "CL blank before colon",
                format!("Content-Length : {length}\r\n"),
                body,
            ),
            // Not of the list, and refused as what nobody needs to send.
            refused(
                "two CL alike",
                format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"),
                body,
            ),
        ]
    }

    /// Transfer codings that are none, and chunks that are not whole.
    fn codings(&self) -> Vec<Case> {
        let (length, body, chunked) = (self.body.len(), &self.body, self.chunked());
        let coded = |name, codings: &str, rest: &str| {
            refused(
                name,
                self.post(&format!("Transfer-Encoding: {codings}\r\n"), rest),
            )
        };
        let old = format!("POST {} HTTP/1.0", self.target);
        let old = self.head(&old, "Transfer-Encoding: chunked\r\n") + &chunked;
        vec![
            coded("TE xchunked", "xchunked", &chunked),
            coded("TE chunked, identity", "chunked, identity", &chunked),
            coded("two TE", "chunked\r\nTransfer-Encoding: identity", &chunked),
            coded("TE gzip, chunked", "gzip, chunked", &chunked),
            refused("TE on HTTP/1.0", old.into_bytes()),
            coded(
                "chunk size beyond 64 bits",
                "chunked",
                &format!("FFFFFFFFFFFFFFFFF\r\n{body}\r\n0\r\n\r\n"),
            ),
            coded(
                "chunk without its end",
                "chunked",
                &format!("{length:x}\r\n{body}x\r\n0\r\n\r\n"),
            ),
            coded(
                "chunk extension of 20 kB",
                "chunked",
                &format!("{length:x};{}\r\n{body}\r\n0\r\n\r\n", "a".repeat(20_000)),
            ),
            coded(
                "chunks with bare LF",
                "chunked",
                &format!("{length:x}\n{body}\n0\n\n"),
            ),
        ]
    }

    /// Lines and values that are torn, missing or there twice.
    fn lines(&self) -> Vec<Case> {
        let (sized, body, target, token) = (self.sized(), &self.body, &self.target, self.token);
        let odd =
            |name, headers: &str| refused(name, self.post(&format!("{headers}{sized}"), body));
        let without_host =
            format!("POST {target} HTTP/1.1\r\nX-Notification-Token: {token}\r\n{sized}\r\n{body}");
        let bare = String::from_utf8(self.post(&sized, "")).expect("text");
        vec![
            odd("obs-fold", "X-A: b\r\n Transfer-Encoding: chunked\r\n"),
            odd("bare CR in a value", "X-A: a\rb\r\n"),
            odd("NUL in a value", "X-A: a\0b\r\n"),
            odd("two Hosts", "Host: other.example\r\n"),
            refused("no Host", without_host.into_bytes()),
            refused(
                "bare LF",
                [&bare.replace("\r\n", "\n"), body.as_str()]
                    .concat()
                    .into_bytes(),
            ),
            Case {
                answers: &[401],
                ..odd("two tokens", "X-Notification-Token: wrong\r\n")
            },
        ]
    }

    /// What can be read in one way, and how that is.
    fn decided(&self) -> Vec<Case> {
        let (sized, body, target) = (self.sized(), &self.body, &self.target);
        let line = |name, line: &str, answers, is_clear| Case {
            name,
            bytes: (self.head(line, &sized) + body).into_bytes(),
            answers,
            is_clear,
        };
        let with = |name, headers: &str, answers| Case {
            name,
            bytes: self.post(&format!("{headers}{sized}"), body),
            answers,
            is_clear: true,
        };
        let trailed = format!(
            "{:x}\r\n{body}\r\n0\r\nX-Notification-Token: wrong\r\n\r\n",
            body.len()
        );
        let inner = self.inner;
        let looked = format!("GET {target} HTTP/1.1");
        let looked = self.head(&looked, &format!("Content-Length: {}\r\n", inner.len())) + inner;
        let twice = [self.post(&sized, body), self.post(&sized, body)].concat();
        vec![
            // A trailer is read by nobody: what counts stands in the head.
            Case {
                name: "a token in the trailer",
                bytes: self.post("Transfer-Encoding: chunked\r\n", &trailed),
                answers: &[200],
                is_clear: true,
            },
            // RFC 9112 3.2.2: the host in it is the one that counts, and this one is not the configured one.
            line(
                "absolute form of another host",
                &format!("POST http://other.example{target} HTTP/1.1"),
                &[404],
                false,
            ),
            // A fragment never leaves its sender (RFC 9110 4.2.5): no reader agrees with another on what is asked for.
            line(
                "fragment",
                &format!("POST {target}#x HTTP/1.1"),
                &[400],
                false,
            ),
            line(
                "method in lower case",
                &format!("post {target} HTTP/1.1"),
                &[405],
                false,
            ),
            line(
                "HTTP/1.2",
                &format!("POST {target} HTTP/1.2"),
                &[400],
                false,
            ),
            line(
                "path with ..",
                &format!("POST {target}%2f..%2fx HTTP/1.1"),
                &[401],
                false,
            ),
            line(
                "path with NUL",
                &format!("POST {target}%00 HTTP/1.1"),
                &[401],
                false,
            ),
            with("Expect", "Expect: 100-continue\r\n", &[100, 200]),
            with(
                "Upgrade to h2c",
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
                &[200],
            ),
            // A body of a look is thrown away, and is no request.
            Case {
                name: "GET with a request as its body",
                bytes: looked.into_bytes(),
                answers: &[200],
                is_clear: true,
            },
            Case {
                name: "two in one go",
                bytes: twice,
                answers: &[200, 200],
                is_clear: true,
            },
        ]
    }

    /// What is too large, or something else altogether.
    fn outsized(&self) -> Vec<Case> {
        let (sized, body) = (self.sized(), &self.body);
        let long = format!("POST {}{} HTTP/1.1", self.target, "a".repeat(9_000));
        let many = "X-Many: 1\r\n".repeat(200);
        let large = |name, headers: &str| Case {
            answers: &[431],
            ..refused(name, self.post(&format!("{headers}{sized}"), body))
        };
        let mut hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec();
        hello.extend([0; 64]);
        vec![
            Case {
                name: "path of 9 kB",
                bytes: (self.head(&long, &sized) + body).into_bytes(),
                answers: &[401],
                is_clear: false,
            },
            large(
                "header of 64 kB",
                &format!("X-B: {}\r\n", "b".repeat(65_000)),
            ),
            large("200 headers", &many),
            // The connection is closed: nobody speaks this here, and an answer would be none in it.
            Case {
                answers: &[],
                ..refused(
                    "HTTP/2 preface",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
                )
            },
            refused("TLS on a plain port", hello),
            refused(
                "junk",
                [b"\xff\xfe\x00".repeat(100), b"\r\n\r\n".to_vec()].concat(),
            ),
        ]
    }
}

fn refused(name: &'static str, bytes: Vec<u8>) -> Case {
    Case {
        name,
        bytes,
        answers: &[400],
        is_clear: false,
    }
}
