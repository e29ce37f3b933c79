//! Puts the facts of one invoice in the order in which they came. Of one millisecond: create, refusal, observation, event,
//! delivery, attempt.

use std::str;

use super::super::delivery::Written;
use super::super::refusal::headers;
use super::fact::{Fact, Line};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::ledger::{
    Asking, AttemptStory, DeliveryState, DeliveryStory, EventRow, HistoryRow, InvoiceRow,
    RefusedRow, Story,
};

/// The place of a kind among facts of the same millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Create,
    Refusal,
    Observation,
    Event,
    Delivery,
    Attempt,
}

/// All lines of an invoice: what is missing, what happened, and how it is asked about.
pub(super) fn facts(story: &Story) -> Vec<Line<'_>> {
    let row = &story.invoice;
    let mut timed: Vec<(i64, Rank, Fact<'_>)> = vec![(row.created_ms, Rank::Create, create(row))];
    for refused in &story.refusals {
        timed.push((refused.at_ms, Rank::Refusal, refusal(refused)));
    }
    for said in &story.history {
        timed.push((said.at_ms, Rank::Observation, observation(said)));
    }
    for told in &story.events {
        let changed = &told.event;
        timed.push((changed.at_ms, Rank::Event, event(changed)));
        for owed in &told.deliveries {
            timed.push((changed.at_ms, Rank::Delivery, delivery(owed)));
            for ran in &owed.attempts {
                timed.push((ran.row.started_ms, Rank::Attempt, attempt(owed, ran)));
            }
            if let Some(since_ms) = owed.running_since_ms {
                timed.push((since_ms, Rank::Attempt, running(owed)));
            }
        }
    }
    // Stable: what came in order stays in order.
    timed.sort_by_key(|(at_ms, rank, _)| (*at_ms, *rank));
    let line = |at, fact| Line {
        order_id: &row.order_id,
        invoice_id: row.invoice_id.as_deref(),
        r#ref: row.reference.as_str(),
        at,
        fact,
    };
    let mut lines: Vec<Line<'_>> = dropped(story).map(|fact| line(None, fact)).collect();
    lines.extend(
        timed
            .into_iter()
            .map(|(at_ms, _, fact)| line(Some(time(at_ms)), fact)),
    );
    lines.extend(story.asking.as_ref().map(|state| line(None, asking(state))));
    lines
}

fn dropped(story: &Story) -> impl Iterator<Item = Fact<'_>> {
    let history = Some(story.history_dropped).filter(|count| *count > 0);
    let kinds = [
        ("history", history.is_some(), history),
        ("refusals", story.more_refusals, None),
        ("events", story.more_events, None),
    ];
    kinds
        .into_iter()
        .filter(|(_, there, _)| *there)
        .map(|(of, _, count)| Fact::Dropped { of, count })
}

fn create(row: &InvoiceRow) -> Fact<'_> {
    Fact::Create {
        amount: &row.amount_asked,
        currency: &row.currency_asked,
        method: &row.method,
        mode: row.mode.as_str(),
        opening: row.opening.as_str(),
        opening_note: row.opening_note.as_deref(),
    }
}

fn refusal(row: &RefusedRow) -> Fact<'_> {
    let (headers, headers_left_out) = headers(&row.header_names);
    Fact::Refusal {
        reason: &row.reason,
        client: &row.peer,
        body_bytes: row.body_bytes,
        headers,
        headers_left_out,
    }
}

fn observation(row: &HistoryRow) -> Fact<'_> {
    Fact::Observation {
        source: row.source.as_str(),
        status: row.status.as_deref(),
        amount_reported: row.amount_reported.as_deref(),
        currency_reported: row.currency_reported.as_deref(),
        updated_at: row.claimed_at.map(|at| at.to_string()),
        differs: row.differs.as_deref(),
        decision: row.decision.as_str(),
        why: row.why.as_str(),
        sentence: row.why.sentence(),
    }
}

fn event(row: &EventRow) -> Fact<'_> {
    Fact::Event {
        seq: row.seq,
        event_id: &row.event_id,
        kind: row.kind.as_str(),
        status: row.status.as_deref(),
        previous_status: row.previous_status.as_deref(),
        outcome: row.outcome.as_str(),
        previous_outcome: row.previous_outcome.as_str(),
        rewound: row.rewound,
        source: row.source.map(Source::as_str),
    }
}

fn delivery(owed: &DeliveryStory) -> Fact<'_> {
    let row = &owed.row;
    let waits = row.state == DeliveryState::Waiting;
    Fact::Delivery {
        seq: row.seq,
        event_id: &row.event_id,
        hook: &row.hook,
        state: row.state.as_str(),
        attempts: row.attempts,
        next_at: row.next_ms.filter(|_| waits).map(time),
        held_why: row.held_why.as_deref(),
        replay: row.replay,
        abandoned_by: row.abandoned_by.as_deref(),
        behind_seq: row.behind,
    }
}

fn attempt<'a>(owed: &'a DeliveryStory, ran: &'a AttemptStory) -> Fact<'a> {
    let row = &ran.row;
    let (stdout, stdout_cut) = beginning(&row.stdout, ran.stdout_bytes);
    let (stderr, stderr_cut) = beginning(&row.stderr, ran.stderr_bytes);
    Fact::Attempt {
        seq: owed.row.seq,
        event_id: &owed.row.event_id,
        hook: &owed.row.hook,
        number: row.number,
        result: Some(&row.result),
        duration_ms: Some(row.ended_ms.saturating_sub(row.started_ms).max(0)),
        stdout: Some(Written::new(stdout)),
        stderr: Some(Written::new(stderr)),
        output_cut: stdout_cut || stderr_cut,
    }
}

fn running(owed: &DeliveryStory) -> Fact<'_> {
    Fact::Attempt {
        seq: owed.row.seq,
        event_id: &owed.row.event_id,
        hook: &owed.row.hook,
        number: owed.row.attempts,
        result: None,
        duration_ms: None,
        stdout: None,
        stderr: None,
        output_cut: false,
    }
}

/// What was read of an output, and whether there is more. A cut through a character would make all of it no text.
fn beginning(bytes: &[u8], kept: u64) -> (&[u8], bool) {
    let cut = u64::try_from(bytes.len()).is_ok_and(|length| length < kept);
    let whole = match str::from_utf8(bytes) {
        Err(torn) if cut && torn.error_len().is_none() => torn.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    };
    (bytes.get(..whole).unwrap_or(bytes), cut)
}

fn asking(state: &Asking) -> Fact<'_> {
    Fact::Asking {
        asked_at: state.asked_ms.map(time),
        unanswered: state.unanswered,
        due_at: state.due_ms.map(time),
    }
}

fn time(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_tears_a_character() {
        let text = "раз".as_bytes();
        assert_eq!(beginning(text, 6), (text, false));
        assert_eq!(
            beginning(b"\xd1\x80\xd0\xb0\xd0", 6),
            ("ра".as_bytes(), true)
        );
        // No text before the cut either: given as it is.
        assert_eq!(beginning(b"\xff\xd1", 3), (b"\xff\xd1".as_slice(), true));
    }
}
