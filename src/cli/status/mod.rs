//! `tilld status`: how everything stands, and what needs a person. Reads no big table and no secret, so it is quick with a
//! million invoices, and the reader group may use it; what only the owner may know is left out for others.

mod people;

use std::path::Path;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::print_json;
use super::remote::{self, NoAnswer, Remote, Way, is_denied};
use super::{ledger, owner, whoami};
use crate::client::credentials::Store;
use crate::ledger::{is_served, served_on};
use crate::status::{self, FromCaller, Reason, Report, Sight, StoredLogin};
use crate::telemetry::chain;

/// The ends a script must tell apart.
pub(super) const ENDS: &str = "Exit codes: 0 all clear, 3 there is no ledger yet, 16 something needs attention: no daemon runs,
an invoice needs attention, a delivery is held or missing, was given up by the schedule or waits for a hook that is not configured,
a status name is not mapped, a login that polling needs is missing or refused, notifications do not arrive, or the
ledger's file or disk is in trouble";

/// Flags of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `status`.
pub(super) async fn run(_args: Args, context: Context) -> Result<Exit, Failure> {
    // The owner may know of the login too, which a daemon tells nobody.
    let way = if context.socket().is_none() && is_owner(&context) {
        Way::owners()
    } else {
        remote::way(&context).await?
    };
    let report = match &way {
        Way::Socket(remote) => remote.status().await?,
        Way::Direct(denied) => denied.explain(look(&context).await)?,
    };
    if context.output.json() {
        print_json(&report)?;
    } else {
        people::print(context.output, &report)?;
    }
    Ok(if report.needs_person {
        Exit::Attention
    } else {
        Exit::Ok
    })
}

/// How everything stands, as far as this user may know.
pub(super) async fn look(context: &Context) -> Result<Report, Failure> {
    let state_dir = context.state_dir()?;
    let settings = context.settings()?;
    let reader = ledger::open_reader(context)?;
    let (said, answers) = match ask_daemon(context, &state_dir).await {
        Said::Report(report) => (Some(*report), Some(Ok(()))),
        Said::Unreadable => (None, Some(Ok(()))),
        Said::Nothing(why) => (None, Some(Err(why))),
        Said::Unknown => (None, None),
    };
    let (mut storage, mut daemon) =
        said.map_or_else(Default::default, |said| (said.attention, said.needs));
    storage.retain(|of| !matches!(of.reason, Reason::Invoice(_)));
    daemon.retain(|need| {
        matches!(
            need.reason,
            Reason::Daemon
                | Reason::DescriptorsLow
                | Reason::ProcessesLow
                | Reason::Socket
                | Reason::StartsFail
        )
    });
    let caller = FromCaller {
        login: login(context, &state_dir),
        login_stored_ms: login_stored_ms(&state_dir),
        storage,
        daemon,
        answers,
        sight: Sight::default(),
    };
    Ok(status::look(&reader, settings, &state_dir, caller).await?)
}

/// What the daemon says of itself.
pub(super) enum Said {
    /// This.
    Report(Box<Report>),
    /// Something: it has no place just now, or is of another version.
    Unreadable,
    /// Nothing, and why.
    Nothing(String),
    /// None runs, or this user may not ask it.
    Unknown,
}

/// Asks the daemon where it said that it answers, whatever the settings of this command say.
pub(super) async fn ask_daemon(context: &Context, state_dir: &Path) -> Said {
    if !is_served(state_dir) {
        return Said::Unknown;
    }
    let said = served_on(state_dir);
    let remote = match &said {
        Some(path) => Remote::at(path),
        None => match remote::way(context).await {
            Ok(Way::Socket(remote)) => remote,
            Ok(Way::Direct(_)) | Err(_) => return Said::Unknown,
        },
    };
    match remote.status().await {
        Ok(report) => Said::Report(Box::new(report)),
        Err(NoAnswer::Busy(_) | NoAnswer::Restored { .. } | NoAnswer::Ended(_)) => Said::Unreadable,
        Err(NoAnswer::Absent { source, .. }) if is_denied(&source) => Said::Unknown,
        // It starts or ends, or its owner alone may read where it answers.
        Err(_) if said.is_none() || !is_served(state_dir) => Said::Unknown,
        Err(error) => Said::Nothing(chain(&error)),
    }
}

fn is_owner(context: &Context) -> bool {
    let state_dir = context.state_dir();
    state_dir.is_ok_and(|state_dir| owner::owns_ledger(&state_dir))
}

/// The login, for whoever may look at it.
fn login(context: &Context, state_dir: &Path) -> StoredLogin {
    if owner::check(state_dir).is_err() {
        return StoredLogin::Hidden;
    }
    match whoami::identify(context) {
        Ok(Some(identity)) => StoredLogin::Stored {
            source: whoami::word(identity.source).into(),
            stored_in: identity.place,
            shop_name: identity.login.map(|login| login.shop_name),
        },
        Ok(None) => StoredLogin::None,
        // `whoami` says why; all else here is still worth knowing.
        Err(_told_there) => StoredLogin::Unreadable,
    }
}

/// When the login was stored that the daemon looks for, whatever `SERVICE_TOKEN` says to commands.
fn login_stored_ms(state_dir: &Path) -> Option<i64> {
    owner::check(state_dir).ok()?;
    // What cannot be read is told by the line of the login.
    let stored = Store::new(state_dir).load().ok().flatten()?;
    Some(stored.stored_ms)
}
