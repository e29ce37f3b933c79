//! Whether somebody else could change what a hook runs: every file that is executed ([`super::executed`]), and every link and
//! directory on the way to them. Judged as sudo judges what it runs: all of it belongs to root or to tilld's own user, and no one
//! else may write there. In a directory with the sticky bit nobody replaces what is another's, and a group without other members,
//! as Debian's `staff` of `/usr/local` is, is nobody else. Whom an access list (POSIX ACL) lets write is looked at by name.
//!
//! Relies on the file system as it is now; promises that what cannot be looked at is left to the start of the program.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{acl, executed};

/// So many links are followed, as many as the kernel follows.
const MOST_HOPS: u32 = 40;
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
    /// By an access list.
    Listed(u32),
    ListedGroup(u32),
    Anybody,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to {
            To::User(user) | To::Listed(user) => write!(f, "user {user} may change ")?,
            To::Group(group) | To::ListedGroup(group) => {
                write!(f, "the members of group {group} may change ")?;
            }
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
            To::Listed(_) | To::ListedGroup(_) => format!("`setfacl -b {path}`"),
            To::Anybody => format!("`chmod o-w {path}`"),
        }
    }
}

/// The first thing that is open to others than root and `user`, who runs this.
pub fn of_run(program: &Path, args: &[String], user: u32) -> Option<Exposed> {
    let mut seen = Vec::new();
    let files = executed::files(program, args);
    files.iter().find_map(|file| of_file(file, user, &mut seen))
}

/// The same of one file, and of what was not yet seen of its way.
fn of_file(file: &Path, user: u32, seen: &mut Vec<PathBuf>) -> Option<Exposed> {
    for (path, about) in way_to(file) {
        if seen.contains(&path) {
            continue;
        }
        if let Some(to) = open_to(&path, &about, user) {
            return Some(Exposed { path, to });
        }
        seen.push(path);
    }
    None
}

/// Every directory, link and file from the root to what an absolute path names, as the kernel follows it. It ends where nothing can be
/// looked at.
fn way_to(file: &Path) -> Vec<(PathBuf, Metadata)> {
    let mut way = Vec::new();
    let (mut at, mut hops) = (PathBuf::from("/"), 0);
    let parts = |path: &Path| {
        let names = path.components().rev().map(|part| PathBuf::from(&part));
        names.collect::<Vec<PathBuf>>()
    };
    // The next one last.
    let mut left = parts(file);
    if !file.is_absolute() {
        return way;
    }
    while let Some(part) = left.pop() {
        if part == Path::new(".") {
            continue;
        }
        if part == Path::new("..") {
            at.pop();
            continue;
        }
        // An absolute one begins anew.
        let next = at.join(&part);
        let Ok(about) = fs::symlink_metadata(&next) else {
            break;
        };
        if about.is_symlink() {
            hops += 1;
            let Some(target) = fs::read_link(&next).ok().filter(|_| hops <= MOST_HOPS) else {
                break;
            };
            left.extend(parts(&target));
        } else {
            at.clone_from(&next);
        }
        way.push((next, about));
    }
    way
}

fn open_to(path: &Path, about: &Metadata, user: u32) -> Option<To> {
    if about.is_symlink() {
        // Its mode means nothing.
        return judge((about.uid(), 0), (0, false), user);
    }
    let to = judge(
        (about.uid(), about.gid()),
        (about.mode(), about.is_dir()),
        user,
    )?;
    let To::Group(_) = to else {
        return Some(to);
    };
    // With an access list these bits are the most that any of its entries gives.
    let mut writers = match acl::writers(path) {
        Some(listed) => listed,
        None => vec![acl::Writer::Owning],
    }
    .into_iter();
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (groups, accounts) = (read("/etc/group"), read("/etc/passwd"));
    let is_others = |group: u32| group != 0 && has_others(group, user, (&groups, &accounts));
    writers.find_map(|writer| match writer {
        acl::Writer::Owning => is_others(about.gid()).then_some(To::Group(about.gid())),
        acl::Writer::User(listed) => (![0, user].contains(&listed)).then_some(To::Listed(listed)),
        acl::Writer::Group(listed) => is_others(listed).then_some(To::ListedGroup(listed)),
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
    // It may be listed more than once, and every line counts.
    let listed: Vec<_> = groups
        .lines()
        .map(fields)
        .filter(|listed| number(listed.get(2)) == Some(group))
        .collect();
    if listed.is_empty() || listed.iter().any(|line| line.len() < 4) {
        return true;
    }
    let mut members = listed
        .iter()
        .filter_map(|line| line.get(3))
        .flat_map(|members| members.split(','))
        .filter(|name| !name.is_empty());
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
    } else if mode & GROUP_WRITES != 0 && !is_sticky {
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
            (0, 0, 0o775, true, Some(To::Group(0))),
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
        let groups = "root:x:0:\nstaff:x:50:\ntilld:x:7:\nreaders:x:8:tilld,ann\nown:x:6:root,tilld\nann:x:9:\n\
                      twice:x:20:\ntwice:x:20:ann\n";
        for (group, others) in [
            (50, false),
            (7, false),
            (6, false),
            (8, true),
            (9, true),
            (20, true),
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
        fs::create_dir_all(path("middle")).expect("made");
        symlink(path("safe"), path("middle/dir")).expect("linked");
        symlink("../middle/dir/script", path("links/script")).expect("linked");
        let set = |name: &str, mode| {
            fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("own");
        };
        for name in ["safe", "safe/script", "links", "middle"] {
            set(name, 0o755);
        }
        let sh = Path::new("/bin/sh");
        let run = |script: &str| of_run(sh, &["-e".to_owned(), script.to_owned()], user);
        let script = path("links/script").display().to_string();
        assert_eq!(run(&script), None);
        for name in ["links", "middle", "safe", "safe/script"] {
            set(name, 0o757);
            let told = run(&script).expect("it is open").to_string();
            let wanted = path(name).canonicalize().expect("real");
            let wanted = format!("anybody may change `{}`, ", wanted.display());
            assert!(told.starts_with(&wanted), "{told}");
            set(name, 0o755);
        }
        fs::remove_file(path("links/script")).expect("ours");
        symlink("script", path("links/script")).expect("linked");
        assert_eq!(run(&script), None, "one that leads to itself is no file");
        // What is no file is a text like any other.
        assert_eq!(of_run(sh, &["/no/such/file".to_owned()], user), None);
    }
}
