//! What the sandbox is told to do wrong. Each fault stays until it is changed or its count is used up.

use crate::invoice::ids::LONGEST_ID;

/// API faults kept at once. Tests set one or two.
const MOST_API_FAULTS: usize = 16;

/// How many more times a fault shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Times {
    /// Not at all.
    #[default]
    Never,
    /// So many times more.
    Next(u64),
    /// Until it is changed.
    Always,
}

impl Times {
    /// True when the fault shows this time; counts it.
    pub(crate) fn take(&mut self) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Next(left) => {
                *self = Self::next(left.saturating_sub(1));
                true
            }
        }
    }

    /// So many times more; 0 is never.
    pub(crate) fn next(times: u64) -> Self {
        if times == 0 {
            Self::Never
        } else {
            Self::Next(times)
        }
    }
}

/// How a notification presents the invoice's notify token. The contract does not say; the header is what the sibling
/// service documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presentation {
    /// In a header of this name.
    Header(String),
    /// `Authorization: Bearer …`
    Bearer,
    /// The password of HTTP Basic.
    BasicPassword,
    /// In the query, under this name.
    Query(String),
    /// In the body, at this JSON pointer.
    Body(String),
    /// Not itself: a header of this name carries the HMAC-SHA256 of the body, in hex.
    Hmac(String),
    /// Not itself: signed by the scheme of Standard Webhooks.
    StandardWebhooks,
    /// Nowhere.
    Missing,
}

impl Default for Presentation {
    fn default() -> Self {
        Self::Header("X-Notification-Token".to_owned())
    }
}

impl Presentation {
    /// Reads `header:NAME`, `bearer`, `basic-password`, `query:NAME`, `body:/POINTER`, `hmac-sha256:header:NAME`,
    /// `standard-webhooks` or `none`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |name: &str| {
            let fit = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            (!name.is_empty() && name.len() <= LONGEST_ID && name.bytes().all(fit))
                .then(|| name.to_owned())
        };
        match text.split_once(':') {
            Some(("header", name)) => plain(name).map(Self::Header),
            Some(("query", name)) => plain(name).map(Self::Query),
            Some(("body", pointer)) => pointer
                .strip_prefix('/')
                .is_some_and(|rest| !rest.is_empty() && rest.len() <= LONGEST_ID)
                .then(|| Self::Body(pointer.to_owned())),
            Some(("hmac-sha256", rest)) => plain(rest.strip_prefix("header:")?).map(Self::Hmac),
            Some((_, _)) => None,
            None => match text {
                "bearer" => Some(Self::Bearer),
                "basic-password" => Some(Self::BasicPassword),
                "standard-webhooks" => Some(Self::StandardWebhooks),
                "none" => Some(Self::Missing),
                _ => None,
            },
        }
    }

    /// The text that [`Presentation::parse`] reads.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Header(name) => format!("header:{name}"),
            Self::Bearer => "bearer".to_owned(),
            Self::BasicPassword => "basic-password".to_owned(),
            Self::Query(name) => format!("query:{name}"),
            Self::Body(pointer) => format!("body:{pointer}"),
            Self::Hmac(name) => format!("hmac-sha256:header:{name}"),
            Self::StandardWebhooks => "standard-webhooks".to_owned(),
            Self::Missing => "none".to_owned(),
        }
    }
}

/// The four endpoints of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    /// `POST /api/v1/agent/login`
    Login,
    /// `POST /api/v1/agent/token`
    Token,
    /// `POST /api/v1/invoices`
    Create,
    /// `GET /api/v1/invoices/{id}`
    Fetch,
}

impl Endpoint {
    /// All four, in the contract's order.
    pub(crate) const ALL: [Self; 4] = [Self::Login, Self::Token, Self::Create, Self::Fetch];

    /// The word used on the control listener.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Token => "token",
            Self::Create => "create",
            Self::Fetch => "fetch",
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|endpoint| endpoint.word() == word)
    }
}

/// An answer an endpoint gives instead of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiFault {
    /// Which endpoint.
    pub(crate) endpoint: Endpoint,
    /// HTTP status, 200 to 599.
    pub(crate) status: u16,
    /// Body, sent as it is. JSON when it starts with `{`, HTML otherwise.
    pub(crate) body: String,
    /// `Retry-After`, seconds.
    pub(crate) retry_after_s: Option<u64>,
    /// How often.
    pub(crate) times: Times,
}

