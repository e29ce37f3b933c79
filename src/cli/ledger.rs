//! How commands come to the ledger: to write it as its owner, or only to read it.

use std::path::Path;
use std::time::Duration;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{escape, talk};
use super::owner;
use crate::config::Settings;
use crate::ledger::{Ledger, OpenError, Reader, StoreError, apart, is_served, kept, was_served};
use crate::parts;

/// How long a command waits for its last change to be stored; it was answered already.
pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Opens the ledger for writing, once it is sure that this user may.
pub(super) fn open(context: &Context) -> Result<Ledger, Failure> {
    let state_dir = context.state_dir()?;
    owner::check(&state_dir)?;
    refuse_beside_an_older(&state_dir)?;
    let options = parts::command_ledger_options(context.settings()?, state_dir)
        .map_err(|error| Failure::new(Exit::Config, error))?;
    let ledger = Ledger::open(options)?;
    match ledger.restored() {
        None => {}
        Some(0) => talk("the ledger was restored; nothing waited in it"),
        Some(held) => talk(&format!(
            "the ledger was restored; held of what waited in it: {held}, `tilld delivery list --state held` shows them"
        )),
    }
    Ok(ledger)
}

/// The same for what decides something, such as what an invoice amounts to and which hooks are owed it: that goes by what the daemon
/// serves by, and where the settings of this command say something else, it is told.
pub(super) fn open_to_decide(context: &Context) -> Result<Ledger, Failure> {
    let ledger = open(context)?;
    let unknown = |error| Failure::new(Exit::Config, error);
    let own = parts::rules(context.settings()?).map_err(unknown)?;
    let builtin = parts::rules(&Settings::default()).map_err(unknown)?;
    let file = context.config_file()?;
    let whose = file.map_or_else(
        || "this command's settings".to_owned(),
        |file| format!("`{}`", escape(&file.display().to_string())),
    );
    match ledger.overruled() {
        None => talk(&format!(
            "no daemon has served this ledger yet: {whose} decides what is paid and which hooks are owed"
        )),
        // Settings that say nothing of it contradict nothing.
        Some(keys) if !keys.is_empty() && !apart(&own, &builtin).is_empty() => {
            let keys = keys.join("`, `");
            talk(&format!(
                "the daemon serves by other `{keys}` than {whose}: what it serves by is used"
            ));
        }
        Some(_) => {}
    }
    Ok(ledger)
}

/// A daemon of an earlier version would not find in a ledger brought up to date what it asks for by name, and what it wrote
/// there would lack what the new one relies on. Its restart brings the ledger up to date.
fn refuse_beside_an_older(state_dir: &Path) -> Result<(), Failure> {
    if !is_served(state_dir) {
        return Ok(());
    }
    match Ledger::open_reader(state_dir) {
        Err(older @ OpenError::Older { .. }) => Err(older.into()),
        // Whatever else is the matter, opening it for writing says so.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Opens the ledger for reading only: as the owner, or as a member of the reader group. Root, who is neither, is to say which
/// ledger is meant, or to become its owner, for whom the hints of what is read hold as well.
pub(super) fn open_reader(context: &Context) -> Result<Reader, Failure> {
    if rustix::process::geteuid().is_root() {
        context.check_unsaid()?;
    }
    let state_dir = context.state_dir()?;
    Ledger::open_reader(&state_dir).map_err(|error| match &error {
        OpenError::Unreadable { source, .. } => {
            let hint = owner::reader_hint(&state_dir, source);
            Failure::new(Exit::Ownership, error).hint(hint)
        }
        _ => error.into(),
    })
}

/// True of trouble that is over some day without anybody's touching the ledger: another program's lock, and a disk that has no
/// room or takes no writes. A file that is no ledger, or of the wrong owner, is none, however much room there is.
fn passes(ledger: &Path, trouble: &StoreError) -> bool {
    /// Less is none: the log's index alone takes 32 KiB.
    const ROOM: u64 = 256 * 1024;
    let disk = || rustix::fs::statvfs(ledger.parent().unwrap_or(ledger)).ok();
    match trouble {
        StoreError::Busy | StoreError::Full | StoreError::LogFull => true,
        StoreError::Io(_) | StoreError::ReadOnly(_) => disk().is_some_and(|disk| {
            disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM
                || disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY)
        }),
        StoreError::Moved(_) | StoreError::Corrupt(_) | StoreError::Refused(_) => false,
    }
}

/// What helps against a disk that takes nothing.
pub(super) const DISK: &str =
    "make room on the disk, or mount it writable; started anew, tilld goes on";

/// True of an error that says nothing of whose the file is: the disk is full or mounted read-only.
pub(super) fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | ReadOnlyFilesystem
    )
}

