//! What SQLite can do at most: the rows of a notification written by bare prepared statements, in one thread, on the real
//! schema, with the daemon's settings, and with the log moved behind the commit as the daemon does. No HTTP, no threads, no
//! decision.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags, params};
use tilld::bench::Stocked;

use super::FULL;
use super::daemon::Home;
use crate::notice;

/// The daemon's settings of its writer's connection, but that the side files stay after it.
const SETTINGS: &str = "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL; PRAGMA cache_size = -1280; \
                        PRAGMA journal_size_limit = 16777216; PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = OFF; \
                        PRAGMA ignore_check_constraints = ON";
/// Pages in the log from which it is moved.
const PAGES: i32 = 1_000;
/// Statements kept; more than there are.
const STATEMENTS: usize = 16;

const LOOK_UP: &str = "SELECT id FROM invoice WHERE ref = ?1";
const TOKEN: &str = "SELECT sealed FROM secret WHERE invoice = ?1";
const LOAD: &str = "SELECT status, outcome, revision, amount_agreed FROM invoice WHERE id = ?1";
const EVENT: &str = "INSERT INTO event (event_id, invoice, kind, rewound, cause_status, cause_ns, status, previous_status, \
                     outcome, previous_outcome, source, at_ms, amount_reported, currency_reported, raw, decision, why) \
                     VALUES (?1, ?2, 'status', 0, ?3, ?4, ?3, ?5, 'open', 'open', 'notification', ?6, '1500.00', 'RUB', \
                     ?7, 'advance', 'newer')";
const SAVE: &str = "UPDATE invoice SET revision = ?2, status = ?3, claim_ns = ?4, sorted_status = ?3, sorted_ns = ?4, \
                    raw = ?5, heard_ms = ?6, updated_ms = ?6, newest_ns = ?4 WHERE id = ?1";
const DELIVERY: &str = "INSERT INTO delivery (event, invoice, hook, state, next_ms, blocked_by) VALUES (?1, ?2, 'shop', \
                        'waiting', ?3, (SELECT o.id FROM delivery o WHERE o.invoice = ?2 AND o.event < ?1 \
                        AND o.hook = 'shop' AND o.state <> 'done' AND o.state <> 'abandoned' \
                        ORDER BY o.event DESC LIMIT 1))";

/// A ledger that nobody else has open.
pub(crate) struct Raw {
    connection: Connection,
    log_pages: Arc<AtomicI32>,
    /// Invoices, and how often each was notified of, the one that waits longest first.
    waiting: VecDeque<(Stocked, u64)>,
    written: u64,
    before: u64,
}

impl Raw {
    /// Makes a ledger in `directory`, which must not be there, with so many invoices.
    pub(crate) fn make(directory: &Path, invoices: u32) -> Self {
        let home = Home::make(directory, "");
        let stocked = home.stock(invoices);
        let mut connection = open(&home.ledger());
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let log_pages = Arc::new(AtomicI32::new(0));
        let pages = Arc::clone(&log_pages);
        let hooked = connection.wal_hook(Some(move |_: &mut Wal, now| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        }));
        hooked.expect("a hook");
        let before = events(&connection);
        Self {
            connection,
            log_pages,
            waiting: stocked.into_iter().map(|one| (one, 0)).collect(),
            written: 0,
            before,
        }
    }

    /// Writes notifications in batches of `batch` for so long. How many in a second.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn slice(&mut self, batch: u32, run: Duration) -> f64 {
        let (began, before) = (Instant::now(), self.written);
        while began.elapsed() < run {
            self.run("BEGIN IMMEDIATE");
            for _ in 0..batch {
                self.one();
            }
            self.run("COMMIT");
            if self.log_pages.load(Ordering::Relaxed) >= PAGES {
                self.run("PRAGMA wal_checkpoint(PASSIVE)");
            }
        }
        let rate = (self.written - before) as f64 / began.elapsed().as_secs_f64();
        assert_eq!(events(&self.connection), self.before + self.written);
        rate
    }

    fn run(&self, sql: &str) {
        let mut statement = self.connection.prepare_cached(sql).expect("SQL");
        let mut rows = statement.query([]).expect("nobody else is there");
        while rows.next().expect("rows").is_some() {}
    }

    fn one(&mut self) {
        let (of, number) = self.waiting.pop_front().expect("there are invoices");
        let body = notice::body(&of, number);
        let (status, previous) = (notice::status(number), notice::status(number + 1));
        // A place in time that rises with each, as the ids of events do.
        let at = i64::try_from(1_700_000_000_000 + self.written).expect("small");
        let event_id = format!(
            "{:08x}-{:04x}-7000-8000-{:012x}",
            at >> 16,
            at & 0xffff,
            self.written
        );
        let statement = |sql| self.connection.prepare_cached(sql).expect("SQL");
        let id: i64 = statement(LOOK_UP)
            .query_row([&of.reference], |row| row.get(0))
            .expect("it was stocked");
        let _sealed: Vec<u8> = statement(TOKEN)
            .query_row([id], |row| row.get(0))
            .expect("it was stocked");
        let revision: i64 = statement(LOAD)
            .query_row([id], |row| row.get(2))
            .expect("it was stocked");
        let claim_ns = at * 1_000_000;
        let done = |changed: rusqlite::Result<usize>| assert_eq!(changed, Ok(1));
        done(statement(EVENT).execute(params![event_id, id, status, claim_ns, previous, at, body]));
        let event = self.connection.last_insert_rowid();
        let revision = revision + 1;
        done(statement(SAVE).execute(params![id, revision, status, claim_ns, body, at]));
        done(statement(DELIVERY).execute(params![event, id, at]));
        self.written += 1;
        self.waiting.push_back((of, number + 1));
    }
}

/// Opens a ledger as the daemon's writer does.
fn open(ledger: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(ledger, flags).expect("a ledger");
    // A statement is planned once, whatever is bound to it, as the daemon's are.
    let planned = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
    assert_eq!(planned, Ok(true));
    connection.execute_batch(SETTINGS).expect("settings");
    // Else it would be fast by promising less.
    let synchronous = connection.pragma_query_value(None, "synchronous", |row| row.get(0));
    assert_eq!(synchronous, Ok(FULL), "its commits are durable");
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
    assert_eq!(mode, Ok("wal".to_owned()));
    connection
}

fn events(connection: &Connection) -> u64 {
    let count: i64 = connection
        .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
        .expect("a count");
    u64::try_from(count).expect("a count")
}
