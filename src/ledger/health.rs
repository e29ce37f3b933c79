//! How the ledger's writer fares, for whoever asks in the same process: what it cannot store, and a log that cannot be moved.
//! Written by the writing thread when something changes, never for a notification that is stored; what cannot be read, by readers.

use std::sync::{Arc, Mutex, PoisonError};

use super::log_held::LogHeld;

/// Shared by the writer and all readers of one open ledger.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Mutex<State>>);

/// How it fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Nothing can be stored, since when (milliseconds since 1970) and why.
    pub unstored: Option<(i64, String)>,
    /// The log cannot be moved into the file, and a person should know.
    pub log_held: Option<LogHeld>,
    /// The log has reached its bound: notifications are refused.
    pub log_full: bool,
    /// An invoice that is due cannot be read, and why.
    pub unreadable: Option<String>,
}

/// What a look at what is due saw of rows that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing due was looked at.
    #[default]
    None,
    /// All could be read.
    Clear,
    /// One could not, and why.
    Spoilt(String),
}

impl Health {
    /// How it fares now.
    pub(crate) fn now(&self) -> State {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    /// Something changed.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        // Nothing that holds it can leave it half changed.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
