//! The ledger: one file, one writer, many readers.
//!
//! [`Writer`] hands commands to the one writing thread and hears back only after they are durable. [`Reader`] reads beside
//! it. Every claim about an invoice goes through [`Writer::record`] and from there through `decide`; there is no second
//! way in. Relies on the state directory being on a local file system; promises that what was answered survives a crash,
//! and that nothing secret stands readable in the file.

mod apply;
mod backup;
mod batch;
mod census;
mod check;
mod choice;
mod clock_note;
mod command;
pub(crate) mod direct;
mod error;
mod fact;
mod files;
mod handle;
mod health;
mod holders;
mod invoice_reads;
mod lineage;
mod lock;
mod log_held;
mod mark;
#[cfg(test)]
pub(crate) mod memory;
mod near;
mod opener;
mod overview;
mod place;
mod pool;
mod queue;
mod reader;
mod reading;
mod repoll;
mod restore;
mod retention;
mod rights;
mod row;
mod seal;
mod sqlite;
mod starts;
mod store;
mod story;
mod survey;
mod swap;
#[cfg(test)]
mod tests;
mod trouble;
mod writer;

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::wall_ms;
use crate::wake::Wake;

pub(crate) use apply::{Author, Restore, Rules, apart};
pub(crate) use backup::{Backup, BackupError, Counts, Draft};
pub(crate) use census::{EventMark, Piece};
pub(crate) use check::{check, contract};
pub(crate) use choice::{ACT_AT_ONCE, Act, Acting, Choice, Missing, Page, Supplying, Whose};
pub(crate) use clock_note::WrongClock;
pub(crate) use command::{
    Acceptance, After, AttemptRecord, Begun, Intent, Lane, NoAnswer, Objection, Operated,
    PollFailed, Recorded, Refusal, Settled, Tracking,
};
pub(crate) use error::{OpenError, ReadError, WriteError};
pub(crate) use fact::{
    ALARMED, CLOCK, CLOCK_MARK, Fact, LAST_HEARD, LOST, POLLER, PRESENTATION, REPOLL,
    SERVED_FOR_MS, SERVING_SINCE,
};
pub(crate) use handle::Writer;
pub(crate) use health::State as HealthState;
pub(crate) use holders::holders;
pub(crate) use lineage::Restored;
pub(crate) use lock::{LockError, RUN_DIRECTORY, ServeLock, is_served, served_on};
#[cfg(test)]
pub(crate) use log_held::HeldBy;
pub(crate) use log_held::LogHeld;
pub(crate) use opener::own_mark;
pub(crate) use overview::{
    AttentionCount, DueOf, LastAttempt, LastHeard, OWN_REQUEST, Overview, Owed, Tally, Undelivered,
};
#[cfg(test)]
pub(crate) use overview::{Overdue, Silent};
pub(crate) use reader::Reader;
pub(crate) use repoll::{FILED_AT_ONCE, Repoll, Repolled};
pub(crate) use retention::{Cutoffs, Emptied, WalkError, walk};
pub(crate) use rights::check_all as check_rights;
pub(crate) use row::{
    AttemptRow, Claimed, DeliveryKey, DeliveryRow, DeliveryState, DueRow, EventRow, InvoiceKey,
    InvoiceRow, Place, RefusalFilter, RefusalRow, Running, SupersededBy, Watched,
};
pub(crate) use sqlite::{
    Bounds, Checkpoint, Filter, LogLimits, TRIED_BYTES as LOG_TRIED_BYTES, bulk, sqlite_version,
};
pub(crate) use starts::{Lost, kept};
pub(crate) use story::{
    Asking, AttemptStory, DeliveryStory, HistoryRow, Output as StoryOutput, RefusedRow, Story,
};
pub(crate) use swap::{RestoreError, Swapped, put_back};

#[cfg(test)]
pub(crate) use command::Command as LedgerCommand;
#[cfg(test)]
pub(crate) use command::Reply as LedgerReply;
#[cfg(test)]
pub(crate) use row::Outlook;
#[cfg(test)]
pub(crate) use seal::Sealed;
#[cfg(test)]
pub(crate) use tests::HeldLock;

use seal::Sealer;
pub(crate) use store::StoreError;
use writer::WriterThread;

/// Due times counted again in one commit at most: each touches a random page of the index, and a notification waits for
/// the commit.
pub(crate) const REDATE_AT_ONCE: usize = 50;

/// The ledger's file in the state directory.
pub(crate) const FILE_NAME: &str = "ledger.db";
/// The directory for secrets in the state directory.
pub(crate) const SECRET_DIRECTORY: &str = "secret";
/// The sealing key's file in the secret directory.
const KEY_FILE: &str = "ledger-key";
/// The state directory: its owner, and the reader group, may enter.
const STATE_MODE: u32 = 0o750;
/// The secret directory: its owner alone.
const SECRET_MODE: u32 = 0o700;

