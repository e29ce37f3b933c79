//! Why one invoice needs an operator: the one table of words, sentences, advice, severity and how each reason ends.
//!
//! Pure; relies on its caller for the figures of the invoice. Promises that each word is read back as it was written, so the
//! ledger, the commands and the alarms agree.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reason, as it is stored at the invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// The service and the create answer name different sums.
    AmountDiffers,
    /// The service calls it paid and names no amount that can be read.
    AmountMissing,
    /// It is paid with another sum than was agreed.
    Mismatch,
    /// The service does not know it, or keeps it from this login.
    NotFound,
    /// The service gave it a second id.
    OtherId,
    /// The answer to its create was lost.
    OutcomeUnknown,
    /// The service went back to an older status.
    Rewound,
    /// It is paid, and another invoice had paid the order already.
    SecondPayment,
    /// The service answers about others, and gave no answer about this one until past the horizon.
    Unanswered,
    /// Polls gave no final answer within the horizon.
    Unresolved,
    /// Its status is not mapped.
    UnsortedStatus,
}

/// How much a reason matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Payments are not received, recorded or fulfilled as they should be now.
    Critical,
    /// It can wait for working hours.
    Warning,
}

/// How a reason ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With its cause.
    ByItself,
    /// With its cause at the earliest, and else with `tilld ack`, since nothing that happens later settles it for sure.
    Ack,
    /// It has none: it is an event, and each is reported once.
    Once,
}

/// What the sentences name. Not escaped.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// The merchant's order.
    pub order_id: &'a str,
    /// The service's id, once known.
    pub invoice_id: Option<&'a str>,
    /// The service's status.
    pub status: &'a str,
    /// The sum asked for.
    pub asked: &'a str,
    /// The sum agreed.
    pub agreed: &'a str,
    /// The sum the service reported.
    pub reported: &'a str,
    /// The invoice that stands for the order instead, with its sum, if one does; and whether it paid the order.
    pub instead: Option<(&'a str, &'a str, bool)>,
    /// The command that accepts that sum, as it is typed.
    pub accepting: &'a str,
}

impl Attention {
    /// All of them, in the order of their words.
    pub const ALL: [Self; 11] = [
        Self::AmountDiffers,
        Self::AmountMissing,
        Self::Mismatch,
        Self::NotFound,
        Self::OtherId,
        Self::OutcomeUnknown,
        Self::Rewound,
        Self::SecondPayment,
        Self::Unanswered,
        Self::Unresolved,
        Self::UnsortedStatus,
    ];

    /// Word, severity and end.
    const fn row(self) -> (&'static str, Severity, End) {
        use End::{Ack, ByItself};
        use Severity::{Critical, Warning};
        match self {
            Self::AmountDiffers => ("amount_differs", Warning, ByItself),
            Self::AmountMissing => ("amount_missing", Critical, ByItself),
            Self::Mismatch => ("mismatch", Critical, Ack),
            Self::NotFound => ("not_found", Warning, Ack),
            Self::OtherId => ("other_id", Warning, Ack),
            Self::OutcomeUnknown => ("outcome_unknown", Warning, Ack),
            Self::Rewound => ("rewound", Warning, Ack),
            Self::SecondPayment => ("second_payment", Critical, Ack),
            Self::Unanswered => ("unanswered", Warning, Ack),
            Self::Unresolved => ("unresolved", Warning, Ack),
            Self::UnsortedStatus => ("unsorted_status", Critical, ByItself),
        }
    }

    /// The word used in the ledger, in JSON and on the command line.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }

    /// How much it matters.
    pub const fn severity(self) -> Severity {
        self.row().1
    }

    /// How it ends.
    pub const fn end(self) -> End {
        self.row().2
    }

