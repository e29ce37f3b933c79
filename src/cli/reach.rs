//! Whether the members of `control.group` come as far as the control socket: a directory on the way that they may not enter shuts
//! them out, whatever the socket's own group and mode. Looks only; a daemon that its owner alone can ask serves all the same.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::units;
use crate::config::Settings;
use crate::daemon::control;

/// The state directory's mode as it is made: its own group and nobody else.
const MADE: u32 = 0o750;

/// What shuts the clients out, and the way out, in one line for whoever starts the daemon.
pub(super) fn trouble(settings: &Settings, state_dir: &Path) -> Option<String> {
    let name = settings.control.group.as_deref()?;
    // A group that is not there is an error of its own.
    let group = control::group(name).ok()??;
    let runtime = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    // Looked at by hand, without what systemd says: the unit has it.
    let by_hand = state_dir == Path::new(units::STATE_DIR) && runtime.is_none();
    if by_hand && settings.control.socket.is_none() {
        return None;
    }
    let socket = control::path(settings, state_dir, runtime.as_deref());
    let closed = socket.ancestors().skip(1).find(|directory| {
        let entered = match fs::metadata(directory) {
            Ok(found) => may_enter(found.mode(), found.gid() == group),
            // It is still to be made.
            Err(_) if *directory == state_dir => {
                may_enter(MADE, rustix::process::getegid().as_raw() == group)
            }
            // It is for the start to say.
            Err(_) => true,
        };
        !entered
    })?;
    Some(format!(
        "members of `{name}` cannot connect to `{}`, as they may not enter `{}`: set `control.socket` to a path in a directory \
         that the group may enter, such as `/run/tilld/control.sock`",
        socket.display(),
        closed.display()
    ))
}

const fn may_enter(mode: u32, is_groups: bool) -> bool {
    let bit = if is_groups { 0o010 } else { 0o001 };
    mode & bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_entered_by_its_group_or_by_all() {
        for (mode, is_groups, wanted) in [
            (0o750, true, true),
            (0o750, false, false),
            (0o755, false, true),
            (0o701, true, false),
            (0o701, false, true),
            (0o700, true, false),
        ] {
            assert_eq!(may_enter(mode, is_groups), wanted, "{mode:o} {is_groups}");
        }
    }
}
