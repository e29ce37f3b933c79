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

    /// The service refused this token. An answer to a question that was asked with an earlier one says nothing about the
    /// one that lies there now.
    pub(super) fn refused(&mut self, number: u64) {
        if self
            .current
            .as_ref()
            .is_none_or(|current| current.number != number)
        {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::credentials::Credentials;

    const ORIGIN: &str = "https://service.example";

    #[test]
    fn a_late_refusal_of_an_earlier_token_is_no_word_about_the_new_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::new(directory.path());
        let log_in = |token: &str| {
            let credentials = Credentials {
                token: Secret::new(token.to_owned()),
                shop_name: String::new(),
                origin: ORIGIN.to_owned(),
                stored_ms: 0,
            };
            store.store(&credentials).expect("stored");
        };
        let mut login = Login::new(
            Store::new(directory.path()),
            Elsewhere::default(),
            ORIGIN.to_owned(),
        );
        log_in("one");
        let first = login.token().expect("a token");
        login.refused(first.number);
        assert!(login.token().is_none() && login.told.is_some());
        log_in("two");
        assert!(login.token().is_some() && login.told.is_none());
        login.refused(first.number);
        assert!(login.token().is_some() && login.told.is_none());
    }
}
