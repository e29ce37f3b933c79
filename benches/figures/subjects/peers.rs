//! The peers: receivers as they are commonly written, one process each, that check the token, record the notification in
//! one transaction with WAL and `synchronous=FULL`, and answer 200 after its commit. `benches/peers` has their code and a
//! script that installs what they need; those that are there are measured. All know the naive receiver's invoices and have
//! its schema.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::inner::invented;
use super::naive::{make, stored};
use super::{PATH, Server, Started, Stored, Subject};
use crate::options::Options;

/// A start that takes longer has failed: an interpreter that reads its libraries from a cold disk needs seconds.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two tries to connect.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The keys of the peers' figures begin with these.
pub(crate) const FASTAPI: &str = "fastapi";
pub(crate) const EXPRESS: &str = "express";
pub(crate) const WEBHOOK: &str = "webhook";

/// A peer.
struct Peer {
    subject: Subject,
    /// What it is.
    what: &'static str,
    /// Whether what it needs is installed.
    is_there: fn() -> bool,
}

const ALL: [Peer; 3] = [
    Peer {
        subject: Subject {
            name: FASTAPI,
            start: |_options, directory| start(directory, fastapi),
        },
        what: "FastAPI with uvicorn, one process",
        is_there: || installed(FASTAPI).join("uvicorn").exists() && runs("python3"),
    },
    Peer {
        subject: Subject {
            name: EXPRESS,
            start: |_options, directory| start(directory, express),
        },
        what: "Express with better-sqlite3, one process",
        is_there: || installed(EXPRESS).join("node_modules").exists() && runs("node"),
    },
    Peer {
        subject: Subject {
            name: WEBHOOK,
            start: |_options, directory| start(directory, webhook),
        },
        what: "webhook with a script that calls sqlite3",
        is_there: || runs("webhook") && runs("sqlite3"),
    },
];

/// The peers to be measured: those found, when they are wanted.
pub(crate) fn found(options: &Options) -> Vec<Subject> {
    let there = ALL.iter().filter(|peer| options.peers && (peer.is_there)());
    there.map(|peer| peer.subject).collect()
}

/// What a reader must know of them.
pub(crate) fn notes(options: &Options) -> Vec<String> {
    if !options.peers {
        return vec!["the peers were not measured: `--peers` was not given".to_owned()];
    }
    let missing = ALL.iter().filter(|peer| !(peer.is_there)());
    missing
        .map(|peer| {
            format!(
                "skipped: {} is not installed; benches/peers/install.sh does it",
                peer.what
            )
        })
        .collect()
}

/// Their code.
fn code(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches/peers")
        .join(peer)
}

/// What the script installed for one, in the directory cargo builds in.
fn installed(peer: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target.expect("its own").join("peers").join(peer)
}

fn runs(program: &str) -> bool {
    let mut command = Command::new(program);
    // All of these know one of the two.
    let version = if program == "webhook" {
        "-version"
    } else {
        "--version"
    };
    let ran = command.arg(version).stdin(Stdio::null()).output();
    ran.is_ok_and(|output| output.status.success())
}

fn fastapi(_directory: &Path, port: u16) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-m", "uvicorn", "app:app", "--log-level", "warning"])
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .arg("--app-dir")
        .arg(code(FASTAPI))
        .env("PYTHONPATH", installed(FASTAPI))
        // Nothing is written beside its code.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn express(_directory: &Path, port: u16) -> Command {
    let mut command = Command::new("node");
    command
        .arg(code(EXPRESS).join("app.js"))
        .arg(port.to_string())
        .env("NODE_PATH", installed(EXPRESS).join("node_modules"))
        .env("NODE_ENV", "production");
    command
}

/// A hook is found by the whole of its path, so each invoice has one, from one template.
fn webhook(directory: &Path, port: u16) -> Command {
    let template = fs::read_to_string(code(WEBHOOK).join("hooks.json")).expect("its hooks");
    let hooks: Value = serde_json::from_str(&template).expect("JSON");
    let hook = hooks.get(0).expect("one hook").to_string();
    let script = code(WEBHOOK).join("record.sh");
    let hook = hook.replace("SCRIPT", script.to_str().expect("a name in UTF-8"));
    let hooks: Vec<String> = invented()
        .iter()
        .map(|one| hook.replace("REF", &one.reference))
        .collect();
    let file = directory.join("hooks.json");
    fs::write(&file, format!("[{}]", hooks.join(","))).expect("written");
    let mut command = Command::new("webhook");
    command
        .args(["-ip", "127.0.0.1", "-port", &port.to_string()])
        .args(["-urlprefix", PATH.trim_start_matches('/'), "-hooks"])
        .arg(file);
    command
}

/// A peer that runs. Killed when it is dropped.
struct PeerServer {
    child: Child,
    address: SocketAddr,
    file: PathBuf,
}

/// Starts one on a new ledger in this directory, with the command that is made for the directory and a port.
fn start(directory: &Path, command: fn(&Path, u16) -> Command) -> Started {
    fs::create_dir_all(directory).expect("a directory");
    let file = directory.join("ledger.db");
    let stocked = invented();
    make(&file, &stocked);
    // Free a moment ago: these cannot be handed a port that is theirs already, or say which they took.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("bound");
    drop(free);
    let log = directory.join("log");
    let said = File::create(&log).expect("a log");
    let child = command(directory, address.port())
        .env("PEER_LEDGER", &file)
        .stdin(Stdio::null())
        .stdout(said.try_clone().expect("a log"))
        .stderr(said)
        .spawn()
        .expect("it starts");
    let mut server = PeerServer {
        child,
        address,
        file,
    };
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        let ended = server.child.try_wait().expect("its parent");
        let told = || fs::read_to_string(&log).unwrap_or_default();
        assert!(ended.is_none(), "it ended: {}", told());
        assert!(began.elapsed() < PATIENCE, "it does not listen: {}", told());
        thread::sleep(LOOK_EVERY);
    }
    Started {
        server: Box::new(server),
        stocked,
    }
}

impl Server for PeerServer {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn stored(&self) -> Stored {
        stored(&self.file)
    }

    fn stop(self: Box<Self>) {}
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
