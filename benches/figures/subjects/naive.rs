//! A receiver as it is commonly written, in the daemon's own language and on its own HTTP library: one connection behind a
//! lock, a commit per request, 200 after it. Its ledger is that of the peers: `benches/peers/schema.sql`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hyper::body::Bytes;
use hyper::header::AUTHORIZATION;
use hyper::{Request, StatusCode};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use tilld::bench::Stocked;

use super::inner::{Answer, Inner, Receiver, invented, plain};
use super::{FULL, PATH, Server, Started, Stored, count};

/// The ledger of all such receivers.
const SCHEMA: &str = include_str!("../../peers/schema.sql");

/// Makes a ledger that knows these invoices.
pub(crate) fn make(file: &Path, stocked: &[Stocked]) {
    let mut connection = Connection::open(file).expect("a file");
    connection.execute_batch(SCHEMA).expect("a schema");
    let transaction = connection.transaction().expect("begun");
    for one in stocked {
        let Stocked {
            number: _,
            reference,
            token,
            invoice_id,
            order_id,
        } = one;
        let added = transaction.execute(
            "INSERT INTO invoice (ref, secret, invoice_id, order_id) VALUES (?, ?, ?, ?)",
            [reference, token, invoice_id, order_id],
        );
        added.expect("added");
    }
    transaction.commit().expect("committed");
}

/// What such a receiver has stored.
pub(crate) fn stored(file: &Path) -> Stored {
    count(
        file,
        "SELECT count(*) FROM event",
        "SELECT count(*) FROM outbox",
    )
}

/// The receiver.
pub(super) struct Naive(Mutex<Connection>);

#[derive(Deserialize)]
struct Told<'a> {
    status: &'a str,
    amount: &'a str,
    currency: &'a str,
    #[serde(rename = "updatedAt")]
    updated_at: &'a str,
}

impl Naive {
    pub(super) fn open(file: &Path) -> Self {
        let connection = Connection::open(file).expect("a ledger");
        let set = connection.execute_batch("PRAGMA synchronous = FULL");
        set.expect("SQLite takes it");
        let synchronous = connection.pragma_query_value(None, "synchronous", |row| row.get(0));
        assert_eq!(synchronous, Ok(FULL), "its commits are durable");
        Self(Mutex::new(connection))
    }

    fn record(&self, reference: &str, token: &str, body: &Bytes) -> rusqlite::Result<StatusCode> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let secret = connection
            .prepare_cached("SELECT secret FROM invoice WHERE ref = ?")?
            .query_row([reference], |row| row.get::<_, String>(0))
            .optional()?;
        let known = secret.is_some_and(|secret| secret.as_bytes().ct_eq(token.as_bytes()).into());
        if !known {
            return Ok(StatusCode::UNAUTHORIZED);
        }
        let Ok(told) = serde_json::from_slice::<Told<'_>>(body) else {
            return Ok(StatusCode::BAD_REQUEST);
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached(
                "UPDATE invoice SET status = ?, amount = ?, currency = ?, updated_at = ?, revision = revision + 1 WHERE ref = ?",
            )?
            .execute([told.status, told.amount, told.currency, told.updated_at, reference])?;
        let text = str::from_utf8(body).unwrap_or_default();
        let event = transaction
            .prepare_cached("INSERT INTO event (ref, status, body) VALUES (?, ?, ?)")?
            .insert(params![reference, told.status, text])?;
        transaction
            .prepare_cached("INSERT INTO outbox (event) VALUES (?)")?
            .execute([event])?;
        transaction.commit()?;
        Ok(StatusCode::OK)
    }
}

impl Receiver for Naive {
    fn answer(&self, request: &Request<()>, body: &Bytes) -> Answer {
        let path = request.uri().path().strip_prefix(PATH);
        let reference = path.and_then(|path| path.strip_prefix('/'));
        let carried = request.headers().get(AUTHORIZATION);
        let token = carried
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let (Some(reference), Some(token)) = (reference, token) else {
            return plain(StatusCode::UNAUTHORIZED, String::new());
        };
        let recorded = self.record(reference, token, body);
        plain(
            recorded.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            String::new(),
        )
    }
}

struct NaiveServer {
    inner: Inner,
    file: PathBuf,
}

impl Server for NaiveServer {
    fn address(&self) -> SocketAddr {
        self.inner.address
    }

    fn pid(&self) -> u32 {
        self.inner.pid()
    }

    fn stored(&self) -> Stored {
        stored(&self.file)
    }

    fn stop(self: Box<Self>) {}
}

/// Starts it on a new ledger in this directory.
pub(super) fn start(directory: &Path) -> Started {
    std::fs::create_dir_all(directory).expect("a directory");
    let file = directory.join("ledger.db");
    let stocked = invented();
    make(&file, &stocked);
    let inner = Inner::start(&["naive", file.to_str().expect("a name in UTF-8")]);
    Started {
        server: Box::new(NaiveServer { inner, file }),
        stocked,
    }
}
