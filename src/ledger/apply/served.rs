//! What the daemon serves by, as the ledger remembers it: which hook is owed what, from which event on and up to which, and when
//! silent invoices are due. The lists of status names stand beside it (`lists`).
//!
//! Relies on the caller's transaction. Promises that the daemon alone changes it, and that all others who write decide and owe by
//! it, whatever their own settings say. Until a daemon has served, a command goes by its own.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Author, Rules, lists};
use crate::hook::abandonment::teller_of;
use crate::hook::{Selector, Subscription};
use crate::invoice::event::Change;
use crate::invoice::silence::Schedule;
use crate::ledger::fact::{self, Fact, LISTS_NUMBER};
use crate::ledger::store::{Store, StoreError};

/// What the daemon serves by.
pub(in crate::ledger) static SERVED: Fact<Served> = Fact::json(fact::SERVED);

/// Whether two rules agree on a setting.
type Agree = fn(&Rules, &Rules) -> bool;

/// The settings that decide something.
const DECIDING: [(&str, Agree); 5] = [
    ("[statuses]", |one, other| {
        lists::same(&one.policy, &other.policy)
    }),
    ("moves.confirm_paid", |one, other| {
        one.policy.confirm_paid == other.policy.confirm_paid
    }),
    ("[[hook]]", |one, other| wishes(one) == wishes(other)),
    ("outbox.schedule_s", |one, other| {
        one.first_delay_ms == other.first_delay_ms
    }),
    ("[poller]", |one, other| one.schedule == other.schedule),
];

/// The settings that decide something and are not the same in both, as the config names them.
pub(crate) fn apart(one: &Rules, other: &Rules) -> Vec<&'static str> {
    let apart = DECIDING.into_iter().filter(|(_, agree)| !agree(one, other));
    apart.map(|(name, _)| name).collect()
}

/// Whose a subscription is and what is wanted, in whatever order that stands in the config.
fn wish(subscription: &Subscription) -> (&str, BTreeSet<String>) {
    let on = subscription.on.iter().map(Selector::to_string);
    (&subscription.hook, on.collect())
}

fn wishes(rules: &Rules) -> BTreeSet<(&str, BTreeSet<String>)> {
    rules.subscriptions.iter().map(wish).collect()
}

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::ledger) struct Served {
    /// Every subscription there was, in the order they began.
    terms: Vec<Term>,
    on_abandoned: bool,
    first_delay_ms: i64,
    schedule: Schedule,
}

/// A subscription, and the numbers of the events it held for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Term {
    subscription: Subscription,
    /// It began behind this event.
    after: i64,
    /// Its last event; `None` while it is in force.
    upto: Option<i64>,
}

impl Served {
    /// What is remembered once these rules are in force, from the event behind the newest on.
    fn next(before: Option<Self>, rules: &Rules, newest: i64) -> Self {
        let mut terms = before.map(|before| before.terms).unwrap_or_default();
        let wanted = |term: &Term| {
            let own = wish(&term.subscription);
            rules.subscriptions.iter().any(|other| wish(other) == own)
        };
        for term in &mut terms {
            if term.upto.is_none() && !wanted(term) {
                term.upto = Some(newest);
            }
        }
        // One that held for no event says nothing.
        terms.retain(|term| term.upto != Some(term.after));
        for subscription in &rules.subscriptions {
            let stands =
                |term: &Term| term.upto.is_none() && wish(&term.subscription) == wish(subscription);
            if !terms.iter().any(stands) {
                terms.push(Term {
                    subscription: subscription.clone(),
                    after: newest,
                    upto: None,
                });
            }
        }
        Self {
            terms,
            on_abandoned: rules.on_abandoned,
            first_delay_ms: rules.first_delay_ms,
            schedule: rules.schedule.clone(),
        }
    }