    /// What an operator does about it, at any invoice.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::AmountDiffers => {
                "a payment will show as `mismatch`, unless `tilld invoice accept-amount ORDER --amount AMOUNT` takes the service's figures"
            }
            Self::AmountMissing => {
                "look the amount up in the cabinet: `tilld invoice accept-amount ORDER --amount AMOUNT` settles it; a poll that \
                 names the amount does so as well"
            }
            Self::Mismatch => {
                "settle it with the customer; no `paid` hook runs for it, unless `tilld invoice accept-amount ORDER --amount AMOUNT` \
                 takes the sum; `tilld ack ORDER` when that is done"
            }
            Self::NotFound => {
                "look whether its id and the shop are right: `tilld whoami` names the shop. Then `tilld ack ORDER`"
            }
            Self::OtherId => {
                "look both ids up in the cabinet; the first one stands. Then `tilld ack ORDER`"
            }
            Self::OutcomeUnknown => {
                "look for the order in the cabinet, and give its id to `tilld invoice adopt ORDER --id ID`; `tilld ack ORDER` when \
                 there is none"
            }
            Self::Rewound => {
                "look it up in the cabinet: the service went back to an older status. Then `tilld ack ORDER`"
            }
            Self::SecondPayment => {
                "pay it back, or settle it with the customer: no `paid` hook runs for it. Then `tilld ack ORDER`"
            }
            Self::Unanswered => {
                "look it up in the cabinet: it may be paid. `tilld invoice poll ORDER` shows what the service answers. Then `tilld ack ORDER`"
            }
            Self::Unresolved => {
                "look it up in the cabinet, or poll it with `tilld invoice poll ORDER`: it may still be paid. Then `tilld ack ORDER`"
            }
            Self::UnsortedStatus => {
                "add the status to the list under `[statuses]` that it means, then restart `serve`"
            }
        }
    }

    /// What is so at this invoice, in a sentence. Not escaped.
    pub fn sentence(self, of: &Figures<'_>) -> String {
        let Figures {
            accepting,
            asked,
            agreed,
            reported,
            ..
        } = of;
        match self {
            Self::AmountDiffers => format!(
                "the service opened it with {reported} where {asked} was asked for; a payment will show as `mismatch`, \
                 unless `{accepting}` takes that sum as agreed"
            ),
            Self::AmountMissing => format!(
                "the service calls it paid and names no amount that can be read; look the amount up in the cabinet: \
                 `{accepting}` settles it"
            ),
            Self::Mismatch if let Some((first, _, true)) = of.instead => format!(
                "the service calls it paid with {reported}, and its order was paid by invoice `{first}`; no `paid` hook runs for \
                 it, pay it back or settle it with the customer"
            ),
            Self::Mismatch if let Some((newer, sum, false)) = of.instead => format!(
                "the service calls it paid with {reported}, but its order has the newer invoice `{newer}` over {sum}; \
                 no `paid` hook runs for it, unless `{accepting}` takes this payment for the order"
            ),
            Self::Mismatch => format!(
                "the service calls it paid with {reported} where {agreed} was agreed; no `paid` hook runs for it, \
                 unless `{accepting}` takes that sum as agreed"
            ),
            Self::NotFound => format!(
                "the service has no invoice {}, or keeps it from this login; look whether the id and the shop are right \
                 (`tilld whoami` names the shop)",
                of.invoice_id.unwrap_or_default()
            ),
            Self::OtherId => {
                "the service gave this invoice a second id; the first one stands, look both up in the cabinet".to_owned()
            }
            Self::OutcomeUnknown => format!(
                "the answer to its create was lost and it is not asked for again; look for order {} in the cabinet, \
                 and give its id to `tilld invoice adopt ORDER --id ID`",
                of.order_id
            ),
            Self::Rewound => {
                "the service went back to an older status, twice; look the invoice up in the cabinet".to_owned()
            }
            Self::SecondPayment => match of.instead {
                Some((first, _, _)) => format!(
                    "its order was paid by invoice `{first}` already; this second payment of {reported} runs no `paid` hook, \
                     pay it back or settle it with the customer"
                ),
                None => format!(
                    "this second payment of {reported} of its order runs no `paid` hook, pay it back or settle it with the \
                     customer"
                ),
            },
            Self::Unanswered => {
                "the service answers about other invoices and has given no readable answer about this one since `poller.horizon_s` \
                 was over; it may be paid".to_owned()
            }
            Self::Unresolved => {
                "the service was asked until `poller.horizon_s` and gave no final answer; it may still be paid".to_owned()
            }
            Self::UnsortedStatus => unmapped(of.status),
        }
    }
}

/// A status as it stands in the config. A JSON string is a TOML basic string as well.
pub fn in_toml(status: &str) -> String {
    serde_json::Value::from(status).to_string()
}

/// Names the status and the line that maps it.
fn unmapped(status: &str) -> String {
    let quoted = in_toml(status);
    format!(
        "the status {quoted} is on no list, so it changes no outcome; add it to the one of `open`, `paid`, `failed`, \
         `reversed` that it means, under `[statuses]` in the config, beside the names that stand there: `paid = [{quoted}]`, for example"
    )
}

impl fmt::Display for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: Figures<'_> = Figures {
        order_id: "A-1",
        invoice_id: Some("inv-1"),
        status: "PAID \"x\"\u{1b}",
        asked: "1 RUB",
        agreed: "2 RUB",
        reported: "3 RUB",
        instead: None,
        accepting: "tilld invoice accept-amount --id inv-1 --amount 3",
    };

    #[test]
    fn words_are_in_order_and_read_back() {
        assert!(Attention::ALL.is_sorted_by(|a, b| a < b && a.as_str() < b.as_str()));
        for one in Attention::ALL {
            assert_eq!(Attention::parse(one.as_str()), Some(one));
            let json = serde_json::to_value(one).expect("a word");
            assert_eq!(json, one.as_str());
            assert!(!one.sentence(&FIGURES).is_empty());
        }
        assert_eq!(Attention::parse("newer"), None);
    }

    #[test]
    fn the_advice_names_the_verb_where_the_reason_needs_it() {
        for one in Attention::ALL {
            let names_it = one.advice().contains("`tilld ack ORDER`");
            assert_eq!(names_it, one.end() == End::Ack, "{one}");
        }
    }

    #[test]
    fn the_line_that_maps_a_status_is_toml_whatever_the_status() {
        let sentence = Attention::UnsortedStatus.sentence(&FIGURES);
        assert!(
            sentence.contains(r#"`paid = ["PAID \"x\"\u001b"]`"#),
            "{sentence}"
        );
    }
}
