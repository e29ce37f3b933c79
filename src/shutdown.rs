//! The wish to stop, handed to every loop. Cloned freely; once requested it stays requested.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// A wish to stop that many tasks can wait for.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Wakes who waits.
    token: CancellationToken,
    told: Arc<Told>,
}

/// Whether it was expressed: beside the token, which would have to be locked for that, with all that wait for it.
#[derive(Debug, Default)]
struct Told {
    own: AtomicBool,
    /// That of the wish it follows.
    followed: Option<Arc<Self>>,
}

impl Told {
    fn is_told(&self) -> bool {
        let followed = self.followed.as_ref();
        self.own.load(Ordering::SeqCst) || followed.is_some_and(|followed| followed.is_told())
    }
}

impl Shutdown {
    /// A wish nobody has expressed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Expresses the wish. Repeating it changes nothing.
    pub fn request(&self) {
        // First: whoever is woken looks here.
        self.told.own.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    /// True once the wish was expressed. Cheap enough to be asked at every step.
    pub fn is_requested(&self) -> bool {
        self.told.is_told()
    }

    /// Resolves once the wish was expressed. Safe to drop and call again.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// A wish that follows this one but can also be expressed alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            token: self.token.child_token(),
            told: Arc::new(Told {
                own: AtomicBool::new(false),
                followed: Some(Arc::clone(&self.told)),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_follows_and_can_be_expressed_alone() {
        let parent = Shutdown::new();
        let (first, second) = (parent.child(), parent.child().child());
        first.request();
        first.requested().await;
        assert!(first.is_requested());
        assert!(!parent.is_requested() && !second.is_requested());
        parent.request();
        second.requested().await;
        assert!(parent.is_requested() && second.is_requested());
    }
}
