//! How everything stands: the one report that `tilld status`, the alarms, the page and the control socket show. Relies on the
//! ledger and the settings alone; what another process knows comes in before it is built. Promises to read no secret, and no
//! table that grows, so it is quick with a million invoices.

mod certificate;
mod login;
pub(crate) mod measures;
mod needs;
mod outside;
mod polling;
mod reason;
mod report;
mod resources;
mod restored;
mod storage;
mod unsorted;

use std::path::Path;

use crate::clock::wall_ms;
use crate::config::Settings;
use crate::ledger::{Overview, ReadError, Reader};
use crate::poller::standing;

pub(crate) use crate::poller::standing::LoginState;
pub(crate) use login::StoredLogin;
pub(crate) use outside::Sight;
pub(crate) use polling::Polling;
pub(crate) use reason::{Need, Reason};
#[cfg(test)]
pub(crate) use report::tests;
pub(crate) use report::{Around, Due, Report, UnderAttention};
pub(crate) use restored::{Polled, Restored};
pub(crate) use storage::{LOW_BYTES, LOW_INODES, Storage};

/// Refusals are counted over this time: a day.
const REFUSALS_FOR_MS: i64 = 86_400_000;

/// What the caller knows beside ledger and settings. By default nothing: the login is the owner's alone to know.
#[derive(Debug, Default)]
pub(crate) struct FromCaller {
    /// Where the access token is stored.
    pub(crate) login: StoredLogin,
    /// When it was stored, milliseconds since 1970.
    pub(crate) login_stored_ms: Option<i64>,
    /// What the daemon says of the ledger's file and disk, where another process builds the report.
    pub(crate) storage: Vec<UnderAttention>,
    /// What the daemon says of itself.
    pub(crate) daemon: Vec<Need>,
    /// Whether it answers; `None` where nobody tried, or this user may not connect.
    pub(crate) answers: Option<Result<(), String>>,
    /// How files, disk and machine are looked at.
    pub(crate) sight: Sight,
}

/// Builds the report.
pub(crate) async fn look(
    reader: &Reader,
    settings: &Settings,
    state_dir: &Path,
    caller: FromCaller,
) -> Result<Report, ReadError> {
    let (_overview, report) = survey(reader, settings, state_dir, caller).await?;
    Ok(report)
}

/// As [`look`], with what the ledger said.
pub(crate) async fn survey(
    reader: &Reader,
    settings: &Settings,
    state_dir: &Path,
    caller: FromCaller,
) -> Result<(Overview, Report), ReadError> {
    let now_ms = wall_ms();
    let overview = reader
        .overview(now_ms, now_ms.saturating_sub(REFUSALS_FOR_MS))
        .await?;
    let standing = reader.fact(&standing::FACT).await?;
    let outside = caller.sight.look(settings, state_dir).await;
    let mut caller = caller;
    caller.daemon.extend(outside.process.iter().cloned());
    let around = Around {
        now_ms,
        daemon_running: outside.daemon_running,
        ledger: outside.ledger.clone(),
        storage: Storage {
            disk: outside.disk.clone(),
            readers: outside.readers.clone(),
            health: reader.health(),
        },
        files: outside.files.clone(),
        caller,
        standing,
    };
    let report = Report::new(&overview, settings, around);
    Ok((overview, report))
}
