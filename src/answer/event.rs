//! An event as one JSON object, the same at every door. Fields are only ever added and always there.

use serde::Serialize;

use super::invoice::time;
use crate::invoice::observation::Source;
use crate::ledger::EventRow;

/// One event. Times are UTC with milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Shown<'a> {
    seq: i64,
    event_id: &'a str,
    order_id: &'a str,
    kind: &'static str,
    status: Option<&'a str>,
    previous_status: Option<&'a str>,
    outcome: &'static str,
    previous_outcome: &'static str,
    amount_reported: Option<&'a str>,
    currency_reported: Option<&'a str>,
    rewound: bool,
    source: Option<&'static str>,
    at: String,
}

/// The JSON object of an event.
pub(crate) fn json(row: &EventRow) -> Shown<'_> {
    Shown {
        seq: row.seq,
        event_id: &row.event_id,
        order_id: &row.order_id,
        kind: row.kind.as_str(),
        status: row.status.as_deref(),
        previous_status: row.previous_status.as_deref(),
        outcome: row.outcome.as_str(),
        previous_outcome: row.previous_outcome.as_str(),
        amount_reported: row.amount_reported.as_deref(),
        currency_reported: row.currency_reported.as_deref(),
        rewound: row.rewound,
        source: row.source.map(Source::as_str),
        at: time(row.at_ms),
    }
}