    /// The hooks that were to be owed this event when it was recorded.
    pub(in crate::ledger) fn owed(&self, seq: i64, change: &Change) -> impl Iterator<Item = &str> {
        let in_force =
            move |term: &&Term| term.after < seq && term.upto.is_none_or(|upto| seq <= upto);
        let terms = self.terms.iter().filter(in_force);
        let wanting = terms.filter(|term| term.subscription.wants(change));
        wanting.map(|term| term.subscription.hook.as_str())
    }

    fn in_force(&self) -> impl Iterator<Item = &Subscription> {
        let terms = self.terms.iter().filter(|term| term.upto.is_none());
        terms.map(|term| &term.subscription)
    }

    /// The names, in the column `hook`, of the deliveries that somebody runs.
    pub(in crate::ledger) fn run_names(&self) -> Vec<String> {
        let hooks: Vec<String> = self.in_force().map(|one| one.hook.clone()).collect();
        let tellers = hooks.iter().filter_map(|hook| teller_of(hook));
        let tellers: Vec<String> = tellers.filter(|_| self.on_abandoned).collect();
        hooks.into_iter().chain(tellers).collect()
    }

    /// These rules with what is remembered in the place of their own.
    fn over(self, own: &Rules) -> Rules {
        Rules {
            subscriptions: self.in_force().cloned().collect(),
            on_abandoned: self.on_abandoned,
            first_delay_ms: self.first_delay_ms,
            schedule: self.schedule,
            ..own.clone()
        }
    }
}

impl Rules {
    /// The rules of this transaction. Read in it, so that a command which outlives a change of them goes by what holds now.
    pub(in crate::ledger) fn in_force<S: Store>(
        &self,
        store: &mut S,
    ) -> Result<Cow<'_, Self>, StoreError> {
        if self.author == Author::Daemon {
            return Ok(Cow::Borrowed(self));
        }
        let rules = match served(store, self)? {
            Some(rules) => rules,
            None => Self {
                sorted_by: Some(lists::adopt(store, self)?),
                ..self.clone()
            },
        };
        Ok(Cow::Owned(rules))
    }
}

/// A command's rules with what the daemon serves by in their place; `None` where none ever did.
pub(in crate::ledger) fn served<S: Store>(
    store: &mut S,
    own: &Rules,
) -> Result<Option<Rules>, StoreError> {
    let Some(served) = store.fact(&SERVED)? else {
        return Ok(None);
    };
    let policy = lists::stored(store)?;
    Ok(Some(Rules {
        policy: policy.unwrap_or_else(|| own.policy.clone()),
        sorted_by: store.fact(&LISTS_NUMBER)?,
        ..served.over(own)
    }))
}

/// The number of the lists where the daemon's rules are what is remembered; only reads, so that opening a ledger waits for
/// nobody's lock.
pub(in crate::ledger) fn remembered<S: Store>(
    store: &mut S,
    rules: &Rules,
) -> Result<Option<i64>, StoreError> {
    let before = store.fact(&SERVED)?;
    let newest = store.newest_event()?;
    let stands = before.is_some() && before == Some(Served::next(before.clone(), rules, newest));
    Ok(lists::number_of(store, rules)?.filter(|_| stands))
}

