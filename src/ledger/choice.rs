//! Which deliveries a person means, and what is to become of them: one description for listing, showing beforehand and
//! changing. Pure data; the stores find and change by it, and promise to agree (`ledger/tests/conformance`).
//!
//! A change names deliveries by their keys, as they were found a moment before, and touches only those whose state still
//! lets it: what began to run meanwhile, or ended, is left alone.

use super::row::{DeliveryKey, DeliveryState, InvoiceKey};

/// Deliveries changed in one commit at most: a notification waits for it.
pub(crate) const ACT_AT_ONCE: u32 = 500;

/// Whose deliveries are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Whose {
    /// Everybody's.
    #[default]
    All,
    /// Those of the event with this id.
    Event(String),
    /// Those of all invoices of this order.
    Order(String),
}

/// Deliveries a person means. What is `None` narrows nothing.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Whose.
    pub whose: Whose,
    /// To this hook only.
    pub hook: Option<String>,
    /// Only those that have come this far.
    pub state: Option<DeliveryState>,
    /// Only of events from this time on, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only of events before this time, milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Of those listed, only what lies below this key.
    pub below: Option<DeliveryKey>,
}

/// What a person does with deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// What waits or was given up is due now, with a fresh schedule.
    Retry,
    /// What is done is due once more, with a fresh schedule, and is told that it is a replay from then on.
    Replay,
    /// What is held is due now.
    Release,
    /// What waits or is held is given up, and raises no alert.
    Abandon,
    /// What was given up raises no alert any more.
    Acknowledge,
}

impl Act {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] = [
        Self::Retry,
        Self::Replay,
        Self::Release,
        Self::Abandon,
        Self::Acknowledge,
    ];

    /// The states it changes. It never touches a run under way.
    pub const fn takes(self) -> &'static [DeliveryState] {
        match self {
            Self::Retry => &[DeliveryState::Waiting, DeliveryState::Abandoned],
            Self::Replay => &[DeliveryState::Done],
            Self::Release => &[DeliveryState::Held],
            Self::Abandon => &[DeliveryState::Waiting, DeliveryState::Held],
            Self::Acknowledge => &[DeliveryState::Abandoned],
        }
    }

    /// True where it makes what an event is without, to be run or to be given up.
    pub const fn makes(self) -> bool {
        matches!(self, Self::Replay | Self::Abandon)
    }

    /// What it passes over of the states it takes. To acknowledge twice is nothing; to retry everything is no wish to run what
    /// the operator decided against, which is named by its event or its order.
    pub(super) const fn spares(self, whose: &Whose) -> Spared {
        match (self, whose) {
            (Self::Acknowledge, _) => Spared::Acknowledged,
            (Self::Retry, Whose::All) => Spared::GivenUpByOperator,
            (Self::Retry, Whose::Event(_) | Whose::Order(_))
            | (Self::Replay | Self::Release | Self::Abandon, _) => Spared::None,
        }
    }
}

/// What an act passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spared {
    /// Nothing.
    None,
    /// What the operator gave up.
    GivenUpByOperator,
    /// What is acknowledged already.
    Acknowledged,
}

/// Makes the deliveries that events of a choice are without, to be run now or, by [`Act::Abandon`], given up.
#[derive(Clone, Debug)]
pub(crate) struct Supplying {
    /// What a person does.
    pub act: Act,
    /// With which.
    pub choice: Choice,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}

/// An event that is without a delivery it was to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The event's number.
    pub seq: i64,
    /// Its invoice.
    pub invoice: InvoiceKey,
    /// The merchant's order.
    pub order_id: String,
    /// The hook that was to be owed it.
    pub hook: String,
}

/// One page of what an act would change, in the order the deliveries were made.
#[derive(Clone, Debug)]
pub struct Page {
    /// Only those behind this one.
    pub after: DeliveryKey,
    /// Only those up to this one: what is made meanwhile is not meant.
    pub upto: DeliveryKey,
    /// At most this many.
    pub most: u32,
}

/// An act on deliveries that were found before.
#[derive(Clone, Debug)]
pub struct Acting {
    /// What is done.
    pub act: Act,
    /// To which, at most [`ACT_AT_ONCE`].
    pub keys: Vec<DeliveryKey>,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}
