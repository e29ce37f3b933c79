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
    /// What earlier settings of this process allowed.
    pub earlier: Earlier,
}

/// The longest that settings which were in use before allowed a stop: what began by them may be running still.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Earlier {
    drain: Duration,
    grace: Duration,
}

impl Settings {
    /// These, read again while others are in use: ends are counted on, and what began goes on as it was allowed to.
    pub(crate) fn after(self, before: &Self) -> Self {
        Self {
            runs: Arc::clone(&before.runs),
            earlier: Earlier {
                drain: before.drain.max(before.earlier.drain),
                grace: before.longest_grace(),
            },
            ..self
        }
    }

    /// The longest a stop may take: drain, grace, and [`STOP_MARGIN`]. What supervises this must wait as long. The outbox may not
    /// have heard of these settings yet, and what runs began by any.
    pub(crate) fn stop_within(&self) -> Duration {
        self.drain.max(self.earlier.drain) + self.longest_grace() + STOP_MARGIN
    }

    /// The hooks' places, by their number.
    pub(super) fn rooms(&self) -> Vec<Room> {
        self.hooks.iter().map(|hook| hook.room).collect()
    }

    /// The same with the hooks' names.
    pub(super) fn named_rooms(&self) -> Vec<(Arc<str>, Room)> {
        let hooks = self.hooks.iter();
        hooks
            .map(|hook| (Arc::from(hook.name.as_str()), hook.room))
            .collect()
    }

    /// The number of the hook with this name, or of the one that answers to it.
    pub(super) fn hook_named(&self, name: &str) -> Option<usize> {
        let named = self.hooks.iter().position(|hook| hook.name == name);
        named.or_else(|| self.hook_of(name))
    }

    /// The number of the hook that a delivery of this name is owed to.
    pub(super) fn hook_of(&self, name: &str) -> Option<usize> {
        let is_it = |hook: &Hook| hook.answers_to.iter().any(|own| own == name);
        self.hooks.iter().position(is_it)
    }

    /// Of all hooks there were in this process: one of them may be running still.
    pub(super) fn longest_grace(&self) -> Duration {
        let hooks = self.hooks.iter().map(|hook| hook.action.grace());
        hooks.fold(self.earlier.grace, Duration::max)
    }
}
