//! The requests: one per invoice, built once. From one notification to the next only the status and the instant are
//! written over, in place.

use tilld::bench::Stocked;

use crate::notice::{BODY_BYTES, body, status, updated_at};

/// An invoice's notification, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    status_at: usize,
    instant_at: usize,
    /// The number of the notification that is next, which is how many were acknowledged.
    number: u64,
}

impl Request {
    /// The first notification of an invoice.
    pub(super) fn new(of: &Stocked, path: &str) -> Self {
        let mut text = format!(
            "POST {path}/{} HTTP/1.1\r\nHost: pay.example\r\nUser-Agent: service/1.0\r\nContent-Type: application/json\r\nAuthorization: Bearer {}\r\nContent-Length: {BODY_BYTES}\r\n\r\n",
            of.reference, of.token
        );
        let head = text.len();
        text.push_str(&body(of, 0));
        let behind = |key: &str| {
            let body = text.get(head..).expect("behind the head");
            head + body.find(key).expect("a body has it") + key.len()
        };
        Self {
            status_at: behind(r#""status":""#),
            instant_at: behind(r#""updatedAt":""#),
            bytes: text.into_bytes(),
            number: 0,
        }
    }

    /// What is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many of its notifications were acknowledged.
    pub(super) const fn acknowledged(&self) -> u64 {
        self.number
    }

    /// Its notification was acknowledged: the next one has another status and a later instant.
    pub(super) fn next(&mut self) {
        self.number += 1;
        self.write(self.status_at, status(self.number));
        self.write(self.instant_at, &updated_at(self.number));
    }

    fn write(&mut self, at: usize, text: &str) {
        let place = self.bytes.get_mut(at..at + text.len());
        place
            .expect("inside the body")
            .copy_from_slice(text.as_bytes());
    }
}

/// Fails when a request that was written over is not the one that would have been built.
pub(super) fn check(of: &Stocked) {
    let mut request = Request::new(of, "/n");
    for number in 0..3 {
        let sent = std::str::from_utf8(request.bytes()).expect("text");
        let (_head, sent) = sent.split_once("\r\n\r\n").expect("a head");
        assert_eq!(sent, body(of, number), "notification {number}");
        request.next();
    }
}
