//! The access tokens that this process has used, for whoever stores or shows what others wrote and has no token itself.
//!
//! Relies on whoever finds a token to add it. Promises that an earlier one stays hidden: it is good until it is revoked.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Cutter, Secret};

/// Tokens that are remembered. A daemon that outlives more logins forgets the oldest.
const MOST: usize = 8;

/// The tokens, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Hidden(Arc<Mutex<Arc<[Secret]>>>);

impl Hidden {
    /// Hides one more.
    pub fn add(&self, secret: &Secret) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &Secret| known.expose() == secret.expose();
        if kept.iter().any(is_it) {
            return;
        }
        let earlier = kept.iter().take(MOST - 1).cloned();
        *kept = std::iter::once(secret.clone()).chain(earlier).collect();
    }

    /// A text without any of them.
    pub fn without(&self, text: &str) -> String {
        let all = self.all();
        let mut text = text.to_owned();
        Cutter::new(&all.iter().collect::<Vec<_>>()).cut(&mut text);
        text
    }

    /// All of them, the newest first.
    pub fn all(&self) -> Arc<[Secret]> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&kept)
    }
}
