//! The daemon and whoever supervises it: what systemd is told and hands over, the settings read again, and how it ends by a
//! fault of its own. What stands in for systemd is a socket that hears, and one that is held over restarts.

mod crowd;
mod failing;
mod flat;
mod handed;
mod reload;
mod starting;
mod unheeded;
mod wants;
mod watchdog;

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, World, next_name, wait_until};

/// Hears what a daemon tells systemd.
struct Systemd {
    socket: UnixDatagram,
    variable: String,
}

impl Systemd {
    /// At a path in `dir`.
    fn at(dir: &Path) -> Self {
        let path = dir.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self {
            socket,
            variable: format!("NOTIFY_SOCKET={}", path.display()),
        }
    }

    /// At an abstract address (A43).
    fn without_a_path() -> Self {
        let name = format!("tilld-test-{}-{}", std::process::id(), next_name());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        Self {
            socket: UnixDatagram::bind_addr(&address).expect("a socket"),
            variable: format!("NOTIFY_SOCKET=@{name}"),
        }
    }

    /// The next message, if one comes in time.
    fn next(&self, within: Duration) -> Option<String> {
        let within = within.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(within)).expect("a limit");
        let mut word = [0; 1024];
        let length = self.socket.recv(&mut word).ok()?;
        let word = word.get(..length).unwrap_or_default();
        Some(String::from_utf8_lossy(word).into_owned())
    }

    /// Waits for a message with a line that begins so, and gives that message.
    #[track_caller]
    fn hears(&self, line: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        while let Some(message) = self.next(deadline.saturating_duration_since(Instant::now())) {
            if message.lines().any(|own| own.starts_with(line)) {
                return message;
            }
            before.push(message);
        }
        panic!("no `{line}` among {before:?}");
    }

    /// All messages of this time.
    fn listens_for(&self, time: Duration) -> Vec<String> {
        let deadline = Instant::now() + time;
        let left = || deadline.saturating_duration_since(Instant::now());
        std::iter::from_fn(|| self.next(left())).collect()
    }
}

/// Where faults are played from.
struct Faults(tempfile::TempDir);

impl Faults {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn variable(&self) -> String {
        format!("TILLD_FAULTS={}", self.0.path().display())
    }

    fn play(&self, fault: &str) {
        fs::write(self.0.path().join(fault), "").expect("written");
    }

    fn is_played(&self, fault: &str) -> bool {
        !self.0.path().join(fault).exists()
    }

    fn end(&self, fault: &str) {
        fs::remove_file(self.0.path().join(fault)).expect("it was played");
    }
}

/// True for a build that has no faults: a release.
fn plays_none(world: &World) -> bool {
    !world.serve_log().contains("faults are played from")
}

#[track_caller]
fn logs(world: &World, text: &str) {
    wait_until(PATIENCE, text, || world.serve_log().contains(text));
}

/// Sockets of a process.
fn sockets(pid: u32) -> usize {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("socket:"))
        .count()
}
