//! The access token as the poller sees it: read anew in every look, so that a login or logout takes effect by itself, and
//! left alone once the service has rejected it, until another login was made (A30): one that yields the same token once more
//! is another login too.
//!
//! One 401 may be a proxy's mood. It stops the polls for [`ASK_AGAIN_AFTER`], then one more is sent with the same token.
//! When that is rejected as well, one is sent every [`PROBE_EVERY`]. Any request that the service accepts starts all again.

use std::time::Duration;

use tokio::time::Instant;

use super::standing::LoginState;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::fetches::TokenWord;
use crate::secret::Secret;
use crate::telemetry::chain;

/// From a first refusal to the one question that confirms it.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// From one question with a rejected token to the next.
const PROBE_EVERY: Duration = Duration::from_mins(10);

/// An access token, and which one it is.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// The token.
    pub(super) secret: Secret,
    /// What it is asked with it for.
    pub(super) mark: Mark,
}

/// Which token a question is asked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Counts the tokens seen; a refusal names the one it is about.
    number: u64,
    /// The question is the one that confirms a refusal.
    confirms: bool,
}

/// What an answer says about the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It is good: the service spoke about the invoice.
    Accepted,
    /// It is not.
    Refused,
    /// Nothing.
    Nothing,
}

/// What is believed about the token that lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// It was not refused.
    Good,
    /// It was refused once: one more question, not before this time.
    Doubted { again: Instant, is_asked: bool },
    /// It was refused twice: one more question, not before this time.
    Refused { again: Instant, is_asked: bool },
}

/// The token that lies there.
struct Current {
    secret: Secret,
    /// When a login stored it.
    stored_ms: Option<i64>,
}

