//! Moves the log into the file, behind the answers of a commit, so that no acknowledgement waits for it.
//!
//! Usually the log has some thousand pages and a move takes some milliseconds. Two kinds of reads stand in the way: those
//! that are just passing, which are waited for a moment, and a transaction that somebody keeps open. Then the log grows:
//! that is told once, tries become rare, and acknowledgements go on. When it is over, what has gathered is moved by a
//! thread of its own, and the log's file is cut back in steps, since the writer waits for each.
//!
//! Relies on being the only hook on the log of the writer's connection. Promises that the log stays below
//! [`KEPT_BYTES`] unless a read stands in the way.

mod aside;
mod cause;
mod held;
mod idle;
mod looked;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

use aside::Aside;
use cause::Cause;
use held::{Held, Told};
pub(super) use idle::Idle;
use looked::{Tries, look_and_move};

use super::facts::fact;
use super::failure::from_sqlite;
use crate::ledger::fact::LOG_HELD;
use crate::ledger::files::{Log, Part};
use crate::ledger::health::Health;
use crate::ledger::log_held::LogHeld;

/// What the log takes at most while no read stands in its way, bytes; its file is cut back to this.
pub(crate) const KEPT_BYTES: u64 = 15 * 1024 * 1024;
/// A page in the log, with its head, bytes: ledgers are made with SQLite's own page size.
const FRAME_BYTES: u64 = 4_096 + 24;

/// No log that takes less is held by anybody, bytes: nobody has tried to move it.
pub(crate) const TRIED_BYTES: u64 = PAGES.unsigned_abs() as u64 * FRAME_BYTES;

/// Pages in the log beyond which it is moved into the file: SQLite's own default.
const PAGES: i32 = 1_000;
/// A try that did not move all is made again after so many more pages: reads that were passing have passed then.
const AGAIN: i32 = 250;
/// From so many pages on, half of what the log may take, passing reads are waited for.
const INSIST_AT: i32 = 2_000;
/// For how long: a look at an invoice takes some tens of microseconds.
const INSIST_FOR: Duration = Duration::from_millis(10);
/// More pages than this are moved by a thread of its own: they would keep the writer for tens of milliseconds.
const ASIDE: i32 = 3_000;
/// Between two looks whether that thread is done.
const ASIDE_PAUSE: Duration = Duration::from_millis(20);
/// Between two tries while a read stands in the way, doubled from the first to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_LONGEST: Duration = Duration::from_secs(5);
/// The log's file is cut back by so much at once, bytes: four milliseconds or so, for which the writer waits.
const CUT_BYTES: u64 = 16 * 1024 * 1024;
/// Between two cuts.
const CUT_PAUSE: Duration = Duration::from_millis(100);

/// How long the log may get while it cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLimits {
    /// A person should know beyond this, bytes.
    pub attention_bytes: u64,
    /// Nothing new is stored beyond this, bytes.
    pub bound_bytes: u64,
}

#[cfg(test)]
impl LogLimits {
    /// For tests that are about something else.
    pub(crate) const WIDE: Self = Self {
        attention_bytes: 1 << 30,
        bound_bytes: 1 << 31,
    };
}

/// When the log is moved into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checkpoint {
    /// Behind the answers of a commit.
    AfterAnswers,
    /// Within the commit that makes it long.
    InCommit,
    /// Behind the answers of a commit, but a long one is left to whoever serves the ledger: for commands, whose end is
    /// waited for.
    WhenShort,
}

/// Moves the log of one connection.
#[derive(Debug)]
pub(super) struct Mover {
    when: Checkpoint,
    limits: LogLimits,
    health: Health,
    ledger: PathBuf,
    busy: Duration,
    /// Pages in the log after the last commit, set by SQLite's hook.
    pages: Arc<AtomicI32>,
    /// As many there were at the last look.
    seen: i32,
    /// Those of them that are in the file already, as far as is known.
    moved: i32,
    /// Pages from which the next try is made.
    next_at: i32,
    /// When it is made whatever there is in the log.
    retry_at: Option<Instant>,
    pause: Duration,
    /// Since when no try has moved all, milliseconds since 1970.
    since_ms: Option<i64>,
    /// The same by the clock that is never set.
    since: Option<Instant>,
    cause: Cause,
    /// Pages beyond which the log is full: those below were moved, though it was not begun anew yet.
    moved_whole: i32,
    full: bool,
    aside: Option<Aside>,
    held: Option<Held>,
    /// The file has grown beyond what it is cut back to, and is cut back in steps.
    long: bool,
    /// Something was written to the database since that was asked; true when it was all of the log.
    wrote: Option<bool>,
    log: Log,
    /// A look before a move found a page of this file written over: nothing was moved.
    wrong: Option<Part>,
}

