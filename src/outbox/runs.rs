//! How runs of each hook ended, since the daemon's start.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::retry::Plan;
use crate::hook::process::Ending;

/// How a run ended, as it is counted: what follows it, or why nothing could begin.
pub(crate) const OUTCOMES: [&str; 6] = [
    "done",
    "failed",
    "postponed",
    "timeout",
    "not_started",
    "interrupted",
];

/// What was refused a start is tried again sooner than this while it is due: after that nothing waits for one.
const WANTS_FOR: Duration = Duration::from_mins(2);

/// Why no program can be started.
#[derive(Debug)]
struct Want {
    /// Milliseconds since 1970.
    since_ms: i64,
    why: String,
    last: Instant,
}

/// The counts of a hook, in the order of [`OUTCOMES`].
type Counts = [u64; OUTCOMES.len()];

/// The counts, one row for each hook that is or was configured, so that no name from elsewhere makes another; and whether
/// programs can be started. Locked for a moment by each run that ends, of which there are few.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    rows: Mutex<BTreeMap<String, Counts>>,
    /// `None` while they can.
    wanting: Mutex<Option<Want>>,
}

impl Runs {
    /// Counts for these hooks.
    pub(crate) fn of(hooks: impl IntoIterator<Item = String>) -> Self {
        let runs = Self::default();
        runs.know(hooks);
        runs
    }

    /// Counts for these too, as settings that were read again name them.
    pub(crate) fn know(&self, hooks: impl IntoIterator<Item = String>) {
        let mut rows = self.rows();
        for name in hooks {
            rows.entry(name).or_default();
        }
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, Counts>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self) -> MutexGuard<'_, Option<Want>> {
        self.wanting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program could not be started for want of this.
    pub(super) fn could_not_start(&self, at_ms: i64, why: &str) {
        let last = Instant::now();
        let mut want = self.want();
        let before = want.as_ref().filter(|want| last < want.last + WANTS_FOR);
        let since_ms = before.map_or(at_ms, |want| want.since_ms);
        *want = Some(Want {
            since_ms,
            why: why.to_owned(),
            last,
        });
    }

    /// One could.
    pub(super) fn started(&self) {
        *self.want() = None;
    }

    /// Since when programs cannot be started, and why, while it is so.
    pub(crate) fn wanting(&self) -> Option<(i64, String)> {
        self.wanting_at(Instant::now())
    }

    fn wanting_at(&self, now: Instant) -> Option<(i64, String)> {
        let want = self.want();
        let want = want.as_ref().filter(|want| now < want.last + WANTS_FOR)?;
        Some((want.since_ms, want.why.clone()))
    }

    /// A run of this hook ended so.
    pub(super) fn ended(&self, hook: &str, ending: &Ending, plan: Plan) {
        let word = match (ending, plan) {
            (Ending::Interrupted, _) | (_, Plan::Interrupted) => "interrupted",
            (_, Plan::Done) => "done",
            (_, Plan::Postpone { .. }) => "postponed",
            (Ending::TimedOut, _) => "timeout",
            (Ending::NotStarted(_) | Ending::Wanting(_) | Ending::Exposed(_), _) => "not_started",
            (
                Ending::Exited(_)
                | Ending::Signalled(_)
                | Ending::Answered { .. }
                | Ending::NoAnswer(_),
                Plan::Retry { .. } | Plan::Abandon,
            ) => "failed",
        };
        let mut rows = self.rows();
        let at = OUTCOMES.iter().position(|outcome| *outcome == word);
        let count = rows.get_mut(hook).zip(at);
        if let Some(count) = count.and_then(|(counts, at)| counts.get_mut(at)) {
            *count += 1;
        }
    }

    /// Every hook with every outcome and its count.
    pub(crate) fn all(&self) -> Vec<(String, &'static str, u64)> {
        let rows = self.rows();
        let all = rows.iter().flat_map(|(name, counts)| {
            let named = OUTCOMES.iter().zip(counts);
            named.map(|(outcome, count)| (name.clone(), *outcome, *count))
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_counted_once_and_no_strange_hook_is() {
        let runs = Runs::of(["fulfil".to_owned()]);
        let retry = Plan::Retry { at_ms: 1 };
        for (ending, plan) in [
            (Ending::Exited(0), Plan::Done),
            (Ending::Exited(1), retry),
            (Ending::Exited(75), Plan::Postpone { at_ms: 1 }),
            (Ending::TimedOut, Plan::Abandon),
            (Ending::NotStarted(String::new()), retry),
            (Ending::Interrupted, Plan::Interrupted),
        ] {
            runs.ended("fulfil", &ending, plan);
            runs.ended("gone", &ending, plan);
        }
        let wanted = OUTCOMES.map(|outcome| ("fulfil".to_owned(), outcome, 1));
        assert_eq!(runs.all(), wanted);
        runs.know(["fulfil".to_owned(), "mail".to_owned()]);
        assert_eq!(runs.all().len(), 2 * OUTCOMES.len());
        assert!(runs.all().starts_with(&wanted));
    }

    #[test]
    fn a_want_ends_with_a_start_or_when_nothing_is_tried_any_more() {
        let (runs, long_after) = (Runs::default(), Instant::now() + 2 * WANTS_FOR);
        assert_eq!(runs.wanting(), None);
        runs.could_not_start(5, "no room");
        runs.could_not_start(7, "no process");
        assert_eq!(runs.wanting(), Some((5, "no process".to_owned())));
        assert_eq!(runs.wanting_at(long_after), None);
        runs.started();
        assert_eq!(runs.wanting(), None);
    }
}
