//! An event as one JSON object, the same at every door. Fields are only ever added and always there.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::failure::{Exit, Failure};
use super::invoice::time;
use crate::invoice::observation::Source;
use crate::ledger::{EventRow, Restored};

/// One event. Times are UTC with milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Shown<'a> {
    /// Its number.
    pub(crate) seq: i64,
    event_id: Cow<'a, str>,
    /// The merchant's order.
    pub(crate) order_id: Cow<'a, str>,
    /// What kind of change it is.
    pub(crate) kind: Cow<'a, str>,
    /// The service's word from then on.
    pub(crate) status: Option<Cow<'a, str>>,
    previous_status: Option<Cow<'a, str>>,
    /// What it means.
    pub(crate) outcome: Cow<'a, str>,
    previous_outcome: Cow<'a, str>,
    amount_reported: Option<Cow<'a, str>>,
    currency_reported: Option<Cow<'a, str>>,
    rewound: bool,
    source: Option<Cow<'a, str>>,
    order_outcome: Cow<'a, str>,
    /// When it was recorded.
    pub(crate) at: String,
}

/// The JSON object of an event.
pub(crate) fn json(row: &EventRow) -> Shown<'_> {
    Shown {
        seq: row.seq,
        event_id: row.event_id.as_str().into(),
        order_id: row.order_id.as_str().into(),
        kind: row.kind.as_str().into(),
        status: row.status.as_deref().map(Into::into),
        previous_status: row.previous_status.as_deref().map(Into::into),
        outcome: row.outcome.as_str().into(),
        previous_outcome: row.previous_outcome.as_str().into(),
        amount_reported: row.amount_reported.as_deref().map(Into::into),
        currency_reported: row.currency_reported.as_deref().map(Into::into),
        rewound: row.rewound,
        source: row.source.map(Source::as_str).map(Into::into),
        order_outcome: row.order_outcome.as_str().into(),
        at: time(row.at_ms),
    }
}

/// A number that was given by a ledger that is not there any more, or by none.
pub(crate) fn not_given(after: i64, restored: Restored) -> Failure {
    let error = format!(
        "the ledger was restored, or never came so far: its event {after} is not the one that was seen, or is not there"
    );
    let Restored { generation, after } = restored;
    Failure::new(Exit::Ledger, error).hint(format!(
        "go on after {after} (`generation={generation}`); what was seen in the ledger that was lost may come again"
    ))
}
