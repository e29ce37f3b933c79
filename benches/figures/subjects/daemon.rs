//! tilld as a merchant runs it: the release binary, `serve`, on a ledger of its own with every setting at its default but
//! those named here. Its log goes to a file, as a line per event does on a merchant's machine.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tilld::bench::{Stocked, settings, stock};

use super::{Server, Stored, count, look_at};

/// A start that takes longer has failed.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two tries to connect: the resolution of a start's duration.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// A place with a config and a ledger, on which daemons are started.
pub(crate) struct Home {
    directory: PathBuf,
    address: SocketAddr,
}

impl Home {
    /// Makes `directory`, which must not be there, with a config: the defaults, a hook that every change of a status is owed
    /// to and that never ends, so that each notification makes a delivery and none is run, no wait for it at the stop, and
    /// `more` lines of TOML in front of the tables.
    pub(crate) fn make(directory: &Path, more: &str) -> Self {
        fs::create_dir_all(directory).expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let home = Self {
            directory: directory.to_owned(),
            address,
        };
        let hangs = directory.join("hangs");
        fs::write(&hangs, "#!/bin/sh\nexec sleep 600\n").expect("written");
        let made = Command::new("chmod").arg("755").arg(&hangs).status();
        assert!(made.expect("chmod").success(), "it may be run");
        let config = format!(
            r#"state_dir = '{}'
{more}
[service]
url = "http://127.0.0.1:9"
[listener]
listen = "{address}"
public_url = "http://{address}/n"
[outbox]
drain_s = 0
[statuses]
open = ["new", "wip"]
[[hook]]
name = "shop"
on = ["status:new", "status:wip"]
run = ['{}']
timeout_s = 900
concurrency = 1
"#,
            home.state().display(),
            hangs.display(),
        );
        fs::write(home.config(), config).expect("written");
        home
    }

    /// The config file.
    pub(crate) fn config(&self) -> PathBuf {
        self.directory.join("config.toml")
    }

    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// The ledger's file.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.state().join("ledger.db")
    }

    /// Where notifications are heard, without the ref.
    pub(crate) const fn path() -> &'static str {
        "/n"
    }

    /// Opens `count` invoices. No daemon may run.
    pub(crate) fn stock(&self, count: u32) -> Vec<Stocked> {
        stock(&settings(&self.config()), count)
    }

    /// Starts the daemon and waits until it takes connections.
    pub(crate) fn start(&self, program: &Path) -> Daemon {
        // Whoever answered here before would be measured instead.
        assert!(
            TcpStream::connect(self.address).is_err(),
            "the port is taken"
        );
        let log = self.directory.join("log");
        let log = File::options().create(true).append(true).open(log);
        let log = log.expect("a log");
        let began = Instant::now();
        let child = Command::new(program)
            .args(["serve", "--config"])
            .arg(self.config())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let mut daemon = Daemon {
            child,
            address: self.address,
            ledger: self.ledger(),
            started_in: Duration::ZERO,
        };
        while TcpStream::connect(self.address).is_err() {
            let ended = daemon.child.try_wait().expect("its parent");
            let log = || fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "it ended: {}", log());
            assert!(began.elapsed() < PATIENCE, "it does not listen: {}", log());
            thread::sleep(LOOK_EVERY);
        }
        daemon.started_in = began.elapsed();
        daemon
    }
}

/// A running daemon. Killed when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    ledger: PathBuf,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// From exec to the first connection it took.
    pub(crate) started_in: Duration,
}

impl Daemon {
    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The number of the newest event in its ledger.
    pub(super) fn newest_event(&self) -> i64 {
        let newest = "SELECT coalesce(max(seq), 0) FROM event";
        let newest = look_at(&self.ledger).query_row(newest, [], |row| row.get(0));
        newest.expect("its ledger")
    }

    /// How many events a notification made after that one. Those before are not looked at, as many as they are.
    pub(super) fn notified_after(&self, event: i64) -> u64 {
        let count = "SELECT count(*) FROM event WHERE seq > ?1 AND source = 'notification'";
        let count = look_at(&self.ledger).query_row(count, [event], |row| row.get::<_, i64>(0));
        u64::try_from(count.expect("counted")).expect("no less than none")
    }

    /// Stops it as systemd does, and waits for its end.
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
        let ended = self.child.wait().expect("its parent");
        assert!(ended.success(), "it ended with {ended}");
    }

    /// Kills it at once, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("its parent");
        self.child.wait().expect("its parent");
    }
}

impl Server for Daemon {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn stored(&self) -> Stored {
        count(
            &self.ledger,
            "SELECT count(*) FROM event",
            "SELECT count(*) FROM delivery",
        )
    }

    fn log(&self) -> Option<PathBuf> {
        Some(self.ledger.with_extension("db-wal"))
    }

    fn stop(self: Box<Self>) {
        Self::stop(*self);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