/// How a ledger is opened for writing.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The state directory; made when it is missing.
    pub state_dir: PathBuf,
    /// How long a change waits for another process's lock.
    pub busy_budget: Duration,
    /// Commands that may wait for the writer.
    pub queue: usize,
    /// Commands in one commit at most, at least 1.
    pub batch: usize,
    /// When the log is moved into the file.
    pub checkpoint: Checkpoint,
    /// How long the log may get.
    pub log_limits: LogLimits,
    /// Whether the ledger may lie on a network file system.
    pub network: Network,
    /// What is kept.
    pub bounds: Bounds,
    /// What the merchant configured.
    pub rules: Rules,
}

/// What is done about a ledger on a network file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// It is not opened.
    Refused,
    /// The operator knows that no other machine has it open.
    Known,
}

/// Rung by the writer after a commit that left work. Only a hint: what there is to do stands in the ledger.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells {
    /// An event is owed to hooks.
    pub owed: Wake,
    /// An invoice is to be asked about soon.
    pub ask: Wake,
    /// Something happened that is to be told.
    pub told: Wake,
}

/// An open ledger. Close it to wait for the writer's end.
pub(crate) struct Ledger {
    writer: Writer,
    reader: Reader,
    thread: WriterThread,
    bells: Bells,
    restored: Option<usize>,
    served: Option<Vec<&'static str>>,
}

impl Ledger {
    /// Opens the ledger for writing, making directory, key and file when they are missing.
    pub(crate) fn open(options: Options) -> Result<Self, OpenError> {
        let Options { queue, batch, .. } = options;
        let Parts {
            path,
            sealer,
            store,
            rules,
            restored,
            served,
        } = parts(options)?;
        let (health, watch) = (store.health(), store.watch());
        let around = writer::Around {
            bells: Bells::default(),
            health: health.clone(),
            ledger: path.clone(),
        };
        let reader = Reader::open(path, Some(Arc::clone(&sealer)))?.beside_writer(health, watch);
        let bells = around.bells.clone();
        let (queue, thread) = writer::start(|| store.stay(), rules, (queue, batch), around)
            .map_err(OpenError::Thread)?;
        Ok(Self {
            writer: Writer { queue, sealer },
            reader,
            thread,
            bells,
            restored,
            served,
        })
    }

    /// Opens a ledger that exists for reading only, without its key.
    pub(crate) fn open_reader(state_dir: &Path) -> Result<Reader, OpenError> {
        if is_served(state_dir) {
            starts::check_served(&state_dir.join(FILE_NAME))?;
        }
        Reader::open(state_dir.join(FILE_NAME), None).map_err(|error| match error {
            OpenError::Absent { path } => {
                gone(state_dir, &path).unwrap_or(OpenError::Absent { path })
            }
            other => other,
        })
    }

    /// What tells the ledger's file from another one that is put in its place; `None` while none is there.
    pub(crate) fn identity(state_dir: &Path) -> Option<(u64, u64)> {
        let file = fs::metadata(state_dir.join(FILE_NAME)).ok()?;
        Some((file.dev(), file.ino()))
    }

    /// The writing side. Cheap to clone.
    pub(crate) fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// The reading side. Cheap to clone.
    pub(crate) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// How many deliveries this opening held, when it was the first after a restore.
    pub(crate) const fn restored(&self) -> Option<usize> {
        self.restored
    }

    /// The settings it was opened with that are not those the daemon serves by, and so decide nothing; `None` where none ever
    /// served, and they decide.
    pub(crate) fn overruled(&self) -> Option<&[&'static str]> {
        self.served.as_deref()
    }

    /// The bells the writer rings.
    pub(crate) fn bells(&self) -> Bells {
        self.bells.clone()
    }

    /// Resolves when the writing thread has ended, which it does only when all writers are gone, when the file at the
    /// ledger's path is another one, or by a panic.
    pub(crate) async fn writer_ended(&self) {
        self.thread.ended.requested().await;
    }

    /// Waits until what was handed over is stored, at most this long. Clones of the writer keep it open: they must be
    /// dropped before.
    pub(crate) async fn close(self, within: Duration) {
        let Self { writer, thread, .. } = self;
        drop(writer);
        if !thread.join(within).await {
            tracing::error!("the ledger's writer is still in use at the end");
        }
    }
}

/// What an open ledger is made of, before it has threads.
struct Parts {
    path: PathBuf,
    sealer: Arc<Sealer>,
    store: sqlite::SqliteStore,
    rules: Rules,
    restored: Option<usize>,
    served: Option<Vec<&'static str>>,
}