/// The token, and what became of it.
pub(super) struct Login {
    store: Store,
    elsewhere: Elsewhere,
    origin: String,
    current: Option<Current>,
    /// Counts the tokens seen.
    number: u64,
    trust: Trust,
    /// The last word on another request that was heard.
    heard: u64,
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
            number: 0,
            trust: Trust::Good,
            heard: 0,
            told: None,
        }
    }

    /// What the service said of a token on a request that somebody waited for. There is one: no proxy's mood is waited out.
    pub(super) fn hear(&mut self, said: Option<TokenWord>) {
        // Before the first look it is not known which token it is about.
        let (Some(said), Some(current)) = (
            said.filter(|said| said.number > self.heard),
            self.current.as_ref(),
        ) else {
            return;
        };
        self.heard = said.number;
        if current.secret.expose() != said.token.expose() {
            return;
        }
        if said.is_good {
            self.accept();
        } else {
            self.refuse(ASK_AGAIN_AFTER);
        }
    }

    /// The token to ask with now; `None` while there is none, or while the one there is was refused.
    pub(super) fn token(&mut self) -> Option<Token> {
        let (secret, number) = self.find()?;
        let confirms = match self.trust {
            Trust::Good => false,
            Trust::Doubted { again, is_asked } | Trust::Refused { again, is_asked } => {
                if is_asked || Instant::now() < again {
                    if matches!(self.trust, Trust::Refused { .. }) {
                        tracing::debug!("nothing is asked: the access token was refused");
                    }
                    return None;
                }
                true
            }
        };
        if !matches!(self.trust, Trust::Refused { .. }) && self.told.take().is_some() {
            tracing::info!("an access token is there: asking again");
        }
        let mark = Mark { number, confirms };
        Some(Token { secret, mark })
    }

    /// A question leaves with this token.
    pub(super) fn leaves(&mut self, mark: Mark) {
        if let Trust::Doubted { is_asked, .. } | Trust::Refused { is_asked, .. } = &mut self.trust {
            *is_asked |= mark.confirms;
        }
    }

    /// The end of a question that left. What one that was asked with an earlier token met says nothing about the one that
    /// lies there now.
    pub(super) fn ended(&mut self, mark: Mark, word: Word) {
        if mark.number != self.number {
            return;
        }
        let doubted = Trust::Doubted {
            again: Instant::now() + ASK_AGAIN_AFTER,
            is_asked: false,
        };
        match (self.trust, word) {
            (Trust::Good, Word::Refused) => {
                tracing::warn!(
                    wait_s = ASK_AGAIN_AFTER.as_secs(),
                    "the payment service refused the access token: asking once more in {} s",
                    ASK_AGAIN_AFTER.as_secs()
                );
                self.trust = doubted;
            }
            (Trust::Doubted { .. } | Trust::Refused { .. }, Word::Refused) if mark.confirms => {
                self.refuse(PROBE_EVERY);
            }
            (Trust::Doubted { .. }, Word::Nothing) if mark.confirms => self.trust = doubted,
            (Trust::Refused { .. }, Word::Nothing) if mark.confirms => {
                self.trust = refused(PROBE_EVERY);
            }
            (Trust::Doubted { .. } | Trust::Refused { .. }, Word::Accepted) => self.accept(),
            (Trust::Good, Word::Accepted | Word::Nothing)
            | (Trust::Doubted { .. } | Trust::Refused { .. }, Word::Refused | Word::Nothing) => {}
        }
    }

    fn accept(&mut self) {
        if self.trust != Trust::Good {
            tracing::info!("the payment service accepts the access token again");
            self.trust = Trust::Good;
            self.told = None;
        }
    }

    fn refuse(&mut self, wait: Duration) {
        self.trust = refused(wait);
        self.tell(format!(
            "login needed: the service rejects the access token, so tilld polls once every {} minutes; run `tilld login`",
            PROBE_EVERY.as_secs() / 60
        ));
    }

    /// How long until a refusal may be confirmed, while that is what everything waits for.
    pub(super) fn again_in(&self) -> Option<Duration> {
        match self.trust {
            Trust::Doubted {
                again,
                is_asked: false,
            }
            | Trust::Refused {
                again,
                is_asked: false,
            } => Some(again.saturating_duration_since(Instant::now())),
            Trust::Good | Trust::Doubted { .. } | Trust::Refused { .. } => None,
        }
    }

    /// How it stands, as the last look found it.
    pub(super) fn state(&self) -> LoginState {
        match (&self.current, self.trust) {
            (None, _) => LoginState::Needed,
            (Some(_), Trust::Refused { .. }) => LoginState::Refused,
            (Some(_), Trust::Good | Trust::Doubted { .. }) => LoginState::Good,
        }
    }

    /// The token that lies there, and its number.
    fn find(&mut self) -> Option<(Secret, u64)> {
        let found = match self.store.find(&self.elsewhere, &self.origin) {
            Ok(Some(found)) => found,
            Ok(None) => {
                return self.none("login needed: no access token is stored, so nothing is asked; run `tilld login`".to_owned());
            }
            Err(error) => return self.none(format!("login needed: {}", chain(&error))),
        };
        let is_same = |current: &Current| {
            current.secret.expose() == found.token.expose() && current.stored_ms == found.stored_ms
        };
        if !self.current.as_ref().is_some_and(is_same) {
            self.number += 1;
            self.trust = Trust::Good;
            self.current = Some(Current {
                secret: found.token.clone(),
                stored_ms: found.stored_ms,
            });
        }
        Some((found.token, self.number))
    }

    fn none<T>(&mut self, why: String) -> Option<T> {
        self.current = None;
        self.tell(why);
        None
    }

    fn tell(&mut self, text: String) {
        if self.told.as_ref() != Some(&text) {
            tracing::error!("{text}");
            self.told = Some(text);
        }
    }
}

