//! What it means for whoever asked that the payment service gave no answer to go by: the end, and the way out.

use std::time::Duration;

use super::argv;
use super::failure::{Exit, Failure, whole_seconds};
use super::problem::Problem;
use crate::client::credentials::{CredentialsError, TokenSource};
use crate::client::error::{CreateError, Error};
use crate::client::private_file::FileError;

/// No token anywhere.
pub(crate) fn no_login() -> Failure {
    Failure::new(Exit::LoginNeeded, "no login is stored").hint(log_in())
}

/// The way to a login, as a hint.
pub(crate) fn log_in() -> String {
    format!("run `{}`", argv::login())
}

/// A request that yielded nothing, made with a token from `source`; `None` for requests without one.
pub(crate) fn failure(error: Error, source: Option<TokenSource>) -> Failure {
    let again_in = error.retry_after();
    let (exit, hint) = match &error {
        Error::NotSent { .. } => (
            Exit::Unreachable,
            Some(
                "look at the network and at `service.url`; where all goes through a proxy, `service.proxy` names it"
                    .to_owned(),
            ),
        ),
        Error::Busy {
            status: 429,
            retry_after,
            ..
        } => (Exit::Unreachable, Some(later(*retry_after))),
        Error::Unanswered { .. } | Error::Busy { .. } => (
            Exit::Unreachable,
            Some("the service, or something on the way to it, is in trouble: try again later".to_owned()),
        ),
        Error::Page { .. } | Error::NotTheService { .. } => (
            Exit::Unreachable,
            Some(
                "something else may answer in the service's place: look at `service.url` and the network"
                    .to_owned(),
            ),
        ),
        Error::LoginNeeded | Error::TokenUnusable => (Exit::LoginNeeded, Some(login_again(source))),
        Error::NotFound { .. } => (Exit::NotFound, None),
        Error::Forbidden { .. } | Error::Refused { .. } => (Exit::Error, None),
        Error::Redirected { .. } => (
            Exit::Config,
            Some("set `service.url` to the address the service itself answers at".to_owned()),
        ),
    };
    hinted(Failure::new(exit, error).again_in(again_in), hint)
}

/// The way out of a 429.
fn later(retry_after: Option<Duration>) -> String {
    match retry_after.map(whole_seconds) {
        Some(seconds) if seconds > 0 => {
            format!("the service wishes to be left alone: try again in {seconds} s")
        }
        Some(_) | None => "the service was asked too often: try again later".to_owned(),
    }
}

/// A create that yielded no invoice.
pub(crate) fn create_failure(error: CreateError, source: Option<TokenSource>) -> Failure {
    match error {
        CreateError::NoRequisites { retry_after, .. } => Failure::new(Exit::NoRequisites, error)
            .hint("try again later or with another amount")
            .again_in(retry_after),
        CreateError::OutcomeUnknown { .. } => Failure::new(Exit::Unknown, error).hint(
            "look for the order in the cabinet; a notification settles it by itself, or `tilld invoice adopt ORDER --id ID`; \
             `--new` opens another invoice",
        ),
        CreateError::NotCreated { source: cause } => {
            let is_refused = matches!(cause, Error::Refused { .. });
            let failure = failure(cause, source).context("the invoice was not created");
            let hint = "look at amount, currency, method and `public_url` under [listener], then run the command again";
            if is_refused {
                failure.hint(hint).problem(Problem::RefusedByService)
            } else {
                failure
            }
        }
    }
}

/// The way out of a 401, which depends on where the token came from: the first place that has one wins.
fn login_again(source: Option<TokenSource>) -> String {
    let log_in = log_in();
    match source {
        Some(TokenSource::Environment) => {
            format!("put a good token into `SERVICE_TOKEN`, or unset it and {log_in}")
        }
        Some(TokenSource::SystemdCredential) => {
            format!("replace the systemd credential `access-token`, or {log_in}, which outranks it")
        }
        Some(TokenSource::File) | None => log_in,
    }
}

/// With a way out, if there is one.
pub(crate) fn hinted(failure: Failure, hint: Option<impl Into<String>>) -> Failure {
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl From<CredentialsError> for Failure {
    fn from(error: CredentialsError) -> Self {
        if error.is_permission() {
            return Self::new(Exit::Ownership, error).hint(format!(
                "give the file to the state directory's owner alone (0600, its directory 0700); if others could read it, revoke the token in the cabinet and {}",
                log_in()
            ));
        }
        let (exit, hint) = match &error {
            CredentialsError::OtherOrigin { .. } => (
                Exit::LoginNeeded,
                Some(format!("{}, or set `service.url` back", log_in())),
            ),
            // A login writes another one over a file.
            CredentialsError::OfSandbox { place, .. } if place.starts_with("`/") => {
                (Exit::LoginNeeded, Some(log_in()))
            }
            CredentialsError::OfSandbox { .. } => (
                Exit::LoginNeeded,
                Some(format!("unset it and {}", log_in())),
            ),
            CredentialsError::Unreadable { .. } | CredentialsError::Empty { .. } => {
                (Exit::LoginNeeded, Some(log_in()))
            }
            CredentialsError::File(FileError::NotAFile { path, .. }) => (
                Exit::Ownership,
                Some(format!("remove `{}` and {}", path.display(), log_in())),
            ),
            CredentialsError::File(_) => (Exit::Error, None),
        };
        hinted(Self::new(exit, error), hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::error::Foreign;

    #[test]
    fn each_end_has_its_code() {
        let busy = |status| Error::Busy {
            status,
            retry_after: None,
            text: None,
        };
        for (error, code) in [
            (busy(503), 8),
            (
                Error::NotTheService {
                    why: Foreign::TooLarge,
                },
                8,
            ),
            (Error::LoginNeeded, 4),
            (Error::TokenUnusable, 4),
            (
                Error::NotFound {
                    service_ms: None,
                    text: None,
                },
                3,
            ),
            (
                Error::Forbidden {
                    service_ms: None,
                    text: None,
                },
                1,
            ),
            (
                Error::Refused {
                    status: 422,
                    text: None,
                },
                1,
            ),
            (
                Error::Redirected {
                    status: 302,
                    target: None,
                },
                10,
            ),
        ] {
            let shown = error.to_string();
            assert_eq!(failure(error, None).code(), code, "{shown}");
        }
        let lost = CreateError::OutcomeUnknown { source: busy(502) };
        assert_eq!(create_failure(lost, None).code(), 9);
        let full = CreateError::NoRequisites {
            text: String::new(),
            retry_after: None,
        };
        assert_eq!(create_failure(full, None).code(), 7);
        let refused = CreateError::NotCreated {
            source: Error::LoginNeeded,
        };
        assert_eq!(create_failure(refused, Some(TokenSource::File)).code(), 4);
    }
}
