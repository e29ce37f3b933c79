-- The ledger of a receiver as it is commonly written: a text key, every notification kept, what is to be done about it
-- beside it in the same transaction.
PRAGMA journal_mode = WAL;
CREATE TABLE invoice (
    ref        TEXT PRIMARY KEY,
    secret     TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    order_id   TEXT NOT NULL,
    status     TEXT NOT NULL DEFAULT 'new',
    amount     TEXT,
    currency   TEXT,
    updated_at TEXT,
    revision   INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE event (
    id      INTEGER PRIMARY KEY,
    ref     TEXT NOT NULL REFERENCES invoice (ref),
    status  TEXT NOT NULL,
    at      TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    body    TEXT NOT NULL
);
CREATE TABLE outbox (
    id      INTEGER PRIMARY KEY,
    event   INTEGER NOT NULL REFERENCES event (id),
    state   TEXT NOT NULL DEFAULT 'pending'
);
CREATE INDEX outbox_pending ON outbox (id) WHERE state = 'pending';
