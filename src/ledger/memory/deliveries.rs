//! Deliveries: which may run, claiming them, and how a run ends; the rules are those of `ledger/sqlite/deliveries.rs`.

use std::ops::RangeInclusive;

use super::{MemoryStore, Owed};
use crate::invoice::event::EventKind;
use crate::ledger::choice::{Act, Acting, Choice, Page, Spared, Whose};
use crate::ledger::command::{After, AttemptRecord, Lane};
use crate::ledger::row::{Claimed, DeliveryKey, DeliveryRow, DeliveryState, InvoiceKey, Outlook};
use crate::ledger::store::Withdrawn;
use crate::process_mark::ProcessMark;

/// One run that has ended.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) delivery: i64,
    pub(super) number: u32,
    pub(super) record: AttemptRecord,
}

impl MemoryStore {
    pub(super) fn claim_runnable(
        &mut self,
        claimant: &ProcessMark,
        ahead: &RangeInclusive<i64>,
        lanes: &[Lane],
    ) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        let mut children: Vec<_> = lanes.iter().map(|lane| lane.children.iter()).collect();
        for (key, mut owed) in self.choose(ahead, lanes) {
            let is_its = |lane: &Lane| lane.names.contains(&owed.hook);
            let lane = lanes.iter().position(is_its);
            let child = lane.and_then(|lane| children.get_mut(lane)?.next());
            owed.state = DeliveryState::Running;
            owed.attempts += 1;
            owed.started_ms = *ahead.start();
            owed.claimant = Some(claimant.clone());
            owed.child = child.cloned();
            claimed.extend(self.claimed(key, &owed));
            self.deliveries.put(key, owed);
        }
        claimed
    }

    /// What a claim would find.
    pub(crate) fn outlook(&self, ahead: &RangeInclusive<i64>, lanes: &[Lane]) -> Outlook {
        let awaited = |owed: &&Owed| {
            let mut open = lanes.iter().filter(|lane| lane.want > 0);
            owed.state == DeliveryState::Waiting && open.any(|lane| lane.names.contains(&owed.hook))
        };
        let owed = self.deliveries.iter().map(|(_, owed)| owed);
        let times = owed.filter(awaited).filter_map(|owed| owed.next_ms);
        Outlook {
            now: !self.choose(ahead, lanes).is_empty(),
            next_ms: times.filter(|next| next > ahead.start()).min(),
        }
    }

    fn choose(&self, ahead: &RangeInclusive<i64>, lanes: &[Lane]) -> Vec<(i64, Owed)> {
        let is_due = |next: &i64| next <= ahead.start() || next > ahead.end();
        let mut due: Vec<(i64, i64, &Owed)> = self
            .deliveries
            .iter()
            .filter(|(_, owed)| owed.state == DeliveryState::Waiting)
            .filter_map(|(key, owed)| Some((owed.next_ms.filter(is_due)?, key, owed)))
            .filter(|(_, _, owed)| self.may_run(owed))
            .collect();
        due.sort_unstable_by_key(|(next, key, _)| (*next, *key));
        let mut lanes = lanes.to_vec();
        let (mut chosen, mut taken) = (Vec::new(), Vec::new());
        for (_, key, owed) in due {
            let mut open = lanes.iter_mut().filter(|lane| lane.want > 0);
            let lane = open.find(|lane| lane.names.contains(&owed.hook));
            if let Some(lane) = lane.filter(|_| !taken.contains(&owed.invoice)) {
                lane.want -= 1;
                taken.push(owed.invoice);
                chosen.push((key, owed.clone()));
            }
        }
        chosen
    }

    /// True when a delivery waits that was planned later than at this time.
    pub(crate) fn planned_after(&self, at_ms: i64) -> bool {
        let mut owed = self.deliveries.iter().map(|(_, owed)| owed);
        owed.any(|owed| {
            let planned = owed.next_ms.map(|next_ms| next_ms - owed.wait_ms);
            owed.state == DeliveryState::Waiting
                && planned > Some(at_ms)
                && owed.next_ms > Some(at_ms)
        })
    }

    pub(super) fn replan_all(&mut self, now_ms: i64, forward_ms: i64) -> usize {
        let waiting = self.deliveries.iter();
        let waiting: Vec<(i64, Owed)> = waiting
            .filter(|(_, owed)| owed.state == DeliveryState::Waiting)
            .map(|(key, owed)| (key, owed.clone()))
            .collect();
        let (mut shifted, mut shortened) = (0, 0);
        for (key, mut owed) in waiting {
            let Some(mut next_ms) = owed.next_ms else {
                continue;
            };
            if forward_ms > 0 && owed.wait_ms > 0 && next_ms > now_ms - forward_ms {
                next_ms += forward_ms;
                shifted += 1;
            }
            if next_ms > now_ms && next_ms - owed.wait_ms > now_ms {
                next_ms = now_ms + owed.wait_ms;
                shortened += 1;
            }
            owed.next_ms = Some(next_ms);
            self.deliveries.put(key, owed);
        }
        shifted.max(shortened)
    }

    pub(super) fn name(&mut self, key: DeliveryKey, child: &ProcessMark) -> bool {
        let owed = self.deliveries.get(key.0).cloned();
        let Some(mut owed) = owed.filter(|owed| owed.state == DeliveryState::Running) else {
            return false;
        };
        owed.child = Some(child.clone());
        self.deliveries.put(key.0, owed);
        true
    }

    pub(super) fn take_back(&mut self, key: DeliveryKey) -> bool {
        let owed = self.deliveries.get(key.0).cloned();
        let Some(mut owed) = owed.filter(|owed| owed.state == DeliveryState::Running) else {
            return false;
        };
        owed.state = DeliveryState::Waiting;
        owed.attempts -= 1;
        // The ledger was restored while it stood as running.
        if owed.held_why.is_some() {
            (owed.state, owed.next_ms) = (DeliveryState::Held, None);
        }
        (owed.claimant, owed.child) = (None, None);
        self.deliveries.put(key.0, owed);
        true
    }

    pub(super) fn end_run(
        &mut self,
        key: DeliveryKey,
        record: &AttemptRecord,
        after: After,
    ) -> bool {
        let owed = self.deliveries.get(key.0).cloned();
        let Some(mut owed) = owed.filter(|owed| owed.state == DeliveryState::Running) else {
            return false;
        };
        (owed.state, owed.next_ms) = match after {
            After::Done => (DeliveryState::Done, None),
            After::Retry { at_ms } | After::Postponed { at_ms } => {
                (DeliveryState::Waiting, Some(at_ms))
            }
            After::Abandoned => (DeliveryState::Abandoned, None),
            After::Interrupted => (DeliveryState::Waiting, Some(record.ended_ms)),
        };
        owed.wait_ms = owed.next_ms.map_or(0, |at_ms| at_ms - record.ended_ms);
        if matches!(after, After::Interrupted | After::Postponed { .. }) {
            owed.round_start += 1;
        }
        // The ledger was restored while it stood as running.
        match owed.state {
            DeliveryState::Waiting if owed.held_why.is_some() => {
                (owed.state, owed.next_ms) = (DeliveryState::Held, None);
            }
            _ => owed.held_why = None,
        }
        (owed.claimant, owed.child) = (None, None);
        self.attempts.add(Attempt {
            delivery: key.0,
            number: owed.attempts,
            record: record.clone(),
        });
        self.deliveries.put(key.0, owed);
        true
    }

    /// True when an act takes a delivery as it stands.
    fn takes(act: Act, owed: &Owed) -> bool {
        let settled = act == Act::Acknowledge && owed.acknowledged;
        act.takes().contains(&owed.state) && !settled
    }

    pub(super) fn act_on(&mut self, acting: &Acting) -> usize {
        let now = Some(acting.now_ms);
        let mut changed = 0;
        for key in &acting.keys {
            let owed = self.deliveries.get(key.0).cloned();
            let Some(mut owed) = owed.filter(|owed| Self::takes(acting.act, owed)) else {
                continue;
            };
            if acting.act != Act::Acknowledge {
                (owed.state, owed.next_ms) = (DeliveryState::Waiting, now);
            }
            if matches!(acting.act, Act::Retry | Act::Replay | Act::Release) {
                owed.wait_ms = 0;
            }
            match acting.act {
                Act::Retry => {
                    (owed.round_start, owed.abandoned_by) = (owed.attempts, None);
                    owed.acknowledged = false;
                }
                Act::Replay => (owed.round_start, owed.replay) = (owed.attempts, true),
                Act::Release => owed.held_why = None,
                Act::Abandon => {
                    (owed.state, owed.next_ms) = (DeliveryState::Abandoned, None);
                    (owed.held_why, owed.abandoned_by) = (None, Some("operator"));
                    owed.acknowledged = true;
                }
                Act::Acknowledge => owed.acknowledged = true,
            }
            self.deliveries.put(key.0, owed);
            changed += 1;
        }
        changed
    }

    /// The deliveries a person means, newest first.
    pub(crate) fn chosen(&self, choice: &Choice, limit: u32) -> Vec<DeliveryRow> {
        let rows = self.deliveries().into_iter().rev();
        rows.filter(|row| is_meant(row, choice))
            .filter(|row| choice.state.is_none_or(|state| state == row.state))
            .filter(|row| choice.below.is_none_or(|below| row.key < below))
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect()
    }

    /// What an act would change of the deliveries a person means, a page of it.
    pub(crate) fn would_change(&self, act: Act, choice: &Choice, page: &Page) -> Vec<DeliveryRow> {
        let spared = act.spares(&choice.whose);
        let taken = |row: &DeliveryRow| {
            act.takes().contains(&row.state)
                && match spared {
                    Spared::None => true,
                    Spared::GivenUpByOperator => row.abandoned_by.is_none(),
                    Spared::Acknowledged => !row.acknowledged,
                }
        };
        let rows = self.deliveries().into_iter();
        rows.filter(|row| is_meant(row, choice) && taken(row))
            .filter(|row| choice.state.is_none_or(|state| state == row.state))
            .filter(|row| row.key > page.after && row.key <= page.upto)
            .take(usize::try_from(page.most).unwrap_or(usize::MAX))
            .collect()
    }

    pub(super) fn hold_all(&mut self, why: &'static str) -> usize {
        let unfinished =
            |owed: &Owed| matches!(owed.state, DeliveryState::Waiting | DeliveryState::Running);
        let all = self.deliveries.iter();
        let keys: Vec<i64> = all
            .filter(|(_, owed)| unfinished(owed))
            .map(|(key, _)| key)
            .collect();
        for key in &keys {
            let Some(owed) = self.deliveries.get(*key) else {
                continue;
            };
            let mut owed = owed.clone();
            owed.held_why = Some(why);
            if owed.state == DeliveryState::Waiting {
                (owed.state, owed.next_ms) = (DeliveryState::Held, None);
            }
            self.deliveries.put(*key, owed);
        }
        keys.len()
    }

    pub(super) fn withdraw(&mut self, key: InvoiceKey) -> Withdrawn {
        let of_invoice = |owed: &Owed| owed.invoice == key.0;
        let unrun: Vec<i64> = self
            .deliveries
            .iter()
            .filter(|(_, owed)| of_invoice(owed) && owed.state == DeliveryState::Held)
            .filter(|(_, owed)| owed.attempts == 0)
            .filter(|(_, owed)| self.kind_of(owed).is_some_and(tells_an_outcome))
            .map(|(id, _)| id)
            .collect();
        for id in &unrun {
            self.deliveries.retire(*id);
        }
        let mut left = self.deliveries.iter().filter(|(_, owed)| of_invoice(owed));
        let payment_left = left
            .any(|(_, owed)| matches!(self.kind_of(owed), Some(EventKind::Paid | EventKind::Late)));
        Withdrawn {
            count: unrun.len(),
            payment_left,
        }
    }

    fn kind_of(&self, owed: &Owed) -> Option<EventKind> {
        self.events.get(owed.event).map(|event| event.row.kind)
    }

    /// True when no run of the invoice is under way and no earlier event of it waits for the same hook.
    fn may_run(&self, owed: &Owed) -> bool {
        self.deliveries
            .iter()
            .filter(|(_, other)| other.invoice == owed.invoice)
            .all(|(_, other)| {
                let unfinished = matches!(
                    other.state,
                    DeliveryState::Waiting | DeliveryState::Running | DeliveryState::Held
                );
                let before = other.event < owed.event && other.hook == owed.hook;
                other.state != DeliveryState::Running && !(before && unfinished)
            })
    }

    fn claimed(&self, key: i64, owed: &Owed) -> Option<Claimed> {
        Some(Claimed {
            key: DeliveryKey(key),
            hook: owed.hook.clone(),
            attempt: owed.attempts,
            round_attempt: owed.attempts.saturating_sub(owed.round_start),
            replay: owed.replay,
            event: self.events.get(owed.event)?.row.clone(),
            invoice: self.stored(InvoiceKey(owed.invoice))?.row,
            given_up: self.given_up(owed),
            child: owed.child.clone(),
        })
    }
}

/// True for what a choice means, whatever its state.
fn is_meant(row: &DeliveryRow, choice: &Choice) -> bool {
    let whose = match &choice.whose {
        Whose::All => true,
        Whose::Event(event_id) => row.event_id == *event_id,
        Whose::Order(order_id) => row.order_id == *order_id,
    };
    whose
        && choice.hook.as_ref().is_none_or(|hook| *hook == row.hook)
        && choice.since_ms.is_none_or(|since| row.at_ms >= since)
        && choice.until_ms.is_none_or(|until| row.at_ms < until)
}

/// True for what is untrue once the outcome is taken back.
const fn tells_an_outcome(kind: EventKind) -> bool {
    match kind {
        EventKind::Paid
        | EventKind::PaidAgain
        | EventKind::Late
        | EventKind::Failed
        | EventKind::Reversed
        | EventKind::Mismatch
        | EventKind::SecondPayment => true,
        EventKind::Opened | EventKind::Status | EventKind::Unresolved | EventKind::Operator => {
            false
        }
    }
}
