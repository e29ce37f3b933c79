//! What is measured: programs of their own, so that what each costs can be read from the kernel, each on a ledger of its
//! own. All take the same requests.

pub(crate) mod crowd;
pub(crate) mod daemon;
pub(crate) mod inner;
mod naive;
pub(crate) mod peers;
pub(crate) mod probe;
pub(crate) mod raw;
pub(crate) mod running;
pub(crate) mod service;
pub(crate) mod syncs;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tilld::bench::{Road, Stocked, settings};

use crate::load::{Heard, INVOICES, Tally};
use crate::options::Options;

pub(crate) use self::peers::found as peers;

use self::daemon::{Daemon, Home};

/// Where all of them hear notifications, without the ref.
pub(crate) const PATH: &str = Home::path();
/// What SQLite calls FULL.
const FULL: i64 = 2;

/// A program that takes notifications.
pub(crate) trait Server {
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// Its process.
    fn pid(&self) -> u32;
    /// What it has stored, read without its help if it has a file.
    fn stored(&self) -> Stored;
    /// The file of its write-ahead log, if it has one.
    fn log(&self) -> Option<PathBuf> {
        None
    }
    /// Ends it.
    fn stop(self: Box<Self>);
}

/// Rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// What was told and took effect.
    pub(crate) events: u64,
    /// What is to be done about them.
    pub(crate) deliveries: u64,
}

/// A program that can be started.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    /// Its name in the keys of figures.
    pub(crate) name: &'static str,
    /// Starts it on a ledger that it makes in this directory.
    pub(crate) start: fn(&Options, &Path) -> Started,
}

/// A program that was started.
pub(crate) struct Started {
    /// It.
    pub(crate) server: Box<dyn Server>,
    /// The invoices it knows.
    pub(crate) stocked: Vec<Stocked>,
}

/// tilld as it comes.
pub(crate) const TILLD: Subject = Subject {
    name: "tilld",
    start: |options, directory| tilld(options, directory, ""),
};
/// The same, once more: how far the two lie apart is the run's noise.
pub(crate) const AGAIN: Subject = Subject {
    name: "tilld-again",
    start: TILLD.start,
};
/// tilld with a commit for each notification.
pub(crate) const BATCH_OF_ONE: Subject = Subject {
    name: "tilld-batch1",
    start: |options, directory| tilld(options, directory, "ledger.batch = 1"),
};
/// tilld with the checkpoint inside the commit, as SQLite has it by default.
pub(crate) const IN_COMMIT: Subject = Subject {
    name: "tilld-in-commit",
    start: |options, directory| tilld(options, directory, "ledger.checkpoint = \"in_commit\""),
};
/// tilld with the shortest queue in front of its writer.
pub(crate) const SHORT_QUEUE: Subject = Subject {
    name: "tilld-queue16",
    start: |options, directory| tilld(options, directory, "ledger.queue = 16"),
};
/// A bare hyper server.
pub(crate) const HELLO: Subject = Subject {
    name: "hello",
    start: |_options, _directory| inner::hello(),
};
/// A receiver that commits each request.
pub(crate) const NAIVE: Subject = Subject {
    name: "naive",
    start: |_options, directory| naive::start(directory),
};

fn tilld(options: &Options, directory: &Path, more: &str) -> Started {
    let home = Home::make(directory, more);
    let stocked = home.stock(INVOICES);
    let synchronous = Road::open(&settings(&home.config())).synchronous();
    assert_eq!(synchronous, FULL, "the writer's commits are durable");
    let server = Box::new(home.start(&options.daemon));
    Started { server, stocked }
}

/// A connection that only reads.
fn look_at(file: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(file, flags).expect("a ledger")
}

/// Counts rows over a connection of its own.
pub(crate) fn count(file: &Path, events: &str, deliveries: &str) -> Stored {
    let connection = look_at(file);
    let count = |sql| {
        let count = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        u64::try_from(count.expect("counted")).expect("no less than none")
    };
    Stored {
        events: count(events),
        deliveries: count(deliveries),
    }
}

/// Fails unless what was acknowledged in a run is there and nothing else is: `events` are those that came to be in it.
pub(crate) fn hold_against(name: &str, events: u64, whole: Tally) {
    assert!(
        events >= whole.acknowledged,
        "{name} acknowledged what it has not: {events} events, {whole:?}"
    );
    assert!(
        events <= whole.sent,
        "{name} has what nobody sent: {events} events, {whole:?}"
    );
}

/// Sends to a daemon, whose ledger may be a large one, and holds what was heard against the events of notifications that
/// came to be meanwhile.
pub(crate) fn held(name: &str, daemon: &Daemon, send: impl FnOnce() -> Heard) -> Heard {
    let before = daemon.newest_event();
    let heard = send();
    hold_against(name, daemon.notified_after(before), heard.whole);
    heard
}
