//! One subject under load, and the truth about it: after every run the rows in its file are held against what the sender
//! was told. A figure of a subject that lies, or that was not the one that was started, would be worse than none.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{PATH, Server, Started, Stored, Subject, hold_against};
use crate::load::{Answer, Heard, Plan, Sender};
use crate::machine::process::{by_thread, memory, ran_since};
use crate::options::Options;

/// Between two looks at memory and log.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A subject that runs.
pub(crate) struct Running {
    /// Its name.
    pub(crate) name: &'static str,
    /// It.
    pub(crate) server: Box<dyn Server>,
    sender: Sender,
    stored_at_first: Stored,
    directory: PathBuf,
}

/// What came of a run.
pub(crate) struct Driven {
    /// What the sender heard.
    pub(crate) heard: Heard,
    /// The subject's processor time for each acknowledgement, user and system, warming up included.
    pub(crate) cpu_each: Duration,
}

/// What was seen while it ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    /// Memory, KiB, one after the other.
    pub(crate) rss_kib: Vec<u64>,
    /// The longest that the write-ahead log was, bytes.
    pub(crate) log_bytes: u64,
}

impl Running {
    /// Starts a subject on a new ledger, below the bench's directory.
    pub(crate) fn start(subject: &Subject, options: &Options, part: &str) -> Self {
        let directory = options.directory.join(part).join(subject.name);
        remove(&directory);
        let Started { server, stocked } = (subject.start)(options, &directory);
        Self {
            name: subject.name,
            stored_at_first: server.stored(),
            server,
            sender: Sender::new(stocked, PATH),
            directory,
        }
    }

    /// Sends as planned. Everything must be acknowledged.
    pub(crate) fn drive(&mut self, plan: &Plan) -> Driven {
        let driven = self.measured(|sender, address| sender.run(address, plan));
        let whole = driven.heard.whole;
        assert_eq!(whole.acknowledged, whole.sent, "{}: {whole:?}", self.name);
        driven
    }

    /// Sends as planned, and shows every answer. A part may be refused.
    pub(crate) fn overload(&mut self, plan: &Plan, show: impl FnMut(&Answer)) -> Driven {
        self.measured(|sender, address| sender.run_with(address, plan, show))
    }

    fn measured(&mut self, send: impl FnOnce(&mut Sender, SocketAddr) -> Heard) -> Driven {
        let (name, pid) = (self.name, self.server.pid());
        let (stored, before) = (self.server.stored(), by_thread(pid).expect("it runs"));
        let heard = send(&mut self.sender, self.server.address());
        let ran = ran_since(&before, pid).expect("it runs");
        // Somebody else answered if it did nothing.
        assert!(!ran.is_zero(), "{name} took no time");
        self.hold_against(&heard, stored);
        let acknowledged = u32::try_from(heard.whole.acknowledged).unwrap_or(u32::MAX);
        Driven {
            cpu_each: ran / acknowledged.max(1),
            heard,
        }
    }

    /// Sends as planned, and looks at the subject's memory and log meanwhile.
    pub(crate) fn drive_watched(&mut self, plan: &Plan) -> (Driven, Looks) {
        let (pid, log) = (self.server.pid(), self.server.log());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut looks = Looks::default();
                while !over.load(Ordering::Relaxed) {
                    looks
                        .rss_kib
                        .extend(memory(pid).map(|memory| memory.rss_kib));
                    let log_bytes = log.as_ref().and_then(|log| fs::metadata(log).ok());
                    let log_bytes = log_bytes.map_or(0, |about| about.len());
                    looks.log_bytes = looks.log_bytes.max(log_bytes);
                    thread::sleep(LOOK_EVERY);
                }
                looks
            });
            let driven = self.drive(plan);
            over.store(true, Ordering::Relaxed);
            (driven, looking.join().expect("it looks"))
        })
    }

    /// What was acknowledged is there, and nothing else is.
    fn hold_against(&self, heard: &Heard, before: Stored) {
        let (name, whole, after) = (self.name, heard.whole, self.server.stored());
        let events = after.events - before.events;
        hold_against(name, events, whole);
        let deliveries = after.deliveries - before.deliveries;
        assert_eq!(deliveries, events, "{name}: a delivery for each event");
        assert_eq!(whole.failed, 0, "{name} lost connections: {whole:?}");
    }

    /// Holds all runs together against its rows once more, ends it and removes its ledger.
    pub(crate) fn stop(self) {
        let events = self.server.stored().events - self.stored_at_first.events;
        let acknowledged: u64 = self.sender.acknowledged().sum();
        let name = self.name;
        assert!(
            events >= acknowledged,
            "{name} has lost what it had: {events} events, {acknowledged} acknowledged"
        );
        self.server.stop();
        remove(&self.directory);
    }
}

fn remove(directory: &Path) {
    if directory.exists() {
        fs::remove_dir_all(directory).expect("it is removed");
    }
}
