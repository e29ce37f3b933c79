//! The corpus: bytes, and what must become of them.

use crate::harness::Issued;

/// The status that a hidden request would store.
pub(super) const STRANGER: &str = "stranger";

/// What must become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// 200: it is sound, and shows that the rest is refused for what is wrong with it.
    Accepted,
    /// Anything but 200.
    Refused,
    /// Neither is wrong by itself.
    Watched,
}

/// A request.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) fate: Fate,
    pub(super) bytes: Vec<u8>,
}

/// Makes requests about an invoice.
struct Maker<'a> {
    target: &'a str,
    invoice: &'a Issued,
    hidden: String,
    all: Vec<Case>,
}

/// All of them. `target` is the notification address of `invoice`; the hidden ones are about `stranger`.
pub(super) fn cases(target: &str, invoice: &Issued, stranger: &Issued) -> Vec<Case> {
    let body = stranger.saying(STRANGER, &stranger.at(1));
    let path = target.replace(&invoice.reference, &stranger.reference);
    let hidden = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut maker = Maker {
        target,
        invoice,
        hidden,
        all: Vec::new(),
    };
    maker.lengths();
    maker.encodings();
    maker.chunks();
    maker.heads();
    maker.watched();
    maker.all
}

impl Maker<'_> {
    /// An authentic body that no other case has.
    fn body(&self, fate: Fate) -> String {
        let (number, word) = (
            self.all.len(),
            if fate == Fate::Refused { "must" } else { "may" },
        );
        let at = self.invoice.at_us(number + 1);
        self.invoice.saying(&format!("{word}-{number}"), &at)
    }

    /// The head's beginning, with the token.
    fn begin(&self, line: &str) -> String {
        let token = &self.invoice.token;
        format!("{line}\r\nHost: x\r\nX-Notification-Token: {token}\r\n")
    }

    fn post(&self) -> String {
        format!("POST {} HTTP/1.1", self.target)
    }

    /// A request with these header lines, where `LENGTH` is the body's own, and with what follows the body.
    fn add(&mut self, name: &'static str, fate: Fate, headers: &str, after: &str) {
        let line = self.post();
        self.with_line(name, fate, &line, headers, after);
    }

    fn with_line(
        &mut self,
        name: &'static str,
        fate: Fate,
        line: &str,
        headers: &str,
        after: &str,
    ) {
        let body = self.body(fate);
        let headers = headers.replace("LENGTH", &body.len().to_string());
        let headers = headers.replace("HEX", &format!("{:x}", body.len()));
        let text = format!("{}{headers}\r\n{body}{after}", self.begin(line));
        self.push(name, fate, text);
    }

    /// A request whose body is in chunks, made by `frame` of the body.
    fn chunked(
        &mut self,
        name: &'static str,
        fate: Fate,
        headers: &str,
        frame: impl Fn(&str) -> String,
    ) {
        let (line, body) = (self.post(), self.body(fate));
        let headers = headers.replace("LENGTH", &body.len().to_string());
        let text = format!("{}{headers}\r\n{}", self.begin(&line), frame(&body));
        self.push(name, fate, text);
    }

    fn push(&mut self, name: &'static str, fate: Fate, text: String) {
        let bytes = text.into_bytes();
        self.all.push(Case { name, fate, bytes });
    }

    fn lengths(&mut self) {
        let refused = Fate::Refused;
        self.add("a length", Fate::Accepted, "Content-Length: LENGTH\r\n", "");
        let twice = "Content-Length: 1\r\nContent-Length: LENGTH\r\n";
        self.add("two lengths", refused, twice, "");
        self.add(
            "a list of lengths",
            refused,
            "Content-Length: 1, LENGTH\r\n",
            "",
        );
        self.add(
            "a length with a plus",
            refused,
            "Content-Length: +LENGTH\r\n",
            "",
        );
        self.add("a length below zero", refused, "Content-Length: -1\r\n", "");
        self.add("a length in hex", refused, "Content-Length: 0xHEX\r\n", "");
        let huge = "Content-Length: 18446744073709551616\r\n";
        self.add("a length of 2^64", refused, huge, "");
        self.add("an empty length", refused, "Content-Length: \r\n", "");
        self.add(
            "a blank before the colon",
            refused,
            "Content-Length : LENGTH\r\n",
            "",
        );
    }

    fn encodings(&mut self) {
        let refused = Fate::Refused;
        let hidden = self.hidden.clone();
        let both = "Content-Length: LENGTH\r\nTransfer-Encoding: chunked\r\n";
        self.chunked("both, the length first", refused, both, |_body| {
            format!("0\r\n\r\n{hidden}")
        });
        let both = "Transfer-Encoding: chunked\r\nContent-Length: LENGTH\r\n";
        self.chunked("both, the chunks first", refused, both, chunk);
        let both = "Transfer-Encoding:\tchunked\r\nContent-Length: LENGTH\r\n";
        self.chunked("both, behind a tab", refused, both, chunk);
        self.chunked(
            "an unknown encoding",
            refused,
            "Transfer-Encoding: xchunked\r\n",
            chunk,
        );
        let last = "Transfer-Encoding: chunked, identity\r\n";
        self.chunked("chunks not last", refused, last, chunk);
        let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n";
        self.chunked("two encodings", refused, twice, chunk);
        let body = self.body(refused);
        let old = format!("POST {} HTTP/1.0", self.target);
        let text = format!(
            "{}Transfer-Encoding: chunked\r\n\r\n{}",
            self.begin(&old),
            chunk(&body)
        );
        self.push("chunks in HTTP/1.0", refused, text);
        let folded = "X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: LENGTH\r\n";
        self.add("a folded line", refused, folded, "");
    }

    fn chunks(&mut self) {
        let (refused, plain) = (Fate::Refused, "Transfer-Encoding: chunked\r\n");
        self.chunked("chunks", Fate::Accepted, plain, chunk);
        self.chunked("a chunk of 2^68", refused, plain, |body| {
            format!("FFFFFFFFFFFFFFFFF\r\n{body}\r\n0\r\n\r\n")
        });
        self.chunked("a chunk without its end", refused, plain, |body| {
            format!("{:x}\r\n{body}x\r\n0\r\n\r\n", body.len())
        });
        self.chunked("a long extension", Fate::Watched, plain, |body| {
            format!(
                "{:x};{}\r\n{body}\r\n0\r\n\r\n",
                body.len(),
                "a".repeat(20_000)
            )
        });
        self.chunked("chunks with bare LF", Fate::Watched, plain, |body| {
            format!("{:x}\n{body}\n0\n\n", body.len())
        });
        self.chunked("a trailer with a token", Fate::Watched, plain, |body| {
            format!(
                "{:x}\r\n{body}\r\n0\r\nX-Notification-Token: z\r\n\r\n",
                body.len()
            )
        });
    }

    fn heads(&mut self) {
        let refused = Fate::Refused;
        let length = "Content-Length: LENGTH\r\n";
        self.add("a bare CR", refused, &format!("X-A: a\rb\r\n{length}"), "");
        self.add("a NUL", refused, &format!("X-A: a\0b\r\n{length}"), "");
        let body = self.body(refused);
        let text = format!(
            "{}\r\nX-Notification-Token: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.post(),
            self.invoice.token,
            body.len()
        );
        self.push("no host", refused, text);
        self.add("two hosts", refused, &format!("Host: y\r\n{length}"), "");
        let token = format!("X-Notification-Token: wrong\r\n{length}");
        self.add("two tokens", refused, &token, "");
    }

    fn watched(&mut self) {
        let (watched, length) = (Fate::Watched, "Content-Length: LENGTH\r\n");
        let path = self.target.to_owned();
        let hidden = self.hidden.clone();
        let absolute = format!("POST http://evil{path} HTTP/1.1");
        let lines = [
            ("an absolute address", absolute),
            ("a small method", format!("post {path} HTTP/1.1")),
            ("HTTP/1.2", format!("POST {path} HTTP/1.2")),
            (
                "a long path",
                format!("POST {path}{} HTTP/1.1", "a".repeat(9_000)),
            ),
            (
                "a dotted path",
                format!("POST {path}/..%2f..%2fetc HTTP/1.1"),
            ),
            ("a NUL in the path", format!("POST {path}%00 HTTP/1.1")),
        ];
        for (name, line) in &lines {
            self.with_line(name, watched, line, length, "");
        }
        let get = format!("GET {path} HTTP/1.1");
        let body = format!("Content-Length: {}\r\n", hidden.len());
        let text = format!("{}{body}\r\n{hidden}", self.begin(&get));
        self.push("a GET with a request as its body", watched, text);
        let body = self.body(watched);
        let head = format!(
            "{}Content-Length: {}\r\n\r\n",
            self.begin(&self.post()),
            body.len()
        );
        self.push("bare LF", watched, head.replace("\r\n", "\n") + &body);
        self.add("a request behind it", watched, length, &hidden);
        self.add(
            "Expect",
            watched,
            &format!("Expect: 100-continue\r\n{length}"),
            "",
        );
        let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n";
        self.add("an upgrade", watched, &format!("{upgrade}{length}"), "");
        let headers: Vec<String> = (0..200)
            .map(|number| format!("X-{number}: 1\r\n"))
            .collect();
        let headers = headers.concat();
        self.add("200 headers", watched, &format!("{headers}{length}"), "");
        let long = format!("X-B: {}\r\n{length}", "b".repeat(65_000));
        self.add("a header of 64 KiB", watched, &long, "");
        self.push(
            "HTTP/2",
            watched,
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        );
        let bytes = [
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
            &[0; 64],
        ]
        .concat();
        let name = "a TLS hello";
        self.all.push(Case {
            name,
            fate: watched,
            bytes,
        });
        let bytes = [b"\xff\xfe\x00".repeat(100), b"\r\n\r\n".to_vec()].concat();
        let name = "junk";
        self.all.push(Case {
            name,
            fate: watched,
            bytes,
        });
    }
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}
