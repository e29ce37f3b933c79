//! The daemon that answers on its control socket: where it is, whether it is the one that is meant, and what it is asked.
//!
//! A command asks the daemon when one answers, whoever runs it: members of the socket's group need no right to anything else
//! of tilld. Without one it works directly, as far as this user may. Promises never to ask the daemon of another ledger than
//! the flags, variables and settings mean.

mod away;
mod call;
mod create;
mod place;
mod read;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::owner;
use crate::client::credentials::Elsewhere;

pub(super) use away::Away;
use call::{Call, connect};
pub(super) use create::Created;
pub(super) use place::MOST_INVOICES;
pub(super) use read::{Asked, Events};

/// A daemon that answers.
#[derive(Debug)]
pub(super) struct Remote {
    path: PathBuf,
}

/// How a command comes to what it wants.
#[derive(Debug)]
pub(super) enum Way {
    /// It asks this daemon.
    Socket(Remote),
    /// It works on ledger and service itself.
    Direct(Denied),
}

/// The sockets this user may not connect to.
#[derive(Debug, Default)]
pub(super) struct Denied(Vec<PathBuf>);

/// Why a daemon gave no answer to go by.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nobody answers on the socket.
    Absent {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It went away before it had answered.
    Gone {
        /// The socket.
        path: PathBuf,
    },
    /// It took the connection, and said nothing for as long as an answer may take.
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long it was waited for.
        within: Duration,
    },
    /// It has no place just now, stops, or cannot read its ledger: it may be asked again.
    Busy(Failure),
    /// Its ledger is not the one that gave the number to go on after.
    Restored {
        /// What it says of that.
        failure: Failure,
        /// The generation of its ledger, and the number to go on after in it.
        at: (i64, i64),
    },
    /// It answered, and that is the end: a failure of its own, or nothing that can be understood.
    Ended(Failure),
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent { path, .. } => write!(f, "no daemon answers on `{}`", path.display()),
            Self::Gone { path } => write!(
                f,
                "the daemon on `{}` went away before it answered",
                path.display()
            ),
            Self::Silent { path, within } => write!(
                f,
                "the daemon on `{}` gave no answer within {} s",
                path.display(),
                within.as_secs()
            ),
            Self::Busy(failure) | Self::Restored { failure, .. } | Self::Ended(failure) => {
                f.write_str(&failure.line())
            }
        }
    }
}

impl std::error::Error for NoAnswer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Absent { source, .. } => Some(source),
            Self::Gone { .. }
            | Self::Silent { .. }
            | Self::Busy(_)
            | Self::Restored { .. }
            | Self::Ended(_) => None,
        }
    }
}

impl From<NoAnswer> for Failure {
    fn from(error: NoAnswer) -> Self {
        match error {
            NoAnswer::Busy(failure)
            | NoAnswer::Restored { failure, .. }
            | NoAnswer::Ended(failure) => failure,
            NoAnswer::Absent { path, source } if is_denied(&source) => {
                let hint = owner::client_hint(&path);
                let hint = hint.unwrap_or_else(|| {
                    "its owner and group may connect: `ls -l` shows who they are".to_owned()
                });
                let text = format!("this user may not connect to `{}`", path.display());
                Self::new(Exit::Ownership, source).context(text).hint(hint)
            }
            error @ NoAnswer::Absent { .. } => Self::new(Exit::Unreachable, error)
                .hint("start it with `tilld serve`, or look at `control.socket`"),
            error @ NoAnswer::Gone { .. } => {
                Self::new(Exit::Unreachable, error).hint("run the command again")
            }
            error @ NoAnswer::Silent { .. } => Self::new(Exit::Unreachable, error).hint(
                "`tilld status` shows whether the daemon stands still; as many may be connected as `control.connections` allows",
            ),
        }
    }
}

pub(super) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

impl Way {
    /// Directly, since this user may.
    pub(super) fn owners() -> Self {
        Self::Direct(Denied::default())
    }
}

