//! What a hook is told: the JSON document on its standard input and the `TILLD_*` variables. Pure.
//!
//! Part of the public contract: fields and variables are only ever added. Short fields go into variables, each capped
//! and free of control characters; customer data (requisites) and anything long stands in the document alone (A37, A39).

mod document;

use std::ffi::OsString;
use std::path::Path;

use super::abandonment::{self, GivenUp};
use crate::invoice::event::EventKind;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::status::Outcome;

pub use document::document;

/// Longest variable, in bytes. Linux refuses 128 KiB; no field that belongs into a variable comes near this.
pub const LONGEST_VARIABLE: usize = 4096;

/// Every variable a hook is given besides `PATH`, `HOME` and `LANG`. None of them may be a setting.
pub const VARIABLES: [&str; 21] = [
    "TILLD_EVENT",
    "TILLD_EVENT_ID",
    "TILLD_ATTEMPT",
    "TILLD_REPLAY",
    "TILLD_SOURCE",
    "TILLD_ORDER_ID",
    "TILLD_INVOICE_ID",
    "TILLD_REF",
    "TILLD_STATUS",
    "TILLD_PREVIOUS_STATUS",
    "TILLD_OUTCOME",
    "TILLD_ORDER_OUTCOME",
    "TILLD_AMOUNT",
    "TILLD_AGREED_AMOUNT",
    "TILLD_CURRENCY",
    "TILLD_MODE",
    "TILLD_OCCURRED_AT",
    "TILLD_ABANDONED_HOOK",
    "TILLD_ABANDONED_EVENT_ID",
    "TILLD_ABANDONED_RESULT",
    "TILLD_PAYLOAD_FILE",
];

/// Every variable the program of `[attention]` is given besides `PATH`, `HOME` and `LANG`, the path of its document last.
pub const ALARM_VARIABLES: [&str; 7] = [
    "TILLD_EVENT",
    "TILLD_ATTEMPT",
    "TILLD_ALERT",
    "TILLD_MESSAGE",
    "TILLD_ADVICE",
    "TILLD_OCCURRED_AT",
    "TILLD_PAYLOAD_FILE",
];

/// All a hook may learn about one attempt at one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The hook's name.
    pub hook: String,
    /// 1 for the first run of this delivery.
    pub attempt: u32,
    /// True when a person asked for a run of something already done.
    pub replay: bool,
    /// The stable id of what is told: the same in every attempt, so that a hook can tell a repetition. The event's, unless
    /// it is told that a delivery was given up.
    pub event_id: String,
    /// The event's number in the ledger.
    pub seq: i64,
    /// What kind of change it is.
    pub kind: EventKind,
    /// A poll went back to an older claim.
    pub rewound: bool,
    /// When it was recorded, milliseconds since 1970.
    pub at_ms: i64,
    /// Who said it; `None` for what nobody claimed.
    pub source: Option<Source>,
    /// The status shown from the event on.
    pub status: Option<String>,
    /// The status before it.
    pub previous_status: Option<String>,
    /// The outcome from the event on.
    pub outcome: Outcome,
    /// The outcome before it.
    pub previous_outcome: Outcome,
    /// The outcome of the order from the event on: what a shop acts on.
    pub order_outcome: Outcome,
    /// The merchant's own id of the order.
    pub order_id: String,
    /// The service's id, once it is known.
    pub invoice_id: Option<String>,
    /// The invoice's ref.
    pub invoice_ref: String,
    /// `h2h` or `redirect`; `unknown` of an invoice opened elsewhere, until an answer shows it.
    pub mode: String,
    /// The payment method as it was asked for; of an invoice opened elsewhere as reported, and empty until then.
    pub method: String,
    /// What was asked for at create.
    pub amount_asked: String,
    /// What was agreed: as asked until an operator accepts other figures.
    pub amount_agreed: String,
    /// The currency that was agreed.
    pub currency_agreed: String,
    /// The amount of the claim behind the event.
    pub amount_reported: Option<String>,
    /// The currency of the claim behind the event.
    pub currency_reported: Option<String>,
    /// The hosted payment page (Redirect).
    pub payment_url: Option<String>,
    /// The requisites as JSON text (H2H).
    pub requisites: Option<String>,
    /// The end of the payment window, milliseconds since 1970.
    pub expire_ms: Option<i64>,
    /// The service's document behind the event, secrets cut out.
    pub service: Option<String>,
    /// The delivery of this event that was given up, when that is what is told.
    pub abandoned: Option<GivenUp>,
}

impl Facts {
    /// The kind of what is told, as a word.
    pub const fn word(&self) -> &'static str {
        match self.abandoned {
            None => self.kind.as_str(),
            Some(_) => abandonment::KIND,
        }
    }

    /// What is told when a delivery of this event was given up. Of the event its invoice stays, with how it stood from then
    /// on. Nothing changed by giving up, and nobody said anything, so none of what an event says of that is left: a
    /// program that acts on a change of outcome or on the service's word has nothing to act on.
    #[must_use]
    pub fn telling(self, given_up: GivenUp) -> Self {
        Self {
            event_id: given_up.id(),
            at_ms: given_up.at_ms,
            rewound: false,
            source: None,
            previous_status: self.status.clone(),
            previous_outcome: self.outcome,
            service: None,
            abandoned: Some(given_up),
            ..self
        }
    }
}

/// The variables, in the order of [`VARIABLES`], all of them always set: empty when there is nothing to say.
/// `TILLD_AMOUNT` is what the service reported with this event and nothing else: a payment without an amount is not lent the
/// agreed one. `TILLD_CURRENCY` is the reported currency, or the agreed one if none was reported.
pub fn variables(
    facts: &Facts,
    payload_file: &Path,
) -> [(&'static str, OsString); VARIABLES.len()] {
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    let of_abandoned = |text: fn(&GivenUp) -> &String| {
        facts
            .abandoned
            .as_ref()
            .map(text)
            .cloned()
            .unwrap_or_default()
    };
    let values = [
        facts.word().to_owned(),
        facts.event_id.clone(),
        facts.attempt.to_string(),
        u8::from(facts.replay).to_string(),
        facts.source.map_or("", Source::as_str).to_owned(),
        facts.order_id.clone(),
        or_empty(&facts.invoice_id),
        facts.invoice_ref.clone(),
        or_empty(&facts.status),
        or_empty(&facts.previous_status),
        facts.outcome.as_str().to_owned(),
        facts.order_outcome.as_str().to_owned(),
        or_empty(&facts.amount_reported),
        facts.amount_agreed.clone(),
        facts
            .currency_reported
            .clone()
            .unwrap_or_else(|| facts.currency_agreed.clone()),
        facts.mode.clone(),
        Moment::from_ms(facts.at_ms).to_string(),
        of_abandoned(|given_up| &given_up.hook),
        of_abandoned(|given_up| &given_up.event_id),
        of_abandoned(|given_up| &given_up.result),
    ];
    let mut values = values.into_iter().map(|value| OsString::from(tame(&value)));
    // The path is ours and comes last; it goes in as it is, since a changed path would be no path.
    VARIABLES.map(|name| (name, values.next().unwrap_or_else(|| payload_file.into())))
}

/// Fit for a variable: no NUL (which would keep the program from starting), no other control characters, capped.
fn tame(text: &str) -> String {
    let mut tamed = String::new();
    for letter in text.chars().map(|c| {
        if c.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    }) {
        if tamed.len() + letter.len_utf8() > LONGEST_VARIABLE {
            break;
        }
        tamed.push(letter);
    }
    tamed
}

#[cfg(test)]
pub(super) mod tests;
