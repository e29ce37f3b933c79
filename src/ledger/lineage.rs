//! Where a number of an event stands when the ledger was restored since: the numbers behind the restore were given twice, so a
//! number alone does not say which event is meant. Pure.
//!
//! Promises that whoever goes on where [`Lineage::go_on`] says is told every event it has not seen; what it saw in the ledger
//! that was lost it may be told again, under another number.

use serde::{Deserialize, Serialize};

/// Where a generation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Began {
    /// The generation of the copy that was put back.
    pub(super) from: i64,
    /// The newest event in it.
    pub(super) event: i64,
}

/// What the numbers of a ledger's events are judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// How often the ledger was restored.
    pub(crate) generation: i64,
    /// The number of the newest event; 0 when there is none.
    pub(crate) newest: i64,
    pub(super) began: Option<Began>,
}

/// A number that cannot be gone on after, and the one that can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restored {
    /// The generation of the ledger as it is now.
    pub(crate) generation: i64,
    /// Behind this number in it are all events that whoever asked cannot have seen.
    pub(crate) after: i64,
}

impl Lineage {
    /// Whether events after this number, which was given in this generation, are those that were not seen yet. Without a
    /// generation only a number that was never given is noticed.
    pub(crate) fn go_on(&self, generation: Option<i64>, after: i64) -> Result<(), Restored> {
        let is_ours = generation.is_none_or(|asked| asked == self.generation);
        if is_ours && after <= self.newest {
            return Ok(());
        }
        let shared = match (generation, self.began) {
            // What the copy held is what whoever asked has seen, as far as it has seen it.
            (Some(asked), Some(began)) if asked == began.from => began.event,
            (None, Some(began)) => began.event,
            // Of another line, or of a restore that nobody noticed: there is no telling where they part.
            (Some(_) | None, _) => 0,
        };
        Err(Restored {
            generation: self.generation,
            after: after.min(shared),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_gone_on_after_in_its_own_generation_alone() {
        let never = Lineage {
            generation: 0,
            newest: 16,
            began: None,
        };
        // Restored from a copy that ended with 13; four have come since.
        let restored = Lineage {
            generation: 1,
            newest: 17,
            began: Some(Began { from: 0, event: 13 }),
        };
        // A copy of before the first restore was put back once more.
        let again = Lineage {
            generation: 2,
            ..restored
        };
        for (lineage, generation, after, wanted) in [
            (never, None, 16, None),
            (never, Some(0), 16, None),
            (never, None, 17, Some(0)),
            (never, Some(3), 5, Some(0)),
            (restored, Some(1), 17, None),
            (restored, Some(0), 16, Some(13)),
            (restored, Some(0), 12, Some(12)),
            (restored, None, 18, Some(13)),
            (restored, Some(1), 18, Some(0)),
            // The number alone does not show it.
            (restored, None, 16, None),
            (again, Some(1), 17, Some(0)),
            (again, Some(0), 17, Some(13)),
        ] {
            let told = lineage.go_on(generation, after);
            let wanted = wanted.map(|after| Restored {
                generation: lineage.generation,
                after,
            });
            assert_eq!(told.err(), wanted, "{generation:?} {after}: {lineage:?}");
        }
    }
}
