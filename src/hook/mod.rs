//! Which events a hook wants. Pure; the ledger asks it while it writes an event, so that the deliveries stand in the
//! same commit. Beside it: what a hook is told (`payload`, pure), telling that one gave up (`abandonment`, pure), how its
//! program is run (`process`, built on the launcher, the process group, the working directory and the captured output),
//! and how an address is posted to instead (`post`, with the `secret_file` and the `signature`, pure).

pub mod abandonment;
mod capture;
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

use crate::invoice::event::{Change, EventKind};
use crate::invoice::status::{LONGEST_STATUS, Outcome, Status};

pub use old_group::settle_old_child;
pub use work_dir::{leftovers, remove};

/// One entry of a hook's `on` list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The invoice became paid; matches at most one event in an invoice's life, a late one included.
    Paid,
    /// It became paid again after another outcome.
    PaidAgain,
    /// It failed, and was never paid before.
    Failed,
    /// It was paid, and the money went back.
    Reversed,
    /// It became paid after it had failed (in addition to `paid`).
    Late,
    /// It was paid with another amount or currency than agreed.
    Mismatch,
    /// It was asked for until the horizon without a final answer.
    Unresolved,
    /// Any event that shows this status, but for those that tell of a person's hand: the service said nothing then.
    Status(String),
    /// Every event.
    All,
}

/// A word that is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no selector; known are `paid`, `paid_again`, `failed`, `reversed`, `late`, `mismatch`, `unresolved`, `status:NAME` and `*`"
)]
pub struct UnknownSelector(pub String);

impl Selector {
    /// Reads a selector as it stands in the config.
    pub fn parse(text: &str) -> Result<Self, UnknownSelector> {
        let selector = match text {
            "paid" => Self::Paid,
            "paid_again" => Self::PaidAgain,
            "failed" => Self::Failed,
            "reversed" => Self::Reversed,
            "late" => Self::Late,
            "mismatch" => Self::Mismatch,
            "unresolved" => Self::Unresolved,
            "*" => Self::All,
            other => match other.strip_prefix("status:") {
                Some(name) if !name.is_empty() && name.len() <= LONGEST_STATUS => {
                    Self::Status(name.to_owned())
                }
                _ => return Err(UnknownSelector(other.to_owned())),
            },
        };
        Ok(selector)
    }

    /// True when an event of this kind and status is wanted.
    pub fn wants(&self, change: &Change) -> bool {
        match self {
            Self::Paid => matches!(change.kind, EventKind::Paid | EventKind::Late),
            Self::PaidAgain => change.kind == EventKind::PaidAgain,
            Self::Failed => change.kind == EventKind::Failed,
            Self::Reversed => change.kind == EventKind::Reversed,
            Self::Late => change.kind == EventKind::Late,
            Self::Mismatch => change.kind == EventKind::Mismatch,
            Self::Unresolved => change.kind == EventKind::Unresolved,
            Self::Status(name) => {
                let shown = change.status.as_ref().map(Status::as_str);
                change.kind != EventKind::Operator && shown == Some(name)
            }
            Self::All => true,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paid => f.write_str("paid"),
            Self::PaidAgain => f.write_str("paid_again"),
            Self::Failed => f.write_str("failed"),
            Self::Reversed => f.write_str("reversed"),
            Self::Late => f.write_str("late"),
            Self::Mismatch => f.write_str("mismatch"),
            Self::Unresolved => f.write_str("unresolved"),
            Self::Status(name) => write!(f, "status:{name}"),
            Self::All => f.write_str("*"),
        }
    }
}

/// A hook as far as the ledger needs to know it: its name and what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        };
        let mut kinds = EventKind::ALL.to_vec();
        kinds.retain(|kind| self.wants(&any(*kind)));
        kinds
    }

    /// The statuses whose events it is owed, but for those that tell of a person's hand.
    pub fn statuses(&self) -> Vec<&str> {
        let names = self.on.iter().filter_map(|selector| match selector {
            Selector::Status(name) => Some(name.as_str()),
            Selector::Paid
            | Selector::PaidAgain
            | Selector::Failed
            | Selector::Reversed
            | Selector::Late
            | Selector::Mismatch
            | Selector::Unresolved
            | Selector::All => None,
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
