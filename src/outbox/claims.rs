//! What is begun, and when: looks, claims, and which of what was claimed has a place.
//!
//! Promises that nothing is begun whose claim is not stored, nor beyond a hook's places, and that what was claimed ahead
//! ([`super::hand`]) is begun or given back soon.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{
    Action, Hook, InHand, LOOK_AGAIN_AFTER, LOOK_EVERY, Outbox, Run, STARTED_AHEAD, attempt,
};
use crate::clock::wall_ms;
use crate::hook::process::Waiting;
use crate::ledger::{Claimed, Lane};

impl Outbox {
    /// What may begin, hook by hook.
    fn lanes(&self) -> Vec<Lane> {
        let now = Instant::now().into_std();
        let hooks = self.desk.settings.hooks.iter().enumerate();
        let lane = |(number, hook): (usize, &Hook)| Lane {
            names: hook.answers_to.clone(),
            want: self.places.free(number, now),
            children: Vec::new(),
        };
        hooks.map(lane).collect()
    }

    /// True when some hook has a place free.
    pub(super) fn is_open(&self) -> bool {
        let now = Instant::now().into_std();
        let hooks = 0..self.desk.settings.hooks.len();
        hooks
            .into_iter()
            .any(|hook| self.places.free(hook, now) > 0)
    }

    /// Begins whatever may run. Gives how long there is nothing more to begin as far as can be known.
    pub(super) async fn begin_due(&mut self) -> Duration {
        self.hand.give_late_back(Instant::now().into_std());
        self.fill_places();
        let until = self.rest_until.filter(|until| *until > Instant::now());
        let follows = self.more && (self.is_open() || !self.hand.is_empty());
        if until.is_some() || !follows {
            self.desk.writer.finish_waiting();
        }
        if let Some(until) = until {
            let late = self.hand.next_late().map(Instant::from_std);
            let first = late.map_or(until, |late| late.min(until));
            return first.saturating_duration_since(Instant::now());
        }
        self.rest_until = None;
        if self.more {
            let mut lanes = self.lanes();
            // More than there are places for, where as much is due.
            let mut room = self.hand.room();
            for (hook, lane) in lanes.iter_mut().enumerate() {
                let ahead = self.hand.wants(hook).min(room);
                room = room.saturating_sub(ahead);
                lane.want = lane.want.saturating_add(ahead);
            }
            if lanes.iter().any(|lane| lane.want > 0) {
                self.claim(lanes).await;
            }
        }
        let lanes = self.lanes();
        let next_ms = if lanes.iter().any(|lane| lane.want > 0) {
            self.look(lanes).await
        } else {
            None
        };
        let wait_ms = next_ms.map(|at_ms| at_ms.saturating_sub(wall_ms()).max(0));
        let due = wait_ms.map(|wait_ms| Duration::from_millis(wait_ms.unsigned_abs()));
        let now = Instant::now().into_std();
        let moves = [self.places.next_move(now), self.hand.next_late()];
        let moves = moves.map(|at| at.map(|at| at.saturating_duration_since(now)));
        moves
            .into_iter()
            .chain([due])
            .flatten()
            .fold(LOOK_EVERY, Duration::min)
    }

    /// Begins what is in hand where a place is free.
    fn fill_places(&mut self) {
        let now = Instant::now().into_std();
        for hook in 0..self.desk.settings.hooks.len() {
            while self.places.free(hook, now) > 0
                && let Some(next) = self.hand.take(hook)
            {
                self.places.begin(Run::Ours(next.id), hook, now);
                // One whose task is gone is noticed where tasks are joined.
                next.turn.send(()).unwrap_or_default();
            }
        }
    }

