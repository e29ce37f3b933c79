//! The merchant's lists as the ledger remembers them: their number, and how far the stored invoices were looked at again
//! after they changed. Relies on the caller's transaction; promises that lists, number and pass change in one commit.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Rules;
use crate::invoice::status::{Status, StatusLists};
use crate::ledger::fact::{self, Fact, LISTS_NUMBER};
use crate::ledger::store::{Store, StoreError};

/// The lists that sorted last.
static LISTS: Fact<Remembered> = Fact::json(fact::LISTS);
/// The pass under way; `None` when it is through.
pub(super) static PASS: Fact<Option<Pass>> = Fact::json(fact::PASS);

/// What may become of the stored lists when a ledger is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    /// The configured ones take their place: the daemon's part.
    Adopt,
    /// They stay: a command with another config must not decide over old orders.
    Keep,
}

/// The policy in the form it is stored in: each list in order, so that equal policies are equal texts.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    open: Vec<String>,
    paid: Vec<String>,
    failed: Vec<String>,
    reversed: Vec<String>,
    confirm_paid: bool,
}

/// A pass over the invoices stored before the lists changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pass {
    /// The first invoice it has not looked at.
    pub(super) from: i64,
    /// The names that mean something else than before.
    pub(super) names: BTreeSet<String>,
    /// Invoices that changed so far.
    pub(super) changed: u64,
}

/// How the configured lists stand to the stored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Compared {
    /// They are the same, with this number.
    Same(i64),
    /// Others are stored.
    Other,
    /// None are stored yet.
    Unknown,
}

/// Compares the configured lists with the stored ones. Only reads, so that opening a ledger waits for nobody's lock.
pub(in crate::ledger) fn compare<S: Store>(
    store: &mut S,
    rules: &Rules,
) -> Result<Compared, StoreError> {
    let (stored, number) = (store.fact(&LISTS)?, store.fact(&LISTS_NUMBER)?);
    Ok(match stored.zip(number) {
        None => Compared::Unknown,
        Some((stored, number)) if stored == Remembered::of(rules) => Compared::Same(number),
        Some(_) => Compared::Other,
    })
}

/// Compares the configured lists with the stored ones, and takes them over where that is allowed. Gives the number under
/// which these rules sort; `None` when other lists are stored and stay.
pub(in crate::ledger) fn adopt<S: Store>(
    store: &mut S,
    rules: &Rules,
    lists: Lists,
) -> Result<Option<i64>, StoreError> {
    let own = Remembered::of(rules);
    let stored = store.fact(&LISTS)?;
    let number = store.fact(&LISTS_NUMBER)?;
    let Some(stored) = stored else {
        // Nothing was ever sorted by other lists, or none are known to compare with.
        let first = number.unwrap_or(1);
        own.save(store, first)?;
        return Ok(Some(first));
    };
    if stored == own {
        return Ok(number);
    }
    if lists == Lists::Keep {
        return Ok(None);
    }
    let next = number.unwrap_or(0).saturating_add(1);
    let mut names = own.names_unlike(&stored);
    let mut changed = 0;
    if let Some(unfinished) = pass(store)? {
        // What it has not come to yet is still sorted by the lists before.
        names.extend(unfinished.names);
        changed = unfinished.changed;
    }
    own.save(store, next)?;
    let pass = Pass {
        from: 0,
        names,
        changed,
    };
    store.set_fact(&PASS, &Some(pass).filter(|pass| !pass.names.is_empty()))?;
    Ok(Some(next))
}

/// The pass under way.
pub(super) fn pass<S: Store>(store: &mut S) -> Result<Option<Pass>, StoreError> {
    Ok(store.fact(&PASS)?.flatten())
}

impl Remembered {
    fn of(rules: &Rules) -> Self {
        let in_order = |names: &Vec<String>| {
            let names: BTreeSet<String> = names.iter().cloned().collect();
            names.into_iter().collect()
        };
        let StatusLists {
            open,
            paid,
            failed,
            reversed,
        } = &rules.policy.lists;
        Self {
            open: in_order(open),
            paid: in_order(paid),
            failed: in_order(failed),
            reversed: in_order(reversed),
            confirm_paid: rules.policy.confirm_paid,
        }
    }

    fn save<S: Store>(&self, store: &mut S, number: i64) -> Result<(), StoreError> {
        store.set_fact(&LISTS, self)?;
        store.set_fact(&LISTS_NUMBER, &number)
    }

    fn lists(&self) -> StatusLists {
        StatusLists {
            open: self.open.clone(),
            paid: self.paid.clone(),
            failed: self.failed.clone(),
            reversed: self.reversed.clone(),
        }
    }

    /// The names that do not mean the same in both.
    fn names_unlike(&self, other: &Self) -> BTreeSet<String> {
        let (ours, theirs) = (self.lists(), other.lists());
        let every = |lists: &StatusLists| {
            [&lists.open, &lists.paid, &lists.failed, &lists.reversed]
                .into_iter()
                .flatten()
                .cloned()
                .collect::<Vec<String>>()
        };
        every(&ours)
            .into_iter()
            .chain(every(&theirs))
            .filter(|name| {
                // What is no status at all was never heard.
                Status::new(name.as_str())
                    .is_some_and(|status| ours.sort(&status) != theirs.sort(&status))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(paid: &[&str], failed: &[&str]) -> Remembered {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Remembered {
            open: vec!["new".to_owned()],
            paid: owned(paid),
            failed: owned(failed),
            reversed: Vec::new(),
            confirm_paid: false,
        }
    }

    #[test]
    fn what_is_remembered_is_read_back() {
        let lists = remembered(&["a"], &["b"]);
        assert_eq!(LISTS.read_back(&lists), Some(lists));
        let pass = Pass {
            from: 1,
            names: BTreeSet::from(["a".to_owned()]),
            changed: 2,
        };
        for pass in [None, Some(pass)] {
            assert_eq!(PASS.read_back(&pass), Some(pass));
        }
        assert!(LISTS.read("").is_none() && PASS.read("").is_none());
    }

    #[test]
    fn only_names_with_another_meaning_are_looked_for() {
        let check = |old: Remembered, new: Remembered, wanted: &[&str]| {
            let found = new.names_unlike(&old);
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
        };
        check(remembered(&["a"], &[]), remembered(&["a"], &[]), &[]);
        check(
            remembered(&["a"], &[]),
            remembered(&["a", "b"], &[]),
            &["b"],
        );
        check(remembered(&["a"], &[]), remembered(&[], &["a"]), &["a"]);
        check(
            remembered(&["a", "b"], &["c"]),
            remembered(&["b"], &["c"]),
            &["a"],
        );
        check(remembered(&[""], &[]), remembered(&[], &[]), &[]);
    }
}
