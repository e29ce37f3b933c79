//! What is new, read once and handed to all who follow.
//!
//! Relies on a ring after each commit that holds an event; a commit of another process rings nothing and is heard after
//! [`LOOK_EVERY`], as after a ring that was lost. Promises that whoever joined gets every event committed from then on, in
//! order, or is told that it lags; that nothing is read while nobody follows; and that whoever does not keep up delays nobody:
//! the reading never waits for a follower, and [`BATCHES`] batches of at most [`PAGE`] events are kept once for all of them. A
//! follower that is further behind is told so and asks the ledger itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::position::Position;
use crate::answer::event;
use crate::ledger::{EventRow, ReadError, Reader};
use crate::shutdown::Shutdown;
use crate::telemetry::visible_json;
use crate::wake::Wake;

use super::room::{Room, Seat};

/// Events in one batch, at most.
pub(super) const PAGE: u32 = 200;
/// Batches that are kept for followers who are not through with what came before.
const BATCHES: usize = 32;
/// How often it is looked what nobody rang for: a command of a person, a ring that was lost. One search in an index, and
/// only while somebody follows.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events that were committed one after the other.
#[derive(Debug)]
pub(super) struct Batch {
    /// Oldest first, never none.
    pub(super) events: Vec<Told>,
    /// All of them as server-sent events.
    pub(super) text: Bytes,
}

/// One event.
#[derive(Debug)]
pub(super) struct Told {
    /// Its number.
    pub(super) seq: i64,
    /// The merchant's order.
    pub(super) order_id: String,
    /// It as a server-sent event.
    pub(super) text: String,
}

impl Told {
    pub(super) fn new(row: &EventRow, generation: i64) -> Self {
        let json = visible_json(&event::json(row));
        Self {
            seq: row.seq,
            order_id: row.order_id.clone(),
            text: format!(
                "id: {}\nevent: {}\ndata: {json}\n\n",
                Position::text(generation, row.seq),
                row.kind.as_str()
            ),
        }
    }
}

impl Batch {
    /// Of rows of a ledger of this generation; there is one at least.
    pub(super) fn new(rows: &[EventRow], generation: i64) -> Self {
        let told = rows.iter().map(|row| Told::new(row, generation));
        let events: Vec<Told> = told.collect();
        let texts: Vec<&str> = events.iter().map(|told| told.text.as_str()).collect();
        let text = texts.concat().into();
        Self { events, text }
    }
}

/// Told the follower's end of the batches; dropped when there is nothing to follow.
type Joining = oneshot::Sender<broadcast::Receiver<Arc<Batch>>>;

/// The feed. Its reading ends with the wish to stop, and with it all who follow.
pub(super) struct Feed {
    joins: mpsc::Sender<Joining>,
    places: Arc<Semaphore>,
    room: Room,
}

/// A follower's place.
pub(super) struct Follower {
    /// What is committed from now on.
    pub(super) batches: broadcast::Receiver<Arc<Batch>>,
    _place: OwnedSemaphorePermit,
    _seat: Option<Seat>,
}

impl Follower {
    pub(super) const fn new(
        batches: broadcast::Receiver<Arc<Batch>>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            batches,
            _place: place,
            _seat: None,
        }
    }
}

/// Why nobody more can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// As many follow as may.
    Full,
    /// As many calls wait, for whatever it is, as may.
    NoRoom,
    /// The daemon stops.
    Stopping,
    /// The ledger cannot be read.
    Unread,
}

impl Feed {
    /// A feed, and the reading to be run for it; at most so many follow at once.
    pub(super) fn new(reader: Reader, told: Wake, followers: usize, room: Room) -> (Self, Reading) {
        let (batches, _nobody_yet) = broadcast::channel(BATCHES);
        let (joins, joining) = mpsc::channel(1);
        let feed = Self {
            joins,
            places: Arc::new(Semaphore::new(followers)),
            room,
        };
        let reading = Reading {
            reader,
            told,
            batches,
            joining,
            generation: 0,
            last: 0,
        };
        (feed, reading)
    }

    /// A place. Events up to now are the follower's own to read, after this.
    pub(super) async fn join(&self) -> Result<Follower, NoPlace> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_full| NoPlace::Full)?;
        let seat = self.room.take().ok_or(NoPlace::NoRoom)?;
        let (joined, heard) = oneshot::channel();
        let asked = self.joins.send(joined).await;
        asked.map_err(|_ended| NoPlace::Stopping)?;
        let batches = heard.await.map_err(|_dropped| {
            if self.joins.is_closed() {
                NoPlace::Stopping
            } else {
                NoPlace::Unread
            }
        })?;
        Ok(Follower {
            _seat: Some(seat),
            ..Follower::new(batches, place)
        })
    }
}

/// The one who reads what is new.
pub(super) struct Reading {
    reader: Reader,
    told: Wake,
    batches: broadcast::Sender<Arc<Batch>>,
    joining: mpsc::Receiver<Joining>,
    /// The ledger's; it is another one only when the daemon is.
    generation: i64,
    /// The newest event that was handed on; of no meaning while nobody follows.
    last: i64,
}

impl Reading {
    /// Reads until the wish to stop.
    pub(super) async fn run(mut self, stop: Shutdown) {
        // Not counted anew by those who join: they may come one after the other.
        let mut look_at = Instant::now() + LOOK_EVERY;
        loop {
            let follows = self.batches.receiver_count() > 0;
            tokio::select! {
                () = stop.requested() => return,
                joined = self.joining.recv() => match joined {
                    Some(joined) => self.joined(joined).await,
                    None => return,
                },
                _rung = timeout_at(look_at, self.told.rung()), if follows => {
                    self.look().await;
                    look_at = Instant::now() + LOOK_EVERY;
                }
            }
        }
    }

    /// The place is taken here and not by whoever joins: were several to come at once after nobody had followed, all that
    /// happened meanwhile would be read for them.
    async fn joined(&mut self, joined: Joining) {
        if self.batches.receiver_count() == 0 {
            match self.reader.lineage().await {
                Ok(lineage) => {
                    self.generation = lineage.generation;
                    self.last = lineage.newest;
                }
                // Whoever joined hears that it cannot.
                Err(error) => return tell(&error),
            }
        }
        // Whoever left meanwhile needs no word.
        drop(joined.send(self.batches.subscribe()));
    }

    async fn look(&mut self) {
        while self.batches.receiver_count() > 0 {
            match self.reader.events(None, self.last, PAGE).await {
                Ok(rows) => {
                    let Some(newest) = rows.last().map(|row| row.seq) else {
                        return;
                    };
                    self.last = newest;
                    // With nobody left it is of no use.
                    drop(
                        self.batches
                            .send(Arc::new(Batch::new(&rows, self.generation))),
                    );
                }
                Err(error) => return tell(&error),
            }
        }
    }
}

fn tell(error: &ReadError) {
    tracing::warn!(reason = %error, "followers of events were told nothing: {error}");
}
