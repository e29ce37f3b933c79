//! One line of a timeline, in the words of `--json`. Fields are only ever added; those of a kind are always there, `null`
//! when there is nothing to say.

use serde::Serialize;

use super::super::delivery::Written;

/// One line: which invoice, when, and what.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    pub(super) order_id: &'a str,
    pub(super) invoice_id: Option<&'a str>,
    pub(super) r#ref: &'a str,
    /// UTC with milliseconds; `null` for what has no time of its own.
    pub(super) at: Option<String>,
    #[serde(flatten)]
    pub(super) fact: Fact<'a>,
}

/// What happened.
#[derive(Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum Fact<'a> {
    /// Older lines of a kind are not there: dropped by the ledger (`history`), or too many.
    Dropped {
        /// `history`, `refusals` or `events`.
        of: &'static str,
        /// How many, where that is known.
        count: Option<u64>,
    },
    /// The row was written; the request to the service followed.
    Create {
        amount: &'a str,
        currency: &'a str,
        method: &'a str,
        mode: &'static str,
        /// How the request ended, or that it has not.
        opening: &'static str,
        opening_note: Option<&'a str>,
    },
    /// A notification for its ref that was not accepted.
    Refusal {
        reason: &'a str,
        client: &'a str,
        /// `null` when the body was not read to its end.
        body_bytes: Option<i64>,
        headers: Vec<&'a str>,
        /// How many names beyond those kept there were.
        headers_left_out: u64,
    },
    /// What the service or a person said of it, and what was decided.
    Observation {
        source: &'static str,
        /// `null` for what a person did.
        status: Option<&'a str>,
        amount_reported: Option<&'a str>,
        currency_reported: Option<&'a str>,
        /// The service's own instant.
        updated_at: Option<String>,
        /// In what it differs from what was agreed.
        differs: Option<&'a str>,
        decision: &'static str,
        why: &'static str,
        /// The rule in a sentence.
        sentence: &'static str,
    },
    /// A committed change.
    Event {
        seq: i64,
        event_id: &'a str,
        kind: &'static str,
        status: Option<&'a str>,
        previous_status: Option<&'a str>,
        outcome: &'static str,
        previous_outcome: &'static str,
        rewound: bool,
        source: Option<&'static str>,
    },
    /// An event owed to a hook. It has no time of its own and stands at the event's.
    Delivery {
        seq: i64,
        event_id: &'a str,
        hook: &'a str,
        state: &'static str,
        attempts: u32,
        next_at: Option<String>,
        held_why: Option<&'a str>,
        /// It was done once, and a person wanted it run again.
        replay: bool,
        /// `operator` when a person gave it up.
        abandoned_by: Option<&'a str>,
        behind_seq: Option<i64>,
    },
    /// One run of a hook; `result` and what follows are `null` while it runs.
    Attempt {
        seq: i64,
        event_id: &'a str,
        hook: &'a str,
        number: u32,
        result: Option<&'a str>,
        duration_ms: Option<i64>,
        stdout: Option<Written<'a>>,
        stderr: Option<Written<'a>>,
        /// There is more output than this; `--full` gives it.
        output_cut: bool,
    },
    /// Last: how far the questions to the service are.
    Asking {
        asked_at: Option<String>,
        /// Questions in a row without an answer.
        unanswered: u32,
        due_at: Option<String>,
    },
}
