//! The state behind its one lock, with the clock and the way to the notifier. Whoever acts on the state goes through
//! [`World::with`], so that nothing becomes due without being handed on, and in the order in which it became due.

use std::sync::{Arc, Mutex, PoisonError};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use tokio::sync::{mpsc, watch};

use super::state::State;
use super::state::notice::{Answer, Notice, Sent};
use crate::{clock, entropy};

/// Notifications on their way from the state to the notifier, which takes them over at once. As many as one closing of
/// many payment windows makes.
pub(crate) const MOST_HANDED_OVER: usize = 50_000;

/// The service, shared by its listeners and its notifier.
#[derive(Clone, Debug)]
pub(crate) struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Held for one action at a time and never across an `.await`.
    state: Mutex<State>,
    notices: mpsc::Sender<Notice>,
    /// Tells those that are kept waiting that some were let go.
    releases: watch::Sender<u64>,
    form_token: String,
}

impl World {
    /// Puts a state behind its lock. Notifications go to `notices`.
    pub(crate) fn new(state: State, notices: mpsc::Sender<Notice>) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            notices,
            releases: watch::Sender::new(0),
            // Not from the seed: it keeps foreign pages out, which a known number could not.
            form_token: URL_SAFE_NO_PAD.encode(entropy::bytes::<16>()),
        }))
    }

    /// Does one thing to the state at the present time. Payment windows that have closed by then are closed first.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State, i64) -> T) -> T {
        let now = clock::wall_ms();
        // A panic inside leaves at worst one invoice half told; the imitation goes on.
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tick(now);
        let outcome = act(&mut state, now);
        // Handed over under the lock: the order of an invoice's notifications is the order of its changes.
        for notice in state.take_notices() {
            if let Err(unsent) = self.0.notices.try_send(notice) {
                let (unsent, how) = (unsent.into_inner(), Sent::default());
                state.record_attempt(&unsent, 0, how, Answer::Overflow, now);
            }
        }
        let releases = state.faults.releases();
        self.0.releases.send_if_modified(|last| {
            let is_new = *last != releases;
            *last = releases;
            is_new
        });
        outcome
    }

    /// Changes whenever some that are kept waiting were let go.
    pub(crate) fn releases(&self) -> watch::Receiver<u64> {
        self.0.releases.subscribe()
    }

    /// What every form of the pages carries, so that only they can post.
    pub(crate) fn form_token(&self) -> &str {
        &self.0.form_token
    }
}
