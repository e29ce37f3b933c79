//! Events as they happen: one client that follows, out of the ledger first and then out of the feed.
//!
//! Relies on [`super::feed`] for what is new and on [`crate::http`] for the client's time to read. Promises that one that reads
//! is told everything, however far it lies behind: what the feed no longer has it is told out of the ledger, page by page;
//! and that one that does not read delays nobody and is cut off: when 64 pieces wait for it, when a page out of the ledger finds
//! no room among them within [`PAGE_WITHIN`], or when what it was sent has lain unread for `Limits::write_time` (10 s). The last
//! is looked at with a piece, and some 4.5 KiB unread are passed over then, into which six or seven short pieces fit: one that
//! never reads is cut off after two minutes though nothing happens but [`BEAT`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, interval_at, timeout};

use super::Inner;
use super::feed::{Batch, Follower, PAGE};
use super::problem::busy;
use crate::http::{Flow, NotTaken, Pieces, Response, flowing};
use crate::ledger::{EventRow, ReadError, Reader};
use crate::panics::contained;

/// What server-sent events are called.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// How often a client is written to, so that one that is gone is noticed.
const BEAT_EVERY: Duration = Duration::from_secs(15);
/// How long a page out of the ledger waits for a client that does not read.
const PAGE_WITHIN: Duration = Duration::from_secs(10);
/// When a client that lost its connection comes back, milliseconds.
const RETRY_MS: u32 = 2_000;
/// A comment, which clients pass over.
const BEAT: &str = ": tilld\n\n";

impl Batch {
    /// Whether there is one of this order, or of any.
    pub(super) fn is_about(&self, order: Option<&str>) -> bool {
        order.is_none_or(|order| self.events.iter().any(|told| told.order_id == order))
    }

    /// Those after a number and of this order as text; empty when there are none.
    fn text_after(&self, after: i64, order: Option<&str>) -> Bytes {
        let first = self.events.first().map_or(0, |told| told.seq);
        if order.is_none() && first > after {
            return self.text.clone();
        }
        let wanted = self
            .events
            .iter()
            .filter(|told| told.seq > after && order.is_none_or(|order| told.order_id == order));
        let texts: Vec<&str> = wanted.map(|told| told.text.as_str()).collect();
        texts.concat().into()
    }
}

/// Follows, for one client.
pub(super) async fn stream(
    inner: &Arc<Inner>,
    (generation, after): (i64, i64),
    order: Option<String>,
) -> Response {
    let follower = match inner.feed.join().await {
        Ok(follower) => follower,
        Err(no_place) => return busy(no_place),
    };
    let (pieces, flow) = Flow::new();
    let own = Arc::clone(inner);
    // It ends when the client is gone or does not read, and with the feed.
    drop(inner.under_way.spawn(contained(Box::pin(async move {
        let following = Following {
            pieces,
            generation,
            after,
            order,
        };
        following.run(&own.parts.reader, follower).await;
    }))));
    let mut response = flowing(flow, EVENT_STREAM);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Where what was before is read.
trait Source: Sync {
    /// The first page of events after a number.
    fn page(
        &self,
        order: Option<&str>,
        after: i64,
    ) -> impl Future<Output = Result<Vec<EventRow>, ReadError>> + Send;
}

impl Source for Reader {
    async fn page(&self, order: Option<&str>, after: i64) -> Result<Vec<EventRow>, ReadError> {
        self.events(order, after, PAGE).await
    }
}

/// One client that is told as it happens.
struct Following {
    pieces: Pieces,
    generation: i64,
    after: i64,
    order: Option<String>,
}

impl Following {
    async fn run(mut self, source: &impl Source, mut follower: Follower) {
        // Its first bytes say that it is heard, and where it stands: one that comes back before anything was told to it goes
        // on from there.
        let (generation, after) = (self.generation, self.after);
        let first = format!("id: {generation}.{after}\nretry: {RETRY_MS}\n\n");
        if !self.catch_up(source, first.into()).await {
            return;
        }
        let mut beat = interval_at(Instant::now() + BEAT_EVERY, BEAT_EVERY);
        loop {
            let piece = tokio::select! {
                () = self.pieces.gone() => return,
                _ = beat.tick() => Bytes::from_static(BEAT.as_bytes()),
                heard = follower.batches.recv() => match heard {
                    Ok(batch) => self.take(&batch),
                    // Its catching up took long, or much came at once: what it missed is in the ledger.
                    Err(RecvError::Lagged(_)) => {
                        if !self.catch_up(source, Bytes::new()).await {
                            return;
                        }
                        continue;
                    }
                    Err(RecvError::Closed) => return,
                },
            };
            if piece.is_empty() {
                continue;
            }
            match self.pieces.offer(piece) {
                Ok(()) => {}
                Err(NotTaken::Lags) => return cut_off("as many pieces wait for it as may"),
                Err(NotTaken::Gone) => return,
            }
        }
    }

    fn take(&mut self, batch: &Batch) -> Bytes {
        let text = batch.text_after(self.after, self.order.as_deref());
        if let Some(last) = batch.events.last() {
            self.after = self.after.max(last.seq);
        }
        text
    }

    /// Tells what the ledger has, page by page, behind what is to come first. False when the client is gone or does not read.
    async fn catch_up(&mut self, source: &impl Source, first: Bytes) -> bool {
        let mut next = first;
        loop {
            let given = async { next.is_empty() || self.pieces.give(next).await };
            match timeout(PAGE_WITHIN, given).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_elapsed) => {
                    cut_off("a page was not taken in time");
                    return false;
                }
            }
            let read = source.page(self.order.as_deref(), self.after);
            let rows = match read.await {
                Ok(rows) if rows.is_empty() => return true,
                Ok(rows) => rows,
                Err(error) => {
                    tracing::warn!(reason = %error, "a follower of events was cut off: {error}");
                    return false;
                }
            };
            let batch = Batch::new(&rows, self.generation);
            next = self.take(&batch);
        }
    }
}

