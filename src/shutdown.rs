//! The wish to stop, handed to every loop. Cloned freely; once requested it stays requested.

use tokio_util::sync::CancellationToken;

/// A wish to stop that many tasks can wait for.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A wish nobody has expressed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Expresses the wish. Repeating it changes nothing.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// True once the wish was expressed.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves once the wish was expressed. Safe to drop and call again.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }

    /// A wish that follows this one but can also be expressed alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }
}