    /// Looks for something to begin, and claims it when there is. Gives when the next delivery becomes due, or is looked for
    /// again.
    async fn look(&mut self, lanes: Vec<Lane>) -> Option<i64> {
        let now_ms = wall_ms();
        let ahead = now_ms..=now_ms.saturating_add(self.desk.settings.longest_delay_ms);
        match self.reader.outlook(ahead, lanes.clone()).await {
            Ok(outlook) => {
                if outlook.now {
                    self.claim(lanes).await;
                }
                outlook.next_ms
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn Error,
                    "could not look for deliveries to run"
                );
                let again_ms = i64::try_from(LOOK_AGAIN_AFTER.as_millis()).unwrap_or_default();
                Some(now_ms.saturating_add(again_ms))
            }
        }
    }

    /// Hands the lanes the processes that were started ahead.
    fn hand_out(&mut self, lanes: &mut [Lane]) {
        self.ahead.retain_mut(Waiting::waits);
        let mut marks = self.ahead.iter().map(Waiting::mark);
        let hooks = self.desk.settings.hooks.iter().zip(lanes);
        for (_, lane) in hooks.filter(|(hook, _)| matches!(hook.action, Action::Run(_))) {
            let want = usize::try_from(lane.want).unwrap_or(usize::MAX);
            lane.children.extend(marks.by_ref().take(want).cloned());
        }
    }

    /// While more is due than can run, has processes started for the next claim, beside the runs that go on: they are there
    /// when a place is. Otherwise none is kept.
    pub(super) fn start_ahead(&mut self, wanted: bool) {
        if !wanted {
            self.ahead.clear();
            self.starting = JoinSet::new();
            return;
        }
        let hooks = &self.desk.settings.hooks;
        let is_program = |hook: usize| {
            let action = hooks.get(hook).map(|hook| &hook.action);
            matches!(action, Some(Action::Run(_)))
        };
        let at_once = usize::try_from(self.hand.at_once(is_program)).unwrap_or_default();
        while self.ahead.len() + self.starting.len() < STARTED_AHEAD.max(at_once) {
            let desk = Arc::clone(&self.desk);
            self.starting.spawn(async move {
                // The attempt that would have had it tries again, and tells.
                let started = Waiting::start(&desk.settings.surroundings.launcher).await;
                started.ok()
            });
        }
    }

    /// Claims what may run, and begins it. Nothing runs whose claim is not stored (A26).
    async fn claim(&mut self, mut lanes: Vec<Lane>) {
        self.hand_out(&mut lanes);
        let desk = Arc::clone(&self.desk);
        let claiming = desk
            .writer
            .claim_deliveries(self.own.clone(), wall_ms(), lanes.clone());
        let mut claiming = pin!(claiming);
        // Whose place comes free meanwhile is followed by what is in hand.
        let claimed = loop {
            tokio::select! {
                biased;
                claimed = &mut claiming => break claimed,
                Some(id) = self.overs.recv() => { let _hook = self.over(id); }
            }
            // However long the claim takes to be stored.
            self.hand.give_late_back(Instant::now().into_std());
            self.fill_places();
        };
        match claimed {
            Ok(claimed) => {
                self.more = lanes.iter().any(|lane| is_filled(lane, &claimed));
                let hooks = self.desk.settings.hooks.iter().zip(&lanes);
                let wanted = hooks
                    .filter(|(hook, _)| matches!(hook.action, Action::Run(_)))
                    .any(|(_, lane)| is_filled(lane, &claimed));
                for one in claimed {
                    let is_its = |waiting: &Waiting| Some(waiting.mark()) == one.child.as_ref();
                    let its = self.ahead.iter().position(is_its);
                    let its = its.map(|position| self.ahead.swap_remove(position));
                    self.begin(one, its);
                }
                self.start_ahead(wanted);
            }
            Err(error) => {
                // What passes by itself the ledger tells, once a minute and not with every look.
                if error.is_transient() {
                    tracing::debug!(
                        error = &error as &dyn Error,
                        "no hook is run, since no claim could be stored"
                    );
                } else {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "no hook is run, since no claim could be stored"
                    );
                }
                self.more = false;
                // It may be stored all the same, with these as its processes: they must never run anything.
                self.start_ahead(false);
                self.rest();
            }
        }
    }

    /// Begins an attempt, in the process that was named with its claim: up to the point where it needs a place. Without one
    /// it is in hand.
    fn begin(&mut self, claimed: Claimed, waiting: Option<Waiting>) {
        let (key, hook) = (claimed.key, self.desk.settings.hook_of(&claimed.hook));
        let (turn, its_turn) = oneshot::channel();
        let desk = Arc::clone(&self.desk);
        let task = self
            .attempts
            .spawn(attempt::run(desk, claimed, waiting, its_turn));
        self.active.insert(task.id(), key);
        let (id, now) = (task.id(), Instant::now().into_std());
        if let Some(hook) = hook {
            if self.places.free(hook, now) == 0 {
                return self.hand.put(hook, InHand { id, turn }, now);
            }
            self.places.begin(Run::Ours(id), hook, now);
        }
        turn.send(()).unwrap_or_default();
    }
}

/// True when a claim brought as many of the lane as it wanted.
fn is_filled(lane: &Lane, claimed: &[Claimed]) -> bool {
    let of_lane = claimed.iter().filter(|one| lane.names.contains(&one.hook));
    lane.want > 0 && of_lane.count() == usize::try_from(lane.want).unwrap_or(usize::MAX)
}
