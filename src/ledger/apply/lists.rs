//! The merchant's lists as the ledger remembers them: their number, and how far the stored invoices were looked at again
//! after they changed. Relies on the caller's transaction; promises that lists, number and pass change in one commit.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Rules;
use crate::invoice::status::{Status, StatusLists};
use crate::invoice::transition::Policy;
use crate::ledger::fact::{self, Fact, LISTS_NUMBER};
use crate::ledger::store::{Store, StoreError};

/// The lists that sorted last.
pub(in crate::ledger) static LISTS: Fact<Remembered> = Fact::json(fact::LISTS);
/// The pass under way; `None` when it is through.
pub(super) static PASS: Fact<Option<Pass>> = Fact::json(fact::PASS);

/// The policy in the form it is stored in: each list in order, so that equal policies are equal texts.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::ledger) struct Remembered {
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

/// The policy the ledger was sorted by last; `None` while nothing ever was.
pub(super) fn stored<S: Store>(store: &mut S) -> Result<Option<Policy>, StoreError> {
    let stored = store.fact(&LISTS)?;
    Ok(stored.map(|stored| Policy {
        lists: stored.lists(),
        confirm_paid: stored.confirm_paid,
    }))
}

/// The number of the stored lists where they are these; only reads.
pub(super) fn number_of<S: Store>(store: &mut S, rules: &Rules) -> Result<Option<i64>, StoreError> {
    let (stored, number) = (store.fact(&LISTS)?, store.fact(&LISTS_NUMBER)?);
    Ok(number.filter(|_| stored == Some(Remembered::of(&rules.policy))))
}

/// True when both sort every name alike.
pub(super) fn same(one: &Policy, other: &Policy) -> bool {
    Remembered::of(one).lists() == Remembered::of(other).lists()
}

/// Has these lists take the place of the stored ones. Gives the number under which they sort.
pub(super) fn adopt<S: Store>(store: &mut S, rules: &Rules) -> Result<i64, StoreError> {
    let own = Remembered::of(&rules.policy);
    let number = store.fact(&LISTS_NUMBER)?;
    let Some(stored) = store.fact(&LISTS)? else {
        // Nothing was ever sorted by other lists, or none are known to compare with.
        let first = number.unwrap_or(1);
        own.save(store, first)?;
        return Ok(first);
    };
    if let Some(number) = number.filter(|_| stored == own) {
        return Ok(number);
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
    Ok(next)
}

/// The pass under way.
pub(super) fn pass<S: Store>(store: &mut S) -> Result<Option<Pass>, StoreError> {
    Ok(store.fact(&PASS)?.flatten())
}

impl Remembered {
    fn of(policy: &Policy) -> Self {
        let in_order = |names: &Vec<String>| {
            let names: BTreeSet<String> = names.iter().cloned().collect();
            names.into_iter().collect()
        };
        let StatusLists {
            open,
            paid,
            failed,
            reversed,
        } = &policy.lists;
        Self {
            open: in_order(open),
            paid: in_order(paid),
            failed: in_order(failed),
            reversed: in_order(reversed),
            confirm_paid: policy.confirm_paid,
        }
    }

    fn save<S: Store>(&self, store: &mut S, number: i64) -> Result<(), StoreError> {
        store.set_fact(&LISTS, self)?;
        store.set_fact(&LISTS_NUMBER, &number)
    }

    pub(in crate::ledger) fn lists(&self) -> StatusLists {
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
