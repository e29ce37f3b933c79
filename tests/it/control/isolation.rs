//! What the shop's user can reach of tilld on the machine of the unit: the socket, and nothing else. Whatever is refused, others
//! do in the end with the very same words, so it could have been done. Needs root, which becomes each of these users.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use super::client::wish;
use crate::harness::{PATIENCE, SECRET, next_name, skip, wait_until, write_secret};
use crate::remote::machine::{AS_OWNER, Machine, OWNER, cannot};
use crate::remote::{SHOP, STRANGER};

/// A member of tilld's own group, whom the docs let read the ledger.
const READER: [&str; 4] = ["setpriv", "--reuid=65533", "--regid=1", "--clear-groups"];
/// Whose `/etc` is.
const ROOT: [&str; 1] = ["env"];

const STATE: &str = "var/lib/tilld";
const CONFIG: &str = "etc/tilld/config.toml";
/// The secret of a hook that posts, as `docs/posting.md` has it made.
const HOOKS_SECRET: &str = "etc/tilld/shop.secret";
/// A hook whose runs have working directories.
const SCRIPT: &str = "[[hook]]\nname = \"runs\"\non = [\"*\"]\nrun = [\"/bin/true\"]\n";
const SOCKET: &str = "run/tilld/control.sock";

/// What stands in the state directory.
const KEPT: [&str; 10] = [
    "",
    "ledger.db",
    "ledger.db-shm",
    "ledger.db-wal",
    "ledger.mark",
    "run",
    "secret",
    "secret/credentials",
    "secret/ledger-key",
    "serve.lock",
];

/// Something that may be done to a path, as a line of a shell: `$1` is the path, `$2` a name that is free in a directory where
/// everybody may write.
type Act = (&'static str, &'static str);

/// Each leaves something to be done for those behind it.
const TO_A_FILE: [Act; 6] = [
    ("read", "cat \"$1\""),
    ("written", "printf x >> \"$1\""),
    ("opened to all", "chmod 666 \"$1\""),
    ("replaced", ": > \"$2\" && mv -f \"$2\" \"$1\""),
    ("renamed", "mv \"$1\" \"$1.gone\" && mv \"$1.gone\" \"$1\""),
    ("unlinked", "rm \"$1\""),
];
const IN_A_DIRECTORY: [Act; 2] = [
    ("listed", "ls \"$1\""),
    ("a place for a file", ": > \"$1/new\""),
];

/// What may be done to whatever stands there.
fn acts(path: &Path) -> Vec<Act> {
    let found = fs::symlink_metadata(path).expect("it stands there");
    if found.is_dir() {
        IN_A_DIRECTORY.to_vec()
    } else if found.is_file() {
        TO_A_FILE.to_vec()
    } else {
        // A socket is not opened but connected to.
        TO_A_FILE.into_iter().skip(2).collect()
    }
}

