//! A merchant's machine on which no daemon runs and no service is reachable: what commands say all the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::under_test;

/// One machine. Its config names a service nobody listens for, so that a create leaves a refused invoice behind.
pub(crate) struct Shop {
    home: tempfile::TempDir,
}

impl Shop {
    /// With these lines after the config's common part.
    pub(crate) fn new(more: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let state_dir = home.path().join("state");
        let state_dir = state_dir.display();
        // Port 1 is reserved and refuses.
        let config = format!(
            "state_dir = \"{state_dir}\"\n[service]\nurl = \"http://127.0.0.1:1\"\n\
             [listener]\npublic_url = \"https://shop.example/n\"\n{more}"
        );
        std::fs::write(home.path().join("config.toml"), config).expect("written");
        Self { home }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// Puts an executable script on the machine.
    pub(crate) fn script(home: &Path, name: &str, lines: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let (draft, path) = (home.join(format!("{name}.draft")), home.join(name));
        std::fs::write(&draft, format!("#!/bin/sh\n{lines}\n")).expect("written");
        // Copied by a process of its own: a file this one wrote may still be open in a child that another test is just
        // starting, and the kernel starts no program that is open for writing.
        let copied = Command::new("cp").arg(&draft).arg(&path).status();
        assert!(copied.expect("cp runs").success());
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("made executable");
        path
    }

    /// The command `tilld` with these arguments, not started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(under_test());
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("SERVICE_TOKEN", "shop:token-that-nobody-sees")
            .arg("--config")
            .arg(self.home.path().join("config.toml"))
            .args(args);
        command
    }

    /// Runs `tilld` and looks that it ends with this code.
    pub(crate) fn tilld(&self, args: &[&str], code: i32) -> Said {
        Said::of(&self.command(args).output().expect("tilld runs"), code)
    }

    /// Leaves an invoice in the ledger that the service never heard of.
    pub(crate) fn refused_invoice(&self, order: &str) {
        let create = ["invoice", "create", "--order", order, "--amount", "599.80"];
        let rest = ["--currency", "RUB", "--method", "SBP"];
        let args: Vec<&str> = create.into_iter().chain(rest).collect();
        self.tilld(&args, 8);
    }
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    fn of(output: &Output, code: i32) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(
            output.status.code(),
            Some(code),
            "stdout: {stdout}\nstderr: {stderr}"
        );
        Self { stdout, stderr }
    }

    /// Each line of stdout as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Looks that stderr holds all of these.
    pub(crate) fn told(&self, texts: &[&str]) {
        for text in texts {
            assert!(
                self.stderr.contains(text),
                "`{text}` is missing in: {}",
                self.stderr
            );
        }
    }
}
