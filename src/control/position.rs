//! How far a follower of events is: a number, and the generation of the ledger it was given in. Pure.

use super::problem::bad;
use crate::answer::failure::Failure;

/// Where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Of the ledger that gave the number, where it is known.
    pub(super) generation: Option<i64>,
    /// The number of the last event that was seen.
    pub(super) after: i64,
}

impl Position {
    /// An `id` of server-sent events.
    pub(super) fn text(generation: i64, seq: i64) -> String {
        format!("{generation}.{seq}")
    }

    /// Reads what [`Self::text`] wrote, or a number alone.
    pub(super) fn of_id(text: &str) -> Result<Self, Failure> {
        let (generation, after) = match text.split_once('.') {
            Some((generation, after)) => (Some(number(generation)?), after),
            None => (None, text),
        };
        Ok(Self {
            generation,
            after: number(after)?,
        })
    }

    /// Of a query.
    pub(super) fn asked(
        after: Option<&str>,
        generation: Option<&str>,
    ) -> Result<Option<Self>, Failure> {
        let generation = generation.map(number).transpose()?;
        match (after, generation) {
            (Some(after), generation) => Ok(Some(Self {
                generation,
                after: number(after)?,
            })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(bad(
                "`generation` says which ledger gave the number `after`, and there is none",
                "give both, or neither",
            )),
        }
    }
}

fn number(text: &str) -> Result<i64, Failure> {
    text.parse()
        .ok()
        .filter(|number| *number >= 0)
        .ok_or_else(|| {
            bad(
                format!("an event's number is wanted, and {text:?} is none"),
                "give the `seq` of the last event that was seen, or 0 for all",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(generation: Option<i64>, after: i64) -> Position {
        Position { generation, after }
    }

    #[test]
    fn ids_are_read_as_they_are_written_and_numbers_alone_too() {
        assert_eq!(
            Position::of_id(&Position::text(3, 17)).ok(),
            Some(at(Some(3), 17))
        );
        assert_eq!(Position::of_id("17").ok(), Some(at(None, 17)));
        for text in [
            "",
            "-1",
            "x",
            "1.5.2",
            "1.",
            ".1",
            "-1.2",
            "1.-2",
            "99999999999999999999",
        ] {
            assert!(Position::of_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_generation_belongs_to_a_number() {
        let asked = |after, generation| Position::asked(after, generation).ok();
        assert_eq!(asked(None, None), Some(None));
        assert_eq!(asked(Some("5"), None), Some(Some(at(None, 5))));
        assert_eq!(asked(Some("5"), Some("2")), Some(Some(at(Some(2), 5))));
        for (after, generation) in [
            (None, Some("2")),
            (Some("5"), Some("x")),
            (Some("1.5"), None),
        ] {
            assert_eq!(asked(after, generation), None, "{after:?} {generation:?}");
        }
    }
}