fn refused(wait: Duration) -> Trust {
    let again = Instant::now() + wait;
    let is_asked = false;
    Trust::Refused { again, is_asked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::credentials::Credentials;

    const ORIGIN: &str = "https://service.example";

    struct Shop {
        directory: tempfile::TempDir,
        login: Login,
    }

    impl Shop {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let store = Store::new(directory.path());
            let login = Login::new(store, Elsewhere::default(), ORIGIN.to_owned());
            Self { directory, login }
        }

        fn log_in(&self, token: &str) {
            self.log_in_at(token, 0);
        }

        fn log_in_at(&self, token: &str, stored_ms: i64) {
            let credentials = Credentials {
                token: Secret::new(token.to_owned()),
                shop_name: String::new(),
                origin: ORIGIN.to_owned(),
                stored_ms,
            };
            let stored = Store::new(self.directory.path()).store(&credentials);
            stored.expect("stored");
        }

        /// Asks, if anything may be asked.
        fn ask(&mut self) -> Option<Mark> {
            let mark = self.login.token()?.mark;
            self.login.leaves(mark);
            Some(mark)
        }

        fn refuse_for_good(&mut self) {
            let first = self.ask().expect("a token");
            self.login.ended(first, Word::Refused);
        }
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_confirmed_by_one_question_and_no_more() {
        let mut shop = Shop::new();
        shop.log_in("one");
        // Four are under way when the first is refused: they confirm nothing, all at the same moment.
        let under_way: Vec<Mark> = (0..4).filter_map(|_| shop.ask()).collect();
        for mark in &under_way {
            shop.login.ended(*mark, Word::Refused);
        }
        assert_eq!(shop.login.state(), LoginState::Good);
        assert!(shop.login.again_in().is_some() && shop.ask().is_none());
        pass(5).await;
        let second = shop.ask().expect("one more");
        assert!(shop.ask().is_none(), "and only one");
        shop.login.ended(second, Word::Refused);
        pass(599).await;
        assert!(shop.ask().is_none() && shop.login.told.is_some());
        assert_eq!(shop.login.state(), LoginState::Refused);
        // Now and then one more, whatever it brings.
        for word in [Word::Refused, Word::Nothing] {
            pass(1).await;
            let probe = shop.ask().expect("a probe");
            assert!(shop.ask().is_none(), "and only one");
            shop.login.ended(probe, word);
            assert_eq!(shop.login.state(), LoginState::Refused);
            pass(599).await;
            assert!(shop.ask().is_none());
        }
        pass(1).await;
        let probe = shop.ask().expect("a probe");
        shop.login.ended(probe, Word::Accepted);
        assert_eq!(shop.login.state(), LoginState::Good);
        assert!(shop.ask().is_some() && shop.login.told.is_none());
        shop.log_in("two");
        assert!(shop.ask().is_some() && shop.login.told.is_none());
        assert_eq!(shop.login.state(), LoginState::Good);
    }

    /// The service refused everybody for a while, and gives a shop that logs in the token it has already.
    #[tokio::test(start_paused = true)]
    async fn a_login_that_yields_the_same_token_is_another_login() {
        let mut shop = Shop::new();
        shop.log_in("one");
        shop.refuse_for_good();
        pass(5).await;
        let second = shop.ask().expect("one more");
        shop.login.ended(second, Word::Refused);
        shop.log_in_at("one", 0);
        assert!(shop.ask().is_none(), "the same login");
        shop.log_in_at("one", 1);
        let third = shop.ask().expect("another login");
        assert_eq!(shop.login.state(), LoginState::Good);
        shop.login.ended(second, Word::Refused);
        shop.login.ended(third, Word::Accepted);
        assert!(shop.ask().is_some());
    }

    /// A create that succeeds, or is rejected, says as much of the token as a poll.
    #[tokio::test(start_paused = true)]
    async fn a_word_on_another_request_counts_once() {
        let mut shop = Shop::new();
        shop.log_in("one");
        assert!(shop.ask().is_some());
        let word = |number, token: &str, is_good| {
            let token = Secret::new(token.to_owned());
            Some(TokenWord {
                number,
                token,
                is_good,
            })
        };
        shop.login.hear(word(1, "other", false));
        assert_eq!(shop.login.state(), LoginState::Good);
        shop.login.hear(word(2, "one", false));
        assert_eq!(shop.login.state(), LoginState::Refused);
        assert!(shop.ask().is_none());
        shop.login.hear(word(3, "one", true));
        assert_eq!(shop.login.state(), LoginState::Good);
        shop.login.hear(word(2, "one", false));
        assert!(shop.ask().is_some() && shop.login.told.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_refusal_among_answers_stops_nothing_for_good() {
        let mut shop = Shop::new();
        shop.log_in("one");
        let (refused, other) = (shop.ask().expect("asked"), shop.ask().expect("asked"));
        shop.login.ended(refused, Word::Refused);
        shop.login.ended(other, Word::Accepted);
        assert!(shop.ask().is_some(), "another under way was answered");
        shop.refuse_for_good();
        pass(5).await;
        let second = shop.ask().expect("one more");
        shop.login.ended(second, Word::Nothing);
        assert!(shop.ask().is_none(), "no answer confirms nothing");
        pass(5).await;
        let third = shop.ask().expect("one more");
        shop.login.ended(third, Word::Accepted);
        assert!(shop.ask().is_some() && shop.login.told.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_refusal_of_an_earlier_token_is_no_word_about_the_new_one() {
        let mut shop = Shop::new();
        assert!(shop.ask().is_none());
        assert_eq!(shop.login.state(), LoginState::Needed);
        shop.log_in("one");
        let first = shop.ask().expect("a token");
        shop.log_in("two");
        assert!(shop.ask().is_some());
        shop.login.ended(first, Word::Refused);
        assert!(shop.ask().is_some() && shop.login.told.is_none());
        // The same token again after a logout is one that was not refused yet.
        shop.refuse_for_good();
        let stored = Store::new(shop.directory.path()).remove();
        stored.expect("removed");
        assert!(shop.ask().is_none());
        shop.log_in("two");
        assert!(shop.ask().is_some());
    }
}
