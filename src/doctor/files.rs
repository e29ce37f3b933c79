//! The ledger and what lies beside it: whether the file is whole, who may read what, how long its log is, and what room the
//! disk has.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{StatVfsMountFlags, statvfs};
use tokio::time::timeout;

use super::{ASK_AS, Finding};
use crate::config::Settings;
use crate::ledger::{FILE_NAME, Reader, check_rights, is_served, kept_ahead};
use crate::status::measures::size;
use crate::status::{LOW_BYTES, LOW_INODES};
use crate::telemetry::chain;

const START: &str = "start `tilld serve` once: it makes the file, and a stop leaves it there";
const LEDGER: &str = "ledger";
const MODES: &str = "permissions";
const DISK: &str = "disk";
const INODES: &str = "inodes";
/// How long the whole file may be read for; a bigger one is left to `db check`.
const CHECKED_WITHIN: Duration = Duration::from_secs(20);
/// Room on the disk, bytes: below the first payments stop soon, as `tilld status` says too; below the second somebody should
/// look.
const ROOM_FAIL: u64 = LOW_BYTES;
const ROOM_WARN: u64 = 1_024 * 1_048_576;
/// The same of files that can be made.
const INODES_FAIL: u64 = LOW_INODES;
const INODES_WARN: u64 = 10 * LOW_INODES;

pub(super) async fn look(
    settings: &Settings,
    state_dir: &Path,
    (reader, gone): (Option<&Reader>, Option<String>),
) -> Vec<Finding> {
    let file = state_dir.join(FILE_NAME);
    let mut findings = Vec::new();
    match reader {
        Some(reader) => findings.push(whole(&file, reader).await),
        None => findings.push(unread(&file, gone)),
    }
    findings.extend(kept_ahead(state_dir).map(|kept| behind(&file, &kept)));
    findings.extend(log(&file, settings.ledger.log_attention_bytes));
    findings.extend(readable(&file));
    findings.push(modes(state_dir));
    findings.extend(disk(state_dir));
    findings
}

/// Why there is nothing to look at.
fn unread(file: &Path, gone: Option<String>) -> Finding {
    if let Some(gone) = gone {
        return Finding::fail(LEDGER, gone).hint(
            "put the newest backup in its place, as docs/backup.md says; until then nothing is recorded",
        );
    }
    match file.try_exists() {
        Ok(false) => Finding::warn(LEDGER, "there is none yet"),
        Ok(true) => Finding::fail(
            LEDGER,
            format!("`{}` could not be opened for reading", file.display()),
        )
        .hint("`tilld status` says why"),
        Err(error) => Finding::warn(
            LEDGER,
            format!("`{}` cannot be looked at: {error}", file.display()),
        )
        .hint(ASK_AS),
    }
}

/// A daemon refuses to serve it.
fn behind(file: &Path, kept: &Path) -> Finding {
    let (file, kept) = (file.display(), kept.display());
    let told = format!("`{file}` is behind `{kept}`, which was kept when the daemon ended");
    Finding::fail(LEDGER, told).hint(format!("`tilld db restore {kept}` puts it back"))
}

async fn whole(file: &Path, reader: &Reader) -> Finding {
    let bytes = fs::metadata(file).map_or(0, |about| about.len());
    let told = format!("`{}`, {}", file.display(), size(bytes));
    match timeout(CHECKED_WITHIN, reader.quick_check()).await {
        Ok(Ok(None)) => Finding::ok(LEDGER, format!("{told}, is whole")),
        Ok(Ok(Some(damage))) => Finding::fail(LEDGER, format!("{told}, is damaged: {damage}"))
            .hint("stop tilld, keep the file, and put a backup in its place (`tilld db backup` makes them)"),
        Ok(Err(error)) => Finding::fail(LEDGER, format!("{told}, could not be read: {}", chain(&error))),
        Err(_late) => Finding::warn(LEDGER, format!("{told}, is too big to be read through here")),
    }
}

fn log(file: &Path, long: u64) -> Option<Finding> {
    let mut log = file.to_owned().into_os_string();
    log.push("-wal");
    let bytes = fs::metadata(&log).ok()?.len();
    (bytes > long).then(|| {
        let told = format!("its log has {}, which is far more than usual", size(bytes));
        let hint = format!("a program may keep a read transaction open: `fuser -v {}` names those that have it open", file.display());
        Finding::warn(LEDGER, told).hint(hint)
    })
}

/// A program that may only read needs both files beside the ledger: SQLite makes them for writers alone.
fn readable(file: &Path) -> Option<Finding> {
    let about = fs::metadata(file).ok()?;
    let group_reads = |mode: u32| mode & 0o040 != 0;
    if !group_reads(about.mode()) {
        return None;
    }
    ["-wal", "-shm"].into_iter().find_map(|end| {
        let mut beside = file.to_owned().into_os_string();
        beside.push(end);
        let path = Path::new(&beside).display();
        let (text, hint) = match fs::metadata(&beside) {
            Ok(about) if group_reads(about.mode()) => return None,
            Ok(_) => ("is closed to it", format!("chmod 0640 {path}")),
            // The daemon is ending, and its next start makes them.
            Err(_) if is_served(file.parent().unwrap_or(file)) => return None,
            Err(_) => ("is missing", START.to_owned()),
        };
        let text = format!("the readers' group cannot open the ledger: `{path}` {text}");
        Some(Finding::warn(LEDGER, text).hint(hint))
    })
}