/// How many pages of the WAL are not in the ledger's file; `None` where that cannot be read.
pub(crate) fn unmoved_pages(ledger: &Path) -> Option<i64> {
    sqlite::unmoved_pages(ledger)
}

/// Opens file and key for writing, making what is missing.
fn parts(options: Options) -> Result<Parts, OpenError> {
    let path = options.state_dir.join(FILE_NAME);
    prepare(&options.state_dir)?;
    rights::check(&options.state_dir).map_err(OpenError::Rights)?;
    check_place(&options.state_dir, &path, options.network)?;
    let secrets = options.state_dir.join(SECRET_DIRECTORY);
    let key = secrets.join(KEY_FILE);
    // The key is made before the file it seals for: a ledger without its key has lost it.
    let sealer = if path.try_exists().unwrap_or(false) {
        Sealer::load(&key)
    } else {
        // A new one in its place would answer 401 to all that is paid, and nobody would notice.
        if let Some(gone) = gone(&options.state_dir, &path) {
            return Err(gone);
        }
        Sealer::load_or_make(&key)
    };
    let sealer = Arc::new(sealer.map_err(OpenError::Key)?);
    // What a daemon serves it has looked at.
    let is_first = options.rules.author == Author::Daemon || !is_served(&options.state_dir);
    let is_new = !path.try_exists().unwrap_or(true);
    if is_first && !is_new {
        let found = mark::load(&options.state_dir.join(restore::MARK));
        starts::check(&path, &found)?;
    }
    if !is_first {
        starts::check_served(&path)?;
    }
    let mut store = sqlite::SqliteStore::open(
        path.clone(),
        options.busy_budget,
        options.bounds,
        (options.checkpoint, options.log_limits),
    )?;
    let file = |source| OpenError::File {
        path: path.clone(),
        source,
    };
    let place = restore::Place {
        path: &path,
        state_dir: &options.state_dir,
        secrets: &secrets,
        is_new,
    };
    let opened = restore::settle(&mut store, &place, wall_ms())?;
    let mut rules = options.rules;
    rules.restore = opened.restore;
    if rules.author == Author::Daemon {
        batch::settle(&mut store, &mut rules).map_err(file)?;
    }
    let served = apply::served(&mut store, &rules).map_err(file)?;
    let served = served.map(|served| apart(&rules, &served));
    Ok(Parts {
        path,
        sealer,
        store,
        rules,
        restored: opened.held,
        served,
    })
}

/// The error for a ledger that is not there though one was known.
fn gone(state_dir: &Path, path: &Path) -> Option<OpenError> {
    let (events, kept) = (restore::known_events(state_dir), kept(path));
    (events.is_some() || kept.is_some()).then(|| OpenError::Gone {
        path: path.to_owned(),
        events,
        kept,
    })
}

/// The copy that a daemon kept at its end, when nobody serves the ledger and it lacks some of it.
pub(crate) fn kept_ahead(state_dir: &Path) -> Option<PathBuf> {
    let is_idle = !is_served(state_dir);
    is_idle.then(|| starts::kept_ahead(&state_dir.join(FILE_NAME)))?
}

/// Whether a ledger was served at this path, by its mark or by a copy that a daemon kept at its end.
pub(crate) fn was_served(ledger: &Path) -> bool {
    let is_known = || ledger.parent().and_then(restore::known_events).is_some();
    ledger.ends_with(FILE_NAME) && (kept(ledger).is_some() || is_known())
}

/// Looks where the ledger lies, or will.
fn check_place(state_dir: &Path, file: &Path, network: Network) -> Result<(), OpenError> {
    if place::is_mounted_alone(file) {
        return Err(OpenError::MountedAlone {
            path: file.to_owned(),
        });
    }
    let Some(found) = place::network_of(state_dir) else {
        return Ok(());
    };
    if network == Network::Refused {
        return Err(OpenError::Network {
            path: state_dir.to_owned(),
            found,
        });
    }
    tracing::warn!(
        "the ledger in `{}` lies on {found}: if another machine opens it too, it will be damaged",
        state_dir.display()
    );
    Ok(())
}

/// Makes the state directory and the directory for secrets in it, when they are missing. Changes nothing else, so that a
/// daemon can take its lock before it touches a ledger that another one may be serving.
pub(crate) fn prepare(state_dir: &Path) -> Result<(), OpenError> {
    make_directory(state_dir, STATE_MODE)?;
    make_directory(&state_dir.join(SECRET_DIRECTORY), SECRET_MODE)
}

fn make_directory(directory: &Path, mode: u32) -> Result<(), OpenError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(directory);
    made.map_err(|source| OpenError::Directory {
        path: directory.to_owned(),
        source,
    })
}