/// What a try brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    /// All is in the file, and the next commit begins the log anew.
    Whole,
    /// More of it is in the file than before.
    Further,
    /// Nothing came of it.
    Stuck,
}

impl Mover {
    pub(super) fn new(
        (when, limits): (Checkpoint, LogLimits),
        ledger: &Path,
        busy: Duration,
    ) -> Self {
        Self {
            when,
            limits,
            health: Health::default(),
            ledger: ledger.to_owned(),
            busy,
            pages: Arc::new(AtomicI32::new(0)),
            seen: 0,
            moved: 0,
            next_at: PAGES,
            retry_at: None,
            pause: PAUSE_FIRST,
            since_ms: None,
            since: None,
            cause: Cause::default(),
            moved_whole: 0,
            full: false,
            aside: None,
            held: None,
            long: false,
            wrote: None,
            log: Log::new(ledger),
            wrong: None,
        }
    }

    /// How the log fares, for others.
    pub(super) fn health(&self) -> Health {
        self.health.clone()
    }

    /// Nothing new may be stored.
    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Pages in the log after the last commit of this connection.
    fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// A thread of its own writes to the database.
    pub(super) const fn is_moving(&self) -> bool {
        self.aside.is_some()
    }

    /// Whether something was written to the database since this was asked last, and whether that was all of the log.
    pub(super) const fn take_moved(&mut self) -> Option<bool> {
        self.wrote.take()
    }

    /// Nothing more is moved.
    pub(super) fn stop(&mut self) {
        if let Some(aside) = self.aside.take() {
            aside.stop();
        }
    }

    const fn busy(&self) -> Duration {
        self.busy
    }

    /// It has something to do that is not to be disturbed.
    const fn is_at_work(&self) -> bool {
        self.aside.is_some() || self.long
    }

    /// All was moved, and the file cut back to nothing.
    fn is_cut(&mut self) {
        self.pages.store(0, Ordering::Relaxed);
        self.seen = 0;
        self.wrote = Some(true);
        self.begun_anew();
    }

    /// Called once for each connection, a new one too.
    pub(super) fn hook(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        // A new connection cuts back as it was settled.
        self.long = false;
        if self.when != Checkpoint::WhenShort && self.held.is_none() {
            self.take_over(connection);
        }
        let pages = Arc::clone(&self.pages);
        let in_commit = self.when == Checkpoint::InCommit;
        connection.wal_hook(Some(move |log: &mut rusqlite::hooks::Wal, now| {
            pages.store(now, Ordering::Relaxed);
            if in_commit && now >= PAGES {
                // As SQLite by itself does, whose hook this one stands in place of: what cannot be moved is no fault of the
                // commit, and is found and told behind it.
                drop(log.checkpoint());
            }
            Ok(())
        }))
    }

    /// Moves the log into the file once it is long. Gives when there is more to do. `last`: the connection is closed next.
    pub(super) fn tidy(&mut self, connection: &Connection, last: bool) -> Option<Instant> {
        let pages = self.pages.load(Ordering::Relaxed);
        let anew = pages < self.seen;
        self.seen = pages;
        if anew {
            self.begun_anew();
        }
        if bytes(pages) > KEPT_BYTES && !self.long {
            // Else the first commit after it is over would wait for the whole cut.
            self.long = limit(connection, -1);
        }
        self.watch(connection, pages);
        if last {
            self.finish(connection, pages);
            return None;
        }
        let now = Instant::now();
        if let Some(aside) = self.aside.take() {
            if !aside.is_done() {
                self.aside = Some(aside);
                return Some(now + ASIDE_PAUSE);
            }
            let tried = self.judge(aside.join(), pages);
            if pages.saturating_sub(self.moved) > ASIDE && tried != Tried::Whole {
                self.put_off(connection, tried, pages, now);
                return self.retry_at;
            }
        } else if pages < self.next_at && self.retry_at.is_none_or(|at| at > now) {
            return self.retry_at;
        }
        if pages.saturating_sub(self.moved) > ASIDE {
            if self.when == Checkpoint::WhenShort {
                self.next_at = pages.saturating_add(PAGES);
                return None;
            }
            return self.start_aside(pages, now);
        }
        match self.attempt(connection, pages) {
            Tried::Whole => self.whole(connection, pages, now),
            tried => self.put_off(connection, tried, pages, now),
        }
        self.retry_at
    }

