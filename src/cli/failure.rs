//! How a command ends: the exit codes, and the one place that prints an error.

use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use super::output::escape;
use crate::config;

/// The exit codes (section 11 of the design). Scripts rely on the numbers: they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
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
}

impl Exit {
    /// All of them, by their number.
    const ALL: [Self; 17] = [
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
    ];

    /// The number, and what it means in the words of `--help`.
    const fn told(self) -> (u8, &'static str) {
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
            Self::Attention => (16, "something needs a person"),
        }
    }

    /// The number.
    pub(super) const fn code(self) -> u8 {
        self.told().0
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The table of exit codes, as `--help` shows it.
pub(super) fn exit_code_help() -> String {
    let lines = Exit::ALL.map(|exit| {
        let (code, meaning) = exit.told();
        format!("  {code:>2}  {meaning}")
    });
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// Why a command ends without having done its work.
#[derive(Debug)]
pub(super) struct Failure {
    code: Exit,
    /// Nothing is printed without it: the reader of stdout went away, which is a normal end.
    error: Option<Box<dyn Error + Send + Sync>>,
    hint: Option<String>,
}

impl Failure {
    /// An end with this code because of `error`, whose sources are printed behind it.
    pub(super) fn new(code: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            code,
            error: Some(error.into()),
            hint: None,
        }
    }

    /// Says what could not be done, in front of the cause.
    #[must_use]
    pub(super) fn context(mut self, doing: impl Into<String>) -> Self {
        let doing = doing.into();
        self.error = self
            .error
            .map(|source| Box::new(Doing { doing, source }).into());
        self
    }

    /// Names the way out, as a sentence for the `hint:` line.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// True when there is nothing to say: the reader of stdout went away.
    pub(super) const fn is_silent(&self) -> bool {
        self.error.is_none()
    }

    /// The exit code's number.
    #[cfg(test)]
    pub(super) const fn code(&self) -> u8 {
        self.code.code()
    }

    /// What it means that stdout could not be written: nothing when its reader went away.
    pub(super) fn from_write(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self {
                code: Exit::Ok,
                error: None,
                hint: None,
            }
        } else {
            Self::new(Exit::Error, error).context("could not write to stdout")
        }
    }

    /// Prints the failure, once and for all, and gives its code.
    pub(super) fn report(self, json: bool) -> Exit {
        let Some(line) = self.line() else {
            return self.code;
        };
        let hint = self.hint.as_deref().map(escape);
        let mut talk = format!("error: {line}\n");
        if let Some(hint) = &hint {
            talk = format!("{talk}hint: {hint}\n");
        }
        let told = io::stderr().lock().write_all(talk.as_bytes());
        let answered = if json {
            let code = self.code.code();
            let answer = serde_json::json!({ "error": line, "hint": hint, "code": code });
            super::output::print(&format!("{answer}\n"))
        } else {
            Ok(())
        };
        // With stderr or stdout gone the exit code is all that is left to say.
        drop((told, answered));
        self.code
    }

    /// The chain of causes as one line.
    fn line(&self) -> Option<String> {
        let error: &(dyn Error + Send + Sync) = self.error.as_deref()?;
        let mut line = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            line = format!("{line}: {error}");
            cause = error.source();
        }
        Some(escape(&line).into_owned())
    }
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

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        let hint = error.hint();
        let failure = Self::new(Exit::Config, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_scripts_rely_on() {
        let numbers = Exit::ALL.map(Exit::code);
        assert!(numbers.into_iter().eq(0..17));
    }

    #[test]
    fn causes_stand_in_one_line() {
        let cause = io::Error::other("no space\nleft \u{1b}[31m");
        let failure = Failure::new(Exit::Error, cause)
            .context("could not write")
            .context("could not log in");
        assert_eq!(
            failure.line().as_deref(),
            Some("could not log in: could not write: no space\\nleft \\u001b[31m")
        );
    }

    #[test]
    fn a_closed_pipe_is_a_normal_end() {
        let failure = Failure::from_write(io::ErrorKind::BrokenPipe.into());
        assert_eq!((failure.code, failure.line()), (Exit::Ok, None));
        let failure = Failure::from_write(io::ErrorKind::StorageFull.into());
        assert_eq!(failure.code, Exit::Error);
    }
}
