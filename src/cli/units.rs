//! The tilld that this machine runs as a system service: where the unit has it, and when it is the one that is meant although
//! nobody says so.
//!
//! The shop's user may read the unit's config, which need not name the state directory, since systemd does. Taking their own
//! directory instead would open a ledger and a login beside the daemon's: the same order would get two invoices. Promises that
//! whoever says nothing on such a machine means the unit's tilld, its owner too, so that `sudo -u tilld tilld login` is the
//! whole line.

use std::path::{Path, PathBuf};

use crate::config::STANDARD_FILE;
use crate::ledger::FILE_NAME;

/// Where the state directory lies of a daemon that is run by the unit: its `StateDirectory`.
pub(super) const STATE_DIR: &str = "/var/lib/tilld";
/// Where it listens: `control.sock` in its `RuntimeDirectory`.
pub(super) const SOCKET: &str = "/run/tilld/control.sock";

/// What the machine says of whose tilld is meant.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one look at the machine"
)]
struct Signs {
    /// The unit has run here.
    has_units: bool,
    /// The config of the machine is there, whether it may be read or not.
    has_standard_file: bool,
    /// There is a ledger in the state directory of this user.
    has_own_ledger: bool,
    /// There is one in the unit's, or whether there is cannot be seen.
    has_units_ledger: bool,
}

/// The unit's state directory, if it is meant where no flag, variable or setting names one. `own` is this user's.
pub(super) fn state_dir(own: Option<&Path>) -> Option<PathBuf> {
    let signs = Signs {
        has_units: Path::new(STATE_DIR).is_dir(),
        // Its directory may be closed to this user, and is there then.
        has_standard_file: Path::new(STANDARD_FILE).try_exists().unwrap_or(true),
        has_own_ledger: own.is_some_and(|own| own.join(FILE_NAME).exists()),
        has_units_ledger: Path::new(STATE_DIR)
            .join(FILE_NAME)
            .try_exists()
            .unwrap_or(true),
    };
    is_meant(signs).then(|| PathBuf::from(STATE_DIR))
}

/// A machine without the unit's directory has no daemon of the unit. On one that has it, a ledger of the user's own counts only
/// as long as there is no config of the machine, or no ledger in the unit's directory: nobody who has a ledger begins another
/// one there.
const fn is_meant(signs: Signs) -> bool {
    signs.has_units
        && (!signs.has_own_ledger || (signs.has_standard_file && signs.has_units_ledger))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_is_meant_on_its_machine_but_for_those_with_a_ledger_and_no_config() {
        for (has_units, has_standard_file, has_own_ledger, has_units_ledger, wanted) in [
            (true, true, false, true, true),
            (true, true, false, false, true),
            (true, true, true, true, true),
            (true, true, true, false, false),
            (true, false, false, false, true),
            (true, false, true, true, false),
            (false, true, false, false, false),
            (false, true, true, false, false),
            (false, false, false, false, false),
        ] {
            let signs = Signs {
                has_units,
                has_standard_file,
                has_own_ledger,
                has_units_ledger,
            };
            assert_eq!(is_meant(signs), wanted, "{signs:?}");
        }
    }
}