fn modes(state_dir: &Path) -> Finding {
    if let Err(error) = fs::read_dir(state_dir)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        let told = format!("`{}` cannot be looked at: {error}", state_dir.display());
        return Finding::warn(MODES, told).hint(ASK_AS);
    }
    let Ok(own) = fs::metadata(state_dir) else {
        return Finding::warn(MODES, format!("`{}` is not there yet", state_dir.display()));
    };
    if let Err(wrong) = check_rights(state_dir, own.uid()) {
        return Finding::fail(MODES, wrong.to_string()).hint(wrong.remedy());
    }
    let told = format!(
        "`{}` and what is in it are nobody else's",
        state_dir.display()
    );
    Finding::ok(MODES, told)
}

fn disk(state_dir: &Path) -> Vec<Finding> {
    let there = state_dir.ancestors().find(|path| path.exists());
    let found = there.and_then(|path| statvfs(path).ok());
    let Some(found) = found else {
        return vec![Finding::warn(DISK, "its room could not be looked at")];
    };
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        let told = "the file system of the ledger is mounted read-only";
        let hint = "mount it writable: no notification can be stored";
        return vec![Finding::fail(DISK, told).hint(hint)];
    }
    let room = found.f_bavail.saturating_mul(found.f_frsize);
    // One that makes inodes as it needs them has none to count.
    let inodes = (found.f_files > 0).then(|| judge_inodes(found.f_favail));
    [judge_room(room)].into_iter().chain(inodes).collect()
}

fn judge_inodes(free: u64) -> Finding {
    let told = format!("{free} more files (inodes) can be made where the ledger is");
    let hint = "remove small files, `df -i` counts them: each run of a script needs some";
    match free {
        0..INODES_FAIL => Finding::fail(INODES, told).hint(hint),
        INODES_FAIL..INODES_WARN => Finding::warn(INODES, told).hint(hint),
        INODES_WARN.. => Finding::ok(INODES, told),
    }
}

fn judge_room(room: u64) -> Finding {
    let told = format!("{} are free where the ledger is", size(room));
    let hint = "make room: a ledger that cannot grow takes no notification";
    match room {
        0..ROOM_FAIL => Finding::fail(DISK, told).hint(hint),
        ROOM_FAIL..ROOM_WARN => Finding::warn(DISK, told).hint(hint),
        ROOM_WARN.. => Finding::ok(DISK, told),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::State;
    use super::*;

    #[test]
    fn a_mode_that_lets_others_in_is_told_with_the_line_that_mends_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let set = |name: &str, mode| {
            let path = dir.path().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
        };
        set("", 0o750);
        fs::write(dir.path().join(FILE_NAME), "").expect("written");
        set(FILE_NAME, 0o640);
        assert_eq!(modes(dir.path()).state, State::Ok);
        for name in [FILE_NAME, "ledger.db-wal", "ledger.db-shm", "ledger.mark"] {
            fs::write(dir.path().join(name), "").expect("written");
            set(name, 0o644);
            let found = modes(dir.path());
            assert!(found.told.contains("mode 0644"), "{found:?}");
            let line = format!("`chmod 0640 {}`", dir.path().join(name).display());
            assert_eq!(found.hint, Some(line));
            set(name, 0o640);
        }
        fs::create_dir(dir.path().join("secret")).expect("made");
        set("secret", 0o700);
        fs::write(dir.path().join("secret/credentials"), "").expect("written");
        set("secret/credentials", 0o640);
        let line = dir.path().join("secret/credentials");
        let line = format!("`chmod 0600 {}`", line.display());
        assert_eq!(modes(dir.path()).hint, Some(line));
        set("secret/credentials", 0o600);
        assert_eq!(modes(dir.path()).state, State::Ok);
        set("", 0o755);
        assert_eq!(modes(dir.path()).state, State::Fail);
        assert_eq!(modes(Path::new("/no/such/directory")).state, State::Warn);
    }

    #[test]
    fn a_full_disk_is_a_failure_and_a_nearly_full_one_is_told() {
        for (room, state) in [
            (0, State::Fail),
            (ROOM_FAIL, State::Warn),
            (ROOM_WARN, State::Ok),
            (u64::MAX, State::Ok),
        ] {
            assert_eq!(judge_room(room).state, state, "{room}");
        }
        for (free, state) in [
            (0, State::Fail),
            (INODES_FAIL, State::Warn),
            (INODES_WARN, State::Ok),
        ] {
            assert_eq!(judge_inodes(free).state, state, "{free}");
        }
    }
}
