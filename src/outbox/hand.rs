//! What is claimed ahead of a place, so that none is idle while a claim is stored. Pure; the time is an argument.
//!
//! Only of hooks whose runs take no longer than a few commits do. What is in hand stands as running in the ledger, so nothing
//! else of its invoice runs meanwhile: it is given back when no place comes free soon, and its hook has nothing claimed ahead
//! from then on until a run of it was quick again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Room;

/// A run that is over sooner was quick. A commit takes between one and ten milliseconds: those that last longer lose little by
/// waiting for one.
const QUICK: Duration = Duration::from_millis(50);

/// As long anything is in hand at most. Of quick runs all that is in hand was begun before.
const IN_HAND_FOR: Duration = Duration::from_millis(250);

/// So many are claimed ahead for each ordinary place, and for one hook at most: half of them have run when the next are
/// claimed, with the ends of those in the same commit.
const FOR_EACH_PLACE: u32 = 4;
const FOR_EACH_HOOK: u32 = 8;

/// And for all hooks together: each has a process that waits, with three descriptors of ours.
const FOR_ALL: u32 = 32;

/// What is in hand, of all hooks. Dropping one of them is giving it back.
#[derive(Debug)]
pub(super) struct Hand<T> {
    /// By the hook's number.
    hooks: Vec<Own<T>>,
}

/// What is in hand of one hook.
#[derive(Debug)]
struct Own<T> {
    /// As many are wanted in hand.
    most: u32,
    /// Its last run was.
    is_quick: bool,
    /// The longest due first, with the time it is given back.
    held: VecDeque<(T, Instant)>,
}

impl<T> Hand<T> {
    /// Empty. Hooks go by their number in `rooms`.
    pub(super) fn new(rooms: &[Room]) -> Self {
        let own = |room: &Room| Own {
            most: FOR_EACH_HOOK.min(room.ordinary.saturating_mul(FOR_EACH_PLACE)),
            is_quick: false,
            held: VecDeque::new(),
        };
        let hooks = rooms.iter().map(own).collect();
        Self { hooks }
    }

    /// A run of this hook has ended that took so long.
    pub(super) fn ended(&mut self, hook: usize, lasted: Duration) {
        if let Some(own) = self.hooks.get_mut(hook) {
            own.is_quick = lasted < QUICK;
        }
    }

    /// How many of this hook are to be claimed ahead now.
    pub(super) fn wants(&self, hook: usize) -> u32 {
        let wanted = |own: &Own<T>| {
            let left = own.most.saturating_sub(own.count());
            if own.is_quick && own.count() <= own.most / 2 {
                left
            } else {
                0
            }
        };
        self.hooks.get(hook).map_or(0, wanted)
    }

    /// How many one claim takes ahead of the hooks that are programs.
    pub(super) fn at_once(&self, is_program: impl Fn(usize) -> bool) -> u32 {
        let hooks = self.hooks.iter().enumerate();
        let quick = hooks.filter(|(hook, own)| own.is_quick && is_program(*hook));
        let all: u32 = quick.map(|(_, own)| own.most.div_ceil(2)).sum();
        all.min(FOR_ALL / 2)
    }

    /// How many more of all hooks may be in hand.
    pub(super) fn room(&self) -> u32 {
        let all = self.hooks.iter().map(Own::count).sum();
        FOR_ALL.saturating_sub(all)
    }

    /// Something of this hook was claimed for which there is no place.
    pub(super) fn put(&mut self, hook: usize, one: T, now: Instant) {
        if let Some(own) = self.hooks.get_mut(hook) {
            own.held.push_back((one, now + IN_HAND_FOR));
        }
    }

    /// What is to be begun next of this hook.
    pub(super) fn take(&mut self, hook: usize) -> Option<T> {
        let (one, _) = self.hooks.get_mut(hook)?.held.pop_front()?;
        Some(one)
    }

    /// True when nothing is in hand.
    pub(super) fn is_empty(&self) -> bool {
        self.hooks.iter().all(|own| own.held.is_empty())
    }

    /// When something is to be given back.
    pub(super) fn next_late(&self) -> Option<Instant> {
        let first = self.hooks.iter().filter_map(|own| own.held.front());
        first.map(|(_, at)| *at).min()
    }

    /// Gives back what no place came free for.
    pub(super) fn give_late_back(&mut self, now: Instant) {
        let is_late = |own: &&mut Own<T>| own.held.front().is_some_and(|(_, at)| *at <= now);
        for own in self.hooks.iter_mut().filter(is_late) {
            own.is_quick = false;
            own.held.clear();
        }
    }

    /// Gives all of it back. Says how many that were.
    pub(super) fn give_back(&mut self) -> usize {
        let drained = self.hooks.iter_mut().map(|own| own.held.drain(..).count());
        drained.sum()
    }
}

impl<T> Own<T> {
    fn count(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }
}
