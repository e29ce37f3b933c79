//! The service's word for an invoice (open, any text) and what it means here (closed, six outcomes).
//!
//! The contract shows one status, `new`. Every other name is sorted by the merchant's lists; a name on no list is kept to
//! the letter and changes no outcome: inventing a meaning would fulfil or cancel real orders on a guess.

use std::fmt;
use std::sync::Arc;

/// Longest status kept, in bytes. A longer one is not a status but an accident.
pub const LONGEST_STATUS: usize = 128;

/// A status exactly as the service wrote it: 1 to 128 bytes. Shared, not copied: a claim is held in several places at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Status(Arc<str>);

impl Status {
    /// Takes a status to the letter. `None` when it is empty or longer than 128 bytes.
    pub fn new(text: impl Into<Arc<str>>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty() && text.len() <= LONGEST_STATUS).then_some(Self(text))
    }

    /// The service's word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a status name is sorted as. Ordered: at the same instant the higher one stands (design 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// Still to be paid.
    Open,
    /// Will not be paid any more.
    Failed,
    /// The money came.
    Paid,
    /// The money came and went back.
    Reversed,
}

/// What an invoice's claims amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Still to be paid.
    Open,
    /// Paid, with the amount and currency that were agreed.
    Paid,
    /// Will not be paid any more.
    Failed,
    /// Paid once, and the money went back.
    Reversed,
    /// Paid with another amount or currency than agreed, or than the order's newer invoice has: a person must look.
    Mismatch,
    /// Paid when another invoice had paid the order already: a person must look.
    SecondPayment,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Open,
        Self::Paid,
        Self::Failed,
        Self::Reversed,
        Self::Mismatch,
        Self::SecondPayment,
    ];

    /// The word used in the ledger, the hook document and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paid => "paid",
            Self::Failed => "failed",
            Self::Reversed => "reversed",
            Self::Mismatch => "mismatch",
            Self::SecondPayment => "second_payment",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.as_str() == text)
    }

    /// True when nothing more is expected: every outcome but `open`.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Open)
    }

    /// True while the customer's money is there, whether the order is paid with it or not.
    pub const fn has_money(self) -> bool {
        match self {
            Self::Paid | Self::Mismatch | Self::SecondPayment => true,
            Self::Open | Self::Failed | Self::Reversed => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The merchant's lists of status names. Names are compared to the letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusLists {
    /// Names that mean `open`.
    pub open: Vec<String>,
    /// Names that mean `paid`.
    pub paid: Vec<String>,
    /// Names that mean `failed`.
    pub failed: Vec<String>,
    /// Names that mean `reversed`.
    pub reversed: Vec<String>,
}

impl Default for StatusLists {
    /// Only the one name that contract 3 shows.
    fn default() -> Self {
        Self {
            open: vec!["new".to_owned()],
            paid: Vec::new(),
            failed: Vec::new(),
            reversed: Vec::new(),
        }
    }
}

impl StatusLists {
    /// What a status is sorted as; `None` when it stands on no list.
    pub fn sort(&self, status: &Status) -> Option<Meaning> {
        let lists = [
            (&self.open, Meaning::Open),
            (&self.paid, Meaning::Paid),
            (&self.failed, Meaning::Failed),
            (&self.reversed, Meaning::Reversed),
        ];
        lists
            .into_iter()
            .find(|(list, _)| list.iter().any(|name| name == status.as_str()))
            .map(|(_, meaning)| meaning)
    }

    /// The rule these lists break, if any, as the end of a sentence about them. The names themselves stay out of the text: they
    /// are values.
    pub fn rule(&self) -> Option<String> {
        let lists = [
            ("open", &self.open),
            ("paid", &self.paid),
            ("failed", &self.failed),
            ("reversed", &self.reversed),
        ];
        for (list, names) in lists {
            if names
                .iter()
                .any(|name| Status::new(name.as_str()).is_none())
            {
                return Some(format!(
                    "must hold names of 1 to 128 bytes, also in `{list}`"
                ));
            }
        }
        let doubled = self.doubled()?;
        let on: Vec<String> = lists
            .iter()
            .filter(|(_, names)| names.iter().any(|name| name == doubled))
            .map(|(list, _)| format!("`{list}`"))
            .collect();
        Some(match on.as_slice() {
            [list] => format!("must hold a name once, but {list} repeats one"),
            on => format!(
                "must hold a name on one list only, but {} share one",
                on.join(" and ")
            ),
        })
    }

    /// A name that stands on two lists, if any: such lists have no meaning.
    pub fn doubled(&self) -> Option<&str> {
        let all: Vec<&String> = [&self.open, &self.paid, &self.failed, &self.reversed]
            .into_iter()
            .flatten()
            .collect();
        let twice = |(place, name): (usize, &&String)| {
            all.iter().skip(place + 1).any(|other| other == name)
        };
        all.iter()
            .enumerate()
            .find(|entry| twice(*entry))
            .map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_names_mean_anything() {
        let lists = StatusLists {
            paid: vec!["paid".into()],
            ..StatusLists::default()
        };
        let sort = |name: &str| lists.sort(&Status::new(name).expect(name));
        assert_eq!(sort("paid"), Some(Meaning::Paid));
        assert_eq!(sort("new"), Some(Meaning::Open));
        assert_eq!(sort("PAID"), None);
        assert_eq!(sort("PARTIALLY_REVERSED"), None);
    }

    #[test]
    fn a_name_on_two_lists_is_found() {
        let lists = StatusLists {
            failed: vec!["new".into()],
            ..StatusLists::default()
        };
        assert_eq!(lists.doubled(), Some("new"));
        assert_eq!(StatusLists::default().doubled(), None);
    }
}
