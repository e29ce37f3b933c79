//! How the poller stands with the payment service, for whoever asks `status`: written into the ledger when it changes and
//! never on an idle look. Pure.

use serde::{Deserialize, Serialize};

/// The small fact of the ledger it is kept under.
pub(crate) const FACT: &str = "poller";

/// How the poller stands. Times are milliseconds since 1970. Holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Standing {
    /// What became of the access token.
    pub login: Login,
    /// The service gives no answers, since then.
    pub outage: Option<Outage>,
    /// The service wants to be left alone until then (`Retry-After`).
    pub left_alone_until_ms: Option<i64>,
}

/// The access token as the daemon sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum Login {
    /// There is one, and it was not refused.
    #[default]
    Good,
    /// There is none, or none that can be used.
    Needed {
        /// Since when.
        since_ms: i64,
    },
    /// The service refuses the one there is.
    Refused {
        /// Since when.
        since_ms: i64,
    },
}

/// A time without answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outage {
    /// Since when.
    pub since_ms: i64,
    /// What the last question met, in one line.
    pub reason: String,
}

impl Standing {
    /// The form it is kept in.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads it back; what cannot be read is nothing known.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_an_unknown_form_is_nothing_known() {
        let standing = Standing {
            login: Login::Refused { since_ms: 3 },
            outage: Some(Outage {
                since_ms: 1,
                reason: "could not connect".to_owned(),
            }),
            left_alone_until_ms: Some(2),
        };
        assert_eq!(Standing::from_json(&standing.to_json()), Some(standing));
        assert_eq!(Standing::from_json("{}"), Some(Standing::default()));
        assert_eq!(Standing::from_json("no"), None);
    }
}
