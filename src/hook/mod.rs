//! Which events a hook wants. Pure; the ledger asks it while it writes an event, so that the deliveries stand in the
//! same commit. Beside it: what a hook is told (`payload`, pure), telling that one gave up (`abandonment`, pure), how its
//! program is run (`process`, built on the launcher, the process group, the working directory and the captured output),
//! whether others could change it (`exposed`),
//! and how an address is posted to instead (`post`, with the `secret_file` and the `signature`, pure).

pub mod abandonment;
mod acl;
mod capture;
pub(crate) mod executed;
pub mod exposed;
mod format;
mod group;
mod inherited;
pub mod launch;
pub mod launcher;
mod members;
mod old_group;
mod order;
pub mod payload;
pub mod post;
pub mod process;
pub mod secret_file;
mod signature;
mod work_dir;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::invoice::event::{Change, EventKind};
use crate::invoice::status::{LONGEST_STATUS, Outcome, Status};

pub use old_group::settle_old_child;
pub use work_dir::{leftovers, remove};

/// One entry of a hook's `on` list, stored as it stands in the config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Selector {
    /// Events of this kind, one of [`SELECTABLE`]. What became paid after it had failed is wanted as `paid` too.
    Kind(EventKind),
    /// Any event that shows this status, but for those that tell of a person's hand: the service said nothing then.
    Status(String),
    /// Every event.
    All,
}

/// The kinds that a hook may want by their word.
pub const SELECTABLE: [EventKind; 8] = [
    EventKind::Paid,
    EventKind::PaidAgain,
    EventKind::Failed,
    EventKind::Reversed,
    EventKind::Late,
    EventKind::Mismatch,
    EventKind::SecondPayment,
    EventKind::Unresolved,
];

/// A word that is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no selector; known are {known}, `status:NAME` and `*`",
    known = SELECTABLE.map(|kind| format!("`{kind}`")).join(", ")
)]
pub struct UnknownSelector(pub String);

impl Selector {
    /// Reads a selector as it stands in the config.
    pub fn parse(text: &str) -> Result<Self, UnknownSelector> {
        if text == "*" {
            return Ok(Self::All);
        }
        if let Some(name) = text.strip_prefix("status:")
            && (1..=LONGEST_STATUS).contains(&name.len())
        {
            return Ok(Self::Status(name.to_owned()));
        }
        let mut kinds = SELECTABLE.into_iter();
        let kind = kinds.find(|kind| kind.as_str() == text);
        kind.map(Self::Kind)
            .ok_or_else(|| UnknownSelector(text.to_owned()))
    }

    /// True when an event of this kind and status is wanted.
    pub fn wants(&self, change: &Change) -> bool {
        match self {
            Self::Kind(EventKind::Paid) => {
                matches!(change.kind, EventKind::Paid | EventKind::Late)
            }
            Self::Kind(kind) => change.kind == *kind,
            Self::Status(name) => {
                let shown = change.status.as_ref().map(Status::as_str);
                change.kind != EventKind::Operator && shown == Some(name)
            }
            Self::All => true,
        }
    }
}

impl TryFrom<String> for Selector {
    type Error = UnknownSelector;

    fn try_from(text: String) -> Result<Self, UnknownSelector> {
        Self::parse(&text)
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> Self {
        selector.to_string()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => f.write_str(kind.as_str()),
            Self::Status(name) => write!(f, "status:{name}"),
            Self::All => f.write_str("*"),
        }
    }
}

/// A hook as far as the ledger needs to know it: its name and what it wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The hook's name, unique in the config.
    pub hook: String,
    /// What it wants; an event that several selectors match is owed once.
    pub on: Vec<Selector>,
}

impl Subscription {
    /// The kinds of events it is owed whatever their status; those it wants for a status come on top.
    pub fn kinds(&self) -> Vec<EventKind> {
        let any = |kind| Change {
            kind,
            rewound: false,
            cause: None,
            status: None,
            previous_status: None,
            outcome: Outcome::Open,
            previous_outcome: Outcome::Open,
            order_outcome: Outcome::Open,
        };
        let mut kinds = EventKind::ALL.to_vec();
        kinds.retain(|kind| self.wants(&any(*kind)));
        kinds
    }

    /// The statuses whose events it is owed, but for those that tell of a person's hand.
    pub fn statuses(&self) -> Vec<&str> {
        let names = self.on.iter().filter_map(|selector| match selector {
            Selector::Status(name) => Some(name.as_str()),
            Selector::Kind(_) | Selector::All => None,
        });
        names.collect()
    }

    /// True when the hook is owed this event.
    pub fn wants(&self, change: &Change) -> bool {
        self.on.iter().any(|selector| selector.wants(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: EventKind) -> Change {
        let outcome = Outcome::Open;
        let status = Status::new("paid");
        Change {
            kind,
            rewound: false,
            cause: None,
            status,
            previous_status: None,
            outcome,
            previous_outcome: outcome,
            order_outcome: outcome,
        }
    }

    #[test]
    fn selectors_read_back_and_match_their_kind() {
        let kinds = [
            ("paid", vec![EventKind::Paid, EventKind::Late]),
            ("paid_again", vec![EventKind::PaidAgain]),
            ("failed", vec![EventKind::Failed]),
            ("reversed", vec![EventKind::Reversed]),
            ("late", vec![EventKind::Late]),
            ("mismatch", vec![EventKind::Mismatch]),
            ("unresolved", vec![EventKind::Unresolved]),
        ];
        let every = [
            "opened",
            "status",
            "paid",
            "paid_again",
            "late",
            "failed",
            "reversed",
            "mismatch",
            "unresolved",
        ];
        for (text, wanted) in kinds {
            let selector = Selector::parse(text).expect(text);
            assert_eq!(selector.to_string(), text);
            let alone = Subscription {
                hook: "fulfil".to_owned(),
                on: vec![selector.clone()],
            };
            assert_eq!(alone.kinds(), wanted, "{text}");
            assert_eq!(alone.statuses(), [""; 0], "{text}");
            for kind in every.into_iter().filter_map(EventKind::parse) {
                assert_eq!(
                    selector.wants(&change(kind)),
                    wanted.contains(&kind),
                    "{text} and {kind}"
                );
            }
        }
        assert!(Selector::parse("status:paid").is_ok_and(|s| s.wants(&change(EventKind::Status))));
        assert!(
            Selector::parse("status:other").is_ok_and(|s| !s.wants(&change(EventKind::Status)))
        );
        // A script that fulfils by a status name must not run once more because a person agreed to an amount.
        assert!(
            Selector::parse("status:paid").is_ok_and(|s| !s.wants(&change(EventKind::Operator)))
        );
        assert!(Selector::parse("*").is_ok_and(|s| s.wants(&change(EventKind::Operator))));
        for bad in ["", "Paid", "status:", "paid "] {
            assert!(Selector::parse(bad).is_err(), "`{bad}`");
        }
    }
}
