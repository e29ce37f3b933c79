//! `tilld status`: how everything stands, and what needs a person. Reads no big table and no secret, so it is quick with a
//! million invoices, and the reader group may use it; what only the owner may know is left out for others.

mod people;

use std::path::Path;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::print_json;
use super::remote::{self, Way};
use super::{ledger, owner, whoami};
use crate::client::credentials::Store;
use crate::ledger::is_served;
use crate::status::{self, FromCaller, Reason, Report, StoredLogin, UnderAttention};

/// The ends a script must tell apart.
pub(super) const ENDS: &str = "Exit codes: 0 all clear, 3 there is no ledger yet, 16 something needs attention: no daemon runs,
an invoice needs attention, a delivery is held or missing, was given up by the schedule or waits for a hook that is not configured,
a status name is not mapped, a login that polling needs is missing or refused, notifications do not arrive, or the
ledger's file or disk is in trouble";

/// How long the daemon is waited for, when all else is known already.
const DAEMON_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

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

async fn look(context: &Context) -> Result<Report, Failure> {
    let state_dir = context.state_dir()?;
    let settings = context.settings()?;
    let reader = ledger::open_reader(context)?;
    let caller = FromCaller {
        login: login(context, &state_dir),
        login_stored_ms: login_stored_ms(&state_dir),
        storage: storage_of_daemon(context, &state_dir).await,
    };
    Ok(status::look(&reader, settings, &state_dir, caller).await?)
}

/// What the daemon alone knows: that it cannot store. One that does not answer shows in everything else.
async fn storage_of_daemon(context: &Context, state_dir: &Path) -> Vec<UnderAttention> {
    if !is_served(state_dir) {
        return Vec::new();
    }
    let report = told_by_daemon(context).await;
    let mut all = report.map_or_else(Vec::new, |report| report.attention);
    all.retain(|of| !matches!(of.reason, Reason::Invoice(_)));
    all
}

/// What the daemon says of itself; `None` when it cannot be asked, or does not answer soon.
pub(super) async fn told_by_daemon(context: &Context) -> Option<Report> {
    let Ok(Way::Socket(remote)) = remote::way(context).await else {
        return None;
    };
    let asked = tokio::time::timeout(DAEMON_WITHIN, remote.status()).await;
    asked.ok()?.ok()
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