/// Has the daemon's rules remembered. Gives the number of their lists.
pub(in crate::ledger) fn remember<S: Store>(
    store: &mut S,
    rules: &Rules,
) -> Result<i64, StoreError> {
    let number = lists::adopt(store, rules)?;
    let before = store.fact(&SERVED)?;
    let newest = store.newest_event()?;
    store.set_fact(&SERVED, &Served::next(before, rules, newest))?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::event::EventKind;
    use crate::invoice::silence::Step;
    use crate::invoice::status::Outcome;
    use crate::invoice::transition::Policy;
    use crate::ledger::apply::Restore;

    fn rules(hooks: &[(&str, &[&str])]) -> Rules {
        let subscription = |(hook, on): &(&str, &[&str])| Subscription {
            hook: (*hook).to_owned(),
            on: on
                .iter()
                .map(|word| Selector::parse(word).expect("known"))
                .collect(),
        };
        Rules {
            author: Author::Daemon,
            policy: Policy::default(),
            schedule: Schedule {
                steps: vec![Step {
                    until_ms: 2,
                    every_ms: 1,
                }],
                after_expiry_ms: 3,
                horizon_ms: 4,
            },
            subscriptions: hooks.iter().map(subscription).collect(),
            on_abandoned: false,
            first_delay_ms: 0,
            longest_delay_ms: 1,
            sorted_by: None,
            restore: Restore::default(),
        }
    }

    fn paid() -> Change {
        Change {
            kind: EventKind::Paid,
            rewound: false,
            cause: None,
            status: None,
            previous_status: None,
            outcome: Outcome::Paid,
            previous_outcome: Outcome::Open,
            order_outcome: Outcome::Paid,
        }
    }

    /// Rules, and the newest event when they were taken up, one after the other.
    fn after(steps: &[(&Rules, i64)]) -> Served {
        let next =
            |before, (rules, newest): &(&Rules, i64)| Some(Served::next(before, rules, *newest));
        steps.iter().fold(None, next).expect("some")
    }

    #[test]
    fn a_hook_is_owed_from_its_beginning_to_its_end() {
        let (one, both) = (
            rules(&[("ship", &["paid"])]),
            rules(&[("ship", &["paid"]), ("mail", &["*"])]),
        );
        let none = rules(&[]);
        let served = after(&[(&one, 0), (&both, 5), (&one, 9), (&none, 12), (&one, 15)]);
        let change = paid();
        let owed = |seq| served.owed(seq, &change).collect::<Vec<_>>();
        for (seq, hooks) in [
            (1, &["ship"][..]),
            (5, &["ship"]),
            (6, &["ship", "mail"]),
            (9, &["ship", "mail"]),
            (10, &["ship"]),
            (12, &["ship"]),
            (13, &[]),
            (15, &[]),
            (16, &["ship"]),
        ] {
            assert_eq!(owed(seq), hooks, "{seq}");
        }
        assert_eq!(SERVED.read_back(&served), Some(served.clone()));
        assert_eq!(served.over(&none).subscriptions, one.subscriptions);
    }

    #[test]
    fn another_wish_of_a_hook_begins_anew_and_another_order_of_the_words_does_not() {
        let first = rules(&[("ship", &["paid", "failed"])]);
        let turned = rules(&[("ship", &["failed", "paid"])]);
        let other = rules(&[("ship", &["failed"])]);
        assert_eq!(after(&[(&first, 3), (&turned, 7)]), after(&[(&first, 3)]));
        assert_eq!(apart(&first, &turned), [""; 0]);
        assert_eq!(apart(&first, &other), ["[[hook]]"]);
        let served = after(&[(&first, 3), (&other, 7)]);
        assert_eq!(served.owed(7, &paid()).collect::<Vec<_>>(), ["ship"]);
        assert_eq!(served.owed(8, &paid()).count(), 0);
        // What held for no event is forgotten.
        assert_eq!(after(&[(&first, 3), (&other, 3)]), after(&[(&other, 3)]));
    }

    #[test]
    fn whoever_is_told_of_deliveries_that_were_given_up_has_names_of_their_own() {
        let mut own = rules(&[("ship", &["paid"])]);
        assert_eq!(after(&[(&own, 0)]).run_names(), ["ship"]);
        own.on_abandoned = true;
        let teller = teller_of("ship").expect("a name");
        assert_eq!(after(&[(&own, 0)]).run_names(), ["ship", &*teller]);
    }

    #[test]
    fn each_setting_that_decides_is_named() {
        let own = rules(&[]);
        let mut other = rules(&[("ship", &["paid"])]);
        other.policy.confirm_paid = true;
        other.policy.lists.paid.push("paid".to_owned());
        other.first_delay_ms = 1;
        other.schedule.horizon_ms = 5;
        let every = DECIDING.map(|(name, _)| name);
        assert_eq!(apart(&own, &other), every);
        assert_eq!(apart(&own, &own), [""; 0]);
    }
}
