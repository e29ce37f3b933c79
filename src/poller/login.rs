//! The access token as the poller sees it: read anew in every pass, so that a login or logout takes effect by itself, and
//! left alone once the service has refused it, until another one lies there (A30).

use crate::client::credentials::{Elsewhere, Store};
use crate::secret::Secret;
use crate::telemetry::chain;

/// An access token, and which one it is.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// The token.
    pub(super) secret: Secret,
    /// Counts the tokens seen; a refusal names the one it is about.
    pub(super) number: u64,
}

/// The token, and what became of it.
pub(super) struct Login {
    store: Store,
    elsewhere: Elsewhere,
    origin: String,
    current: Option<Token>,
    /// The number of the token the service refused.
    refused: Option<u64>,
    /// The last trouble that was logged, so that it is logged once.
    told: Option<String>,
}

impl Login {
    pub(super) fn new(store: Store, elsewhere: Elsewhere, origin: String) -> Self {
        Self {
            store,
            elsewhere,
            origin,
            current: None,
            refused: None,
            told: None,
        }
    }

    /// The token to ask with; `None` while there is none, or while the one there is was refused.
    pub(super) fn token(&mut self) -> Option<Token> {
        let found = match self.store.find(&self.elsewhere, &self.origin) {
            Ok(Some(found)) => found.token,
            Ok(None) => {
                self.tell("login needed: no access token is stored, so nothing is asked; run `tilld login`".to_owned());
                return None;
            }
            Err(error) => {
                self.tell(format!("login needed: {}", chain(&error)));
                return None;
            }
        };
        let same = self
            .current
            .as_ref()
            .filter(|current| current.secret.expose() == found.expose());
        let token = if let Some(same) = same {
            same.clone()
        } else {
            let number = self.current.as_ref().map_or(0, |current| current.number) + 1;
            Token {
                secret: found,
                number,
            }
        };
        self.current = Some(token.clone());
        if self.refused == Some(token.number) {
            tracing::debug!("nothing is asked: the access token was refused");
            return None;
        }
        if self.told.take().is_some() {
            tracing::info!("an access token is there: asking again");
        }
        Some(token)
    }

    /// The service refused this token.
    pub(super) fn refused(&mut self, number: u64) {
        self.refused = Some(number);
        self.tell("login needed: the service refuses the access token, so nothing is asked; run `tilld login`".to_owned());
    }

    fn tell(&mut self, text: String) {
        if self.told.as_ref() != Some(&text) {
            tracing::error!("{text}");
            self.told = Some(text);
        }
    }
}
