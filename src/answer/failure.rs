//! How a question or a wish ends, at whichever door it came: the exit codes with their names, and what an end without success
//! carries to whoever is told.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use super::problem::Problem;
use crate::telemetry::escape;

/// The exit codes (design 11). Scripts rely on the numbers: they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok,
    /// Not done, for a reason without a code of its own.
    Error,
    /// The command line was not understood.
    Usage,
    /// No such invoice, event, delivery or hook.
    NotFound,
    /// The service wants a login.
    LoginNeeded,
    /// The invoice is final, but not paid.
    NotPaid,
    /// The time given ran out.
    TimeOut,
    /// All requisites of the service are occupied.
    NoRequisites,
    /// The service could not be reached.
    Unreachable,
    /// It is not known what became of the request.
    Unknown,
    /// Settings are wrong or missing.
    Config,
    /// The ledger cannot be used.
    Ledger,
    /// The login was refused.
    LoginDenied,
    /// The login request expired.
    LoginExpired,
    /// The login may have been granted, but its answer was lost.
    LoginMaybe,
    /// A file has the wrong owner or mode.
    Ownership,
    /// Something needs a person.
    Attention,
    /// A panic: tilld has a bug.
    Bug,
}

impl Exit {
    /// All of them, by their number.
    pub(crate) const ALL: [Self; 18] = [
        Self::Ok,
        Self::Error,
        Self::Usage,
        Self::NotFound,
        Self::LoginNeeded,
        Self::NotPaid,
        Self::TimeOut,
        Self::NoRequisites,
        Self::Unreachable,
        Self::Unknown,
        Self::Config,
        Self::Ledger,
        Self::LoginDenied,
        Self::LoginExpired,
        Self::LoginMaybe,
        Self::Ownership,
        Self::Attention,
        Self::Bug,
    ];

    /// The one with this number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|exit| exit.code() == code)
    }

    /// The number, and what it means in the words of `--help`.
    pub(crate) const fn told(self) -> (u8, &'static str) {
        match self {
            Self::Ok => (0, "done"),
            Self::Error => (1, "error"),
            Self::Usage => (2, "command line not understood"),
            Self::NotFound => (3, "not found"),
            Self::LoginNeeded => (4, "login needed"),
            Self::NotPaid => (5, "final, but not paid"),
            Self::TimeOut => (6, "time ran out"),
            Self::NoRequisites => (7, "no requisites free"),
            Self::Unreachable => (8, "service unreachable"),
            Self::Unknown => (9, "outcome unknown"),
            Self::Config => (10, "settings wrong or missing"),
            Self::Ledger => (11, "ledger unusable, or held by another daemon"),
            Self::LoginDenied => (12, "login denied"),
            Self::LoginExpired => (13, "login expired"),
            Self::LoginMaybe => (14, "login may have been granted"),
            Self::Ownership => (15, "wrong owner or mode"),
            Self::Attention => (16, "something needs attention"),
            Self::Bug => (17, "tilld has a bug, which the log names"),
        }
    }

    /// Its name for programs that are told in words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::LoginNeeded => "login_needed",
            Self::NotPaid => "not_paid",
            Self::TimeOut => "time_out",
            Self::NoRequisites => "no_requisites",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
            Self::Config => "config",
            Self::Ledger => "ledger",
            Self::LoginDenied => "login_denied",
            Self::LoginExpired => "login_expired",
            Self::LoginMaybe => "login_maybe",
            Self::Ownership => "ownership",
            Self::Attention => "attention",
            Self::Bug => "bug",
        }
    }

    /// The number.
    pub(crate) const fn code(self) -> u8 {
        self.told().0
    }
}

/// Why a command ends without having done its work.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Exit,
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
    again_in: Option<Duration>,
    problem: Option<Problem>,
}

impl Failure {
    /// An end with this code because of `error`, whose sources are printed behind it.
    pub(crate) fn new(code: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            code,
            error: error.into(),
            hint: None,
            again_in: None,
            problem: None,
        }
    }

    /// Names what a client of the control socket tells apart.
    #[must_use]
    pub(crate) const fn problem(mut self, problem: Problem) -> Self {
        self.problem = Some(problem);
        self
    }

    /// What a client of the control socket tells apart, where the exit code does not say it.
    pub(crate) const fn problem_type(&self) -> Option<Problem> {
        self.problem
    }

    /// Says what could not be done, in front of the cause.
    #[must_use]
    pub(crate) fn context(mut self, doing: impl Into<String>) -> Self {
        self.error = Box::new(Doing {
            doing: doing.into(),
            source: self.error,
        });
        self
    }

    /// Names the way out, as a sentence for the `hint:` line.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says after how long it is worth another try, where somebody named a time.
    #[must_use]
    pub(crate) const fn again_in(mut self, wait: Option<Duration>) -> Self {
        self.again_in = wait;
        self
    }

    /// The seconds after which it is worth another try, if somebody named a time.
    pub(crate) fn again_in_s(&self) -> Option<u64> {
        self.again_in.map(whole_seconds)
    }

    /// How it ended.
    pub(crate) const fn exit(&self) -> Exit {
        self.code
    }

    /// The exit code's number.
    #[cfg(test)]
    pub(crate) const fn code(&self) -> u8 {
        self.code.code()
    }

    /// The way out, made harmless for a terminal.
    pub(crate) fn way_out(&self) -> Option<String> {
        self.hint.as_deref().map(|hint| escape(hint).into_owned())
    }

    /// What it means that stdout could not be written.
    pub(crate) fn from_write(error: io::Error) -> Self {
        Self::new(Exit::Error, error).context("could not write to stdout")
    }

    /// The chain of causes as one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.error.to_string();
        let mut cause = self.error.source();
        while let Some(error) = cause {
            line = format!("{line}: {error}");
            cause = error.source();
        }
        escape(&line).into_owned()
    }
}

/// A wait in whole seconds, none of which is too short: the same number wherever it is told.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Something that could not be done, with its cause behind it.
#[derive(Debug)]
struct Doing {
    doing: String,
    source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.doing)
    }
}

impl Error for Doing {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_scripts_rely_on() {
        let numbers = Exit::ALL.map(Exit::code);
        assert!(numbers.into_iter().eq(0..18));
        for exit in Exit::ALL {
            assert_eq!(Exit::from_code(exit.code()), Some(exit));
        }
        assert_eq!(Exit::from_code(18), None);
    }

    #[test]
    fn causes_stand_in_one_line() {
        let cause = io::Error::other("no space\nleft \u{1b}[31m");
        let failure = Failure::new(Exit::Error, cause)
            .context("could not write")
            .context("could not log in");
        assert_eq!(
            failure.line(),
            "could not log in: could not write: no space\\nleft \\u001b[31m"
        );
    }
}
