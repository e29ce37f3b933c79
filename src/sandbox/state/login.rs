//! The device login of contract 4.1 and 4.2, and the tokens it yields. Strict where RFC 8628 lets a server be lenient:
//! polling too fast is answered `slow_down` and lengthens the interval, a code that gave its token is spent.

use super::{SHOPS, State};
use crate::secret::Secret;
use crate::wire::login::{LoginStarted, SANDBOX_TOKEN, TokenIssued};
use crate::wire::problem;

/// Login requests kept. Those that are over make room, oldest first; a tester has one or two at a time.
pub(super) const MOST_LOGINS: usize = 200;
/// Tokens kept, revoked ones included so that the cabinet can show them: they make room, oldest first.
pub(super) const MOST_TOKENS: usize = 1_000;
/// Longest client name shown, in characters.
const LONGEST_NAME: usize = 100;
/// A poll this much early is still on time, ms: clocks are read in whole milliseconds and packets do not arrive evenly.
const EARLY_MS: i64 = 50;
/// What `slow_down` adds to the interval, ms (RFC 8628 3.5), at the usual speed.
const SLOWER_MS: u64 = 5_000;

/// What the merchant said to a login request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing yet.
    Pending,
    /// Confirmed, for the shop with this index in [`SHOPS`].
    Confirmed(usize),
    /// Refused.
    Refused,
}

/// A login request (contract 2.1).
#[derive(Clone, Debug)]
pub(crate) struct Login {
    device_code: Secret,
    /// The code the merchant compares.
    pub(crate) user_code: String,
    /// Who asks, as it calls itself.
    pub(crate) client_name: String,
    /// End of life, ms.
    pub(crate) expires_ms: i64,
    interval_ms: i64,
    polled_ms: Option<i64>,
    /// What the merchant said.
    pub(crate) decision: Decision,
    /// True once its token went out: a code is good for one token.
    pub(crate) spent: bool,
}

impl Login {
    /// Nothing more comes of it: its token went out, or its life is over.
    fn is_over(&self, now: i64) -> bool {
        self.spent || now >= self.expires_ms
    }
}

/// A token that was issued (contract 2.2).
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// Names it in the cabinet and on the control listener, where the token itself is not shown.
    pub(crate) id: String,
    text: Secret,
    /// Index of its shop in [`SHOPS`].
    pub(crate) shop: usize,
    /// Who holds it, as it called itself.
    pub(crate) client_name: String,
    /// When it was issued, ms.
    pub(crate) issued_ms: i64,
    /// When a request last came with it, ms.
    pub(crate) used_ms: Option<i64>,
    /// When it was revoked, ms.
    pub(crate) revoked_ms: Option<i64>,
}

/// Why no login request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginRefusal {
    /// The client names itself with nothing.
    NoName,
    /// As many are under way as the sandbox keeps.
    Full,
}

/// Why a poll gave no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollRefusal {
    /// This error code.
    Code(&'static str),
    /// As many tokens are good as the sandbox keeps. The login stays as it is.
    Full,
}

/// Why the merchant's word came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecideError {
    /// Never given out, or its life is over.
    #[error("this code is unknown or has expired")]
    Unknown,
    /// Confirmed or refused before.
    #[error("this code was already decided")]
    Decided,
    /// No such shop.
    #[error("there is no such shop")]
    NoSuchShop,
}

impl State {
    /// Creates a login request.
    pub(crate) fn start_login(
        &mut self,
        client_name: &str,
        now: i64,
    ) -> Result<LoginStarted, LoginRefusal> {
        let client_name: String = client_name.trim().chars().take(LONGEST_NAME).collect();
        if client_name.is_empty() {
            return Err(LoginRefusal::NoName);
        }
        if self.logins.len() >= MOST_LOGINS {
            let over = self.logins.iter().position(|login| login.is_over(now));
            let over = over.ok_or(LoginRefusal::Full)?;
            self.logins.remove(over);
        }
        let (expires_in_s, interval_s) = (self.rules.login_lifetime_s, self.rules.interval_s);
        let device_code = Secret::new(format!("dc_{}", self.dice.token(40)));
        let user_code = self.dice.user_code();
        let login = Login {
            device_code: device_code.clone(),
            user_code: user_code.clone(),
            client_name,
            expires_ms: now.saturating_add(seconds(expires_in_s)),
            interval_ms: seconds(interval_s),
            polled_ms: None,
            decision: Decision::Pending,
            spent: false,
        };
        self.logins.push_back(login);
        Ok(LoginStarted {
            device_code,
            verification_url: format!("{}/activate?code={user_code}", self.rules.cabinet_url),
            user_code,
            expires_in_s,
            interval_s,
        })
    }