/// What puts back most of a ledger.
fn put_back(kept: Option<&Path>) -> String {
    let newest = "put the newest backup in its place with `tilld db restore FILE`";
    kept.map_or_else(
        || newest.to_owned(),
        |kept| {
            format!(
                "{newest}; `{}` was kept when the daemon ended",
                escape(&kept.display().to_string())
            )
        },
    )
}

/// What puts back all of it.
fn put_kept_back(kept: &Path) -> String {
    let kept = kept.display().to_string();
    format!(
        "put the kept copy back with `tilld db restore {}`; to serve this ledger all the same, move that copy to another \
         directory; nothing was changed",
        escape(&kept)
    )
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        if error.said_by_system().is_some_and(is_passing) {
            return Self::new(Exit::Error, error).hint(DISK);
        }
        let (exit, hint) = match &error {
            OpenError::Directory { .. } => (
                Exit::Ownership,
                "make the state directory and give it to the user tilld runs as, or name another one with `state_dir`",
            ),
            OpenError::Unreadable { .. } => (
                Exit::Ownership,
                "run the command as the state directory's owner, or as a member of its group",
            ),
            OpenError::Key(_) => (
                Exit::Ownership,
                "the key file belongs to tilld's user alone (0600); without it the notify tokens in the ledger cannot be read",
            ),
            // What passes by itself: whoever is started anew finds it gone (A26).
            OpenError::File { path, source } if passes(path, source) => {
                let remedy = match source {
                    StoreError::Io(_) | StoreError::ReadOnly(_) => DISK.to_owned(),
                    StoreError::Busy
                    | StoreError::Full
                    | StoreError::LogFull
                    | StoreError::Moved(_)
                    | StoreError::Corrupt(_)
                    | StoreError::Refused(_) => source.remedy(path),
                };
                return Self::new(Exit::Error, error).hint(remedy);
            }
            OpenError::File {
                path,
                source: source @ StoreError::Moved(_),
            } => {
                let remedy = source.remedy(path);
                return Self::new(Exit::Ledger, error).hint(remedy);
            }
            OpenError::File { .. } => (
                Exit::Ledger,
                "look at the file, its owner and the disk; nothing was changed",
            ),
            // What lay there before matters more than what was found.
            OpenError::Foreign { path, .. } if was_served(path) => {
                let hint = format!("{}; nothing was changed", put_back(kept(path).as_deref()));
                return Self::new(Exit::Ledger, error).hint(hint);
            }
            OpenError::Foreign { .. } => (
                Exit::Ledger,
                "move the file away, or name another directory with `state_dir`; it was left untouched",
            ),
            OpenError::StrayLog { .. } => (
                Exit::Ledger,
                "put the backup back with `tilld db restore FILE`: the log beside it, applied to this file, would destroy it; \
                 nothing was changed",
            ),
            OpenError::Newer { .. } => (
                Exit::Ledger,
                "run the newer tilld, or restore a backup this one made; the file was left untouched",
            ),
            OpenError::Older { .. } => (
                Exit::Ledger,
                "restart `tilld serve` with this version: it brings the ledger up to date",
            ),
            OpenError::Gone { kept, .. } => {
                let begin = "to begin with an empty ledger, remove `ledger.mark` and the kept copies beside it";
                let hint = format!("{}; {begin}", put_back(kept.as_deref()));
                return Self::new(Exit::Ledger, error).hint(hint);
            }
            OpenError::Behind { kept, .. } => {
                let hint = put_kept_back(kept);
                return Self::new(Exit::Ledger, error).hint(hint);
            }
            OpenError::Mixed { kept, .. } => {
                let hint = format!("{}; nothing was changed", put_back(kept.as_deref()));
                return Self::new(Exit::Ledger, error).hint(hint);
            }
            OpenError::Absent { .. } => (
                Exit::NotFound,
                "it is made by the first `tilld invoice create` or `tilld serve`; check `state_dir`",
            ),
            OpenError::Rights(wrong) => {
                let remedy = wrong.remedy();
                return Self::new(Exit::Ownership, error).hint(remedy);
            }
            OpenError::Network { .. } => (
                Exit::Ledger,
                "a log shared over a network damages the ledger: name a directory on a disk of this machine with `state_dir`; \
                 if you know that no other machine opens it, `tilld serve --i-know`, or `ledger.network = true`",
            ),
            OpenError::MountedAlone { .. } => (
                Exit::Ledger,
                "mount the directory, not the file: the newest commits are in the log beside it",
            ),
            OpenError::OldSqlite { .. } => {
                (Exit::Ledger, "build tilld with the SQLite it brings along")
            }
            OpenError::Thread(_) => (Exit::Error, "the machine has no room for another thread"),
        };
        Self::new(exit, error).hint(hint)
    }
}
