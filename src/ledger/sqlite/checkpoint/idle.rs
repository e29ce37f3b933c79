//! Cuts the log's file back to nothing when nobody has written for a while, and after texts were emptied as soon as that can
//! be: their old pages lie in it until then.
//!
//! Relies on the mover, which is asked first and left alone while it has something to do. Promises that no commit waits for
//! it longer than a read that is just passing takes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::looked::look_and_move;
use super::{INSIST_FOR, Mover, file_bytes};

/// Without a commit for so long it is idle. A shop's busy hour has shorter pauses.
const IDLE_FOR: Duration = Duration::from_secs(30);
/// After texts were emptied: the next commit of the walk comes sooner.
const SCRUB_AFTER: Duration = Duration::from_secs(1);
/// A file that takes no more than this is left as it is, bytes: beginning it anew costs two syncs.
const WORTH_BYTES: u64 = 1024 * 1024;
/// At the end of a command somebody waits, and reads that pass are waited for.
const LAST_FOR: Duration = Duration::from_secs(2);
/// The longest log that is moved at the end: a slow disk takes some seconds for it.
const LAST_MOST_BYTES: u64 = 268_435_456;

/// When the log was written last, and what is to be done then.
#[derive(Debug)]
pub(in crate::ledger) struct Idle {
    ledger: PathBuf,
    /// Pages at the last look.
    seen: i32,
    /// There was a commit since it was dated.
    written: bool,
    /// When it is idle, unless somebody writes.
    due: Option<Instant>,
    /// Texts were emptied whose pages are in the log.
    scrub: bool,
}

impl Idle {
    pub(in crate::ledger) fn new(ledger: &Path) -> Self {
        Self {
            ledger: ledger.to_owned(),
            seen: 0,
            written: false,
            due: None,
            scrub: false,
        }
    }

    /// Texts were emptied.
    pub(in crate::ledger) const fn scrub(&mut self) {
        self.scrub = true;
    }

    /// Gives when there is something to do, if there is. `last`: the connection is closed next.
    pub(in crate::ledger) fn tidy(
        &mut self,
        connection: &Connection,
        mover: &mut Mover,
        last: bool,
    ) -> Option<Instant> {
        let pages = mover.pages();
        if pages != self.seen && !last {
            // Dated at the next look, which comes within a second: a clock is not asked for every commit.
            (self.seen, self.written, self.due) = (pages, true, None);
            return None;
        }
        if last {
            // A longer log takes more time than a stop has, and a command does not wait for the log of others.
            if self.scrub || !mover.is_of_a_command() && file_bytes(&self.ledger) <= LAST_MOST_BYTES
            {
                self.cut(connection, mover, LAST_FOR);
            } else if mover.ends_short() {
                // A page of it that is written over later would hide all behind it, moved or not.
                self.cut(connection, mover, INSIST_FOR);
            }
            return None;
        }
        if self.due.is_none() && !self.written {
            return None;
        }
        let now = Instant::now();
        let idle_at = || now + if self.scrub { SCRUB_AFTER } else { IDLE_FOR };
        let due = *self.due.get_or_insert_with(idle_at);
        self.written = false;
        if due > now {
            return Some(due);
        }
        let worth = self.scrub || file_bytes(&self.ledger) > WORTH_BYTES;
        if worth && !mover.is_at_work() && !self.cut(connection, mover, INSIST_FOR) {
            // A read is under way. What was emptied must go; all else has time.
            self.due = Some(
                now + if self.scrub {
                    SCRUB_AFTER * 5
                } else {
                    IDLE_FOR
                },
            );
        } else if worth && mover.is_at_work() {
            self.due = Some(now + IDLE_FOR);
        } else {
            self.due = None;
        }
        self.due
    }

    /// True when the file is empty now.
    fn cut(&mut self, connection: &Connection, mover: &mut Mover, patience: Duration) -> bool {
        let busy = mover.busy();
        let cut = connection.busy_timeout(patience).and_then(|()| {
            let cut = look_and_move(connection, &mover.log, CheckpointMode::TRUNCATE);
            connection.busy_timeout(busy)?;
            cut.map_or_else(|part| Ok(Err(part)), |cut| cut.map(Ok))
        });
        match cut {
            Ok(Err(part)) => {
                mover.wrong = Some(part);
                false
            }
            Ok(Ok(_)) => {
                mover.is_cut();
                self.seen = mover.pages();
                self.scrub = false;
                true
            }
            Err(error) => {
                tracing::debug!(reason = %error, "the ledger's log is cut back later");
                false
            }
        }
    }
}