/// It asks again with the number of the last event it has.
fn cut_off(why: &str) {
    tracing::info!("a follower of events that did not read was cut off: {why}");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt as _;
    use tokio::sync::{Semaphore, broadcast};

    use super::*;
    use crate::invoice::event::EventKind;
    use crate::invoice::status::Outcome;
    use crate::ledger::InvoiceKey;

    /// Six events, none of which was there at the first look.
    #[derive(Default)]
    struct Six(AtomicBool);

    impl Source for Six {
        async fn page(&self, _order: Option<&str>, after: i64) -> Result<Vec<EventRow>, ReadError> {
            let looked_before = self.0.swap(true, Ordering::SeqCst);
            let last = if looked_before { 6 } else { 0 };
            Ok((after + 1..=last).map(row).collect())
        }
    }

    fn row(seq: i64) -> EventRow {
        EventRow {
            seq,
            event_id: String::new(),
            invoice: InvoiceKey(1),
            order_id: "1".to_owned(),
            kind: EventKind::Status,
            rewound: false,
            status: None,
            previous_status: None,
            outcome: Outcome::Open,
            previous_outcome: Outcome::Open,
            order_outcome: Outcome::Open,
            source: None,
            at_ms: 0,
            amount_reported: None,
            currency_reported: None,
            raw: None,
        }
    }

    /// The feed keeps two batches here, and six come while the follower has no time.
    #[tokio::test]
    async fn what_the_feed_no_longer_has_is_told_out_of_the_ledger() {
        let (feed, batches) = broadcast::channel(2);
        let places = Arc::new(Semaphore::new(1));
        let follower = Follower::new(batches, places.try_acquire_owned().expect("free"));
        for seq in 1..=6 {
            drop(feed.send(Arc::new(Batch::new(&[row(seq)], 3))));
        }
        drop(feed);
        let (pieces, flow) = Flow::new();
        let following = Following {
            pieces,
            generation: 3,
            after: 0,
            order: None,
        };
        following.run(&Six::default(), follower).await;
        let body = crate::http::Answer::Flowing(flow);
        let text = body.collect().await.expect("it ends").to_bytes();
        let text = String::from_utf8(text.to_vec()).expect("UTF-8");
        let ids: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("id: "))
            .collect();
        // The first is where it stood, with nothing told yet.
        assert_eq!(
            ids,
            ["3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6"],
            "{text}"
        );
    }
}
