//! A part of the daemon in a thread of its own, which nothing else has a turn in.
//!
//! What the listener does for a notification, and the outbox for a run of a hook, is a dozen short steps, each behind another's
//! end. In a runtime that shares its tasks among threads most of them wake a second thread, which finds that the first has
//! done the work: that costs as much as the steps. And a disk that a part waits for holds up that part alone.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::{Duration, MissedTickBehavior, interval};

use crate::pulse::Pulse;

/// How often a thread that is watched says that nothing holds it up.
pub(super) const TICK_EVERY: Duration = Duration::from_secs(5);

/// Threads for what blocks that each part has from its start on: with one of them a read waits where no more can be started,
/// and without any it would panic.
const THREADS: usize = 3;
/// They stay: a machine that has none to spare gives none back.
pub(crate) const THREADS_STAY: Duration = Duration::from_hours(24 * 365);
/// How long they may take to be there, on a machine that is busy.
const THREADS_WITHIN: Duration = Duration::from_secs(10);

/// Has a runtime start its threads for what blocks, and waits for them.
pub(super) fn furnish(runtime: &Handle) -> io::Result<()> {
    // A runtime panics where it finds no first thread.
    thread::Builder::new()
        .spawn(|| ())?
        .join()
        .unwrap_or_default();
    let (there, are_there) = mpsc::channel();
    let all = Arc::new(RwLock::new(()));
    // None ends before the last is there, so that each takes a thread of its own.
    let held = all.write().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..THREADS {
        let (there, all) = (there.clone(), Arc::clone(&all));
        drop(runtime.spawn_blocking(move || {
            there.send(()).unwrap_or_default();
            drop(all.read());
        }));
    }
    for _ in 0..THREADS {
        let late = |_late| io::Error::from(io::ErrorKind::WouldBlock);
        are_there.recv_timeout(THREADS_WITHIN).map_err(late)?;
    }
    drop(held);
    Ok(())
}

/// Starts the thread, which says by `ticks` that it has turns to give. What it gives resolves when the part has ended, and passes its panic on; dropping it cuts the part
/// off at its next step, and waits for nothing.
pub(super) fn start<Part: Future<Output = ()>>(
    name: &str,
    ticks: Option<Pulse>,
    part: impl FnOnce() -> Part + Send + 'static,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut ended, end) = oneshot::channel::<()>();
    // Made before there is anything to be lost by its failing.
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().thread_keep_alive(THREADS_STAY);
    let runtime = runtime.build()?;
    furnish(runtime.handle())?;
    let thread = thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let went = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    tokio::select! {
                        () = part() => {}
                        () = tick(ticks) => {}
                        // Nobody waits for it any more.
                        () = ended.closed() => {}
                    }
                });
            }));
            // What it left to threads that block, such as a directory to be removed, is nobody's wait.
            runtime.shutdown_background();
            if let Err(panic) = went {
                resume_unwind(panic);
            }
        })?;
    Ok(async move {
        // Dropped at the end of the thread, also by a panic: that is the word.
        end.await.unwrap_or_default();
        if let Err(panic) = thread.join() {
            resume_unwind(panic);
        }
    })
}

/// Never ends.
async fn tick(ticks: Option<Pulse>) {
    let Some(pulse) = ticks else {
        return std::future::pending().await;
    };
    let mut ticks = interval(TICK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        pulse.turn();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::task::{JoinSet, spawn_blocking};
    use tokio::time::timeout;

    use super::*;
    use crate::shutdown::Shutdown;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn its_end_and_its_panic_are_heard() {
        let name = |()| thread::current().name().map(str::to_owned);
        let part = move || async move { assert_eq!(name(()), Some("apart".to_owned())) };
        let ended = timeout(PATIENCE, start("apart", None, part).expect("a thread")).await;
        ended.expect("in time");
        let mut parts = JoinSet::new();
        let part = || async {
            // A disk that never answers keeps nobody from hearing of it.
            drop(spawn_blocking(thread::park));
            panic!("a bug")
        };
        parts.spawn(start("apart", None, part).expect("a thread"));
        let ended = timeout(PATIENCE, parts.join_next()).await.expect("in time");
        assert!(ended.is_some_and(|ended| ended.is_err_and(|error| error.is_panic())));
    }

    #[tokio::test]
    async fn it_is_cut_off_when_nobody_waits() {
        struct Tells(Shutdown);
        impl Drop for Tells {
            fn drop(&mut self) {
                self.0.request();
            }
        }
        let gone = Shutdown::new();
        let tells = Tells(gone.clone());
        let part = || async move {
            let _tells = tells;
            pending::<()>().await;
        };
        let mut parts = JoinSet::new();
        parts.spawn(start("apart", None, part).expect("a thread"));
        parts.shutdown().await;
        timeout(PATIENCE, gone.requested()).await.expect("in time");
    }
}
