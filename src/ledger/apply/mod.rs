//! Applies one command to the store. The only caller of `decide`: every claim, whoever makes it, comes through here,
//! and what it changes (invoice, event, deliveries, due time, history) stands in one commit.

mod dates;
mod event;
mod lists;
mod opening;
pub(super) use opening::standing;
mod operator;
mod reassess;
mod record;
mod restored;
mod served;
mod supply;

use std::collections::BTreeSet;

use crate::hook::Subscription;
use crate::invoice::silence::Schedule;
use crate::invoice::transition::Policy;

use super::clock_note::ClockNote;
use super::command::{After, Command, Reply};
use super::fact::CLOCK;
use super::retention::Emptied;
use super::row::InvoiceKey;
use super::store::{Store, StoreError, Stored};

pub(in crate::ledger) use dates::heard;
pub(in crate::ledger) use lists::LISTS;
pub(crate) use restored::Restore;
pub(in crate::ledger) use restored::{HELD_RESTORED, catch_up};
pub(crate) use served::apart;
pub(in crate::ledger) use served::{SERVED, remember, remembered, served};

use dates::{nudge, poll_failed, redate, unresolve};
use opening::{begin, give_up_opening, settle};
use reassess::reassess_some;
use record::record;

/// Whose settings the rules are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// The daemon's: they are in force, and the ledger remembers them.
    Daemon,
    /// A command's: what the ledger remembers of the daemon's goes before them.
    Command,
}

/// What the merchant configured, as far as the ledger acts on it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Whose.
    pub author: Author,
    /// How claims are judged.
    pub policy: Policy,
    /// When silent invoices are due.
    pub schedule: Schedule,
    /// Which hooks are owed what.
    pub subscriptions: Vec<Subscription>,
    /// Somebody is told of deliveries that are given up.
    pub on_abandoned: bool,
    /// How long after its event a delivery is first run, milliseconds.
    pub first_delay_ms: i64,
    /// The longest time between two runs of a delivery, milliseconds: one that waits for longer was planned by a clock
    /// that was ahead, and is due.
    pub longest_delay_ms: i64,
    /// The number of these lists in the ledger; `None` until they are stored there.
    pub sorted_by: Option<i64>,
    /// The last restore of the ledger, set when it is opened.
    pub restore: Restore,
}

impl Rules {
    /// These, but that hooks are owed what the others say. All else stays as it was when the ledger was opened.
    pub(in crate::ledger) fn owing_as(&self, other: Self) -> Self {
        Self {
            subscriptions: other.subscriptions,
            on_abandoned: other.on_abandoned,
            first_delay_ms: other.first_delay_ms,
            longest_delay_ms: other.longest_delay_ms,
            ..self.clone()
        }
    }
}

/// Why a command was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger has no such row.
    #[error("the ledger has no {0}")]
    Missing(&'static str),
}

/// Applies one command within the open transaction.
pub(super) fn apply<S: Store>(
    store: &mut S,
    rules: &Rules,
    command: &Command,
) -> Result<Reply, ApplyError> {
    match command {
        Command::Record(key, observation) => {
            Ok(Reply::Recorded(record(store, rules, *key, observation)?))
        }
        Command::Begin(intent) => Ok(Reply::Begun(begin(store, rules, intent)?)),
        Command::Settle(key, settled) => settle(store, rules, *key, settled),
        Command::GiveUpOpening(key) => give_up_opening(store, *key),
        Command::PollFailed(failed) => poll_failed(store, rules, failed),
        Command::Redate(keys, now_ms) => {
            for key in keys {
                let state = store.poll_state(*key)?;
                redate(store, rules, *key, state, *now_ms)?;
            }
            Ok(Reply::Done)
        }
        Command::Unresolve(key, now_ms) => unresolve(store, rules, *key, *now_ms),
        Command::Claim {
            claimant,
            now_ms,
            lanes,
        } => Ok(Reply::Claimed(store.claim(
            claimant,
            *now_ms..=now_ms.saturating_add(rules.longest_delay_ms),
            lanes,
        )?)),
        Command::SeeClock { wrong, after } => {
            let (wrong, upto) = (*wrong, store.newest_event()?);
            store.mark_unsure(*after)?;
            store.set_fact(&CLOCK, &ClockNote { wrong, upto })?;
            Ok(Reply::Seen(upto))
        }
        Command::Replan { now_ms, forward_ms } => {
            Ok(Reply::Acted(store.replan(*now_ms, *forward_ms)?))
        }
        Command::NameChild(key, child) => {
            if store.name_child(*key, child)? {
                Ok(Reply::Done)
            } else {
                Err(ApplyError::Missing("such running delivery"))
            }
        }
        Command::GiveBack(key) => {
            if store.give_back(*key)? {
                Ok(Reply::Done)
            } else {
                Err(ApplyError::Missing("such running delivery"))
            }
        }
        Command::Finish(key, record, after) => {
            let ended = store.finish(*key, record, *after)?;
            if ended && *after == After::Abandoned && rules.on_abandoned {
                let at_ms = record.ended_ms.saturating_add(rules.first_delay_ms);
                store.owe_abandonment(*key, at_ms)?;
            }
            Ok(Reply::Done)
        }
        Command::Act(acting) => Ok(Reply::Acted(store.act(acting)?)),
        Command::Supply(supplying) => Ok(Reply::Acted(supply::supply(store, supplying)?)),
        Command::Refuse(refusals) => {
            let nudged: BTreeSet<InvoiceKey> = refusals
                .iter()
                .filter_map(|refusal| refusal.invoice)
                .collect();
            store.add_refusals(refusals)?;
            let now_ms = refusals
                .iter()
                .map(|refusal| refusal.at_ms)
                .max()
                .unwrap_or_default();
            for key in nudged {
                nudge(store, key, now_ms)?;
            }
            Ok(Reply::Done)
        }
        Command::Note(note) => {
            store.note(note)?;
            Ok(Reply::Done)
        }
        Command::Track(wish) => Ok(Reply::Operated(operator::track(store, rules, wish)?)),
        Command::Adopt(key, answer) => Ok(Reply::Operated(operator::adopt(
            store, rules, *key, answer,
        )?)),
        Command::Accept(wish) => Ok(Reply::Operated(operator::accept(store, rules, wish)?)),
        Command::Acknowledge(key, reasons, now_ms) => Ok(Reply::Operated(operator::acknowledge(
            store, *key, reasons, *now_ms,
        )?)),
        Command::Reassess(now_ms) => Ok(Reply::Reassessed(reassess_some(store, rules, *now_ms)?)),
        Command::Empty(keys, cutoffs) => {
            let mut emptied = Emptied::default();
            for key in keys {
                emptied.add(store.empty(*key, *cutoffs)?);
            }
            Ok(Reply::Emptied(emptied))
        }
    }
}

fn load<S: Store>(store: &mut S, key: InvoiceKey) -> Result<Stored, ApplyError> {
    store.load(key)?.ok_or(ApplyError::Missing("such invoice"))
}
