//! Whether somebody else could change what a hook runs: its program, the script that an interpreter is given, and every
//! directory on the way to them. Judged as sudo judges what it runs: all of it belongs to root or to tilld's own user, and no one
//! else may write there. In a directory with the sticky bit nobody replaces what is another's.
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
    judge(
        (about.uid(), about.gid()),
        (about.mode(), about.is_dir()),
        user,
    )
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
