//! A log that cannot be moved: told to the log of the daemon once, and once when it is over; kept as a small fact of the
//! ledger meanwhile, for `status`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::super::invoices;
use crate::clock::wall_ms;
use crate::invoice::moment::Moment;

/// The small fact of the ledger: since when, milliseconds since 1970; no number when nothing stands in the way.
pub(in crate::ledger) const HELD: &str = "log_held";

const MIB: u64 = 1024 * 1024;

/// Something stands in the way.
#[derive(Debug)]
pub(super) struct Held {
    since_ms: i64,
    /// The most the log has had.
    bytes: u64,
    told: bool,
    noted: bool,
}

impl Held {
    pub(super) const fn new(since_ms: i64) -> Self {
        Self {
            since_ms,
            bytes: 0,
            told: false,
            noted: false,
        }
    }

    /// The log has grown beyond what it usually takes.
    pub(super) fn grown(&mut self, ledger: &Path, bytes: u64) {
        self.bytes = self.bytes.max(bytes);
        if self.told {
            return;
        }
        self.told = true;
        let since = Moment::from_ms(self.since_ms).to_string();
        let ledger = ledger.display();
        tracing::warn!(
            bytes,
            %since,
            "the ledger's log has grown to {} MiB, since it cannot be moved into the ledger's file since {since}: look for a \
             program that keeps a read transaction open on it, for example a SELECT that is not read to its end; \
             `fuser -v {ledger}` or `lsof {ledger}` names those that have it open; notifications are recorded meanwhile",
            bytes / MIB
        );
    }

    /// Remembers it for `status`, once it was told.
    pub(super) fn note(&mut self, connection: &Connection, busy: Duration) {
        if self.told && !self.noted {
            self.noted = write(connection, busy, &self.since_ms.to_string());
        }
    }

    pub(super) const fn is_noted(&self) -> bool {
        self.noted
    }

    /// Nothing stands in the way any more, and the file is as short as it was.
    pub(super) fn over(self, bytes: u64) {
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
    // Another one each time: what is there already makes no commit, and nothing is cut then.
    let over = format!("over {}", Moment::from_ms(wall_ms()));
    write(connection, busy, &over)
}

/// In a commit of its own. Another program's lock is not waited for, as else it is for so long.
fn write(connection: &Connection, busy: Duration, value: &str) -> bool {
    let begun = connection
        .busy_timeout(Duration::ZERO)
        .and_then(|()| Transaction::new_unchecked(connection, TransactionBehavior::Immediate));
    let written = begun.and_then(|transaction| {
        invoices::set_meta(&transaction, HELD, value)?;
        transaction.commit()
    });
    let written = written.and(connection.busy_timeout(busy));
    written
        .inspect_err(|error| tracing::debug!(reason = %error, "how the log stands was not noted"))
        .is_ok()
}
