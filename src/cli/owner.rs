//! Whose the state directory is. A command that would write it, or read its secrets, as somebody else leaves files behind
//! that the daemon cannot read: it stops before any request and names the line that works (design, section 5; A44).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::failure::{Exit, Failure};
use crate::answer::argv;

/// Whoever runs the command is not the owner of the state directory.
#[derive(Debug, thiserror::Error)]
#[error("`{}` belongs to {owner}, this command runs as {runner}", path.display())]
pub(super) struct OtherOwner {
    path: PathBuf,
    owner: User,
    runner: User,
}

impl OtherOwner {
    /// The way out, for the `hint:` line: this command again, as the owner.
    fn hint(&self, command: &str) -> String {
        format!("run `sudo -u {} {command}`", self.owner.for_sudo())
    }

    /// The ways out for somebody who only wants to read. `group` is the state directory's, where it has one to join.
    fn reader_hint(&self, command: &str, group: Option<&str>) -> String {
        let hint = self.hint(command);
        match (group, &self.runner.name) {
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
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let runner = User::find(rustix::process::geteuid().as_raw(), &accounts);
    let name = runner.for_sudo();
    Some(format!(
        "let {runner} use the control socket: `sudo usermod -aG {group} {name}`, then log in anew"
    ))
}

/// The group that a file or directory is open to, but never root's.
fn reader_group(path: &Path) -> Option<String> {
    let group = fs::metadata(path).ok()?.gid();
    let groups = fs::read_to_string("/etc/group").ok()?;
    let named = User::find(group, &groups).name;
    named.filter(|_name| group != 0)
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
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    Err(OtherOwner {
        path: path.to_owned(),
        owner: User::find(owner, &accounts),
        runner: User::find(runner, &accounts),
    })
}

#[derive(Debug)]
struct User {
    id: u32,
    name: Option<String>,
}

impl User {
    /// Looks the name up in the text of `/etc/passwd`, or a group's in that of `/etc/group`. Accounts from elsewhere go by their number.
    fn find(id: u32, accounts: &str) -> Self {
        let wanted = id.to_string();
        let name = accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == wanted).then(|| name.to_owned())
        });
        Self { id, name }
    }

    fn for_sudo(&self) -> String {
        // sudo takes `#1000` for a number; quoted, since a shell takes it for a comment.
        let number = || format!("'#{}'", self.id);
        self.name.clone().unwrap_or_else(number)
    }
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}`"),
            None => write!(f, "user {}", self.id),
        }
    }
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

    #[test]
    fn a_name_is_found_by_its_number() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\ntilld:x:990:990::/var/lib/tilld:/bin/false\n";
        assert_eq!(User::find(990, accounts).for_sudo(), "tilld");
        assert_eq!(User::find(99, accounts).for_sudo(), "'#99'");
    }
}
