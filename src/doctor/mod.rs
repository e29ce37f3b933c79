//! The checks of `tilld doctor`: everything a payment needs on its way, looked at before one is lost. Each check gives findings
//! with a hint; none of them holds a secret.
//!
//! Asks the network at two places alone: the configured service, and the configured public address. Promises to change
//! nothing but one line among the refusals, which the question to the public address leaves in a running daemon's ledger; and
//! to say of what could not be looked at that it was not.

mod address;
mod alerts;
mod answered;
mod certificate;
mod files;
mod hooks;
mod interpreter;
mod public;
mod recorded;
mod request;
mod service;
mod unit;
mod user;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use serde::Serialize;

use crate::client::Client;
use crate::config::Settings;
use crate::ledger::{FILE_NAME, Ledger, OpenError, is_served};
use crate::status::{Reason, Report};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// As it should be.
    Ok,
    /// It may be meant so, or could not be looked at.
    Warn,
    /// A payment may be lost or late by it.
    Fail,
}

impl State {
    /// The word for people.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at, as a word.
    pub(crate) check: &'static str,
    /// How it came out.
    pub(crate) state: State,
    /// What was found, in one line. Not escaped.
    pub(crate) told: String,
    /// What helps.
    pub(crate) hint: Option<String>,
}

impl Finding {
    fn new(check: &'static str, state: State, told: impl Into<String>) -> Self {
        Self {
            check,
            state,
            told: told.into(),
            hint: None,
        }
    }

    pub(crate) fn ok(check: &'static str, told: impl Into<String>) -> Self {
        Self::new(check, State::Ok, told)
    }

    pub(crate) fn warn(check: &'static str, told: impl Into<String>) -> Self {
        Self::new(check, State::Warn, told)
    }

    pub(crate) fn fail(check: &'static str, told: impl Into<String>) -> Self {
        Self::new(check, State::Fail, told)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What the running daemon says of itself; `None` when it cannot be asked.
pub(crate) type Told<'a> = Pin<Box<dyn Future<Output = Option<Report>> + 'a>>;

/// What is looked at.
pub(crate) struct Patient<'a> {
    /// The settings, which were loaded and so are valid.
    pub(crate) settings: &'a Settings,
    /// The state directory.
    pub(crate) state_dir: &'a Path,
    /// The service, when its address is set and usable.
    pub(crate) client: Option<&'a Client>,
    /// The systemd unit whose sandbox is held against what scripts need.
    pub(crate) unit: &'a str,
    /// What `tilld status` shows, when there is a ledger that this user may read.
    pub(crate) report: Option<&'a Report>,
    /// Asks the daemon over its control socket.
    pub(crate) ask_daemon: &'a dyn Fn() -> Told<'a>,
}

/// Looks at all of it, in the order a payment goes.
pub(crate) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let Patient {
        settings,
        state_dir,
        ..
    } = patient;
    let opened = Ledger::open_reader(state_dir);
    let mut findings = vec![daemon(patient, opened.as_ref().err())];
    let gone = opened
        .as_ref()
        .err()
        .filter(|error| matches!(error, OpenError::Gone { .. }));
    let gone = gone.map(ToString::to_string);
    let reader = opened.ok();
    findings.extend(alerts::look(patient));
    findings.extend(service::look(patient).await);
    findings.extend(address::look(settings));
    let user = user::of(state_dir);
    findings.extend(certificate::own(settings, &user));
    findings.extend(public::look(patient, reader.as_ref()).await);
    findings.extend(hooks::look(settings, &user));
    findings.extend(files::look(settings, state_dir, (reader.as_ref(), gone)).await);
    findings.extend(unit::look(settings, patient.unit));
    findings
}

/// For whom nothing can be seen.
const ASK_AS: &str = "ask as the user tilld runs as, or as root";

/// Whether somebody is there to hear and to ask.
fn daemon(patient: &Patient<'_>, unopened: Option<&OpenError>) -> Finding {
    const CHECK: &str = "daemon";
    let state_dir = patient.state_dir;
    let needs = patient.report.map_or(&[][..], |report| &report.needs);
    if is_served(state_dir) {
        return match needs.iter().find(|need| need.reason == Reason::Daemon) {
            Some(need) => Finding::fail(CHECK, &*need.told).hint(need.advice.join("; ")),
            None => Finding::ok(CHECK, "it runs"),
        };
    }
    if let Err(error) = state_dir.join(FILE_NAME).try_exists() {
        let told = format!(
            "whether one runs cannot be seen: `{}`: {error}",
            state_dir.display()
        );
        return Finding::warn(CHECK, told).hint(ASK_AS);
    }
    if matches!(unopened, Some(OpenError::Absent { .. })) {
        return Finding::warn(CHECK, "none ever ran here: there is no ledger yet")
            .hint("`tilld serve` starts one");
    }
    Finding::fail(
        CHECK,
        "none runs, so no notification is heard and nothing is asked",
    )
    .hint("`systemctl start tilld`, or `tilld serve`, starts one")
}
