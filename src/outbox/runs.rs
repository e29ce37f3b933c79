//! How runs of each hook ended, since the daemon's start.

use std::sync::atomic::{AtomicU64, Ordering};

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

/// The counts, one row for each configured hook, so that no name from elsewhere makes another.
#[derive(Debug, Default)]
pub(crate) struct Runs(Vec<(String, [AtomicU64; OUTCOMES.len()])>);

impl Runs {
    /// Counts for these hooks.
    pub(crate) fn of(hooks: impl IntoIterator<Item = String>) -> Self {
        let rows = hooks.into_iter().map(|name| (name, Default::default()));
        Self(rows.collect())
    }

    /// A run of this hook ended so.
    pub(super) fn ended(&self, hook: &str, ending: &Ending, plan: Plan) {
        let word = match (ending, plan) {
            (Ending::Interrupted, _) | (_, Plan::Interrupted) => "interrupted",
            (_, Plan::Done) => "done",
            (_, Plan::Postpone { .. }) => "postponed",
            (Ending::TimedOut, _) => "timeout",
            (Ending::NotStarted(_), _) => "not_started",
            (
                Ending::Exited(_)
                | Ending::Signalled(_)
                | Ending::Answered { .. }
                | Ending::NoAnswer(_),
                Plan::Retry { .. } | Plan::Abandon,
            ) => "failed",
        };
        let row = self.0.iter().find(|(name, _)| name == hook);
        let at = OUTCOMES.iter().position(|outcome| *outcome == word);
        if let Some(count) = row.zip(at).and_then(|((_, counts), at)| counts.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Every hook with every outcome and its count.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        self.0.iter().flat_map(|(name, counts)| {
            let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
            let named = OUTCOMES.iter().zip(counts);
            named.map(|(outcome, count)| (name.as_str(), *outcome, count))
        })
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
        let all: Vec<_> = runs.all().collect();
        let wanted: Vec<_> = OUTCOMES
            .iter()
            .map(|outcome| ("fulfil", *outcome, 1))
            .collect();
        assert_eq!(all, wanted);
    }
}
