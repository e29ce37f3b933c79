//! Seats for calls that wait for something: for events, an invoice, an opening, the service.
//!
//! Promises that all of them together leave connections free, so that a call that waits for nothing finds one however many
//! wait. How many are kept for those is the settings' to say ([`super::Settings::waits`]).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The seats.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Semaphore>);

/// One of them, kept while the call waits.
pub(super) type Seat = OwnedSemaphorePermit;

impl Room {
    /// So many.
    pub(super) fn new(seats: usize) -> Self {
        Self(Arc::new(Semaphore::new(seats)))
    }

    /// A seat, unless all are taken. Never waits.
    pub(super) fn take(&self) -> Option<Seat> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}
