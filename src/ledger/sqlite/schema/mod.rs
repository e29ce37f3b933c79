//! The tables, the views and the numbered steps between versions of them.
//!
//! Tables are private. The six views are the public contract: columns are only ever added to them. Each step runs in
//! the one transaction that also raises `user_version`, so a step is taken whole or not at all.
//!
//! Readers may have an old SQLite, such as 3.33: nothing newer may stand here, `STRICT` among it. What a column holds is
//! checked instead, but for the keys that SQLite checks itself; in a TEXT column numbers become text, and only a blob is wrong.

/// The steps. The index of a step plus one is the version it leads to. Steps that were released are never edited.
pub(super) const STEPS: [&str; 1] = [TABLES_AND_VIEWS];

/// Marks a file as a ledger of tilld (`PRAGMA application_id`): "tild" in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x7469_6c64;

/// The delivery that one is behind: the nearest earlier unfinished one of the same invoice and hook, by the index of the
/// unfinished. Not by a list of three states: SQLite makes a table of such a list each time, which took half of the time that
/// writing a delivery takes.
macro_rules! in_front {
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

const TABLES_AND_VIEWS: &str = concat!(
    "
-- `newest_ns` is the newest instant that was heard of the invoice: a claim that is newer cannot be known. `generation` is that
-- of the ledger when a poll last said how the invoice stands: what a restored ledger had missed is found by it. The invoice with
-- the highest `rank` stands for its order. One that was refused has a rank below zero, which it had above zero before.
CREATE TABLE invoice (
  id INTEGER PRIMARY KEY,
  ref TEXT NOT NULL UNIQUE CHECK (typeof(ref) <> 'blob'),
  order_id TEXT NOT NULL CHECK (typeof(order_id) <> 'blob'),
  invoice_id TEXT UNIQUE CHECK (typeof(invoice_id) <> 'blob'),
  mode TEXT NOT NULL CHECK (typeof(mode) <> 'blob'),
  method TEXT NOT NULL CHECK (typeof(method) <> 'blob'),
  opening TEXT NOT NULL CHECK (typeof(opening) <> 'blob'),
  opening_note TEXT CHECK (typeof(opening_note) <> 'blob'),
  creator_boot TEXT CHECK (typeof(creator_boot) <> 'blob'),
  creator_pid INTEGER CHECK (typeof(creator_pid) IN ('integer', 'null')),
  creator_start INTEGER CHECK (typeof(creator_start) IN ('integer', 'null')),
  creator_deadline_ms INTEGER NOT NULL CHECK (typeof(creator_deadline_ms) = 'integer'),
  amount_asked TEXT NOT NULL CHECK (typeof(amount_asked) <> 'blob'),
  currency_asked TEXT NOT NULL CHECK (typeof(currency_asked) <> 'blob'),
  amount_agreed TEXT NOT NULL CHECK (typeof(amount_agreed) <> 'blob'),
  currency_agreed TEXT NOT NULL CHECK (typeof(currency_agreed) <> 'blob'),
  amount_reported TEXT CHECK (typeof(amount_reported) <> 'blob'),
  currency_reported TEXT CHECK (typeof(currency_reported) <> 'blob'),
  revision INTEGER NOT NULL DEFAULT 0 CHECK (typeof(revision) = 'integer'),
  status TEXT CHECK (typeof(status) <> 'blob'),
  claim_differs TEXT CHECK (typeof(claim_differs) <> 'blob'),
  claim_ns INTEGER CHECK (typeof(claim_ns) IN ('integer', 'null')),
  sorted_status TEXT CHECK (typeof(sorted_status) <> 'blob'),
  sorted_meaning TEXT CHECK (typeof(sorted_meaning) <> 'blob'),
  sorted_differs TEXT CHECK (typeof(sorted_differs) <> 'blob'),
  sorted_ns INTEGER CHECK (typeof(sorted_ns) IN ('integer', 'null')),
  sorted_settled INTEGER NOT NULL DEFAULT 0 CHECK (typeof(sorted_settled) = 'integer'),
  outcome TEXT NOT NULL DEFAULT 'open' CHECK (typeof(outcome) <> 'blob'),
  outcome_ms INTEGER NOT NULL CHECK (typeof(outcome_ms) = 'integer'),
  found_by TEXT CHECK (typeof(found_by) <> 'blob'),
  doubt INTEGER NOT NULL DEFAULT 0 CHECK (typeof(doubt) = 'integer'),
  doubted TEXT CHECK (typeof(doubted) <> 'blob'),
  pending TEXT CHECK (typeof(pending) <> 'blob'),
  paid_counted INTEGER NOT NULL DEFAULT 0 CHECK (typeof(paid_counted) = 'integer'),
  paid_fired INTEGER NOT NULL DEFAULT 0 CHECK (typeof(paid_fired) = 'integer'),
  attention TEXT NOT NULL DEFAULT '' CHECK (typeof(attention) <> 'blob'),
  unresolved INTEGER NOT NULL DEFAULT 0 CHECK (typeof(unresolved) = 'integer'),
  requisites TEXT CHECK (typeof(requisites) <> 'blob'),
  payment_url TEXT CHECK (typeof(payment_url) <> 'blob'),
  raw TEXT CHECK (typeof(raw) <> 'blob'),
  expire_ms INTEGER CHECK (typeof(expire_ms) IN ('integer', 'null')),
  heard_ms INTEGER CHECK (typeof(heard_ms) IN ('integer', 'null')),
  history_count INTEGER NOT NULL DEFAULT 0 CHECK (typeof(history_count) = 'integer'),
  created_ms INTEGER NOT NULL CHECK (typeof(created_ms) = 'integer'),
  updated_ms INTEGER NOT NULL CHECK (typeof(updated_ms) = 'integer'),
  failed_fired INTEGER NOT NULL DEFAULT 0 CHECK (typeof(failed_fired) = 'integer'),
  sorted_by INTEGER NOT NULL DEFAULT 0 CHECK (typeof(sorted_by) = 'integer'),
  generation INTEGER NOT NULL DEFAULT 0 CHECK (typeof(generation) = 'integer'),
  newest_ns INTEGER NOT NULL DEFAULT 0 CHECK (typeof(newest_ns) = 'integer'),
  rank INTEGER NOT NULL DEFAULT 0 CHECK (typeof(rank) = 'integer')
);
CREATE INDEX invoice_order ON invoice (order_id, rank);
CREATE INDEX invoice_creating ON invoice (creator_deadline_ms) WHERE opening = 'creating';
CREATE INDEX invoice_attention ON invoice (id) WHERE attention <> '';
-- What can still be paid: of a million invoices few are.
CREATE INDEX invoice_open ON invoice (id) WHERE outcome = 'open' AND opening <> 'refused';

CREATE TABLE secret (
  invoice INTEGER PRIMARY KEY REFERENCES invoice (id),
  sealed BLOB NOT NULL CHECK (typeof(sealed) = 'blob')
);

CREATE TABLE poll (
  invoice INTEGER PRIMARY KEY REFERENCES invoice (id),
  due_ms INTEGER CHECK (typeof(due_ms) IN ('integer', 'null')),
  asked_ms INTEGER CHECK (typeof(asked_ms) IN ('integer', 'null')),
  nudged_ms INTEGER CHECK (typeof(nudged_ms) IN ('integer', 'null')),
  failures INTEGER NOT NULL DEFAULT 0 CHECK (typeof(failures) = 'integer'),
  class INTEGER NOT NULL CHECK (typeof(class) = 'integer'),
  service_ms INTEGER CHECK (typeof(service_ms) IN ('integer', 'null')),
  first_service_ms INTEGER CHECK (typeof(first_service_ms) IN ('integer', 'null')),
  ended_answers INTEGER NOT NULL CHECK (typeof(ended_answers) = 'integer'),
  ended_since_ms INTEGER CHECK (typeof(ended_since_ms) IN ('integer', 'null')),
  retired_ms INTEGER CHECK (typeof(retired_ms) IN ('integer', 'null')),
  answered_ms INTEGER CHECK (typeof(answered_ms) IN ('integer', 'null')),
  gone_since_ms INTEGER CHECK (typeof(gone_since_ms) IN ('integer', 'null')),
  gone_ms INTEGER CHECK (typeof(gone_ms) IN ('integer', 'null')),
  alerted_ms INTEGER CHECK (typeof(alerted_ms) IN ('integer', 'null'))
);
-- By class (`silence::class`), so that the due ones of one class are found without reading past those of another.
CREATE INDEX poll_due ON poll (class, due_ms) WHERE due_ms IS NOT NULL;
-- Invoices that are polled no more because their time is over: those that a wrong clock put there must be found.
CREATE INDEX poll_retired ON poll (retired_ms) WHERE retired_ms IS NOT NULL;

-- One with a `decision` was made by the very claim that was heard, and is its line of history too. `vouched`: the program that
-- wrote it wrote all deliveries it is owed.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL UNIQUE CHECK (typeof(event_id) <> 'blob'),
  invoice INTEGER NOT NULL REFERENCES invoice (id) CHECK (typeof(invoice) = 'integer'),
  kind TEXT NOT NULL CHECK (typeof(kind) <> 'blob'),
  rewound INTEGER NOT NULL CHECK (typeof(rewound) = 'integer'),
  cause_status TEXT CHECK (typeof(cause_status) <> 'blob'),
  cause_differs TEXT CHECK (typeof(cause_differs) <> 'blob'),
  cause_ns INTEGER CHECK (typeof(cause_ns) IN ('integer', 'null')),
  status TEXT CHECK (typeof(status) <> 'blob'),
  previous_status TEXT CHECK (typeof(previous_status) <> 'blob'),
  outcome TEXT NOT NULL CHECK (typeof(outcome) <> 'blob'),
  previous_outcome TEXT NOT NULL CHECK (typeof(previous_outcome) <> 'blob'),
  source TEXT CHECK (typeof(source) <> 'blob'),
  at_ms INTEGER NOT NULL CHECK (typeof(at_ms) = 'integer'),
  amount_reported TEXT CHECK (typeof(amount_reported) <> 'blob'),
  currency_reported TEXT CHECK (typeof(currency_reported) <> 'blob'),
  raw TEXT CHECK (typeof(raw) <> 'blob'),
  decision TEXT CHECK (typeof(decision) <> 'blob'),
  why TEXT CHECK (typeof(why) <> 'blob'),
  vouched INTEGER NOT NULL DEFAULT 0 CHECK (typeof(vouched) = 'integer'),
  order_outcome TEXT NOT NULL DEFAULT 'open' CHECK (typeof(order_outcome) <> 'blob'),
  time_unsure INTEGER NOT NULL DEFAULT 0 CHECK (typeof(time_unsure) = 'integer')
);
CREATE INDEX event_invoice ON event (invoice);
-- Those that another program wrote, or took a delivery from: few, if any.
CREATE INDEX event_unvouched ON event (seq) WHERE vouched = 0;
-- Those dated by a clock that may have been wrong: few, if any. Before 2025 no clock was ever set (`CLOCK_IS_SET_MS`).
CREATE INDEX event_unsure ON event (invoice) WHERE time_unsure = 1;

-- `blocked_by` is the delivery that one is behind, for as long as it is, so that no search for something to run reads it.
-- `served_ms`: how long daemons had served with something owed when this was owed; what is late is counted from it.
-- `next_ms` was planned at `next_ms - wait_ms`: what lies ahead of the clock there was planned by a clock that was ahead.
-- A number is never given twice, though what had it was withdrawn: a script may go by it.
CREATE TABLE delivery (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event INTEGER NOT NULL REFERENCES event (seq) CHECK (typeof(event) = 'integer'),
  invoice INTEGER NOT NULL REFERENCES invoice (id) CHECK (typeof(invoice) = 'integer'),
  hook TEXT NOT NULL CHECK (typeof(hook) <> 'blob'),
  state TEXT NOT NULL CHECK (typeof(state) <> 'blob'),
  attempts INTEGER NOT NULL DEFAULT 0 CHECK (typeof(attempts) = 'integer'),
  round_start INTEGER NOT NULL DEFAULT 0 CHECK (typeof(round_start) = 'integer'),
  replay INTEGER NOT NULL DEFAULT 0 CHECK (typeof(replay) = 'integer'),
  next_ms INTEGER CHECK (typeof(next_ms) IN ('integer', 'null')),
  started_ms INTEGER CHECK (typeof(started_ms) IN ('integer', 'null')),
  claimant_boot TEXT CHECK (typeof(claimant_boot) <> 'blob'),
  claimant_pid INTEGER CHECK (typeof(claimant_pid) IN ('integer', 'null')),
  claimant_start INTEGER CHECK (typeof(claimant_start) IN ('integer', 'null')),
  child_boot TEXT CHECK (typeof(child_boot) <> 'blob'),
  child_pid INTEGER CHECK (typeof(child_pid) IN ('integer', 'null')),
  child_start INTEGER CHECK (typeof(child_start) IN ('integer', 'null')),
  held_why TEXT CHECK (typeof(held_why) <> 'blob'),
  blocked_by INTEGER CHECK (typeof(blocked_by) IN ('integer', 'null')),
  gave_up_after INTEGER CHECK (typeof(gave_up_after) IN ('integer', 'null')),
  abandoned_by TEXT CHECK (typeof(abandoned_by) <> 'blob'),
  acknowledged INTEGER NOT NULL DEFAULT 0 CHECK (typeof(acknowledged) = 'integer'),
  wait_ms INTEGER NOT NULL DEFAULT 0 CHECK (typeof(wait_ms) = 'integer'),
  served_ms INTEGER NOT NULL DEFAULT 0 CHECK (typeof(served_ms) = 'integer'),
  UNIQUE (event, hook)
);
-- By hook, so that the due ones of one hook are found without reading past those of another that hangs.
CREATE INDEX delivery_due ON delivery (hook, blocked_by, next_ms) WHERE state = 'waiting';
CREATE INDEX delivery_owed ON delivery (hook, served_ms) WHERE state <> 'done' AND state <> 'abandoned' AND state <> 'held';
CREATE INDEX delivery_unfinished ON delivery (invoice, hook, event) WHERE state <> 'done' AND state <> 'abandoned';
-- An index costs a new delivery something even when it does not file it. So these two serve all searches by state, and the
-- third the documented question for what was given up.
CREATE INDEX delivery_aside ON delivery (state) WHERE state <> 'waiting' AND state <> 'done';
CREATE INDEX delivery_aside_why ON delivery (state, acknowledged, held_why) WHERE state <> 'waiting' AND state <> 'done';
CREATE INDEX delivery_abandoned ON delivery (id) WHERE state = 'abandoned';

CREATE TABLE attempt (
  delivery INTEGER NOT NULL REFERENCES delivery (id) CHECK (typeof(delivery) = 'integer'),
  number INTEGER NOT NULL CHECK (typeof(number) = 'integer'),
  started_ms INTEGER NOT NULL CHECK (typeof(started_ms) = 'integer'),
  ended_ms INTEGER NOT NULL CHECK (typeof(ended_ms) = 'integer'),
  result TEXT NOT NULL CHECK (typeof(result) <> 'blob'),
  stdout BLOB NOT NULL CHECK (typeof(stdout) = 'blob'),
  stderr BLOB NOT NULL CHECK (typeof(stderr) = 'blob'),
  PRIMARY KEY (delivery, number)
) WITHOUT ROWID;

-- What was heard and is no event; `after_event` is the newest event of that moment.
CREATE TABLE history (
  id INTEGER PRIMARY KEY,
  invoice INTEGER NOT NULL REFERENCES invoice (id) CHECK (typeof(invoice) = 'integer'),
  at_ms INTEGER NOT NULL CHECK (typeof(at_ms) = 'integer'),
  source TEXT NOT NULL CHECK (typeof(source) <> 'blob'),
  status TEXT NOT NULL CHECK (typeof(status) <> 'blob'),
  differs TEXT CHECK (typeof(differs) <> 'blob'),
  claim_ns INTEGER CHECK (typeof(claim_ns) IN ('integer', 'null')),
  decision TEXT NOT NULL CHECK (typeof(decision) <> 'blob'),
  why TEXT NOT NULL CHECK (typeof(why) <> 'blob'),
  amount_reported TEXT CHECK (typeof(amount_reported) <> 'blob'),
  currency_reported TEXT CHECK (typeof(currency_reported) <> 'blob'),
  updated_at_text TEXT CHECK (typeof(updated_at_text) <> 'blob'),
  after_event INTEGER NOT NULL CHECK (typeof(after_event) = 'integer')
);
CREATE INDEX history_invoice ON history (invoice);

-- Two rings: refusals for known invoices, and strangers', who must not displace them. `turn` counts within its own.
CREATE TABLE refusal (
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL CHECK (typeof(at_ms) = 'integer'),
  invoice INTEGER REFERENCES invoice (id) CHECK (typeof(invoice) IN ('integer', 'null')),
  reason TEXT NOT NULL CHECK (typeof(reason) <> 'blob'),
  peer TEXT NOT NULL CHECK (typeof(peer) <> 'blob'),
  body_bytes INTEGER NOT NULL CHECK (typeof(body_bytes) = 'integer'),
  body_sha256 TEXT NOT NULL CHECK (typeof(body_sha256) <> 'blob'),
  ref_hash TEXT NOT NULL CHECK (typeof(ref_hash) <> 'blob'),
  header_names TEXT NOT NULL CHECK (typeof(header_names) <> 'blob'),
  turn INTEGER NOT NULL CHECK (typeof(turn) = 'integer')
);
CREATE INDEX refusal_known ON refusal (turn) WHERE invoice IS NOT NULL;
CREATE INDEX refusal_strange ON refusal (turn) WHERE invoice IS NULL;

CREATE TABLE meta (
  key TEXT PRIMARY KEY CHECK (typeof(key) <> 'blob'),
  value TEXT NOT NULL CHECK (typeof(value) <> 'blob')
) WITHOUT ROWID;

INSERT INTO meta VALUES ('ledger_id', lower(hex(randomblob(16)))), ('generation', '0'), ('delivery_steps', '0');

-- A new delivery is written with what it is behind; triggers note it of the others. At most one has its turn when another ends.
CREATE TRIGGER delivery_waits AFTER UPDATE OF state ON delivery
WHEN NEW.state = 'waiting' AND OLD.state IN ('held', 'done', 'abandoned')
BEGIN UPDATE delivery SET blocked_by = ", in_front!(), " WHERE id = NEW.id; END;
CREATE TRIGGER delivery_ended AFTER UPDATE OF state ON delivery WHEN NEW.state IN ('done', 'abandoned')
BEGIN UPDATE delivery SET blocked_by = ", in_front!(), " WHERE ", next_behind!("NEW"), "; END;
CREATE TRIGGER delivery_withdrawn AFTER DELETE ON delivery
BEGIN UPDATE event SET vouched = 0 WHERE seq = OLD.event; UPDATE delivery SET blocked_by = ", in_front!(), " WHERE ", next_behind!("OLD"), "; END;
-- Events and steps together tell an older copy of a ledger from it (`ledger/mark.rs`). No statement can forget to count.
CREATE TRIGGER delivery_step AFTER UPDATE OF state ON delivery
BEGIN UPDATE meta SET value = value + 1 WHERE key = 'delivery_steps'; END;

CREATE VIEW invoices AS SELECT
  i.order_id, i.invoice_id, i.mode, i.method, i.status, i.outcome,
  i.amount_asked, i.amount_agreed, i.amount_reported,
  i.currency_agreed AS currency, i.currency_asked, i.currency_reported,
  i.opening, i.doubt, i.attention, i.found_by, i.ref,
  strftime('%Y-%m-%dT%H:%M:%S', i.expire_ms / 1000, 'unixepoch') || printf('.%03dZ', i.expire_ms % 1000) AS expire_at,
  i.expire_ms,
  strftime('%Y-%m-%dT%H:%M:%S', i.created_ms / 1000, 'unixepoch') || printf('.%03dZ', i.created_ms % 1000) AS created_at,
  i.created_ms,
  strftime('%Y-%m-%dT%H:%M:%S', i.updated_ms / 1000, 'unixepoch') || printf('.%03dZ', i.updated_ms % 1000) AS updated_at,
  i.updated_ms,
  (SELECT s.ref FROM invoice s WHERE s.order_id = i.order_id AND s.rank > abs(i.rank) ORDER BY s.rank DESC LIMIT 1)
    AS superseded_by,
  (min(i.created_ms, i.updated_ms) < 1735689600000
    OR EXISTS (SELECT 1 FROM event u WHERE u.invoice = i.id AND u.time_unsure = 1)) AS time_unsure
FROM invoice i;

-- One line for each order: what a shop acts on. `received` is the money on all its invoices, added up as whole numbers; NULL
-- where one is not readable, has another currency or more digits than fit.
CREATE VIEW orders AS SELECT
  s.order_id, s.outcome, s.amount_agreed AS amount, s.currency_agreed AS currency,
  (SELECT CASE WHEN count(*) = 0 THEN '0'
     WHEN max(m.amount IS NULL OR m.amount LIKE '-%' OR ifnull(m.currency <> s.currency_agreed, 0)) THEN NULL
     WHEN count(*) = 1 THEN max(m.amount)
     WHEN max(m.point) > 16 OR max(length(m.amount) - m.point) > 9 THEN NULL
     ELSE (sum(CAST(substr(m.amount, 1, m.point - 1) AS INTEGER))
         + sum(CAST(substr(substr(m.amount, m.point + 1) || '000000000', 1, 9) AS INTEGER)) / 1000000000)
       || substr('.' || printf('%09d', sum(CAST(substr(substr(m.amount, m.point + 1) || '000000000', 1, 9) AS INTEGER))
         % 1000000000), 1, iif(max(length(m.amount) - m.point) > 0, max(length(m.amount) - m.point) + 1, 0))
     END
   FROM (SELECT o.amount_reported AS amount, o.currency_reported AS currency,
       instr(o.amount_reported || '.', '.') AS point
     FROM invoice o
     WHERE o.order_id = s.order_id AND o.outcome IN ('paid', 'mismatch', 'second_payment')) m) AS received,
  (SELECT count(*) FROM invoice o WHERE o.order_id = s.order_id AND o.opening <> 'refused') AS invoices,
  s.invoice_id, s.ref, s.opening,
  (SELECT max(o.doubt) FROM invoice o WHERE o.order_id = s.order_id) AS doubt,
  ifnull((SELECT group_concat(o.attention, ' ') FROM invoice o WHERE o.order_id = s.order_id AND o.attention <> ''), '')
    AS attention,
  strftime('%Y-%m-%dT%H:%M:%S', s.created_ms / 1000, 'unixepoch') || printf('.%03dZ', s.created_ms % 1000) AS created_at,
  s.created_ms
FROM invoice s WHERE s.id = (SELECT o.id FROM invoice o WHERE o.order_id = s.order_id
  ORDER BY o.rank < 0, abs(o.rank) DESC LIMIT 1);

CREATE VIEW events AS SELECT
  e.seq, e.event_id, i.order_id, i.invoice_id, e.kind, e.status, e.previous_status,
  e.outcome, e.previous_outcome, e.source, e.rewound, e.amount_reported, e.currency_reported,
  strftime('%Y-%m-%dT%H:%M:%S', e.at_ms / 1000, 'unixepoch') || printf('.%03dZ', e.at_ms % 1000) AS at,
  e.at_ms, e.order_outcome, (e.time_unsure = 1 OR e.at_ms < 1735689600000) AS time_unsure
FROM event e JOIN invoice i ON i.id = e.invoice;

CREATE VIEW deliveries AS SELECT
  e.event_id, e.seq, i.order_id, e.kind, d.hook, d.state, d.attempts,
  strftime('%Y-%m-%dT%H:%M:%S', d.next_ms / 1000, 'unixepoch') || printf('.%03dZ', d.next_ms % 1000) AS next_at,
  d.next_ms, CASE d.state WHEN 'held' THEN d.held_why END AS held_why, d.replay, d.abandoned_by
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
FROM invoice i
WHERE outcome = 'open' AND (requisites IS NOT NULL OR payment_url IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM invoice s WHERE s.order_id = i.order_id AND s.rank > abs(i.rank));
"
);

#[cfg(test)]
mod tests;
