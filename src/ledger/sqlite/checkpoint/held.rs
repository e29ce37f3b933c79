//! A log that cannot be moved: told to the log of the daemon once, and once when it is over; kept as a fact of the
//! ledger meanwhile, for `status`, and for whoever asks in the same process.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::super::facts;
use crate::clock::wall_ms;
use crate::invoice::moment::Moment;
use crate::ledger::fact::LOG_HELD;
use crate::ledger::health::Health;
use crate::ledger::holders::holders;
use crate::ledger::log_held::{HeldBy, LogHeld, LogNote};

const MIB: u64 = 1024 * 1024;

/// Why a log that is not moved is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It has grown beyond what a person should know of.
    Large,
    /// It has been tried for a while, or the disk fails.
    Lasting,
}

/// Something stands in the way.
#[derive(Debug)]
pub(super) struct Held {
    what: LogHeld,
    /// The most the log has had.
    bytes: u64,
    told: bool,
    noted: bool,
    full: bool,
    health: Health,
}

impl Held {
    pub(super) const fn new(what: LogHeld, health: Health) -> Self {
        Self {
            what,
            bytes: 0,
            told: false,
            noted: false,
            full: false,
            health,
        }
    }

    /// What a daemon noted that ended before it was over.
    pub(super) fn noted_before(what: LogHeld, health: Health) -> Self {
        let found = Self {
            told: true,
            noted: true,
            ..Self::new(what, health)
        };
        found.share();
        found
    }

    /// Lets others know.
    fn share(&self) {
        let held = Some(self.what.clone());
        self.health.change(|state| state.log_held = held);
    }

    /// What stands in the way now; it may be another thing than before.
    pub(super) fn is_by(&mut self, by: HeldBy) {
        if self.what.by != by {
            self.what.by = by;
            self.noted = false;
            if self.told {
                self.share();
            }
        }
    }

    /// The log has so many bytes.
    pub(super) fn grown(&mut self, bytes: u64) {
        self.bytes = self.bytes.max(bytes);
    }

    /// A person should know.
    pub(super) fn tell(&mut self, ledger: &Path, why: Told) {
        if self.told {
            return;
        }
        self.told = true;
        self.share();
        let since = Moment::from_ms(self.what.since_ms).to_string();
        let what = match why {
            Told::Large => format!(
                "the ledger's log has grown to {} MiB, since it cannot be moved into the ledger's file since {since}",
                self.bytes / MIB
            ),
            Told::Lasting => {
                format!("the ledger's log cannot be moved into the ledger's file since {since}")
            }
        };
        let advice = self.advice(ledger);
        let meanwhile = if self.what.by.is_disk() {
            ""
        } else {
            "; notifications are recorded meanwhile"
        };
        tracing::warn!(bytes = self.bytes, %since, "{what}: {advice}{meanwhile}");
    }

    fn advice(&self, ledger: &Path) -> String {
        let path = ledger.display().to_string();
        self.what.by.advice(&path, &holders(ledger))
    }

    /// The log has reached its bound.
    pub(super) fn fill(&mut self, ledger: &Path) {
        if self.full {
            return;
        }
        self.full = true;
        self.health.change(|state| state.log_full = true);
        let advice = self.advice(ledger);
        tracing::error!(
            bytes = self.bytes,
            "the ledger's log has reached `ledger.log_bound_bytes` with {} MiB: notifications are answered 503 until it can be \
             moved; hint: {advice}",
            self.bytes / MIB
        );
    }

    /// It is moved, though its file is not cut back yet.
    pub(super) fn moved(&mut self) {
        if std::mem::take(&mut self.full) {
            self.health.change(|state| state.log_full = false);
            tracing::info!("the ledger's log is moved, and notifications are recorded again");
        }
    }

    /// Remembers it for `status`, once it was told.
    pub(super) fn note(&mut self, connection: &Connection, busy: Duration) {
        if self.told && !self.noted {
            self.noted = write(connection, busy, Some(self.what.clone()));
        }
    }

    pub(super) const fn is_noted(&self) -> bool {
        self.noted
    }

    /// Nothing stands in the way any more, and the file is as short as it was.
    pub(super) fn over(self, bytes: u64) {
        self.health.change(|state| state.log_held = None);
        if !self.told {
            return;
        }
        tracing::info!(
            bytes,
            "the ledger's log is moved into the ledger's file again, and cut back from {} MiB to {}",
            self.bytes / MIB,
            bytes.div_ceil(MIB)
        );
    }
}

/// Nothing stands in the way. False when it could not be written now.
pub(super) fn forget(connection: &Connection, busy: Duration) -> bool {
    write(connection, busy, None)
}

/// In a commit of its own. Another program's lock is not waited for, as else it is for so long.
fn write(connection: &Connection, busy: Duration, held: Option<LogHeld>) -> bool {
    // Another one each time: what is there already makes no commit, and nothing is cut then.
    let at_ms = wall_ms();
    let note = LOG_HELD.note(&LogNote { held, at_ms });
    let begun = connection
        .busy_timeout(Duration::ZERO)
        .and_then(|()| Transaction::new_unchecked(connection, TransactionBehavior::Immediate));
    let written = begun.and_then(|transaction| {
        facts::note(&transaction, &note)?;
        transaction.commit()
    });
    let written = written.and(connection.busy_timeout(busy));
    written
        .inspect_err(|error| tracing::debug!(reason = %error, "how the log stands was not noted"))
        .is_ok()
}
