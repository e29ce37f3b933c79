//! Who runs where: each hook has places of its own, and further ones for runs that last. Pure; the time is an argument.
//!
//! A run takes an ordinary place when it begins. Once it has lasted for [`SLOW_AFTER`] it stands in one of its hook's slow
//! places, while one is free, and its ordinary place is another's. Nothing has to be moved for that: where a run stands
//! follows from how long it has lasted and how many others of its hook have lasted as long. So a hook never has more runs
//! than it has places of both kinds, and a program that hangs holds up nobody before the slow places are full too.
//!
//! A run is its hook's by the hook's name: one that is not among the hooks for a while, as by a slip in the config, finds its runs
//! in their places when it is back.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
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

/// How long a hook whose program may not be run has no place, at first and at most: whoever puts it right waits no longer.
const CLOSED_FOR: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The runs of all hooks, each known by its `K`.
#[derive(Debug)]
pub(super) struct Places<K> {
    /// By the hook's number: its name, and its room.
    hooks: Vec<(Arc<str>, Room)>,
    /// Those of hooks that are gone, too.
    runs: HashMap<K, Run>,
    /// Those that have no place for a while.
    closed: HashMap<Arc<str>, Closed>,
}

#[derive(Clone, Copy, Debug)]
struct Closed {
    until: Instant,
    /// How often in a row.
    rests: u32,
}

#[derive(Debug)]
struct Run {
    hook: Arc<str>,
    slow_at: Instant,
}

impl<K: Eq + Hash> Places<K> {
    /// All free. Hooks go by their number in `hooks`.
    pub(super) fn new(hooks: Vec<(Arc<str>, Room)>) -> Self {
        let (runs, closed) = (HashMap::new(), HashMap::new());
        Self {
            hooks,
            runs,
            closed,
        }
    }

    /// From now on the hooks go by their number in `hooks`; `whose` gives it for the name that a run went by so far. Runs that are
    /// nobody's take no place until their hook is back.
    pub(super) fn furnish_anew(
        &mut self,
        hooks: Vec<(Arc<str>, Room)>,
        whose: impl Fn(&str) -> Option<usize>,
    ) {
        self.hooks = hooks;
        self.closed.clear();
        for run in self.runs.values_mut() {
            if let Some((name, _)) = whose(&run.hook).and_then(|hook| self.hooks.get(hook)) {
                run.hook = Arc::clone(name);
            }
        }
    }

    /// A run of this hook begins.
    pub(super) fn begin(&mut self, run: K, hook: usize, now: Instant) {
        if let Some((name, _)) = self.hooks.get(hook) {
            let (hook, slow_at) = (Arc::clone(name), now + SLOW_AFTER);
            self.runs.insert(run, Run { hook, slow_at });
        }
    }

    /// A run is found that began long ago: of the hook with this name, whether there is one now or not.
    pub(super) fn find(&mut self, run: K, hook: &str, now: Instant) {
        let (hook, slow_at) = (Arc::from(hook), now);
        self.runs.insert(run, Run { hook, slow_at });
    }

    /// A run has ended. Gives its hook, and how long it took; `None` when that was said before, or the hook is gone.
    pub(super) fn end(&mut self, run: &K, now: Instant) -> Option<(usize, Duration)> {
        let Run { hook, slow_at } = self.runs.remove(run)?;
        let left = slow_at.saturating_duration_since(now);
        let hook = self.hooks.iter().position(|(name, _)| *name == hook)?;
        Some((hook, SLOW_AFTER.saturating_sub(left)))
    }

    /// How many runs of this hook may begin.
    pub(super) fn free(&self, hook: usize, now: Instant) -> u32 {
        let Some((name, room)) = self.hooks.get(hook) else {
            return 0;
        };
        if self.closed.get(name).is_some_and(|one| now < one.until) {
            return 0;
        }
        let (slow, all) = (
            self.count(name, |run| run.slow_at <= now),
            self.count(name, |_| true),
        );
        room.ordinary.saturating_sub(all - slow.min(room.slow))
    }

    /// The hook has no place for a while, twice as long each time in a row. True when it is the first time.
    pub(super) fn close(&mut self, hook: usize, now: Instant) -> bool {
        let Some((name, _)) = self.hooks.get(hook) else {
            return false;
        };
        let (first, longest) = CLOSED_FOR;
        let before = self
            .closed
            .get(name)
            .filter(|one| now < one.until + longest);
        // Those that failed together rest once.
        if before.is_some_and(|one| now < one.until) {
            return false;
        }
        let rests = before.map_or(0, |one| one.rests.saturating_add(1));
        let pause = first.saturating_mul(2_u32.saturating_pow(rests));
        let until = now + pause.min(longest);
        self.closed
            .insert(Arc::clone(name), Closed { until, rests });
        rests == 0
    }

    /// When the next run leaves its ordinary place for a slow one, of hooks that have no other place free, or one that was
    /// closed has places again.
    pub(super) fn next_move(&self, now: Instant) -> Option<Instant> {
        let full = |(number, (name, room)): &(usize, &(Arc<str>, Room))| {
            let slow = self.count(name, |run| run.slow_at <= now);
            slow < room.slow && self.free(*number, now) == 0
        };
        let waiting = self.hooks.iter().enumerate().filter(full);
        let moves = waiting.flat_map(|(_, (name, _))| {
            let runs = self.runs.values().filter(move |run| run.hook == *name);
            runs.map(|run| run.slow_at)
        });
        let opens = self.closed.values().map(|one| one.until);
        moves.chain(opens).filter(|at| *at > now).min()
    }

    fn count(&self, hook: &Arc<str>, which: impl Fn(&Run) -> bool) -> u32 {
        let runs = self.runs.values();
        let count = runs.filter(|run| run.hook == *hook && which(run)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
