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

    /// A run has ended.
    pub(super) fn end(&mut self, run: &K) {
        self.runs.remove(run);
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Places of two hooks, by ordinary and slow ones.
    fn places(rooms: [(u32, u32); 2]) -> Places<&'static str> {
        let room = |(ordinary, slow)| Room { ordinary, slow };
        Places::new(rooms.map(room).to_vec())
    }

    /// Any moment: only the time since matters.
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_hook_takes_no_place_of_another() {
        let (mut places, now) = (places([(2, 1), (3, 0)]), start());
        for run in ["a", "b"] {
            places.begin(run, 0, now);
        }
        assert_eq!((places.free(0, now), places.free(1, now)), (0, 3));
        places.begin("c", 1, now);
        assert_eq!((places.free(0, now), places.free(1, now)), (0, 2));
        places.end(&"a");
        assert_eq!((places.free(0, now), places.free(1, now)), (1, 2));
        assert_eq!(places.free(2, now), 0, "no such hook");
    }

    #[test]
    fn who_lasts_makes_room_until_the_slow_places_are_full_too() {
        let (mut places, now) = (places([(2, 2), (2, 2)]), start());
        places.begin("a", 0, now);
        places.begin("b", 0, now + SECOND);
        let at = |seconds: u32| now + SECOND * seconds;
        assert_eq!(places.free(0, at(1)), 0);
        assert_eq!(places.next_move(at(1)), Some(at(2)));
        assert_eq!(places.free(0, at(2)), 1, "one moved");
        assert_eq!(places.next_move(at(2)), None, "nobody waits for a place");
        assert_eq!(places.free(0, at(3)), 2, "both moved");
        places.begin("c", 0, at(3));
        places.begin("d", 0, at(3));
        assert_eq!(places.free(0, at(3)), 0);
        // All four hang: there is nowhere to go.
        assert_eq!(places.free(0, at(99)), 0);
        assert_eq!(places.next_move(at(4)), None);
        assert_eq!(places.free(1, at(99)), 2);
        // A slow place that becomes free is taken by the next that lasts.
        places.end(&"a");
        assert_eq!(places.free(0, at(99)), 1);
        assert_eq!(places.free(0, at(4)), 0, "c and d have not lasted yet");
        assert_eq!(places.next_move(at(4)), Some(at(5)));
    }

    #[test]
    fn without_slow_places_the_limit_is_hard() {
        let (mut places, now) = (places([(1, 0), (1, 1)]), start());
        places.begin("a", 0, now);
        assert_eq!(places.free(0, now + SECOND * 3600), 0);
        assert_eq!(places.next_move(now), None);
        places.end(&"a");
        places.end(&"a");
        assert_eq!(places.free(0, now), 1);
    }

    #[test]
    fn what_was_left_running_takes_a_slow_place_and_counts_against_a_hard_limit() {
        let (mut places, now) = (places([(1, 1), (1, 0)]), start());
        places.find("old", 0, now);
        places.find("older", 1, now);
        assert_eq!((places.free(0, now), places.free(1, now)), (1, 0));
        places.find("more", 0, now);
        assert_eq!(places.free(0, now), 0);
    }

    /// Whatever begins as long as places are free, and however long it lasts: never more than both kinds together.
    #[test]
    fn no_hook_ever_runs_more_than_it_has_places() {
        let (mut places, now) = (
            Places::new(
                [Room {
                    ordinary: 3,
                    slow: 2,
                }]
                .to_vec(),
            ),
            start(),
        );
        let (mut running, mut next) = (Vec::new(), 0_u32);
        for step in 0..500_u32 {
            let at = now + Duration::from_millis(300) * step;
            // In any order and at any age, as far as that matters.
            if step % 7 > 3 && !running.is_empty() {
                let ended = running.swap_remove((step as usize * 13) % running.len());
                places.end(&ended);
            }
            for _ in 0..places.free(0, at) {
                places.begin(next, 0, at);
                running.push(next);
                next += 1;
            }
            assert!((3..=5).contains(&running.len()), "{running:?}");
        }
        assert!(next > 100);
    }
}
