//! What can be wrong with the settings. Every variant ends a command with the exit code for the configuration.
//!
//! A value never stands in an error: a secret pasted into the wrong key would end up in a log. The key and the place
//! where it was set are enough to find it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::hook::secret_file::SecretFileError;

/// Where a setting was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// In a file.
    File(PathBuf),
    /// By a variable of the environment.
    Variable(String),
    /// By a flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("by default"),
            Self::File(path) => write!(f, "in `{}`", path.display()),
            Self::Variable(name) => write!(f, "by the variable `{name}`"),
            Self::Flag(name) => write!(f, "by the flag `{name}`"),
        }
    }
}

/// Wrong or missing settings. All of them are the operator's to mend; none goes away by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there, or may not be read.
    #[error("could not read config file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than any configuration is.
    #[error("config file `{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The file is not TOML. The line itself is not shown.
    #[error("config file `{}` is not TOML at line {line}, column {column}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// 1-based, in characters.
        column: usize,
        /// What the parser says, without the text it read.
        what: String,
    },
    /// A key that is no setting.
    #[error("unknown key `{key}`, set {origin}")]
    Unknown {
        /// The key, dotted.
        key: String,
        /// Where it was set.
        origin: Origin,
        /// What to do instead.
        hint: String,
    },
    /// A value of the wrong type, out of range or against a rule.
    #[error("`{key}`, set {origin}, {rule}")]
    Refused {
        /// The key, dotted.
        key: String,
        /// Where it was set.
        origin: Origin,
        /// `must be …`.
        rule: String,
    },
    /// A setting without default that the command at hand needs.
    #[error("`{key}` is not set")]
    Missing {
        /// The key, dotted.
        key: &'static str,
        /// What it is, for the hint.
        what: &'static str,
    },
    /// No place for the state directory can be derived.
    #[error("no state directory: neither `state_dir` nor a home directory is set")]
    NoStateDir,
    /// systemd handed over several state directories.
    #[error("`STATE_DIRECTORY` must hold exactly one absolute path")]
    StateDirectory,
    /// A hook's program cannot be run.
    #[error("hook `{name}` cannot run `{}`", program.display())]
    Program {
        /// The hook.
        name: String,
        /// Its program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What a hook posts cannot be signed.
    #[error("hook `{name}` cannot sign with `{}`", file.display())]
    SecretFile {
        /// The hook.
        name: String,
        /// Its `secret_file`.
        file: PathBuf,
        /// Why.
        source: SecretFileError,
    },
}

/// What a hook's `run` is.
const PROGRAM_HINT: &str = "`run` is a list: the program's absolute path first, then its arguments; the file must be \
                            executable, and a script begins with a line such as `#!/bin/sh`";

/// What to do about a secret file, by what is wrong with it: a line that makes a new one must not be given to somebody
/// whose secret is good, and known to the shop.
fn secret_hint(file: &Path, source: &SecretFileError) -> String {
    let shown = file.display();
    let make = format!(
        "`(umask 077; printf 'whsec_%s\\n' \"$(head -c 32 /dev/urandom | base64)\" > \"{shown}\")`"
    );
    match source {
        SecretFileError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => format!(
            "make one with {make}; the user tilld runs as must be able to read it, and not everybody"
        ),
        SecretFileError::Io(_) => {
            "the user tilld runs as must be able to read it: as its owner, or by its group"
                .to_owned()
        }
        SecretFileError::OpenToAll(_) => format!(
            "`chmod o= \"{shown}\"` mends it; when somebody may have read it, a new secret is wanted, here and in the shop"
        ),
        SecretFileError::NotAFile(_) | SecretFileError::TooLarge | SecretFileError::Keys(_) => {
            format!(
                "it holds `whsec_` and the base64 of 24 to 64 bytes, one secret a line; {make} writes a new one over it, \
             which the shop must be given too"
            )
        }
    }
}

impl Error {
    /// True when whoever runs the command may not read the file.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied)
    }

    /// What the operator can do, as a sentence for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { hint, .. } => Some(hint.clone()),
            Self::Missing { key, what } => Some(format!(
                "set `{key}`, {what}, in the config file (`{}`, or the one `--config` names), or `{}` in the environment",
                super::load::STANDARD_FILE,
                super::keys::variable_of(key)
            )),
            Self::Refused {
                origin: Origin::Default,
                key,
                ..
            } => Some(format!("set `{key}` as well")),
            Self::Refused { key, .. } if key.starts_with("poller.schedule") => Some(
                "`until_s` is the age up to which a step holds, `every_s` the time between two questions: \
                 `[{ until_s = 1800, every_s = 50 }, { until_s = 86400, every_s = 1800 }]`"
                    .to_owned(),
            ),
            Self::Refused { key, .. } if key.rsplit('.').next() == Some("run") => Some(PROGRAM_HINT.to_owned()),
            Self::Program { .. } => Some(PROGRAM_HINT.to_owned()),
            Self::Refused { key, .. } if key == "hook" => Some(
                "each hook is a block of its own below a line `[[hook]]`, with two brackets on either side".to_owned(),
            ),
            Self::NoStateDir => Some("give `--state-dir DIR` or set `state_dir`".to_owned()),
            Self::StateDirectory => {
                Some("name one directory in the unit's `StateDirectory=`".to_owned())
            }
            Self::SecretFile { file, source, .. } => Some(secret_hint(file, source)),
            Self::Read { .. } | Self::TooLarge { .. } | Self::Syntax { .. } | Self::Refused { .. } => None,
        }
    }
}
