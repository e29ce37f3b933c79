//! An event that never happened, for a hook that is tried out before the first one. Every name in it says so.

use crate::hook::Selector;
use crate::hook::abandonment::GivenUp;
use crate::hook::payload::Facts;
use crate::invoice::event::EventKind;
use crate::invoice::moment::Moment;
use crate::invoice::opening::Mode;
use crate::invoice::status::Outcome;
use crate::wire::invoice::InvoiceBody;

/// How long the sample's payment window is, milliseconds.
const WINDOW_MS: i64 = 1_800_000;

/// The order every sample is about; never one of the shop's.
const ORDER: &str = "sample-order";

/// The sample of what a hook with this selector is told.
pub(super) fn facts(hook: &str, wish: &Selector, now_ms: i64) -> Facts {
    let (kind, status) = kind_and_status(wish);
    let outcome = match kind {
        EventKind::Opened | EventKind::Status | EventKind::Unresolved | EventKind::Operator => {
            Outcome::Open
        }
        EventKind::Paid | EventKind::PaidAgain | EventKind::Late => Outcome::Paid,
        EventKind::Failed => Outcome::Failed,
        EventKind::Reversed => Outcome::Reversed,
        EventKind::Mismatch => Outcome::Mismatch,
        EventKind::SecondPayment => Outcome::SecondPayment,
    };
    let now = Moment::from_ms(now_ms).to_string();
    let body = InvoiceBody {
        id: "sample-invoice".to_owned(),
        status: status.clone(),
        amount: "100.00".to_owned(),
        currency: "RUB".to_owned(),
        rate: "1.00".to_owned(),
        created_at: now.clone(),
        updated_at: now,
        internal_id: ORDER.to_owned(),
        merchant: "sample".to_owned(),
        ..InvoiceBody::default()
    };
    Facts {
        hook: hook.to_owned(),
        attempt: 1,
        replay: false,
        event_id: "sample-event".to_owned(),
        seq: 0,
        kind,
        rewound: false,
        at_ms: now_ms,
        source: None,
        status: Some(status),
        previous_status: Some("new".to_owned()),
        outcome,
        previous_outcome: Outcome::Open,
        order_outcome: if kind == EventKind::SecondPayment {
            Outcome::Paid
        } else {
            outcome
        },
        order_id: ORDER.to_owned(),
        invoice_id: Some(body.id.clone()),
        invoice_ref: "sample-ref".to_owned(),
        mode: Mode::H2h.as_str().to_owned(),
        method: "SBP".to_owned(),
        amount_asked: body.amount.clone(),
        amount_agreed: body.amount.clone(),
        currency_agreed: body.currency.clone(),
        amount_reported: Some(body.amount.clone()),
        currency_reported: Some(body.currency.clone()),
        payment_url: None,
        requisites: None,
        expire_ms: Some(now_ms.saturating_add(WINDOW_MS)),
        service: Some(body.to_json().to_string()),
        abandoned: None,
    }
}

/// The sample of what is told when a delivery was given up.
pub(super) fn abandonment(hook: &str, now_ms: i64) -> Facts {
    let facts = facts(hook, &Selector::Kind(EventKind::Paid), now_ms);
    let given_up = GivenUp {
        hook: "sample-hook".to_owned(),
        event_id: facts.event_id.clone(),
        attempts: 1,
        at_ms: now_ms,
        result: "exit 1".to_owned(),
        stderr: "sample-stderr\n".to_owned(),
    };
    facts.telling(given_up)
}

/// The kind of event the hook waits for, with a status that is the service's only when the hook names one.
fn kind_and_status(wish: &Selector) -> (EventKind, String) {
    let kind = match wish {
        Selector::All => EventKind::Paid,
        Selector::Kind(kind) => *kind,
        Selector::Status(name) => return (EventKind::Status, name.clone()),
    };
    (kind, format!("sample-{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::event::Change;
    use crate::invoice::status::Status;

    #[test]
    fn a_hook_is_shown_an_event_it_waits_for() {
        for word in [
            "paid",
            "paid_again",
            "failed",
            "reversed",
            "late",
            "mismatch",
            "second_payment",
            "unresolved",
            "status:done",
            "*",
        ] {
            let selector = Selector::parse(word).expect(word);
            let facts = facts("fulfil", &selector, 0);
            let change = Change {
                kind: facts.kind,
                rewound: facts.rewound,
                cause: None,
                status: facts.status.and_then(Status::new),
                previous_status: None,
                outcome: facts.outcome,
                previous_outcome: facts.previous_outcome,
                order_outcome: facts.order_outcome,
            };
            assert!(selector.wants(&change), "{word}");
        }
    }
}
