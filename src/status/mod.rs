//! How everything stands: the one report that `tilld status`, the alarms, the page and the control socket show. Relies on the
//! ledger and the settings alone; what another process knows comes in before it is built. Promises to read no secret, and no
//! table that grows, so it is quick with a million invoices.

mod certificate;
mod login;
pub(crate) mod measures;
mod needs;
mod polling;
mod reason;
mod report;
mod resources;
mod restored;
mod storage;
mod unsorted;

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::clock::wall_ms;
use crate::config::Settings;
use crate::hook::exposed;
use crate::ledger::{FILE_NAME, Overview, ReadError, Reader, holders, is_served};
use crate::poller::standing;

pub(crate) use crate::poller::standing::LoginState;
pub(crate) use login::StoredLogin;
pub(crate) use polling::Polling;
pub(crate) use reason::{Need, Reason};
#[cfg(test)]
pub(crate) use report::tests;
pub(crate) use report::{Around, Due, LedgerFile, Report, UnderAttention};
pub(crate) use resources::of_this_process;
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
    let around = Around {
        now_ms,
        daemon_running: is_served(state_dir),
        ledger: file(state_dir),
        storage: storage(reader, state_dir),
        files: files(settings, runs_as(state_dir)),
        caller,
        standing,
    };
    let report = Report::new(&overview, settings, around);
    Ok((overview, report))
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

/// What is wrong with what lies in the operator's files.
fn files(settings: &Settings, (user, owns): (u32, bool)) -> Vec<Need> {
    let hooks = settings.every_hook().into_iter();
    let exposed = hooks
        .chain(settings.attention.program())
        .filter_map(|hook| {
            let (program, args) = hook.run.split_first()?;
            let exposed = exposed::of_run(Path::new(program), args, user)?;
            let help = exposed.remedy(user);
            Some(Need::hook_exposed(&hook.name, &exposed.to_string(), help))
        });
    let certificate = certificate::look(&settings.listener, (user, owns));
    exposed.chain(certificate).collect()
}

/// The user tilld runs as, and whether it is whoever asks.
fn runs_as(state_dir: &Path) -> (u32, bool) {
    let own = rustix::process::geteuid().as_raw();
    let owner = std::fs::metadata(state_dir).map(|about| about.uid());
    (
        *owner.as_ref().unwrap_or(&own),
        owner.is_ok_and(|owner| owner == own),
    )
}

/// What the file lies on, and how its writer fares.
fn storage(reader: &Reader, state_dir: &Path) -> Storage {
    // What cannot be asked needs nobody.
    let disk = rustix::fs::statvfs(state_dir).ok();
    Storage {
        free_bytes: disk
            .as_ref()
            .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        // A file system that makes inodes as it needs them has none to count.
        free_inodes: disk
            .as_ref()
            .filter(|disk| disk.f_files > 0)
            .map(|disk| disk.f_favail),
        read_only: disk
            .is_some_and(|disk| disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY)),
        readers: holders(&state_dir.join(FILE_NAME)),
        health: reader.health(),
    }
}
