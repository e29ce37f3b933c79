//! Who waits for an answer, as far as a service may ask about it.

use std::sync::Arc;

use super::progress::Progress;

/// The client of one request.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<Progress>);

impl Caller {
    pub(super) fn new(progress: Arc<Progress>) -> Self {
        Self(progress)
    }

    /// Resolves once the client sends nothing more: it has gone, or shut its writing side and waits for its answer. TCP does
    /// not tell which, so whoever has an answer gives it all the same. Also once it has sent a further request, behind which
    /// its leaving cannot be seen. For one task at a time, after the body was read.
    pub(crate) async fn sends_no_more(&self) {
        self.0.ended().await;
    }
}