    /// One poll for the token. Unknown, spent and expired codes look alike.
    pub(crate) fn poll_login(
        &mut self,
        device_code: &Secret,
        now: i64,
    ) -> Result<TokenIssued, PollRefusal> {
        let has_room = self.has_room_for_a_token();
        let slower_ms = i64::try_from(self.rules.speed().ms(SLOWER_MS)).unwrap_or(i64::MAX);
        let login = self
            .logins
            .iter_mut()
            .find(|login| login.device_code.expose() == device_code.expose())
            .filter(|login| !login.spent && now < login.expires_ms)
            .ok_or(PollRefusal::Code(problem::EXPIRED_TOKEN))?;
        let due = login
            .polled_ms
            .map_or(i64::MIN, |last| last.saturating_add(login.interval_ms));
        login.polled_ms = Some(now);
        if now.saturating_add(EARLY_MS) < due {
            login.interval_ms = login.interval_ms.saturating_add(slower_ms);
            return Err(PollRefusal::Code(problem::SLOW_DOWN));
        }
        match login.decision {
            Decision::Pending => Err(PollRefusal::Code(problem::AUTHORIZATION_PENDING)),
            Decision::Refused => Err(PollRefusal::Code(problem::ACCESS_DENIED)),
            Decision::Confirmed(_) if !has_room => Err(PollRefusal::Full),
            Decision::Confirmed(shop) => {
                login.spent = true;
                let client_name = login.client_name.clone();
                let issued = self.issue_token(shop, client_name, now);
                issued.ok_or(PollRefusal::Full)
            }
        }
    }

    fn has_room_for_a_token(&self) -> bool {
        self.tokens.len() < MOST_TOKENS || self.tokens.iter().any(|one| one.revoked_ms.is_some())
    }

    /// Issues a token for a shop. Shop names are those of [`SHOPS`]. `None` when as many are good as the sandbox keeps.
    pub(crate) fn issue_token(
        &mut self,
        shop: usize,
        client_name: String,
        now: i64,
    ) -> Option<TokenIssued> {
        if self.tokens.len() >= MOST_TOKENS {
            let revoked = |one: &Token| one.revoked_ms.is_some();
            let revoked = self.tokens.iter().position(revoked)?;
            self.tokens.remove(revoked);
        }
        let text = Secret::new(format!(
            "{SANDBOX_TOKEN}{}:{}",
            self.dice.token(12),
            self.dice.token(40)
        ));
        self.tokens.push_back(Token {
            id: format!("tok-{}", self.dice.token(8)),
            text: text.clone(),
            shop,
            client_name,
            issued_ms: now,
            used_ms: None,
            revoked_ms: None,
        });
        Some(TokenIssued {
            token: text,
            shop_name: shop_name(shop).to_owned(),
        })
    }

    /// The login request with this user code, typed in any case and with or without the hyphen. `None` when its life is over
    /// and nothing was decided: what became of the others can still be told.
    pub(crate) fn find_login(&self, typed: &str, now: i64) -> Option<&Login> {
        let code = plain_code(typed);
        let is_told = |login: &Login| now < login.expires_ms || login.decision != Decision::Pending;
        let mut logins = self.logins.iter().rev();
        logins.find(|login| plain_code(&login.user_code) == code && is_told(login))
    }

    /// The merchant confirms for a shop (by name) or, without one, refuses. A code is decided once.
    pub(crate) fn decide_login(
        &mut self,
        typed: &str,
        shop: Option<&str>,
        now: i64,
    ) -> Result<(), DecideError> {
        let decision = match shop {
            None => Decision::Refused,
            Some(name) => Decision::Confirmed(find_shop(name).ok_or(DecideError::NoSuchShop)?),
        };
        let code = plain_code(typed);
        let login = self
            .logins
            .iter_mut()
            .rev()
            .find(|login| plain_code(&login.user_code) == code && now < login.expires_ms)
            .ok_or(DecideError::Unknown)?;
        if login.decision != Decision::Pending {
            return Err(DecideError::Decided);
        }
        login.decision = decision;
        Ok(())
    }

    /// The shop whose token this is. `None` for unknown and revoked tokens.
    pub(crate) fn shop_of_token(&mut self, presented: &str, now: i64) -> Option<usize> {
        let token = self
            .tokens
            .iter_mut()
            .find(|token| token.text.expose() == presented && token.revoked_ms.is_none())?;
        token.used_ms = Some(now);
        Some(token.shop)
    }

    /// Revokes the token with this id or this text; without one, every token. Says how many were good until now.
    pub(crate) fn revoke_tokens(&mut self, which: Option<&str>, now: i64) -> usize {
        let mut revoked = 0;
        for token in &mut self.tokens {
            let meant = which.is_none_or(|w| w == token.id || w == token.text.expose());
            if meant && token.revoked_ms.is_none() {
                token.revoked_ms = Some(now);
                revoked += 1;
            }
        }
        revoked
    }
}

/// The name of a shop by its index in [`SHOPS`].
pub(crate) fn shop_name(index: usize) -> &'static str {
    SHOPS.get(index).copied().unwrap_or("")
}

/// A shop's index in [`SHOPS`] by its name.
pub(crate) fn find_shop(name: &str) -> Option<usize> {
    SHOPS.iter().position(|shop| *shop == name)
}

/// A user code as it is compared: letters only, upper case.
fn plain_code(typed: &str) -> String {
    typed
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_uppercase())
        .collect()
}

fn seconds(s: u64) -> i64 {
    i64::try_from(s.saturating_mul(1_000)).unwrap_or(i64::MAX)
}