    /// Somebody moved all and a commit began the log anew.
    fn begun_anew(&mut self) {
        (self.moved, self.next_at, self.moved_whole) = (0, PAGES, 0);
        (self.since_ms, self.since) = (None, None);
        self.cause.works();
        // What is left to be told or cut back is done soon.
        self.retry_at = (self.held.is_some() || self.long).then(Instant::now);
    }

    /// One try by the writer itself.
    fn attempt(&mut self, connection: &Connection, pages: i32) -> Tried {
        let before = self.moved;
        let passive = look_and_move(connection, &self.log, CheckpointMode::PASSIVE);
        let tried = self.judge(passive, pages);
        if pages < INSIST_AT || tried == Tried::Stuck {
            return tried;
        }
        let further = self.moved > before;
        // Reads follow each other closely: there is always one that stands in the way of a move, or of the log's new beginning.
        let restarted = connection.busy_timeout(INSIST_FOR).and_then(|()| {
            let restarted = connection.wal_checkpoint_v2(Some("main"), CheckpointMode::RESTART);
            connection.busy_timeout(self.busy)?;
            restarted
        });
        match self.judge(Ok(restarted), pages) {
            Tried::Whole => Tried::Whole,
            Tried::Further | Tried::Stuck if further => Tried::Further,
            stuck => stuck,
        }
    }

