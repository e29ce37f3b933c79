//! Where the access token is stored, as far as the reader of a report may know. Pure.
//!
//! Promises that no report holds the token itself.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Where the access token is stored, as far as the reader of the report may know.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum StoredLogin {
    /// There is one.
    Stored {
        source: Cow<'static, str>,
        stored_in: String,
        shop_name: Option<String>,
    },
    /// There is none that this user's commands would find.
    None,
    /// Another user owns the state directory.
    #[default]
    Hidden,
    /// `whoami` says why.
    Unreadable,
}

impl StoredLogin {
    /// A credential of its unit is the daemon's alone to see: `is_good` where it polls with a token that is not stored.
    pub(super) fn or_of_unit(self, is_good: bool) -> Self {
        match self {
            Self::None if is_good => Self::Stored {
                source: "systemd_credential".into(),
                stored_in: "a credential of the daemon's unit".to_owned(),
                shop_name: None,
            },
            other => other,
        }
    }
}
