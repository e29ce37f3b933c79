//! `tilld status`: how everything stands, and what needs a person. Reads no big table and no secret, so it is quick with a
//! million invoices, and the reader group may use it; what only the owner may know is left out for others.

mod people;
mod polling;
mod report;

use std::path::Path;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::print_json;
use super::{ledger, owner, whoami};
use crate::client::credentials::Store;
use crate::clock::wall_ms;
use crate::daemon::is_served;
use crate::ledger::FILE_NAME;
use crate::poller::standing::{self, Standing};
use report::{LedgerFile, Login, Report};

/// The ends a script must tell apart.
pub(super) const ENDS: &str = "Exit codes: 0 nothing needs a person, 3 there is no ledger yet, 16 something needs a person: an invoice
under attention, a delivery that is held, was given up or has no hook, a status name that stands on no list, a login that
polling needs, a log that cannot be moved into the ledger's file";

/// Refusals are counted over this time: a day.
const REFUSALS_FOR_MS: i64 = 86_400_000;

/// Flags of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `status`.
pub(super) async fn run(_args: Args, context: Context) -> Result<Exit, Failure> {
    let state_dir = context.state_dir()?;
    let settings = context.settings()?;
    let reader = ledger::open_reader(&context)?;
    let now_ms = wall_ms();
    let overview = reader
        .overview(now_ms, now_ms.saturating_sub(REFUSALS_FOR_MS))
        .await?;
    let standing = reader.meta(standing::FACT).await?;
    let report = Report::new(
        &overview,
        settings,
        report::Around {
            now_ms,
            daemon_running: is_served(&state_dir),
            ledger: file(&state_dir),
            login: login(&context, &state_dir),
            login_stored_ms: login_stored_ms(&state_dir),
            standing: standing.as_deref().and_then(Standing::from_json),
        },
    );
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

/// Asked about, never opened: SQLite's locks go with the first descriptor that is closed.
fn file(state_dir: &Path) -> LedgerFile {
    let path = state_dir.join(FILE_NAME);
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    // One that vanished, or was never there, takes no room.
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.len());
    LedgerFile {
        bytes: bytes(&path),
        wal_bytes: bytes(Path::new(&log)),
        path: path.display().to_string(),
        wal_held_since: None,
    }
}

/// The login, for whoever may look at it.
fn login(context: &Context, state_dir: &Path) -> Login {
    if owner::check(state_dir).is_err() {
        return Login::Hidden;
    }
    match whoami::identify(context) {
        Ok(Some(identity)) => Login::Stored {
            source: whoami::word(identity.source),
            stored_in: identity.place,
            shop_name: identity.login.map(|login| login.shop_name),
        },
        Ok(None) => Login::None,
        // `whoami` says why; all else here is still worth knowing.
        Err(_told_there) => Login::Unreadable,
    }
}

/// When the login was stored that the daemon looks for, whatever `SERVICE_TOKEN` says to commands.
fn login_stored_ms(state_dir: &Path) -> Option<i64> {
    owner::check(state_dir).ok()?;
    // What cannot be read is told by the line of the login.
    let stored = Store::new(state_dir).load().ok().flatten()?;
    Some(stored.stored_ms)
}
