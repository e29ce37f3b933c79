//! What a restored ledger may have missed, and what is held for it. Whatever stood waiting when the copy was made may
//! have been run since, and what is found out about an invoice may have been found, told and run before.
//!
//! The rule: until an invoice has been asked about once after the restore, all that it gives rise to is held. Only a
//! notification of a change that happened after the restore runs at once: whoever served before cannot have known it. When
//! that change happened is the service's word, `updatedAt`. One of before, or without a readable time, may be the repeat of a
//! notification that was answered long ago. Our clock is compared with the service's here, and nothing is ordered by it:
//! where ours is ahead, something waits for a person that need not have. Two things are not seen through: a clock of ours
//! that is behind makes news of the last changes before the restore, and a service that touches a paid invoice once more,
//! and tells of it before it was asked, makes the payment news. Then a hook may be told of a payment it was told of before.
//!
//! What the plan polls no more is owed one poll after a restore: the lost ledger may have recorded a refund or a late payment.

use serde::{Deserialize, Serialize};

use super::Rules;
use crate::invoice::observation::{Observation, Source};
use crate::invoice::opening::Opening;
use crate::invoice::silence::Class;
use crate::invoice::status::Outcome;
use crate::invoice::transition::Decision;
use crate::ledger::fact::{BACKUP, CLOCK_MARK, GENERATION, RESTORED};
use crate::ledger::store::{PollState, Store, StoreError, Stored};

/// Why deliveries wait for a person: the ledger was restored, and they may have been run before.
pub(in crate::ledger) const HELD_RESTORED: &str = "restored";

/// The last restore of a ledger. Default: it never was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// How often it was restored.
    pub generation: i64,
    /// When it was opened after it, milliseconds since 1970; not before any time this ledger has seen.
    pub at_ms: i64,
}

/// Begins another generation: what waits is held, what stands as running once it has ended. Returns how many deliveries.
/// In the caller's transaction, so that it happens once or not at all.
pub(in crate::ledger) fn catch_up(
    store: &mut impl Store,
    generation: i64,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let held = store.hold_unfinished(HELD_RESTORED)?;
    let seen = store.fact(&CLOCK_MARK)?;
    let restore = Restore {
        generation,
        at_ms: now_ms.max(seen.unwrap_or(now_ms)),
    };
    store.set_fact(&GENERATION, &generation)?;
    store.set_fact(&BACKUP, &None)?;
    store.set_fact(&RESTORED, &restore)?;
    Ok(held)
}

/// The generation of an invoice that begins to be tracked. What was opened elsewhere may have been known to the ledger that
/// was lost.
pub(super) const fn of_tracked(rules: &Rules) -> i64 {
    match rules.restore.generation {
        0 => 0,
        restored => restored - 1,
    }
}

/// Why what an invoice gives rise to by itself, or by a person's hand, is held.
pub(super) fn held(rules: &Rules, stored: &Stored) -> Option<&'static str> {
    (stored.generation < rules.restore.generation).then_some(HELD_RESTORED)
}

/// Why the deliveries of what this observation brings are held, if they are. A poll that leaves nothing open ends it for
/// this invoice.
pub(super) fn held_for(
    rules: &Rules,
    stored: &mut Stored,
    observation: &Observation,
    decision: Decision,
) -> Option<&'static str> {
    let missed = held(rules, stored)?;
    let asked = observation.source == Source::Poll;
    let open = stored.invoice.doubt || stored.invoice.pending.is_some();
    if asked && !open && decision != Decision::Overtaken {
        stored.generation = rules.restore.generation;
    }
    // One that is tracked since may be new: then its answers are news as well as its notifications.
    let since = rules.restore.at_ms;
    let may_be_new = observation.source == Source::Notification
        || stored.row.opening == Opening::Tracked && stored.row.created_ms >= since;
    let at = observation.report.updated_at;
    let is_news = may_be_new && at.is_some_and(|at| at.as_ms() > since);
    (!is_news).then_some(missed)
}

/// Files an invoice under the class of those that a restore wants polled, while it is one of them. An answer ends that, and so
/// does the service's word that there is no such invoice.
pub(super) fn owe_poll(rules: &Rules, stored: &Stored, state: &mut PollState) {
    let is_planned = stored.row.outcome == Outcome::Open && !stored.row.unresolved;
    let asked_since = |asked: i64| asked >= rules.restore.at_ms;
    let is_gone = state.polled.gone_ms.is_some() && state.asked_ms.is_some_and(asked_since);
    if held(rules, stored).is_some() && !is_planned && !is_gone {
        state.class = Class::Restored;
    } else if state.class == Class::Restored {
        state.class = Class::Old;
    }
}
