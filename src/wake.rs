//! A bell between loops. A ring with nobody waiting is kept, several rings are one: a loop that wakes must look at the
//! ledger for what there is to do, and must also look on its own from time to time, since a ring may be lost.

use std::sync::Arc;

use tokio::sync::Notify;

/// A bell that remembers one ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wake(Arc<Notify>);

impl Wake {
    /// Rings. Never waits.
    pub(crate) fn ring(&self) {
        self.0.notify_one();
    }

    /// Resolves at the next ring, or at once when one is kept. For one listener.
    pub(crate) async fn rung(&self) {
        self.0.notified().await;
    }
}
