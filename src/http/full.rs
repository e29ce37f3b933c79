//! Newcomers that find every connection taken, and none that makes room.
//!
//! Promises that such a one is answered and closed instead of left hanging, that no more than [`AT_ONCE`] are at any time, and
//! that none of them costs longer than [`WITHIN`]. What it sends is thrown away unread.

use std::io;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, timeout};

use super::Response;
use super::accept::Stream;
use crate::telemetry::LogRate;

/// Newcomers that are being turned away at once, at most; the others wait.
const AT_ONCE: usize = 32;
/// How long one has to take its answer and close.
const WITHIN: Duration = Duration::from_secs(1);
/// What one may send meanwhile, bytes.
const THROWN_AWAY: usize = 64 * 1024;
/// How often it is told.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// The turning away.
pub(super) struct Full {
    /// Since when no newcomer has found room.
    since: Option<Instant>,
    lines: LogRate,
    leaving: JoinSet<()>,
}

impl Default for Full {
    fn default() -> Self {
        Self {
            since: None,
            lines: LogRate::new(1, TELL_EVERY),
            leaving: JoinSet::new(),
        }
    }
}

impl Full {
    /// One found room.
    pub(super) fn ends(&mut self) {
        self.since = None;
    }

    /// One waits for room, as those before it did: when it is to be turned away, at the latest.
    pub(super) fn turns_away_at(&mut self, within: Duration) -> Instant {
        *self.since.get_or_insert_with(Instant::now) + within
    }

    /// Whether another one can be turned away.
    pub(super) fn has_hands(&self) -> bool {
        self.leaving.len() < AT_ONCE
    }

    /// One that was turned away has left; resolves only then.
    pub(super) async fn left(&mut self) {
        if self.leaving.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Answers a newcomer and closes.
    pub(super) fn turn_away<I: Stream>(&mut self, io: I, answer: Response) {
        if self.lines.turn(Instant::now().into_std()).is_some() {
            tracing::warn!("every connection is taken: newcomers are answered 503");
        }
        self.leaving.spawn(async move {
            // Whoever does not take it in time, or has left, misses it.
            drop(timeout(WITHIN, tell(io, answer)).await);
        });
    }
}

async fn tell<I: Stream>(mut io: I, answer: Response) -> io::Result<()> {
    io.write_all(&written(answer).await).await?;
    io.shutdown().await?;
    // A close with something unread would destroy the answer before it is read.
    let mut space = [0; 4096];
    let mut left = THROWN_AWAY;
    loop {
        match io.read(&mut space).await? {
            read if read == 0 || read >= left => return Ok(()),
            read => left -= read,
        }
    }
}

/// The answer as it goes over the wire.
async fn written(answer: Response) -> Vec<u8> {
    let (mut parts, body) = answer.into_parts();
    let body = match body.collect().await {
        Ok(whole) => whole.to_bytes(),
        Err(_never) => Bytes::new(),
    };
    let headers = &mut parts.headers;
    headers.insert(CONTENT_LENGTH, body.len().into());
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut bytes = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    for (name, value) in headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}