impl Denied {
    /// Names the socket's group as the first way out, where this user lacks a right: it opens the least.
    pub(super) fn explain<T>(&self, ended: Result<T, Failure>) -> Result<T, Failure> {
        // One that lies in a closed directory tells nothing of its group.
        let join = self.0.iter().find_map(|socket| owner::client_hint(socket));
        match (ended, join) {
            (Err(failure), Some(join)) if failure.exit() == Exit::Ownership => {
                let hint = match failure.way_out() {
                    Some(hint) => format!("{join}, or {hint}"),
                    None => join,
                };
                Err(failure.hint(hint))
            }
            (ended, _) => ended,
        }
    }
}

/// Finds the daemon that is meant.
pub(super) async fn way(context: &Context) -> Result<Way, Failure> {
    if let Some(path) = context.socket() {
        return match connect(path).await {
            Ok(_stream) => Ok(Way::Socket(Remote::at(path))),
            Err(source) => Err(NoAnswer::Absent {
                path: path.to_owned(),
                source,
            }
            .into()),
        };
    }
    let mut denied = Denied::default();
    for path in place::places(&context.whereabouts()?) {
        match connect(&path).await {
            Ok(_stream) => return Ok(Way::Socket(Remote::at(&path))),
            Err(error) if is_denied(&error) => denied.0.push(path),
            // There is one, and it does not take the connection: nobody works beside it by mistake.
            Err(source) if source.kind() == io::ErrorKind::TimedOut => {
                return Err(NoAnswer::Absent { path, source }.into());
            }
            Err(error) => {
                tracing::debug!(reason = %error, "no daemon answers on {}: {error}", path.display());
            }
        }
    }
    Ok(Way::Direct(denied))
}

/// The same for what is sent to the service: a token of the environment is the command's own, and no daemon uses it.
pub(super) async fn way_with_token(context: &Context) -> Result<Way, Failure> {
    if context.socket().is_none() && Elsewhere::of_one_shot().env_token.is_some() {
        return Ok(Way::owners());
    }
    way(context).await
}

impl Remote {
    /// The daemon that listens on this path, whether it does just now or not.
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    async fn connect(&self) -> Result<UnixStream, NoAnswer> {
        connect(&self.path)
            .await
            .map_err(|source| NoAnswer::Absent {
                path: self.path.clone(),
                source,
            })
    }

    fn gone(&self) -> NoAnswer {
        NoAnswer::Gone {
            path: self.path.clone(),
        }
    }

    /// It turned this away before it was looked at: as many are connected as may be.
    fn busy(&self) -> NoAnswer {
        let text = format!("the daemon on `{}` is busy", self.path.display());
        let hint =
            "nothing was done: try again; `control.connections` sets how many may be connected";
        NoAnswer::Busy(Failure::new(Exit::Unreachable, text).hint(hint))
    }

    /// What answers there is no tilld, or not one of a version that fits.
    fn foreign(&self) -> NoAnswer {
        let text = format!(
            "the answer from `{}` cannot be understood",
            self.path.display()
        );
        NoAnswer::Ended(
            Failure::new(Exit::Error, text)
                .hint("look whether tilld's daemon listens there, and restart it after an update"),
        )
    }

    /// A question that is answered from the ledger.
    fn get(target: String) -> Call {
        Call::get(target, Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lacking_daemon_means_has_its_code() {
        let absent = |kind: io::ErrorKind| {
            Failure::from(NoAnswer::Absent {
                path: PathBuf::from("/run/x.sock"),
                source: kind.into(),
            })
        };
        let nobody = absent(io::ErrorKind::ConnectionRefused);
        assert_eq!(nobody.code(), 8);
        let line = nobody.line();
        assert!(
            line.starts_with("no daemon answers on `/run/x.sock`: "),
            "{line}"
        );
        assert_eq!(absent(io::ErrorKind::PermissionDenied).code(), 15);
        let gone = NoAnswer::Gone {
            path: PathBuf::from("/run/x.sock"),
        };
        assert_eq!(Failure::from(gone).code(), 8);
    }

    #[test]
    fn only_a_lack_of_rights_is_explained() {
        let nothing = Denied::default();
        let ended: Result<(), Failure> =
            nothing.explain(Err(Failure::new(Exit::Ownership, "x").hint("become y")));
        let hint = ended.expect_err("it is one").way_out();
        assert_eq!(hint.as_deref(), Some("become y"));
    }
}
