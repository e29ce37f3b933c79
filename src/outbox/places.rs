//! Who runs where: each hook has places of its own, and further ones for runs that last. Pure; the time is an argument.
//!
//! A run takes an ordinary place when it begins. Once it has lasted for [`SLOW_AFTER`] it stands in one of its hook's slow
//! places, while one is free, and its ordinary place is another's. Nothing has to be moved for that: where a run stands
//! follows from how long it has lasted and how many others of its hook have lasted as long. So a hook never has more runs
//! than it has places of both kinds, and a program that hangs holds up nobody before the slow places are full too.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// A run that lasts longer is slow. Scripts that write to a database or call another service are done well before; one
/// that is not is likely to go on until its timeout.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(2);

/// The places of one hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Runs at once.
    pub ordinary: u32,
    /// Slow runs beside those.
    pub slow: u32,
}

/// The runs of all hooks, each known by its `K`.
#[derive(Debug)]
pub(super) struct Places<K> {
    /// By the hook's number.
    rooms: Vec<Room>,
    runs: HashMap<K, Run>,
}

#[derive(Debug)]
struct Run {
    hook: usize,
    slow_at: Instant,
}

impl<K: Eq + Hash> Places<K> {
    /// All free. Hooks go by their number in `rooms`.
    pub(super) fn new(rooms: Vec<Room>) -> Self {
        let runs = HashMap::new();
        Self { rooms, runs }
    }

    /// From now on the hooks go by their number in `rooms`, which `number` gives for those that stay. Runs of the others take no
    /// place any more.
    pub(super) fn furnish_anew(
        &mut self,
        rooms: Vec<Room>,
        number: impl Fn(usize) -> Option<usize>,
    ) {
        self.rooms = rooms;
        self.runs.retain(|_, run| match number(run.hook) {
            Some(hook) => {
                run.hook = hook;
                true
            }
            None => false,
        });
    }

    /// A run of this hook begins.
    pub(super) fn begin(&mut self, run: K, hook: usize, now: Instant) {
        let slow_at = now + SLOW_AFTER;
        self.runs.insert(run, Run { hook, slow_at });
    }

    /// A run of this hook is found that began long ago.
    pub(super) fn find(&mut self, run: K, hook: usize, now: Instant) {
        let slow_at = now;
        self.runs.insert(run, Run { hook, slow_at });
    }

    /// A run has ended. Gives its hook, and how long it took; `None` when that was said before.
    pub(super) fn end(&mut self, run: &K, now: Instant) -> Option<(usize, Duration)> {
        let Run { hook, slow_at } = self.runs.remove(run)?;
        let left = slow_at.saturating_duration_since(now);
        Some((hook, SLOW_AFTER.saturating_sub(left)))
    }

    /// How many runs of this hook may begin.
    pub(super) fn free(&self, hook: usize, now: Instant) -> u32 {
        let Some(room) = self.rooms.get(hook) else {
            return 0;
        };
        let (slow, all) = (
            self.count(hook, |run| run.slow_at <= now),
            self.count(hook, |_| true),
        );
        room.ordinary.saturating_sub(all - slow.min(room.slow))
    }

    /// When the next run leaves its ordinary place for a slow one, of hooks that have no other place free.
    pub(super) fn next_move(&self, now: Instant) -> Option<Instant> {
        let full = |hook: usize, room: &Room| {
            let slow = self.count(hook, |run| run.slow_at <= now);
            slow < room.slow && self.free(hook, now) == 0
        };
        let rooms = self.rooms.iter().enumerate();
        let waiting = rooms.filter(|(hook, room)| full(*hook, room));
        let moves = waiting.flat_map(|(hook, _)| {
            let runs = self.runs.values().filter(move |run| run.hook == hook);
            runs.map(|run| run.slow_at)
        });
        moves.filter(|at| *at > now).min()
    }

    fn count(&self, hook: usize, which: impl Fn(&Run) -> bool) -> u32 {
        let runs = self.runs.values();
        let count = runs.filter(|run| run.hook == hook && which(run)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
