//! What a report says beside ledger and settings: files, disk, and what is left of the machine. Promises that one reading at a
//! time serves all who ask, away from the thread that asks, however many hang up meanwhile.

use std::os::unix::fs::MetadataExt as _;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::reason::Need;
use super::report::LedgerFile;
use super::storage::Disk;
use super::{certificate, resources};
use crate::config::Settings;
use crate::hook::exposed;
use crate::ledger::{FILE_NAME, holders, is_served};
use crate::panics::carried;

/// How long a reading serves those who ask: a crowd costs one, and a person who has put something right hardly waits.
const SERVES_FOR: Duration = Duration::from_secs(2);

/// What was read.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    pub(super) daemon_running: bool,
    pub(super) ledger: LedgerFile,
    pub(super) disk: Disk,
    /// The programs that read the ledger just now.
    pub(super) readers: Vec<String>,
    /// What files of the operator need: the listener's certificate, and hooks.
    pub(super) files: Vec<Need>,
    /// What this process needs of the machine, where it is the daemon's.
    pub(super) process: Vec<Need>,
}

/// Reads it, and keeps it for a moment. Clones share what is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    of_daemon: bool,
    /// Whoever holds it reads, until it has read.
    last: Arc<Mutex<Last>>,
}

/// When, and what. `None` before the first.
type Last = Option<(Instant, Arc<Outside>)>;

impl Sight {
    /// For a report that the daemon makes of itself.
    pub(crate) fn of_daemon() -> Self {
        Self {
            of_daemon: true,
            ..Self::default()
        }
    }

    pub(super) async fn look(&self, settings: &Settings, state_dir: &Path) -> Arc<Outside> {
        let (settings, state_dir) = (settings.clone(), state_dir.to_owned());
        let of_daemon = self.of_daemon;
        self.kept(move || Outside::read(&settings, &state_dir, of_daemon))
            .await
    }

    async fn kept(&self, read: impl FnOnce() -> Outside + Send + 'static) -> Arc<Outside> {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, kept)) = last.as_ref()
            && at.elapsed() < SERVES_FOR
        {
            return Arc::clone(kept);
        }
        let reading = spawn_blocking(carried(move || {
            let seen = Arc::new(read());
            *last = Some((Instant::now(), Arc::clone(&seen)));
            seen
        }));
        match reading.await {
            Ok(seen) => seen,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Only the end of the runtime cuts it off, and with it whoever asks.
                Err(_cut_off) => std::future::pending().await,
            },
        }
    }
}

impl Outside {
    fn read(settings: &Settings, state_dir: &Path, of_daemon: bool) -> Self {
        Self {
            daemon_running: is_served(state_dir),
            ledger: file(state_dir),
            disk: disk(state_dir),
            readers: holders(&state_dir.join(FILE_NAME)),
            files: files(settings, runs_as(state_dir)),
            process: if of_daemon {
                resources::of_this_process()
            } else {
                Vec::new()
            },
        }
    }
}

/// Asked about, never opened: SQLite's locks go with the first descriptor that is closed.
fn file(state_dir: &Path) -> LedgerFile {
    let path = state_dir.join(FILE_NAME);
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    // One that vanished, or was never there, takes no room.
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.len());
    LedgerFile {
        bytes: bytes(&path),
        wal_bytes: bytes(Path::new(&log)),
        path: path.display().to_string(),
        wal_held_since: None,
    }
}

/// What a directory lies on.
fn disk(state_dir: &Path) -> Disk {
    // What cannot be asked needs nobody.
    let disk = rustix::fs::statvfs(state_dir).ok();
    let disk = disk.as_ref();
    Disk {
        free_bytes: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        // A file system that makes inodes as it needs them has none to count.
        free_inodes: disk
            .filter(|disk| disk.f_files > 0)
            .map(|disk| disk.f_favail),
        read_only: disk
            .is_some_and(|disk| disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY)),
    }
}

/// What is wrong with what lies in the operator's files.
fn files(settings: &Settings, (user, owns): (u32, bool)) -> Vec<Need> {
    let hooks = settings.every_hook().into_iter();
    let exposed = hooks
        .chain(settings.attention.program())
        .filter_map(|hook| {
            let (program, args) = hook.run.split_first()?;
            let exposed = exposed::of_run(Path::new(program), args, user)?;
            let help = exposed.remedy(user);
            Some(Need::hook_exposed(&hook.name, &exposed.to_string(), help))
        });
    let certificate = certificate::look(&settings.listener, (user, owns));
    exposed.chain(certificate).collect()
}

/// The user tilld runs as, and whether it is whoever asks.
fn runs_as(state_dir: &Path) -> (u32, bool) {
    let own = rustix::process::geteuid().as_raw();
    let owner = std::fs::metadata(state_dir).map(|about| about.uid());
    (
        *owner.as_ref().unwrap_or(&own),
        owner.is_ok_and(|owner| owner == own),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use tokio::task::{JoinSet, yield_now};

    use super::*;

    #[tokio::test]
    async fn a_crowd_costs_one_reading_and_those_who_hang_up_begin_no_other() {
        let sight = Sight::default();
        let (hold, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let readings = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let (sight, held, readings) = (sight.clone(), Arc::clone(&held), Arc::clone(&readings));
            async move {
                let read = move || {
                    readings.fetch_add(1, Ordering::SeqCst);
                    held.lock()
                        .expect("one at a time")
                        .recv()
                        .unwrap_or_default();
                    Outside::read(&Settings::default(), Path::new("/no/such"), false)
                };
                sight.kept(read).await.daemon_running
            }
        };
        let mut crowd = JoinSet::new();
        for _ in 0..20 {
            crowd.spawn(ask());
        }
        // The thread that asks has turns for others meanwhile.
        while readings.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
        crowd.shutdown().await;
        for _ in 0..20 {
            crowd.spawn(ask());
        }
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(readings.load(Ordering::SeqCst), 1);
        drop(hold);
        while let Some(told) = crowd.join_next().await {
            assert!(!told.expect("told"));
        }
        assert_eq!(readings.load(Ordering::SeqCst), 1);
    }
}
