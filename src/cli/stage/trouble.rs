//! Why something that is played did not go as promised.

use std::io;
use std::path::PathBuf;

use crate::client::credentials::CredentialsError;
use crate::ledger;
use crate::sandbox;

/// What went otherwise than promised.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Trouble {
    /// Something else happened.
    #[error("expected {expected}, found {found}")]
    Otherwise {
        /// What was promised.
        expected: String,
        /// What there was instead.
        found: String,
    },
    /// A command of tilld's own said no.
    #[error("`tilld {command}` ended with {end}: {said}")]
    Command {
        /// Its words.
        command: String,
        /// Exit code or signal.
        end: String,
        /// What it said last.
        said: String,
    },
    /// A command or the daemon was not done in time.
    #[error("`tilld {command}` was not done after {limit_s} s")]
    TooSlow {
        /// Its words.
        command: String,
        /// How long it was given, s.
        limit_s: u64,
    },
    /// A command could not be started, or its output not be read.
    #[error("could not run `tilld {command}`")]
    Run {
        /// Its words.
        command: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The merchant's program that lists what was handed over.
    #[error("could not run `{command}`")]
    Goods {
        /// It.
        command: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// That program did not list as it should.
    #[error("the list of goods: expected {expected}, found {found}")]
    Listing {
        /// How it should.
        expected: String,
        /// How it did.
        found: String,
    },
    /// A command said something unexpected.
    #[error("`tilld {command}` did not answer in JSON, but `{said}`")]
    NotJson {
        /// Its words.
        command: String,
        /// What it said.
        said: String,
    },
    /// The daemon ended without being told to.
    #[error("the daemon ended by itself with {0}")]
    DaemonEnded(String),
    /// A file of what is played cannot be written or read.
    #[error("could not use `{}`", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// No port to listen on.
    #[error("could not find a free port on this machine")]
    NoPort(#[source] io::Error),
    /// A page or the control listener did not do what was asked.
    #[error(transparent)]
    Visit(#[from] sandbox::VisitError),
    /// The sandbox did not start.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// The sandbox's HTTP client.
    #[error(transparent)]
    Visitor(#[from] sandbox::SetupError),
    /// The login cannot be stored.
    #[error(transparent)]
    Login(#[from] CredentialsError),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] ledger::OpenError),
    /// The ledger cannot be read.
    #[error(transparent)]
    Read(#[from] ledger::ReadError),
}

impl Trouble {
    /// Something else than `expected` happened.
    pub(in crate::cli) fn otherwise(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Otherwise {
            expected: expected.into(),
            found: found.into(),
        }
    }
}
