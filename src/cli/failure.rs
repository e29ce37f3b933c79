//! How a command ends: the one place that prints an error. What it prints is [`crate::answer`]'s.

use std::io::{self, Write as _};
use std::process::ExitCode;

pub(super) use crate::answer::failure::{Exit, Failure};
use crate::config;

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

/// Prints the failure, once and for all, and gives its code.
pub(super) fn report(failure: &Failure, json: bool) -> Exit {
    let line = failure.line();
    let hint = failure.way_out();
    let mut talk = format!("error: {line}\n");
    if let Some(hint) = &hint {
        talk = format!("{talk}hint: {hint}\n");
    }
    let told = io::stderr().lock().write_all(talk.as_bytes());
    let answered = if json {
        let code = failure.exit().code();
        let answer = serde_json::json!({ "error": line, "hint": hint, "code": code });
        super::output::print(&format!("{answer}\n"))
    } else {
        Ok(())
    };
    // With stderr or stdout gone the exit code is all that is left to say.
    drop((told, answered));
    failure.exit()
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
