//! The machine of a shop as the docs set it up, played on this one: the unit's directories, a config that everybody may read and
//! that names no state directory, and a user of the shop in the clients' group alone.
//!
//! The directories are mounted over those of this machine, for the programs of the test alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{SHOP, lacks};
use crate::harness::{
    PATIENCE, Process, Ran, Setup, World, next_name, run, under_test, wait_for, wait_until,
};

/// tilld's own user here: every Debian has it.
pub(crate) const OWNER: (&str, u32) = ("daemon", 1);
/// It is a member of the clients' group.
pub(crate) const AS_OWNER: [&str; 4] = ["setpriv", "--reuid=1", "--regid=1", "--groups=65534"];
/// What systemd says to it.
const UNITS: [&str; 4] = [
    "env",
    "STATE_DIRECTORY=/var/lib/tilld",
    "RUNTIME_DIRECTORY=/run/tilld",
    "TILLD_CONTROL__GROUP=nogroup",
];
/// Shows `$1/tilld` at `/etc/tilld`, and so on, beside all else that is there, and becomes the program behind it.
const MOUNT: &str = r#"set -e
place=$1; shift
for at in etc var/lib run; do
    mkdir -p "$place/host/$at"; mount --rbind "/$at" "$place/host/$at"
    mount -t tmpfs -o mode=755 tmpfs "/$at"
    for one in "$place/host/$at"/*; do case $one in */tilld) ;; *) ln -s "$one" "/$at/" ;; esac; done
    if [ -d "$place/$at/tilld" ]; then mkdir "/$at/tilld"; mount --bind "$place/$at/tilld" "/$at/tilld"; fi
done
exec "$@""#;

/// Such a machine.
pub(crate) struct Machine {
    pub(crate) world: World,
    place: tempfile::TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let world = Setup::new().quiet().logged_out().not_served().start();
        let place = tempfile::tempdir().expect("a directory");
        let machine = Self { world, place };
        fs::set_permissions(machine.place.path(), Permissions::from_mode(0o755)).expect("own");
        for (at, mode, owner) in [
            ("etc/tilld", 0o755, 0),
            ("var/lib/tilld", 0o750, OWNER.1),
            ("run/tilld", 0o755, OWNER.1),
            ("home", 0o700, 65_534),
            ("owners-home", 0o700, OWNER.1),
        ] {
            machine.directory(at, mode, owner);
        }
        let config = machine.world.dir().join("config.toml");
        let to = machine.at("etc/tilld/config.toml");
        fs::copy(config, &to).expect("copied");
        fs::set_permissions(to, Permissions::from_mode(0o644)).expect("own file");
        machine
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    pub(crate) fn directory(&self, at: &str, mode: u32, owner: u32) {
        let path = self.at(at);
        fs::create_dir_all(&path).expect("a directory");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("own directory");
        chown(&path, Some(owner), Some(owner)).expect("root may");
    }

    fn command(&self, user: &[&str], home: &str, args: &[&str]) -> Command {
        let mut command = mounted(self.place.path());
        command.args(user).arg(under_test()).args(args);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", self.at(home));
        command
    }

    #[track_caller]
    pub(crate) fn by(&self, user: &[&str], home: &str, args: &[&str]) -> Ran {
        let name = next_name();
        run(
            &mut self.command(user, home, args),
            &self.world.log_dir(),
            &name,
        )
    }

    #[track_caller]
    pub(crate) fn shop(&self, args: &[&str]) -> Ran {
        self.by(&SHOP, "home", args)
    }

    fn start(&self, user: &[&str], args: &[&str]) -> Process {
        let mut command = self.command(user, "owners-home", args);
        Process::spawn(&mut command, &self.world.log_dir(), &next_name())
    }

    /// By the line that the hints name: nothing says where.
    pub(crate) fn log_in(&self) {
        let mut login = self.start(&AS_OWNER, &["login", "--json"]);
        let code = wait_for(PATIENCE, "the code to compare", || {
            let line: Value = serde_json::from_str(login.stdout().lines().next()?).ok()?;
            Some(line.get("user_code")?.clone())
        });
        let code = json!({ "userCode": code });
        self.world.control("POST", "/login/confirm", &code);
        assert_eq!(login.wait(PATIENCE), 0, "{}", login.stderr());
    }

    pub(crate) fn serve(&self) -> Process {
        let user = [&AS_OWNER as &[&str], &UNITS].concat();
        let serve = self.start(&user, &["serve", "--json"]);
        wait_until(PATIENCE, "the daemon to listen", || {
            serve.stdout().contains('\n')
        });
        serve
    }

    /// Nothing was made where the shop's user may.
    #[track_caller]
    pub(crate) fn nothing_at_home(&self) {
        let home = fs::read_dir(self.at("home")).expect("it is there");
        assert_eq!(home.count(), 0);
    }
}

#[track_caller]
pub(crate) fn stop(mut serve: Process) {
    serve.signal(rustix::process::Signal::TERM);
    assert_eq!(serve.wait(PATIENCE), 0, "{}", serve.stderr());
}

/// The beginning of a command that sees the machine in `place`.
fn mounted(place: &Path) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "/bin/sh", "-c", MOUNT, "sh"])
        .arg(place);
    command
}

/// Why this machine cannot play another, if it cannot.
pub(crate) fn cannot() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root may mount over /etc/tilld");
    }
    let place = tempfile::tempdir().expect("a directory");
    let tried = mounted(place.path())
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !tried.is_ok_and(|status| status.success()) {
        return Some("`unshare --mount` or `mount` is refused");
    }
    lacks()
}