/// Everything that can be told to go wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Notifications that are never sent.
    pub(crate) lose: Times,
    /// Notifications that are sent more than once.
    pub(crate) repeat: Times,
    /// Copies beyond the first of a repeated notification; at least 1 when it shows.
    pub(crate) copies: u32,
    /// Every notification waits so long first, ms.
    pub(crate) delay_ms: u64,
    /// A notification is held until the next one of its invoice has gone out.
    pub(crate) reorder: bool,
    /// Notifications that carry a wrong token of the right length.
    pub(crate) wrong_token: Times,
    /// A create answer is held so long while a notification of the new invoice goes first, ms.
    pub(crate) hold_create_ms: u64,
    /// Creates whose invoice is made and whose answer never comes.
    pub(crate) drop_create_answer: Times,
    /// Answers that stand in for an endpoint's own, the first that fits wins.
    api: Vec<ApiFault>,
    /// Where the token stands.
    pub(crate) presentation: Presentation,
}

/// What is to be done with one notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// Never send it.
    pub(crate) lost: bool,
    /// Send it so often: 1, or more when repeated.
    pub(crate) copies: u32,
    /// Put a wrong token on it.
    pub(crate) wrong_token: bool,
    /// Wait so long first, ms.
    pub(crate) delay_ms: u64,
    /// Where the token stands.
    pub(crate) presentation: Presentation,
}

impl Faults {
    /// Decides what happens to the next notification, and counts it.
    pub(crate) fn treat(&mut self) -> Treatment {
        let lost = self.lose.take();
        // A lost notification uses up no other fault: nobody would see it.
        let repeated = !lost && self.repeat.take();
        Treatment {
            lost,
            copies: if repeated { 1 + self.copies.max(1) } else { 1 },
            wrong_token: !lost && self.wrong_token.take(),
            delay_ms: self.delay_ms,
            presentation: self.presentation.clone(),
        }
    }

    /// Sets what an endpoint answers instead of its own, replacing what was set for it; never: takes it off.
    pub(crate) fn set_api(&mut self, fault: ApiFault) {
        self.api.retain(|old| old.endpoint != fault.endpoint);
        if fault.times != Times::Never && self.api.len() < MOST_API_FAULTS {
            self.api.push(fault);
        }
    }

    /// The stand-in for an endpoint's next answer, if one is set; counts it.
    pub(crate) fn api_answer(&mut self, endpoint: Endpoint) -> Option<ApiFault> {
        let fault = self.api.iter_mut().find(|f| f.endpoint == endpoint)?;
        fault.times.take().then(|| fault.clone())
    }

    /// The stand-ins that are set.
    pub(crate) fn api(&self) -> &[ApiFault] {
        &self.api
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_used_up_and_always_is_not() {
        let mut twice = Times::next(2);
        assert_eq!(
            [twice.take(), twice.take(), twice.take()],
            [true, true, false]
        );
        let mut always = Times::Always;
        assert!(always.take() && always.take());
        assert_eq!(Times::next(0), Times::Never);
    }

    #[test]
    fn a_lost_notification_uses_up_no_other_fault() {
        let mut faults = Faults {
            lose: Times::next(1),
            repeat: Times::next(1),
            wrong_token: Times::next(1),
            ..Faults::default()
        };
        let (first, second, third) = (faults.treat(), faults.treat(), faults.treat());
        assert!(first.lost && first.copies == 1 && !first.wrong_token);
        assert!(!second.lost && second.copies == 2 && second.wrong_token);
        assert!(!third.lost && third.copies == 1 && !third.wrong_token);
    }

    #[test]
    fn presentations_read_back() {
        for text in [
            "header:X-Notification-Token",
            "bearer",
            "basic-password",
            "query:token",
            "body:/notificationToken",
            "hmac-sha256:header:X-Signature",
            "standard-webhooks",
            "none",
        ] {
            assert_eq!(
                Presentation::parse(text).map(|p| p.word()).as_deref(),
                Some(text)
            );
        }
        for text in [
            "",
            "header:",
            "header:a b",
            "query:",
            "body:token",
            "body:/",
            "cookie:x",
            "hmac-sha256:",
            "hmac-sha256:header:",
            "hmac-sha256:query:x",
        ] {
            assert_eq!(Presentation::parse(text), None, "`{text}`");
        }
    }
}
