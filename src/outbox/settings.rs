//! What the outbox is told at its start: which hooks there are, what is done for each, and how long everything may take.

use std::sync::Arc;
use std::time::Duration;

use super::{Room, Runs};
use crate::hook::post::Target;
use crate::hook::process::{Program, Surroundings};

/// How long a stop may take beyond the drain and the longest grace: SIGKILL's work and the last results to be stored.
pub(crate) const STOP_MARGIN: Duration = Duration::from_secs(5);

/// A hook as far as running it goes.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    /// Its name, unique in the config.
    pub name: String,
    /// What to do.
    pub action: Action,
    /// The names under which deliveries are owed to it, of no other hook: they all run in its places.
    pub answers_to: Vec<String>,
    /// Its places.
    pub room: Room,
}

/// How a hook is told.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// This is run.
    Run(Program),
    /// It is posted there.
    Post(Target),
}

impl Action {
    /// How long it may go on after it was asked to end. A request ends at once.
    fn grace(&self) -> Duration {
        match self {
            Self::Run(program) => program.grace,
            Self::Post(_) => Duration::ZERO,
        }
    }
}

/// What the merchant configured, as far as the outbox acts on it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The hooks.
    pub hooks: Vec<Hook>,
    /// The gap after each failed attempt; one more failure, and the delivery is abandoned.
    pub schedule: Vec<Duration>,
    /// The longest time a delivery is rightly planned ahead, milliseconds; what lies beyond was dated by a wrong clock.
    pub longest_delay_ms: i64,
    /// How long running hooks may go on after the wish to stop.
    pub drain: Duration,
    /// Launcher, home, and the directory that is the outbox's own: it removes what earlier daemons left there.
    pub surroundings: Surroundings,
    /// Where ends are counted.
    pub runs: Arc<Runs>,
}

impl Settings {
    /// The longest a stop may take: drain, grace, and [`STOP_MARGIN`]. What supervises this must wait as long.
    pub(crate) fn stop_within(&self) -> Duration {
        self.drain + self.longest_grace() + STOP_MARGIN
    }

    /// The number of the hook that a delivery of this name is owed to.
    pub(super) fn hook_of(&self, name: &str) -> Option<usize> {
        let is_it = |hook: &Hook| hook.answers_to.iter().any(|own| own == name);
        self.hooks.iter().position(is_it)
    }

    pub(super) fn longest_grace(&self) -> Duration {
        self.hooks
            .iter()
            .map(|hook| hook.action.grace())
            .max()
            .unwrap_or_default()
    }
}
