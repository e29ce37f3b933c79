//! Whether somebody else could change what a hook runs: its program, the script that an interpreter is given, and every
//! directory on the way to them. Judged as sudo judges what it runs: all of it belongs to root or to tilld's own user, and no one
//! else may write there. In a directory with the sticky bit nobody replaces what is another's, and a group without other members,
//! as Debian's `staff` of `/usr/local` is, is nobody else.
//!
//! Relies on the file system as it is now; promises that what cannot be looked at is left to the start of the program.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const ANYBODY_WRITES: u32 = 0o002;

/// What somebody else may change, and who.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    path: PathBuf,
    to: To,
}

/// Who may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    User(u32),
    Group(u32),
    Anybody,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to {
            To::User(user) => write!(f, "user {user} may change ")?,
            To::Group(group) => write!(f, "the members of group {group} may change ")?,
            To::Anybody => f.write_str("anybody may change ")?,
        }
        let path = self.path.display();
        write!(f, "`{path}`, and so what is run for a payment")
    }
}

impl std::error::Error for Exposed {}

impl Exposed {
    /// The line that puts it right. `user` is the one that tilld runs as.
    pub fn remedy(&self, user: u32) -> String {
        let path = self.path.display();
        match self.to {
            To::User(_) => format!("`chown root {path}`, or give it to tilld's user ({user})"),
            To::Group(_) => format!("`chmod g-w {path}`"),
            To::Anybody => format!("`chmod o-w {path}`"),
        }
    }
}

/// The first thing that is open to others than root and `user`. Of the arguments only the first one that names a file by its
/// absolute path is looked at: what an interpreter is given to run.
pub fn of_run(program: &Path, args: &[String], user: u32) -> Option<Exposed> {
    let script = args.iter().map(Path::new);
    let script = script
        .filter(|path| path.is_absolute())
        .find(|path| path.is_file());
    [Some(program), script]
        .into_iter()
        .flatten()
        .find_map(|file| of_file(file, user))
}

/// The same of one file.
pub fn of_file(file: &Path, user: u32) -> Option<Exposed> {
    let mut judged: Vec<PathBuf> = Vec::new();
    // Each part by itself: a link lies in another directory than what it leads to.
    for part in file.ancestors() {
        let Ok(real) = part.canonicalize() else {
            continue;
        };
        for path in real.ancestors() {
            if judged.iter().any(|known| known == path) {
                continue;
            }
            judged.push(path.to_owned());
            let about = fs::metadata(path).ok();
            if let Some(to) = about.and_then(|about| open_to(&about, user)) {
                let path = path.to_owned();
                return Some(Exposed { path, to });
            }
        }
    }
    None
}

fn open_to(about: &Metadata, user: u32) -> Option<To> {
    let modes = (about.mode(), about.is_dir());
    judge((about.uid(), about.gid()), modes, user).filter(|to| match to {
        To::Group(group) => {
            let read = |path| fs::read_to_string(path).unwrap_or_default();
            has_others(*group, user, (&read("/etc/group"), &read("/etc/passwd")))
        }
        To::User(_) | To::Anybody => true,
    })
}

/// Whether a group has a member beside root and `user`. One that is not listed may have.
fn has_others(group: u32, user: u32, (groups, accounts): (&str, &str)) -> bool {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let number = |text: Option<&String>| text.and_then(|text| text.parse::<u32>().ok());
    let accounts: Vec<_> = accounts.lines().map(fields).collect();
    let is_one_of_both = |account: &[String]| {
        number(account.get(2)).is_some_and(|number| [0, user].contains(&number))
    };
    let by_account = accounts
        .iter()
        .any(|account| number(account.get(3)) == Some(group) && !is_one_of_both(account));
    let listed = groups
        .lines()
        .map(fields)
        .find(|listed| number(listed.get(2)) == Some(group));
    let Some(members) = listed.as_ref().and_then(|listed| listed.get(3)) else {
        return true;
    };
    let mut members = members.split(',').filter(|name| !name.is_empty());
    by_account
        || members.any(|name| {
            let mut named = accounts.iter();
            !named.any(|account| {
                account.first().is_some_and(|own| own == name) && is_one_of_both(account)
            })
        })
}

fn judge((owner, group): (u32, u32), (mode, is_dir): (u32, bool), user: u32) -> Option<To> {
    let is_sticky = is_dir && mode & STICKY != 0;
    if ![0, user].contains(&owner) {
        Some(To::User(owner))
    } else if mode & ANYBODY_WRITES != 0 && !is_sticky {
        Some(To::Anybody)
    } else if mode & GROUP_WRITES != 0 && group != 0 && !is_sticky {
        Some(To::Group(group))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const USER: u32 = 7;

    #[test]
    fn whoever_may_write_is_named() {
        for (owner, group, mode, is_dir, wanted) in [
            (0, 0, 0o755, false, None),
            (USER, USER, 0o750, true, None),
            (0, 0, 0o775, true, None),
            (0, 33, 0o1775, true, None),
            (0, 0, 0o1777, true, None),
            (33, 0, 0o755, false, Some(To::User(33))),
            (0, 33, 0o775, false, Some(To::Group(33))),
            (USER, USER, 0o770, true, Some(To::Group(USER))),
            (0, 0, 0o757, false, Some(To::Anybody)),
            (0, 0, 0o1757, false, Some(To::Anybody)),
            (0, 0, 0o777, true, Some(To::Anybody)),
        ] {
            let to = judge((owner, group), (mode, is_dir), USER);
            assert_eq!(to, wanted, "{owner} {group} {mode:o}");
        }
    }

    #[test]
    fn a_group_without_other_members_is_nobody_else() {
        let accounts = "root:x:0:0::/root:/bin/sh\ntilld:x:7:7::/:/bin/sh\nann:x:9:9::/:/bin/sh\n";
        let groups = "root:x:0:\nstaff:x:50:\ntilld:x:7:\nreaders:x:8:tilld,ann\nown:x:6:root,tilld\nann:x:9:\n";
        for (group, others) in [
            (50, false),
            (7, false),
            (6, false),
            (8, true),
            (9, true),
            (99, true),
        ] {
            assert_eq!(
                has_others(group, USER, (groups, accounts)),
                others,
                "{group}"
            );
        }
    }

    #[test]
    fn every_directory_on_the_way_counts_and_so_does_a_script() {
        let dir = tempfile::tempdir().expect("a directory");
        let user = rustix::process::geteuid().as_raw();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("safe")).expect("made");
        fs::create_dir_all(path("links")).expect("made");
        fs::write(path("safe/script"), "").expect("written");
        symlink(path("safe/script"), path("links/script")).expect("linked");
        let set = |name: &str, mode| {
            fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("own");
        };
        for name in ["safe", "safe/script", "links"] {
            set(name, 0o755);
        }
        let sh = Path::new("/bin/sh");
        let run = |script: &str| of_run(sh, &["-e".to_owned(), script.to_owned()], user);
        let script = path("links/script").display().to_string();
        assert_eq!(run(&script), None);
        for name in ["links", "safe", "safe/script"] {
            set(name, 0o757);
            let told = run(&script).expect("it is open").to_string();
            let wanted = path(name).canonicalize().expect("real");
            let wanted = format!("anybody may change `{}`, ", wanted.display());
            assert!(told.starts_with(&wanted), "{told}");
            set(name, 0o755);
        }
        // What is no file is a text like any other.
        assert_eq!(of_run(sh, &["/no/such/file".to_owned()], user), None);
    }
}