/// What somebody's command said on both ways, and whether it ended well.
fn ran(user: &[&str], command: &[&str]) -> (bool, String) {
    let mut words = user.iter().chain(command);
    let program = words.next().expect("a program");
    let mut command = Command::new(program);
    command.args(words).env_clear().env("LC_ALL", "C");
    let ran = command.env("PATH", "/usr/bin:/bin").output();
    let ran = ran.expect("it starts");
    let said = [ran.stdout, ran.stderr].concat();
    (
        ran.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// The machine, and the paths on it that are tried.
struct Site {
    machine: Machine,
    paths: BTreeSet<String>,
}

impl Site {
    fn new() -> Self {
        let machine = Machine::new();
        // As `/tmp` is.
        machine.directory("tmp", 0o1777, 0);
        let secret = machine.at(HOOKS_SECRET);
        write_secret(&secret, SECRET);
        chown(&secret, Some(OWNER.1), Some(OWNER.1)).expect("root may");
        let config = machine.at(CONFIG);
        let hook = format!(
            "{SCRIPT}[[hook]]\nname = \"posts\"\non = [\"paid\"]\npost = \"http://127.0.0.1:9/\"\nsecret_file = \"/{HOOKS_SECRET}\"\n"
        );
        let text = fs::read_to_string(&config).expect("a config");
        fs::write(&config, text + &hook).expect("written");
        let paths = ["etc/tilld", CONFIG, HOOKS_SECRET, "run/tilld", SOCKET];
        let kept = KEPT.map(|name| format!("{STATE}/{name}"));
        Self {
            machine,
            paths: paths.map(str::to_owned).into_iter().chain(kept).collect(),
        }
    }

    fn does(&self, user: &[&str], path: &Path, (_, line): Act) -> (bool, String) {
        let own = self.machine.at("tmp").join(next_name());
        let [path, own] = [path, &own].map(|path| path.display().to_string());
        ran(user, &["/bin/sh", "-c", line, "sh", &path, &own])
    }

    /// All acts on all paths are refused to this user, but for looking at those that `may` allows.
    #[track_caller]
    fn refuses(&self, user: &[&str], may: impl Fn(&str) -> bool) {
        for at in &self.paths {
            let path = self.machine.at(at);
            for act in acts(&path) {
                let (is_done, said) = self.does(user, &path, act);
                let wanted = may(at) && ["read", "listed"].contains(&act.0);
                assert_eq!(is_done, wanted, "{at} is {} by {user:?}: {said}", act.0);
                let is_no_right = ["Permission denied", "Operation not permitted"]
                    .iter()
                    .any(|why| said.contains(why));
                assert_eq!(is_no_right, !wanted, "{at} is {}: {said}", act.0);
            }
        }
    }

    /// All acts on this path are done by this user.
    #[track_caller]
    fn allows(&self, user: &[&str], path: &Path) {
        for act in acts(path) {
            let (is_done, said) = self.does(user, path, act);
            assert!(is_done, "{} is {}: {said}", path.display(), act.0);
        }
    }

    /// What a call said to somebody, and whether it was served.
    fn calls(&self, user: &[&str], target: &str, body: &str) -> (bool, String) {
        let socket = self.machine.at(SOCKET).display().to_string();
        let url = format!("http://tilld{target}");
        let curl = ["curl", "-sS", "--fail", "--unix-socket", &socket, &url];
        let body: &[&str] = if body.is_empty() { &[] } else { &["-d", body] };
        ran(user, &[&curl as &[&str], body].concat())
    }

    /// What really stands in the state directory.
    fn kept(&self) -> Vec<String> {
        fn below(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
            found.push(dir.to_owned());
            for entry in fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                // What scripts leave or have at the moment is theirs.
                if path.is_dir() && !path.ends_with("run") {
                    below(&path, found);
                } else {
                    found.push(path);
                }
            }
        }
        let (state, mut found) = (self.machine.at(STATE), Vec::new());
        below(&state, &mut found);
        let names = found.iter().map(|path| path.strip_prefix(&state));
        let mut names: Vec<_> = names
            .map(|name| name.expect("below it").display().to_string())
            .collect();
        names.sort();
        names
    }
}

fn lacks() -> Option<&'static str> {
    let has_curl = Path::new("/usr/bin/curl").exists();
    cannot().or((!has_curl).then_some("there is no curl"))
}

#[test]
fn the_shops_user_reaches_the_socket_and_no_file() {
    if let Some(lacks) = lacks() {
        skip!("{lacks}");
    }
    let site = Site::new();
    let machine = &site.machine;
    machine.log_in();
    let mut serve = machine.serve();
    let body = wish("A-1", &json!("599.80"));
    for user in [&SHOP as &[&str], &AS_OWNER] {
        let (is_served, told) = site.calls(user, "/v1/invoices", &body);
        assert!(is_served && told.contains("\"A-1\""), "{told}");
    }
    for target in ["/v1/orders/A-1", "/v1/status"] {
        for user in [&STRANGER, &READER] {
            let (is_served, told) = site.calls(user, target, "");
            assert!(!is_served, "{user:?} was served {target}: {told}");
        }
    }
    wait_until(PATIENCE, "all of it", || {
        KEPT.iter()
            .all(|name| machine.at(STATE).join(name).exists())
    });

    let everybodys = |at: &str| ["etc/tilld", CONFIG, "run/tilld"].contains(&at);
    // All but what is the owner's alone.
    let readers = |at: &str| {
        let is_private = ["secret", "run", "serve.lock"]
            .iter()
            .any(|dir| at.starts_with(&format!("{STATE}/{dir}")));
        everybodys(at) || at.starts_with(STATE) && !is_private
    };
    site.refuses(&SHOP, everybodys);
    site.refuses(&STRANGER, everybodys);
    site.refuses(&READER, readers);
    // The files hold by themselves where somebody has opened their directory.
    fs::set_permissions(machine.at(STATE), Permissions::from_mode(0o755)).expect("root may");
    let is_state = |at: &str| at.trim_end_matches('/') == STATE;
    site.refuses(&SHOP, |at| everybodys(at) || is_state(at));
    let (is_served, told) = site.calls(&SHOP, "/v1/orders/A-1", "");
    assert!(is_served, "{told}");

    serve.signal(Signal::KILL);
    assert_eq!(serve.wait(PATIENCE), 128 + 9);
    assert_eq!(site.kept(), KEPT, "nothing else is there");
    let own = machine.at("home/own");
    fs::write(&own, "").expect("written");
    chown(&own, Some(65_534), None).expect("root may");
    site.allows(&SHOP, &own);
    for at in &site.paths {
        let user: &[&str] = if at.starts_with("etc") {
            &ROOT
        } else {
            &AS_OWNER
        };
        site.allows(user, &machine.at(at));
    }
}
