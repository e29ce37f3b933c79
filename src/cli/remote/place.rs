//! Where the daemon's socket may be. Looks only whether the ledger that is meant is another one.

use std::path::{Path, PathBuf};

use super::super::context::Whereabouts;
use super::super::units;
use crate::daemon::control;
use crate::ledger::{FILE_NAME, is_served};

/// As many invoices as a daemon gives at once.
pub(in super::super) const MOST_INVOICES: u32 = 1_000;

/// The sockets to try, the likeliest first.
pub(super) fn places(known: &Whereabouts) -> Vec<PathBuf> {
    let is_another = known
        .state_dir
        .as_deref()
        // The unit's daemon may be started by its socket.
        .filter(|state_dir| *state_dir != Path::new(units::STATE_DIR))
        .is_some_and(|state_dir| has_ledger(state_dir) && !is_served(state_dir));
    judge(known, is_another)
}

/// A user's own ledger, which no daemon serves, is not the one of the daemon that the machine runs.
///
/// A directory that may not be looked into counts as none. `/var/lib/tilld`, when settings that everybody may read name it, is
/// closed to every client, and taking that for a ledger of their own would keep them all from the unit's socket. A directory
/// in the own home that is closed to its user looks just the same from here.
fn has_ledger(state_dir: &Path) -> bool {
    state_dir.join(FILE_NAME).exists()
}

fn judge(known: &Whereabouts, is_another: bool) -> Vec<PathBuf> {
    if let Some(socket) = &known.socket {
        return vec![socket.clone()];
    }
    let beside = known.state_dir.as_deref();
    let mut places: Vec<PathBuf> = beside
        .map(|dir| dir.join(control::FILE))
        .into_iter()
        .collect();
    if !known.is_told && !is_another {
        places.push(PathBuf::from(units::SOCKET));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_socket_is_tried_only_when_nothing_else_is_meant() {
        let known = |socket: Option<&str>, state_dir: Option<&str>, is_told| Whereabouts {
            socket: socket.map(PathBuf::from),
            state_dir: state_dir.map(PathBuf::from),
            is_told,
        };
        let own = "/home/me/.local/state/tilld/control.sock";
        for (known, is_another, wanted) in [
            (
                known(Some("/a.sock"), Some("/s"), false),
                false,
                vec!["/a.sock"],
            ),
            (
                known(Some("/a.sock"), Some("/s"), true),
                true,
                vec!["/a.sock"],
            ),
            (
                known(None, Some("/s"), true),
                false,
                vec!["/s/control.sock"],
            ),
            (known(None, None, true), false, vec![]),
            (
                known(None, Some("/home/me/.local/state/tilld"), false),
                false,
                vec![own, units::SOCKET],
            ),
            (
                known(None, Some("/home/me/.local/state/tilld"), false),
                true,
                vec![own],
            ),
            (known(None, None, false), false, vec![units::SOCKET]),
        ] {
            let wanted: Vec<PathBuf> = wanted.into_iter().map(PathBuf::from).collect();
            assert_eq!(judge(&known, is_another), wanted, "{known:?} {is_another}");
        }
    }
}
