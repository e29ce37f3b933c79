//! The words a decision is told in: what was decided, and by which rule. Both stand in the history beside the claim.

/// What was decided on an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is the invoice's state now.
    Advance,
    /// A second poll said the same as the first: it is the state now, although it is older or takes back a payment.
    AdvanceAgreed,
    /// Known already.
    Repeat,
    /// A poll agrees with what stands.
    Confirmed,
    /// Older than what stands: kept in the history.
    Stale,
    /// A poll must tell.
    Doubt,
    /// A second poll must agree.
    Pending,
    /// The invoice moved on while the answer was under way: asked again.
    Overtaken,
    /// It names another invoice or order: not authentic from a notification, discarded from a poll.
    NotThisInvoice,
    /// The answer to our create names another id than the invoice already has: a person must look.
    OtherId,
    /// A person named the id or accepted other figures.
    Operator,
    /// The merchant's lists changed, and with them what the claims amount to; or what a wrong clock did was taken back.
    Reassessed,
}

impl Decision {
    const ALL: [Self; 12] = [
        Self::Advance,
        Self::AdvanceAgreed,
        Self::Repeat,
        Self::Confirmed,
        Self::Stale,
        Self::Doubt,
        Self::Pending,
        Self::Overtaken,
        Self::NotThisInvoice,
        Self::OtherId,
        Self::Operator,
        Self::Reassessed,
    ];

    /// The word used in the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Advance => "advance",
            Self::AdvanceAgreed => "advance_agreed",
            Self::Repeat => "repeat",
            Self::Confirmed => "confirmed",
            Self::Stale => "stale",
            Self::Doubt => "doubt",
            Self::Pending => "pending",
            Self::Overtaken => "overtaken",
            Self::NotThisInvoice => "not_this_invoice",
            Self::OtherId => "other_id",
            Self::Operator => "operator",
            Self::Reassessed => "reassessed",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.as_str() == text)
    }
}

/// The rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is the first claim of the invoice.
    First,
    /// Its instant is newer.
    Newer,
    /// It is an event of this invoice already.
    Known,
    /// Status and sum are those that stand.
    Same,
    /// Its instant is older.
    Older,
    /// It says paid under the setting that trusts no push.
    Unconfirmed,
    /// Amount or currency differ from what was agreed.
    SumDiffers,
    /// It says paid and names no amount that can be read.
    NoAmount,
    /// It or the claim that stands has no readable instant.
    NoInstant,
    /// It has the same instant as a different claim.
    SameInstant,
    /// It would take back a payment.
    LeavesPaid,
    /// It says paid, and its instant is older.
    OlderPaid,
    /// A question of ours was answered with it, and nothing stands against it.
    Answered,
    /// A second answer said the same.
    SecondAnswer,
    /// It answers a question that was sent before the invoice changed.
    AskedBefore,
    /// It names another order.
    OtherOrder,
    /// It names another invoice.
    OtherInvoice,
    /// A person named the invoice's id.
    Adopted,
    /// A person accepted the figures the service reported.
    Accepted,
    /// It had been given up by a clock of ours that was ahead.
    ClockWasAhead,
    /// The lists of status names changed.
    ListsChanged,
    /// A person named an invoice that the shop's own code opened.
    Tracked,
    /// The operator acknowledged what needed a look.
    Acknowledged,
}

impl Why {
    /// The word used in the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Newer => "newer",
            Self::Known => "known",
            Self::Same => "same",
            Self::Older => "older",
            Self::Unconfirmed => "unconfirmed",
            Self::SumDiffers => "sum_differs",
            Self::NoAmount => "no_amount",
            Self::NoInstant => "no_instant",
            Self::SameInstant => "same_instant",
            Self::LeavesPaid => "leaves_paid",
            Self::OlderPaid => "older_paid",
            Self::Answered => "answered",
            Self::SecondAnswer => "second_answer",
            Self::AskedBefore => "asked_before",
            Self::OtherOrder => "other_order",
            Self::OtherInvoice => "other_invoice",
            Self::Adopted => "adopted",
            Self::Accepted => "accepted",
            Self::ClockWasAhead => "clock_was_ahead",
            Self::ListsChanged => "lists_changed",
            Self::Tracked => "tracked",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// The rule in a sentence, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::First => "the first word about the invoice",
            Self::Newer => "newer than what stood",
            Self::Known => "recorded before",
            Self::Same => "says what stands already",
            Self::Older => "older than what stands",
            Self::Unconfirmed => "says paid, and `confirm_paid` wants a poll to agree",
            Self::SumDiffers => "amount or currency differ from what was agreed",
            Self::NoAmount => "says paid and names no amount that can be read",
            Self::NoInstant => {
                "its `updatedAt` is missing, unreadable or ahead of the service's clock"
            }
            Self::SameInstant => "another status at the same instant",
            Self::LeavesPaid => "would take back a payment",
            Self::OlderPaid => "says paid, but is older than what stands",
            Self::Answered => "the service answered with it",
            Self::SecondAnswer => "the service answered the same a second time",
            Self::AskedBefore => "asked before the invoice changed",
            Self::OtherOrder => "names another order",
            Self::OtherInvoice => "names another invoice",
            Self::Adopted => "a person named the invoice id",
            Self::Accepted => "a person accepted the reported figures",
            Self::ClockWasAhead => "given up by a clock that was ahead, and taken back",
            Self::ListsChanged => "the lists under `[statuses]` changed",
            Self::Tracked => "a person named an invoice the shop's own code opened",
            Self::Acknowledged => "the operator acknowledged what needed a look",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.as_str() == text)
    }

    const ALL: [Self; 23] = [
        Self::First,
        Self::Newer,
        Self::Known,
        Self::Same,
        Self::Older,
        Self::Unconfirmed,
        Self::SumDiffers,
        Self::NoAmount,
        Self::NoInstant,
        Self::SameInstant,
        Self::LeavesPaid,
        Self::OlderPaid,
        Self::Answered,
        Self::SecondAnswer,
        Self::AskedBefore,
        Self::OtherOrder,
        Self::OtherInvoice,
        Self::Adopted,
        Self::Accepted,
        Self::ClockWasAhead,
        Self::ListsChanged,
        Self::Tracked,
        Self::Acknowledged,
    ];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_word_reads_back() {
        for decision in Decision::ALL {
            assert_eq!(Decision::parse(decision.as_str()), Some(decision));
        }
        for why in Why::ALL {
            assert_eq!(Why::parse(why.as_str()), Some(why));
        }
        let sentences: BTreeSet<_> = Why::ALL.into_iter().map(Why::sentence).collect();
        assert_eq!(sentences.len(), Why::ALL.len(), "each rule has its own");
        assert_eq!(Decision::parse("advanced"), None);
        assert_eq!(Why::parse(""), None);
    }
}
