//! Whose the state directory is. A command that would write it, or read its secrets, as somebody else leaves files behind
//! that the daemon cannot read: it stops before any request and names the line that works (design 5; A44).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::failure::{Exit, Failure};
use crate::answer::account::Account;
use crate::answer::argv;

/// Whoever runs the command is not the owner of the state directory.
#[derive(Debug, thiserror::Error)]
#[error("`{}` belongs to {owner}, this command runs as {runner}", path.display())]
pub(super) struct OtherOwner {
    path: PathBuf,
    owner: Account,
    runner: Account,
}

impl OtherOwner {
    /// The way out, for the `hint:` line: this command again, as the owner.
    fn hint(&self, command: &str) -> String {
        format!("run `sudo -u {} {command}`", self.owner.for_sudo())
    }

    /// The ways out for somebody who only wants to read. `group` is the state directory's, where it has one to join.
    fn reader_hint(&self, command: &str, group: Option<&str>) -> String {
        let hint = self.hint(command);
        match (group, self.runner.name()) {
            (Some(group), Some(runner)) => format!(
                "{hint}, or let `{runner}` read the ledger at all times: `sudo usermod -aG {group} {runner}`, then log in anew"
            ),
            _ => hint,
        }
    }
}

impl From<OtherOwner> for Failure {
    fn from(error: OtherOwner) -> Self {
        let hint = error.hint(&argv::again());
        Self::new(Exit::Ownership, error).hint(hint)
    }
}

/// The way out for a reader whom the system lets not come to the ledger in `state_dir`.
pub(super) fn reader_hint(state_dir: &Path, cause: &io::Error) -> String {
    if cause.kind() != io::ErrorKind::PermissionDenied {
        return "name the directory the ledger lies in with `--state-dir` or `state_dir`"
            .to_owned();
    }
    match check(state_dir) {
        Err(other) => other.reader_hint(&argv::again(), reader_group(state_dir).as_deref()),
        Ok(()) => format!(
            "this user must be able to enter `{}` and to read the ledger there: look at their owners and modes",
            state_dir.display()
        ),
    }
}

/// The way out for whoever may not connect to a socket: its group, where it has one to join.
pub(super) fn client_hint(socket: &Path) -> Option<String> {
    let group = reader_group(socket)?;
    let runner = Account::runner();
    let name = runner.for_sudo();
    Some(format!(
        "let {runner} use the control socket: `sudo usermod -aG {group} {name}`, then log in anew"
    ))
}

/// The group that a file or directory is open to, but never root's.
fn reader_group(path: &Path) -> Option<String> {
    let group = fs::metadata(path).ok()?.gid();
    let groups = fs::read_to_string("/etc/group").ok()?;
    let named = Account::find(group, &groups);
    let name = named.name().filter(|_name| group != 0);
    name.map(str::to_owned)
}

/// True when there is a ledger in the state directory, and all there belongs to whoever runs the command.
pub(super) fn owns_ledger(state_dir: &Path) -> bool {
    state_dir.join(crate::ledger::FILE_NAME).exists() && check(state_dir).is_ok()
}

/// Refuses to go on when the state directory exists and belongs to somebody else, root too.
pub(super) fn check(state_dir: &Path) -> Result<(), OtherOwner> {
    // One that is not there, is no directory, or may not be looked at, is for the step that needs it to report.
    let Ok(found) = fs::metadata(state_dir) else {
        return Ok(());
    };
    if !found.is_dir() {
        return Ok(());
    }
    judge(state_dir, found.uid(), rustix::process::geteuid().as_raw())
}

fn judge(path: &Path, owner: u32, runner: u32) -> Result<(), OtherOwner> {
    if owner == runner {
        return Ok(());
    }
    Err(OtherOwner {
        path: path.to_owned(),
        owner: Account::user(owner),
        runner: Account::user(runner),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_alone_may_go_on_and_others_are_told_how() {
        let path = Path::new("/var/lib/tilld");
        assert!(judge(path, 0, 0).is_ok());
        assert!(judge(path, 4_000_000_001, 4_000_000_001).is_ok());
        let refused = judge(path, 4_000_000_001, 0).expect_err("root is not the owner");
        assert_eq!(
            refused.to_string(),
            "`/var/lib/tilld` belongs to user 4000000001, this command runs as `root`"
        );
        assert_eq!(
            refused.hint("tilld --config a login"),
            "run `sudo -u '#4000000001' tilld --config a login`"
        );
        let hint = refused.reader_hint("tilld invoice list", Some("tilld"));
        assert!(
            hint.ends_with("`sudo usermod -aG tilld root`, then log in anew"),
            "{hint}"
        );
        let hint = refused.reader_hint("tilld invoice list", None);
        assert_eq!(
            hint, "run `sudo -u '#4000000001' tilld invoice list`",
            "no group to join"
        );
    }
}
