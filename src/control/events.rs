//! `GET /v1/events`: what happened after a number, at once, when something does (long poll), or as it does (server-sent
//! events, with `Last-Event-ID`).
//!
//! A number is of one generation of the ledger: one that was given before the ledger was restored, or never, is answered 410 with
//! the one to go on after. A running daemon's ledger is never another one, so it is looked at once.
//!
//! Relies on [`super::feed`] for what is new and on [`super::stream`] for those who are told as it happens. Promises that no
//! event is left out or told twice to one that goes on after the last number it has.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderName};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::Inner;
use super::call::{self, Call};
use super::feed::{Follower, NoPlace};
use super::list::limit;
use super::negotiate::wants_stream;
use super::position::Position;
use super::problem::{bad, busy, gone};
use super::stream::stream;
use crate::answer::event;
use crate::answer::failure::Failure;
use crate::http::Response;
use crate::ledger::EventRow;

/// What a client gives that lost its connection.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Events in one answer, at most, and unless another number is given.
const MOST: u32 = 1_000;
const USUAL: u32 = 100;
/// How long an answer is held back for want of an event, at most, seconds.
pub(super) const LONGEST_WAIT_S: u64 = 300;
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    after: Option<String>,
    generation: Option<String>,
    order_id: Option<String>,
    limit: Option<String>,
    wait: Option<String>,
}

/// An answer, written as it is.
#[derive(Serialize)]
struct Shown<'a> {
    events: Vec<event::Shown<'a>>,
    next_after: i64,
    generation: i64,
}

/// Answers in the form the client wants.
pub(super) async fn run(inner: &Arc<Inner>, call: &Call) -> Result<Response, Failure> {
    let query: Query = call.query()?;
    let limit = limit(query.limit.as_deref(), USUAL, MOST)?;
    let wait = seconds(query.wait.as_deref(), "wait", 0)?;
    let is_stream = wants_stream(call.headers(&ACCEPT));
    let asked = Position::asked(query.after.as_deref(), query.generation.as_deref())?;
    // A client that lost its connection repeats its address as it was.
    let resumed = call.header(&LAST_EVENT_ID).filter(|_| is_stream);
    let asked = match resumed {
        Some(text) => Some(Position::of_id(text)?),
        None => asked,
    };
    let lineage = inner.parts.reader.lineage().await?;
    let after = match asked {
        Some(Position { generation, after }) => match lineage.go_on(generation, after) {
            Ok(()) => after,
            Err(restored) => return Ok(gone(after, restored)),
        },
        None => lineage.newest,
    };
    if is_stream {
        return Ok(stream(inner, (lineage.generation, after), query.order_id).await);
    }
    let order = query.order_id.as_deref();
    let (rows, next) = match wait_for(inner, order, (after, limit), wait).await? {
        Ok(found) => found,
        Err(no_place) => return Ok(busy(no_place)),
    };
    let shown = Shown {
        events: rows.iter().map(event::json).collect(),
        next_after: next,
        generation: lineage.generation,
    };
    Ok(call::json(StatusCode::OK, &shown))
}

/// A time in the query.
pub(super) fn seconds(text: Option<&str>, name: &str, usual: u64) -> Result<Duration, Failure> {
    let Some(text) = text else {
        return Ok(Duration::from_secs(usual));
    };
    let seconds = text.parse().ok().filter(|number| *number <= LONGEST_WAIT_S);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        bad(
            format!("`{name}` is {text:?}"),
            &format!("give whole seconds, at most {LONGEST_WAIT_S}"),
        )
    })
}

/// Events, and the number to go on after; or why nobody can be waited for.
type Waited = Result<(Vec<EventRow>, i64), NoPlace>;

/// Events after a number, as soon as there is one.
async fn wait_for(
    inner: &Inner,
    order: Option<&str>,
    (after, limit): (i64, u32),
    wait: Duration,
) -> Result<Waited, Failure> {
    let until = Instant::now() + wait;
    let reader = &inner.parts.reader;
    let mut follower = None;
    loop {
        let rows = reader.events(order, after, limit).await?;
        if let Some(last) = rows.last() {
            let next = last.seq;
            return Ok(Ok((rows, next)));
        }
        if Instant::now() >= until {
            return Ok(Ok((rows, after)));
        }
        let Some(place) = &mut follower else {
            // Looked at once more behind the joining: what came before it is nobody's to tell.
            match inner.feed.join().await {
                Ok(joined) => follower = Some(joined),
                Err(NoPlace::Stopping) => return Ok(Ok((rows, after))),
                // Not an empty answer, after which it would be asked again at once.
                Err(no_place @ (NoPlace::Full | NoPlace::NoRoom | NoPlace::Unread)) => {
                    return Ok(Err(no_place));
                }
            }
            continue;
        };
        let Follower { batches, .. } = place;
        loop {
            match timeout_at(until, batches.recv()).await {
                Ok(Ok(batch)) if !batch.is_about(order) => {}
                Ok(Err(RecvError::Closed)) => return Ok(Ok((Vec::new(), after))),
                Ok(Ok(_) | Err(RecvError::Lagged(_))) | Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::problem;

    #[test]
    fn times_are_read_or_refused() {
        assert_eq!(seconds(None, "wait", 7).ok(), Some(Duration::from_secs(7)));
        for text in ["", "-1", "301", "x"] {
            assert!(seconds(Some(text), "wait", 0).is_err(), "{text}");
        }
        let told = problem::response(&seconds(Some("x"), "wait", 0).expect_err("refused"));
        assert_eq!(told.status(), StatusCode::BAD_REQUEST);
    }
}
