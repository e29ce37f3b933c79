//! Logging in and out as the merchant meets it: the real binary against a service that says what a case wants (A22, A34,
//! A35). What is at stake: the token lands in one private file, and nowhere else.

mod check;
mod ends;
mod places;
mod plain;
mod shops;
mod steps;
mod stub;
mod terminal;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::under_test;
use stub::{DEVICE_CODE, Say, Stub, TOKEN};

/// One merchant's machine and the service it talks to.
struct Scene {
    home: tempfile::TempDir,
    service: Stub,
    /// More of the config, as TOML, in front of its tables.
    settings: String,
}

impl Scene {
    fn new(polls: &[Say]) -> Self {
        Self {
            home: tempfile::tempdir().expect("a directory"),
            service: Stub::start(polls),
            settings: String::new(),
        }
    }

    /// The same with a login stored already.
    fn logged_in(polls: &[Say]) -> Self {
        let scene = Self::new(polls);
        scene.store("shop-1:the-old-token-nobody-sees");
        scene
    }

    fn store(&self, token: &str) {
        self.store_for(token, &self.service.url());
    }

    fn store_for(&self, token: &str, origin: &str) {
        let secret = self.secret();
        std::fs::create_dir_all(&secret).expect("made");
        let text = serde_json::json!({
            "token": token, "shop_name": stub::SHOP, "service": origin, "stored_at": "2026-01-01T00:00:00Z",
        });
        write_private(&self.file(), &text.to_string());
    }

    fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    fn secret(&self) -> PathBuf {
        self.state_dir().join("secret")
    }

    /// The credentials.
    fn file(&self) -> PathBuf {
        self.secret().join("credentials")
    }

    /// What `login --start` keeps.
    fn request(&self) -> PathBuf {
        self.secret().join("login-request")
    }

    /// The token in the credentials file.
    fn stored(&self) -> String {
        let text = std::fs::read_to_string(self.file()).expect("readable");
        let stored: Value = serde_json::from_str(&text).expect("JSON");
        field(&stored, "token").as_str().expect("a text").to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_at(args, &self.service.url())
    }

    fn command_at(&self, args: &[&str], service: &str) -> Command {
        let mut command = Command::new(under_test());
        let config = self.home.path().join("config.toml");
        let text = format!(
            "{}\n[service]\nurl = \"{service}\"\ncabinet_url = \"https://cabinet.example\"\n[listener]\npublic_url = \"http://127.0.0.1:1/n\"\n",
            self.settings
        );
        std::fs::write(&config, text).expect("written");
        command.env_clear().env("TILLD_LOG_LEVEL", "trace");
        command.stdin(Stdio::null());
        command.args(args).arg("--config").arg(config);
        command.arg("--state-dir").arg(self.state_dir());
        command
    }

    /// Runs a command to its end and looks that no secret shows.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(&self.command(args).output().expect("tilld runs"))
    }

    /// Runs a command with `--json`; the last object it says.
    #[track_caller]
    fn json(&self, args: &[&str]) -> (i32, Value) {
        let (code, data, talk) = self.run(&[args, &["--json"]].concat());
        let last = data.lines().last().unwrap_or_else(|| panic!("{talk}"));
        (code, serde_json::from_str(last).expect("JSON"))
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (data, talk) = (text(&output.stdout), text(&output.stderr));
    for secret in [TOKEN, DEVICE_CODE, "nobody-sees"] {
        assert!(!format!("{data}{talk}").contains(secret), "{data}{talk}");
    }
    (output.status.code().unwrap_or(-1), data, talk)
}

#[track_caller]
fn field<'a>(object: &'a Value, name: &str) -> &'a Value {
    object
        .get(name)
        .unwrap_or_else(|| panic!("{name}: {object}"))
}

fn write_private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).expect("written");
    let dir = path.parent().expect("a directory");
    for (path, mode) in [(path, 0o600), (dir, 0o700)] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("our own");
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").mode() & 0o7777
}

fn send(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), signal).expect("it runs");
}