    fn judge(&mut self, tried: Tries, pages: i32) -> Tried {
        let tried = match tried {
            Ok(tried) => tried,
            Err(part) => {
                self.wrong = Some(part);
                return Tried::Stuck;
            }
        };
        self.wrote = Some(matches!(tried, Ok((log, moved)) if moved >= log));
        match tried {
            Ok((log, moved)) => {
                self.cause.works();
                let before = self.moved;
                // A log that was begun anew meanwhile has fewer pages.
                self.moved = moved.min(pages);
                // While another thread moved them, commits may have come on top.
                if moved >= log && moved >= pages {
                    Tried::Whole
                } else if self.moved > before {
                    Tried::Further
                } else {
                    Tried::Stuck
                }
            }
            // Another program moves it, or a read did not pass in time.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                Tried::Stuck
            }
            Err(error) => {
                self.cause.fails(&from_sqlite(error));
                Tried::Stuck
            }
        }
    }

    /// What a daemon before this one noted, and nobody has taken back since.
    fn take_over(&mut self, connection: &Connection) {
        let noted = fact(connection, &LOG_HELD).ok().flatten();
        if let Some(held) = noted.and_then(|noted| noted.held) {
            self.held = Some(Held::noted_before(held, self.health.clone()));
            self.retry_at = Some(Instant::now());
        }
    }

    /// Tells what a person should know of a log that is not moved, and whether it may get any longer.
    fn watch(&mut self, connection: &Connection, pages: i32) {
        let Some((since_ms, since)) = self.since_ms.zip(self.since) else {
            return;
        };
        let takes = bytes(pages);
        let is_full = takes > self.limits.bound_bytes && pages > self.moved_whole;
        let is_large = takes > self.limits.attention_bytes;
        // Once it was told it is told of until it is over.
        let anyway = is_large || self.held.is_some();
        let Some(by) = self.cause.standing(&self.ledger, since, anyway) else {
            return;
        };
        let why = if is_large { Told::Large } else { Told::Lasting };
        let health = &self.health;
        let held = self.held.get_or_insert_with(|| {
            let by = by.clone();
            Held::new(LogHeld { since_ms, by }, health.clone())
        });
        held.is_by(by);
        held.grown(takes);
        held.tell(&self.ledger, why);
        held.note(connection, self.busy);
        if is_full {
            held.fill(&self.ledger);
        }
        self.full = is_full;
    }

    /// Nothing stands in the way, or not any more.
    fn whole(&mut self, connection: &Connection, pages: i32, now: Instant) {
        self.next_at = pages.saturating_add(AGAIN).max(PAGES);
        (self.since_ms, self.retry_at, self.pause) = (None, None, PAUSE_FIRST);
        (self.since, self.full, self.moved_whole) = (None, false, pages);
        self.cause.over();
        if let Some(held) = &mut self.held {
            held.moved();
        }
        if self.held.is_some() || self.long {
            self.retry_at = self.cut(connection).then(|| now + CUT_PAUSE);
        }
    }

    /// A read stands in the way: trying after each batch would only burn time.
    fn put_off(&mut self, connection: &Connection, tried: Tried, pages: i32, now: Instant) {
        self.since_ms.get_or_insert_with(crate::clock::wall_ms);
        self.since.get_or_insert(now);
        self.watch(connection, pages);
        if pages < INSIST_AT {
            self.next_at = pages.saturating_add(AGAIN);
            // It may stay short, and the read be one without an end all the same.
            self.retry_at = Some(now + PAUSE_LONGEST);
            return;
        }
        self.next_at = i32::MAX;
        if tried != Tried::Stuck {
            self.pause = PAUSE_FIRST;
        }
        self.retry_at = Some(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_LONGEST);
    }

    fn start_aside(&mut self, pages: i32, now: Instant) -> Option<Instant> {
        match Aside::start(&self.ledger, &self.log, self.busy) {
            Ok(aside) => {
                self.aside = Some(aside);
                Some(now + ASIDE_PAUSE)
            }
            Err(error) => {
                self.cause.fails(&error);
                self.since_ms.get_or_insert_with(crate::clock::wall_ms);
                self.since.get_or_insert(now);
                self.next_at = pages.saturating_add(PAGES);
                self.retry_at = Some(now + PAUSE_LONGEST);
                self.retry_at
            }
        }
    }

    /// One step of cutting the file back, after all was moved. True when there is more to cut.
    fn cut(&mut self, connection: &Connection) -> bool {
        let takes = file_bytes(&self.ledger);
        let to = takes.saturating_sub(CUT_BYTES).max(KEPT_BYTES);
        self.long = !limit(connection, i64::try_from(to).unwrap_or(i64::MAX)) || to > KEPT_BYTES;
        // It is cut by the commit that begins the log anew.
        let committed = takes > KEPT_BYTES && held::forget(connection, self.busy);
        let takes = file_bytes(&self.ledger);
        if takes > KEPT_BYTES {
            return true;
        }
        if let Some(held) = self.held.take() {
            if !committed && held.is_noted() {
                held::forget(connection, self.busy);
            }
            held.over(takes);
        }
        false
    }

    /// Whether a long log is left to the daemon that may serve the ledger.
    pub(super) fn is_of_a_command(&self) -> bool {
        self.when == Checkpoint::WhenShort
    }

    /// The last move of a command. The daemon's is a cut, and the closing of the last connection moves all too.
    fn finish(&mut self, connection: &Connection, pages: i32) {
        self.stop();
        let short = pages.saturating_sub(self.moved) <= ASIDE;
        if self.is_of_a_command() && pages >= PAGES && short {
            let passive = look_and_move(connection, &self.log, CheckpointMode::PASSIVE);
            self.judge(passive, pages);
        }
    }
}

/// The file of the log beside a ledger. Asked about, never opened.
fn file_bytes(ledger: &Path) -> u64 {
    let mut log = ledger.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |about| about.len())
}

fn bytes(pages: i32) -> u64 {
    u64::try_from(pages).unwrap_or_default() * FRAME_BYTES
}

/// To how much the commit that begins the log anew cuts its file back. True when SQLite took it.
fn limit(connection: &Connection, bytes: i64) -> bool {
    let set = connection.pragma_update(None, "journal_size_limit", bytes);
    set.inspect_err(|error| tracing::debug!(reason = %error, "the log's limit could not be set"))
        .is_ok()
}
