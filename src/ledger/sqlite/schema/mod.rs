//! The tables, the views and the numbered steps between versions of them.
//!
//! Tables are private. The five views are the public contract: columns are only ever added to them. Each step runs in
//! the one transaction that also raises `user_version`, so a step is taken whole or not at all.

/// The steps. The index of a step plus one is the version it leads to. Steps that were released are never edited.
pub(super) const STEPS: [&str; 6] = [
    TABLES_AND_VIEWS,
    WHY_AND_HELD,
    DUE_BY_CLASS,
    CLOCK_AND_RETIRED,
    BY_HOOK_AND_GENERATION,
    FEWER_WRITES,
];

/// Marks a file as a ledger of tilld (`PRAGMA application_id`): "tild" in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x7469_6c64;

const TABLES_AND_VIEWS: &str = "
CREATE TABLE invoice (
  id INTEGER PRIMARY KEY,
  ref TEXT NOT NULL UNIQUE,
  order_id TEXT NOT NULL,
  invoice_id TEXT UNIQUE,
  mode TEXT NOT NULL,
  method TEXT NOT NULL,
  opening TEXT NOT NULL,
  opening_note TEXT,
  creator_boot TEXT, creator_pid INTEGER, creator_start INTEGER,
  creator_deadline_ms INTEGER NOT NULL,
  amount_asked TEXT NOT NULL, currency_asked TEXT NOT NULL,
  amount_agreed TEXT NOT NULL, currency_agreed TEXT NOT NULL,
  amount_reported TEXT, currency_reported TEXT,
  revision INTEGER NOT NULL DEFAULT 0,
  status TEXT, claim_differs TEXT, claim_ns INTEGER,
  sorted_status TEXT, sorted_meaning TEXT, sorted_differs TEXT, sorted_ns INTEGER,
  sorted_settled INTEGER NOT NULL DEFAULT 0,
  outcome TEXT NOT NULL DEFAULT 'open',
  outcome_ms INTEGER NOT NULL,
  found_by TEXT,
  doubt INTEGER NOT NULL DEFAULT 0,
  doubted TEXT, pending TEXT,
  paid_counted INTEGER NOT NULL DEFAULT 0,
  paid_fired INTEGER NOT NULL DEFAULT 0,
  attention TEXT NOT NULL DEFAULT '',
  unresolved INTEGER NOT NULL DEFAULT 0,
  requisites TEXT, payment_url TEXT, raw TEXT,
  expire_ms INTEGER,
  heard_ms INTEGER,
  history_count INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX invoice_order ON invoice (order_id);
CREATE INDEX invoice_creating ON invoice (creator_deadline_ms) WHERE opening = 'creating';

CREATE TABLE secret (
  invoice INTEGER PRIMARY KEY REFERENCES invoice (id),
  sealed BLOB NOT NULL
) STRICT;

CREATE TABLE poll (
  invoice INTEGER PRIMARY KEY REFERENCES invoice (id),
  due_ms INTEGER,
  asked_ms INTEGER,
  nudged_ms INTEGER,
  failures INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX poll_due ON poll (due_ms) WHERE due_ms IS NOT NULL;

CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL UNIQUE,
  invoice INTEGER NOT NULL REFERENCES invoice (id),
  kind TEXT NOT NULL,
  rewound INTEGER NOT NULL,
  cause_status TEXT, cause_differs TEXT, cause_ns INTEGER,
  status TEXT, previous_status TEXT,
  outcome TEXT NOT NULL, previous_outcome TEXT NOT NULL,
  source TEXT,
  at_ms INTEGER NOT NULL,
  amount_reported TEXT, currency_reported TEXT,
  raw TEXT
) STRICT;
CREATE INDEX event_invoice ON event (invoice);

CREATE TABLE delivery (
  id INTEGER PRIMARY KEY,
  event INTEGER NOT NULL REFERENCES event (seq),
  invoice INTEGER NOT NULL REFERENCES invoice (id),
  hook TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  round_start INTEGER NOT NULL DEFAULT 0,
  replay INTEGER NOT NULL DEFAULT 0,
  next_ms INTEGER,
  started_ms INTEGER,
  claimant_boot TEXT, claimant_pid INTEGER, claimant_start INTEGER,
  child_boot TEXT, child_pid INTEGER, child_start INTEGER,
  UNIQUE (event, hook)
) STRICT;
CREATE INDEX delivery_due ON delivery (next_ms) WHERE state = 'waiting';
CREATE INDEX delivery_invoice ON delivery (invoice, event) WHERE state IN ('waiting', 'running');
CREATE INDEX delivery_running ON delivery (id) WHERE state = 'running';

CREATE TABLE attempt (
  delivery INTEGER NOT NULL REFERENCES delivery (id),
  number INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL,
  result TEXT NOT NULL,
  stdout BLOB NOT NULL,
  stderr BLOB NOT NULL,
  PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE history (
  id INTEGER PRIMARY KEY,
  invoice INTEGER NOT NULL REFERENCES invoice (id),
  at_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  status TEXT NOT NULL,
  differs TEXT,
  claim_ns INTEGER,
  decision TEXT NOT NULL
) STRICT;
CREATE INDEX history_invoice ON history (invoice);

CREATE TABLE refusal (
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  invoice INTEGER REFERENCES invoice (id),
  reason TEXT NOT NULL,
  peer TEXT NOT NULL,
  body_bytes INTEGER NOT NULL,
  body_sha256 TEXT NOT NULL
) STRICT;

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW invoices AS SELECT
  order_id, invoice_id, mode, method, status, outcome,
  amount_asked, amount_agreed, amount_reported,
  currency_agreed AS currency, currency_asked, currency_reported,
  opening, doubt, attention, found_by, ref,
  strftime('%Y-%m-%dT%H:%M:%S', expire_ms / 1000, 'unixepoch') || printf('.%03dZ', expire_ms % 1000) AS expire_at,
  expire_ms,
  strftime('%Y-%m-%dT%H:%M:%S', created_ms / 1000, 'unixepoch') || printf('.%03dZ', created_ms % 1000) AS created_at,
  created_ms,
  strftime('%Y-%m-%dT%H:%M:%S', updated_ms / 1000, 'unixepoch') || printf('.%03dZ', updated_ms % 1000) AS updated_at,
  updated_ms
FROM invoice;

CREATE VIEW events AS SELECT
  e.seq, e.event_id, i.order_id, i.invoice_id, e.kind, e.status, e.previous_status,
  e.outcome, e.previous_outcome, e.source, e.rewound, e.amount_reported, e.currency_reported,
  strftime('%Y-%m-%dT%H:%M:%S', e.at_ms / 1000, 'unixepoch') || printf('.%03dZ', e.at_ms % 1000) AS at,
  e.at_ms
FROM event e JOIN invoice i ON i.id = e.invoice;

CREATE VIEW deliveries AS SELECT
  e.event_id, e.seq, i.order_id, e.kind, d.hook, d.state, d.attempts,
  strftime('%Y-%m-%dT%H:%M:%S', d.next_ms / 1000, 'unixepoch') || printf('.%03dZ', d.next_ms % 1000) AS next_at,
  d.next_ms
FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice;

CREATE VIEW attempts AS SELECT
  e.event_id, d.hook, a.number,
  strftime('%Y-%m-%dT%H:%M:%S', a.started_ms / 1000, 'unixepoch') || printf('.%03dZ', a.started_ms % 1000) AS started_at,
  a.started_ms,
  strftime('%Y-%m-%dT%H:%M:%S', a.ended_ms / 1000, 'unixepoch') || printf('.%03dZ', a.ended_ms % 1000) AS ended_at,
  a.ended_ms,
  a.result
FROM attempt a JOIN delivery d ON d.id = a.delivery JOIN event e ON e.seq = d.event;

CREATE VIEW requisites AS SELECT
  order_id, invoice_id, method, requisites AS details, payment_url,
  strftime('%Y-%m-%dT%H:%M:%S', expire_ms / 1000, 'unixepoch') || printf('.%03dZ', expire_ms % 1000) AS expire_at,
  expire_ms
FROM invoice
WHERE outcome = 'open' AND (requisites IS NOT NULL OR payment_url IS NOT NULL);
";

/// Why each thing was decided, what a refused request looked like, deliveries that wait for a person, and the lists an
/// invoice was sorted by.
const WHY_AND_HELD: &str = "
ALTER TABLE invoice ADD COLUMN failed_fired INTEGER NOT NULL DEFAULT 0;
UPDATE invoice SET failed_fired = 1 WHERE id IN (SELECT invoice FROM event WHERE kind = 'failed');
ALTER TABLE invoice ADD COLUMN sorted_by INTEGER NOT NULL DEFAULT 0;
CREATE INDEX invoice_attention ON invoice (id) WHERE attention <> '';

ALTER TABLE history ADD COLUMN why TEXT NOT NULL DEFAULT '';
ALTER TABLE history ADD COLUMN amount_reported TEXT;
ALTER TABLE history ADD COLUMN currency_reported TEXT;
ALTER TABLE history ADD COLUMN updated_at_text TEXT;

ALTER TABLE refusal ADD COLUMN ref_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE refusal ADD COLUMN header_names TEXT NOT NULL DEFAULT '';

ALTER TABLE delivery ADD COLUMN held_why TEXT;
DROP INDEX delivery_invoice;
CREATE INDEX delivery_invoice ON delivery (invoice, event) WHERE state IN ('waiting', 'running', 'held');
CREATE INDEX delivery_held ON delivery (id) WHERE state = 'held';
CREATE INDEX delivery_abandoned ON delivery (id) WHERE state = 'abandoned';

UPDATE meta SET value = '1' WHERE key LIKE 'unsorted:%';

DROP VIEW deliveries;
CREATE VIEW deliveries AS SELECT
  e.event_id, e.seq, i.order_id, e.kind, d.hook, d.state, d.attempts,
  strftime('%Y-%m-%dT%H:%M:%S', d.next_ms / 1000, 'unixepoch') || printf('.%03dZ', d.next_ms % 1000) AS next_at,
  d.next_ms, d.held_why
FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice;
";

/// Due times filed by class (`silence::class`: 0 urgent, 1 young, 2 old), so that those of one class are found without
/// reading past those of another.
const DUE_BY_CLASS: &str = "
ALTER TABLE poll ADD COLUMN class INTEGER NOT NULL DEFAULT 2;
UPDATE poll SET class = (SELECT CASE
    WHEN i.doubt <> 0 OR i.pending IS NOT NULL OR poll.nudged_ms > coalesce(poll.asked_ms, -1) THEN 0
    WHEN poll.due_ms - i.created_ms < 1800000 THEN 1
    ELSE 2 END
  FROM invoice i WHERE i.id = poll.invoice)
WHERE due_ms IS NOT NULL;
DROP INDEX poll_due;
CREATE INDEX poll_due ON poll (class, due_ms) WHERE due_ms IS NOT NULL;
";

/// What the service's clock said, and which invoices are not asked about any more because their time is over, so that those
/// a wrong clock put among them are found.
const CLOCK_AND_RETIRED: &str = "
ALTER TABLE poll ADD COLUMN service_ms INTEGER;
ALTER TABLE poll ADD COLUMN first_service_ms INTEGER;
ALTER TABLE poll ADD COLUMN ended_answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE poll ADD COLUMN ended_since_ms INTEGER;
ALTER TABLE poll ADD COLUMN retired_ms INTEGER;
UPDATE poll SET retired_ms = (SELECT max(i.outcome_ms, i.updated_ms, coalesce(poll.asked_ms, 0)) FROM invoice i WHERE i.id = poll.invoice)
WHERE due_ms IS NULL AND (SELECT i.outcome = 'failed' OR i.outcome = 'open' AND i.unresolved <> 0
  FROM invoice i WHERE i.id = poll.invoice AND i.invoice_id IS NOT NULL);
CREATE INDEX poll_retired ON poll (retired_ms) WHERE retired_ms IS NOT NULL;
";

/// The delivery an updated one is behind: the nearest earlier unfinished one of the same invoice and hook. The states are
/// those of the index `delivery_invoice` of that time.
macro_rules! in_front {
    () => {
        "(SELECT o.id FROM delivery o WHERE o.invoice = delivery.invoice AND o.event < delivery.event \
         AND o.hook = delivery.hook AND o.state IN ('waiting', 'running', 'held') ORDER BY o.event DESC LIMIT 1)"
    };
}

/// Deliveries filed by hook, so that those of one hook are found without reading past another's that hangs; and under
/// which generation of the ledger an invoice was last heard of by a poll, so that what a restored ledger had missed is known. A
/// delivery that tells of another one notes the attempt with which that one was given up; and one that a person gave up, that
/// nobody need look at it. The ledger gets an id of its own, and counts the steps of its deliveries: events and steps
/// together tell an older copy from it (`ledger/mark.rs`). A trigger counts, so that no statement is forgotten. Others note
/// what a waiting delivery is behind, for as long as it is, so that no look for something to run reads it.
const BY_HOOK_AND_GENERATION: &str = concat!(
    "
DROP INDEX delivery_due;
ALTER TABLE delivery ADD COLUMN blocked_by INTEGER;
CREATE INDEX delivery_due ON delivery (hook, blocked_by, next_ms) WHERE state = 'waiting';
CREATE INDEX delivery_blocked ON delivery (blocked_by) WHERE blocked_by IS NOT NULL;
UPDATE delivery SET blocked_by = ", in_front!(), " WHERE state = 'waiting';
CREATE TRIGGER delivery_made AFTER INSERT ON delivery WHEN NEW.state = 'waiting'
BEGIN UPDATE delivery SET blocked_by = ", in_front!(), " WHERE id = NEW.id; END;
CREATE TRIGGER delivery_waits AFTER UPDATE OF state ON delivery
WHEN NEW.state = 'waiting' AND OLD.state IN ('held', 'done', 'abandoned')
BEGIN UPDATE delivery SET blocked_by = ", in_front!(), " WHERE id = NEW.id; END;
CREATE TRIGGER delivery_ended AFTER UPDATE OF state ON delivery WHEN NEW.state IN ('done', 'abandoned')
BEGIN UPDATE delivery SET blocked_by = ", in_front!(), " WHERE blocked_by = NEW.id; END;
CREATE TRIGGER delivery_withdrawn AFTER DELETE ON delivery
BEGIN UPDATE delivery SET blocked_by = ", in_front!(), " WHERE blocked_by = OLD.id; END;
ALTER TABLE invoice ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN gave_up_after INTEGER;
CREATE INDEX delivery_held_why ON delivery (held_why) WHERE state = 'held';
INSERT INTO meta VALUES ('ledger_id', lower(hex(randomblob(16)))), ('generation', '0'), ('delivery_steps', '0');
CREATE TRIGGER delivery_step AFTER UPDATE OF state ON delivery
BEGIN UPDATE meta SET value = value + 1 WHERE key = 'delivery_steps'; END;

ALTER TABLE delivery ADD COLUMN abandoned_by TEXT;
CREATE INDEX delivery_given_up ON delivery (id) WHERE state = 'abandoned' AND abandoned_by IS NULL;
DROP VIEW deliveries;
CREATE VIEW deliveries AS SELECT
  e.event_id, e.seq, i.order_id, e.kind, d.hook, d.state, d.attempts,
  strftime('%Y-%m-%dT%H:%M:%S', d.next_ms / 1000, 'unixepoch') || printf('.%03dZ', d.next_ms % 1000) AS next_at,
  d.next_ms, CASE d.state WHEN 'held' THEN d.held_why END AS held_why, d.replay, d.abandoned_by
FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice;
"
);

/// [`in_front`] by the index that files the unfinished. Not by a list of three states: SQLite makes a table of such a list each
/// time it is asked, which took half of what it takes to write a delivery.
macro_rules! unfinished_in_front {
    () => {
        "(SELECT o.id FROM delivery o WHERE o.invoice = delivery.invoice AND o.event < delivery.event \
         AND o.hook = delivery.hook AND o.state <> 'done' AND o.state <> 'abandoned' ORDER BY o.event DESC LIMIT 1)"
    };
}

/// The one whose turn it may be when this one is out of the way: the next unfinished one of the same invoice and hook, when
/// it is filed as being behind another. Whatever is behind that one stays behind it.
macro_rules! next_behind {
    ($gone:literal) => {
        concat!(
            "blocked_by IS NOT NULL AND id = (SELECT o.id FROM delivery o WHERE o.invoice = ",
            $gone,
            ".invoice AND o.hook = ",
            $gone,
            ".hook AND o.event > ",
            $gone,
            ".event AND o.state <> 'done' AND o.state <> 'abandoned' ORDER BY o.event LIMIT 1)"
        )
    };
}

/// What a notification writes, once instead of twice. An event that tells all that changed of its invoice has the invoice's
/// revision, and the invoice's row is left as it was: while the newest event of an open invoice has a higher revision than the
/// row, status and times are the event's. An event that was made by the very claim that was heard is its line of
/// history too; lines beside it note which event they come after, and those of before this step come after all events of
/// before it. The newest instant that was heard of an invoice tells whether a claim can be known; of invoices of before it is
/// not known. The document that stands is not written a second time when an event has it. What is behind another delivery is
/// written with it instead of by a trigger after it. An index costs a new delivery something even when it does not file it,
/// so two file by their state those that neither wait nor are done, instead of one for each question, beside the one that README's question for what was given up reads; and whoever waits next
/// behind one that ends is found among the unfinished, since there is at most one whose turn it can be. Nothing stored is
/// rewritten here, however much there is, and of the deliveries only those that are not done are filed anew.
const FEWER_WRITES: &str = concat!(
    "
ALTER TABLE invoice ADD COLUMN newest_ns INTEGER;
ALTER TABLE invoice ADD COLUMN raw_event INTEGER;
ALTER TABLE event ADD COLUMN decision TEXT;
ALTER TABLE event ADD COLUMN why TEXT;
ALTER TABLE event ADD COLUMN revision INTEGER;
ALTER TABLE history ADD COLUMN after_event INTEGER;
INSERT INTO meta SELECT 'history_after', coalesce(max(seq), 0) FROM event;
DROP TRIGGER delivery_made;
DROP TRIGGER delivery_waits;
DROP TRIGGER delivery_ended;
DROP TRIGGER delivery_withdrawn;
DROP INDEX delivery_invoice;
DROP INDEX delivery_blocked;
DROP INDEX delivery_running;
DROP INDEX delivery_held;
DROP INDEX delivery_held_why;
DROP INDEX delivery_given_up;
CREATE INDEX delivery_unfinished ON delivery (invoice, hook, event) WHERE state <> 'done' AND state <> 'abandoned';
CREATE INDEX delivery_aside ON delivery (state) WHERE state <> 'waiting' AND state <> 'done';
CREATE INDEX delivery_aside_why ON delivery (state, abandoned_by, held_why) WHERE state <> 'waiting' AND state <> 'done';
CREATE TRIGGER delivery_waits AFTER UPDATE OF state ON delivery
WHEN NEW.state = 'waiting' AND OLD.state IN ('held', 'done', 'abandoned')
BEGIN UPDATE delivery SET blocked_by = ", unfinished_in_front!(), " WHERE id = NEW.id; END;
CREATE TRIGGER delivery_ended AFTER UPDATE OF state ON delivery WHEN NEW.state IN ('done', 'abandoned')
BEGIN UPDATE delivery SET blocked_by = ", unfinished_in_front!(), " WHERE ", next_behind!("NEW"), "; END;
CREATE TRIGGER delivery_withdrawn AFTER DELETE ON delivery
BEGIN UPDATE delivery SET blocked_by = ", unfinished_in_front!(), " WHERE ", next_behind!("OLD"), "; END;

DROP VIEW invoices;
CREATE VIEW invoices AS SELECT
  i.order_id, i.invoice_id, i.mode, i.method, ifnull(n.status, i.status) AS status, i.outcome,
  i.amount_asked, i.amount_agreed, i.amount_reported,
  i.currency_agreed AS currency, i.currency_asked, i.currency_reported,
  i.opening, i.doubt, i.attention, i.found_by, i.ref,
  strftime('%Y-%m-%dT%H:%M:%S', i.expire_ms / 1000, 'unixepoch') || printf('.%03dZ', i.expire_ms % 1000) AS expire_at,
  i.expire_ms,
  strftime('%Y-%m-%dT%H:%M:%S', i.created_ms / 1000, 'unixepoch') || printf('.%03dZ', i.created_ms % 1000) AS created_at,
  i.created_ms,
  strftime('%Y-%m-%dT%H:%M:%S', ifnull(n.at_ms, i.updated_ms) / 1000, 'unixepoch')
    || printf('.%03dZ', ifnull(n.at_ms, i.updated_ms) % 1000) AS updated_at,
  ifnull(n.at_ms, i.updated_ms) AS updated_ms
FROM invoice i LEFT JOIN event n ON n.seq = iif(i.outcome = 'open' AND i.status IS NOT NULL,
  (SELECT max(l.seq) FROM event l WHERE l.invoice = i.id), NULL) AND n.revision > i.revision;
"
);

#[cfg(test)]
mod tests;
