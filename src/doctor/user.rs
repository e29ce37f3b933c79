//! The user tilld runs as: whoever the state directory belongs to, whoever asks. What this user may do with a file is judged
//! by its mode, so that a check by root says what the daemon will meet.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{Gid, Uid, User as Account, getgrouplist};

/// A user with all its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) groups: Vec<u32>,
    /// Its name, or its number.
    pub(super) name: String,
}

/// Who tilld runs as on this state directory; one that is not there yet is made by whoever starts it.
pub(super) fn of(state_dir: &Path) -> User {
    let (uid, gid) = fs::metadata(state_dir).map_or_else(
        |_none| {
            let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
            (uid.as_raw(), gid.as_raw())
        },
        |found| (found.uid(), found.gid()),
    );
    let account = Account::from_uid(Uid::from_raw(uid)).ok().flatten();
    let Some(account) = account else {
        return User {
            uid,
            groups: vec![gid],
            name: uid.to_string(),
        };
    };
    let listed = CString::new(account.name.as_str())
        .ok()
        .and_then(|name| getgrouplist(&name, account.gid).ok());
    let mut groups: Vec<u32> = listed.into_iter().flatten().map(Gid::as_raw).collect();
    groups.push(gid);
    User {
        uid,
        groups,
        name: account.name,
    }
}

impl User {
    /// Which of read (4), write (2) and execute or enter (1) the mode leaves this user.
    pub(super) fn rights(&self, about: &Metadata) -> u32 {
        self.rights_of(about.mode(), about.uid(), about.gid())
    }

    /// The first directory above the file, from it upwards, that this user may not enter. The path is a real one.
    pub(super) fn shut_out_by<'a>(&self, real: &'a Path) -> Option<&'a Path> {
        real.ancestors().skip(1).find(|directory| {
            fs::metadata(directory).is_ok_and(|about| self.rights(&about) & 1 == 0)
        })
    }

    fn rights_of(&self, mode: u32, owner: u32, group: u32) -> u32 {
        if self.uid == 0 {
            // Root reads and writes all, and runs what anybody may.
            return 6 | u32::from(mode & 0o111 != 0);
        }
        let bits = if self.uid == owner {
            mode >> 6
        } else if self.groups.contains(&group) {
            mode >> 3
        } else {
            mode
        };
        bits & 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_class_that_fits_decides() {
        let user = |uid| User {
            uid,
            groups: vec![7],
            name: String::new(),
        };
        for (uid, mode, owner, group, rights) in [
            (5, 0o700, 5, 1, 7),
            (5, 0o077, 5, 7, 0),
            (5, 0o750, 1, 7, 5),
            (5, 0o705, 1, 7, 0),
            (5, 0o705, 1, 1, 5),
            (0, 0o600, 5, 5, 6),
            (0, 0o100, 5, 5, 7),
        ] {
            assert_eq!(
                user(uid).rights_of(mode, owner, group),
                rights,
                "{uid} {mode:o}"
            );
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_ours_to_make() {
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(of(Path::new("/no/such/directory")).uid, own);
    }
}
