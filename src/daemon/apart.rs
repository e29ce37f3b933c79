//! A part of the daemon in a thread of its own, which nothing else has a turn in.
//!
//! What the listener does for a notification, and the outbox for a run of a hook, is a dozen short steps, each behind another's
//! end. In a runtime that shares its tasks among threads most of them wake a second thread, which finds that the first has
//! done the work: that costs as much as the steps. And a disk that a part waits for holds up that part alone.

use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Duration, MissedTickBehavior, interval, timeout};

use crate::pulse::Pulse;

/// How often a thread that is watched says that nothing holds it up.
pub(super) const TICK_EVERY: Duration = Duration::from_secs(5);

/// Threads for what blocks that a runtime has from its start on. The first only stays: as long as there is one, a runtime
/// that can start no further one has what blocks wait, and without any it would panic. The others do the work.
const THREADS: usize = 3;
/// How long they may take to be there, on a machine that is busy.
const THREADS_WITHIN: Duration = Duration::from_secs(10);
/// Between two tries for one that was refused: threads that ended just now may still count.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// So many at most. A look-up of a name may hold one for 20 s, and each of 64 creates begins another after 5 s.
const THREADS_AT_MOST: usize = 320;
/// What a rush has started ends when it had nothing to do for this long.
const IDLE_FOR: Duration = Duration::from_secs(20);
/// How often two threads are given something to do: in less time all others would stay, too.
const TEND_EVERY: Duration = Duration::from_secs(15);
const _: () = assert!(TEND_EVERY.as_secs() < IDLE_FOR.as_secs());
/// How long one of them waits there for the other, which it may have to itself to be started anew.
const MEET_WITHIN: Duration = Duration::from_millis(200);

/// Bounds a runtime's threads for what blocks.
pub(crate) fn bound(runtime: &mut Builder) -> &mut Builder {
    runtime
        .max_blocking_threads(THREADS_AT_MOST)
        .thread_keep_alive(IDLE_FOR)
}

/// Keeps the threads that [`furnish`] started, for as long as it is held.
pub(super) struct Furnished {
    /// Its end is that of the first thread's wait.
    _first: mpsc::Sender<()>,
}

/// Has the runtime that this runs on start its threads for what blocks, and waits for them.
pub(super) async fn furnish() -> io::Result<Furnished> {
    try_for_threads()?;
    // The one way to a first thread that does not panic where it is refused.
    let mut nothing = File::from_std(std::fs::File::options().write(true).open("/dev/null")?);
    let refused = |_| io::Error::other("no thread for what blocks could be started");
    nothing.write_all(b"\n").await.map_err(refused)?;
    nothing.flush().await?;
    let (there, mut are_there) = unbounded_channel();
    // None ends before the last is there, so that each takes a thread of its own.
    let held: Vec<mpsc::Sender<()>> = (0..THREADS)
        .map(|_| {
            let (there, (hold, held)) = (there.clone(), mpsc::channel());
            drop(spawn_blocking(move || {
                there.send(()).unwrap_or_default();
                held.recv().unwrap_or_default();
            }));
            hold
        })
        .collect();
    let all = async {
        for _ in &held {
            while timeout(ASK_EVERY, are_there.recv()).await.is_err() {
                // One that was refused is asked for only with something new to do.
                drop(spawn_blocking(|| ()));
            }
        }
    };
    let late = |_| io::Error::other("too few threads for what blocks could be started");
    timeout(THREADS_WITHIN, all).await.map_err(late)?;
    let first = held.into_iter().next();
    let first = first.ok_or_else(|| io::Error::other("no thread is wanted"))?;
    Ok(Furnished { _first: first })
}

/// Whether so many threads can be started, at once and with the system's own word if not.
fn try_for_threads() -> io::Result<()> {
    thread::scope(|all| {
        let mut held = Vec::new();
        for _ in 0..THREADS {
            let (hold, is_held) = mpsc::channel::<()>();
            held.push(hold);
            thread::Builder::new().spawn_scoped(all, move || is_held.recv().unwrap_or_default())?;
        }
        Ok(())
    })
}

/// Has the threads stay.
pub(super) async fn tend(furnished: Furnished) -> Infallible {
    tend_every(TEND_EVERY, furnished).await
}

async fn tend_every(every: Duration, _furnished: Furnished) -> Infallible {
    let mut turns = interval(every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        // Two at once: one that ended, while the process stood still for long, is started anew.
        let (here, are_here) = mpsc::channel();
        drop(spawn_blocking(move || {
            are_here.recv_timeout(MEET_WITHIN).unwrap_or_default();
        }));
        drop(spawn_blocking(move || here.send(()).unwrap_or_default()));
    }
}

/// Starts the thread, which says by `ticks` that it has turns to give. What it gives resolves when the part has ended, and passes its panic on; dropping it cuts the part
/// off at its next step, and waits for nothing.
pub(super) fn start<Part: Future<Output = ()>>(
    name: &str,
    ticks: Option<Pulse>,
    part: impl FnOnce() -> Part + Send + 'static,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut ended, end) = oneshot::channel::<()>();
    let (told, is_told) = mpsc::channel();
    let thread = thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            // Made here: where the part is begun from another runtime runs, in which none may be dropped.
            let (runtime, furnished) = match furnished() {
                Ok(made) => made,
                Err(error) => return told.send(Err(error)).unwrap_or_default(),
            };
            told.send(Ok(())).unwrap_or_default();
            let went = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    tokio::select! {
                        () = part() => {}
                        () = tick(ticks) => {}
                        never = tend(furnished) => match never {},
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
    is_told.recv().map_err(io::Error::other)??;
    Ok(async move {
        // Dropped at the end of the thread, also by a panic: that is the word.
        end.await.unwrap_or_default();
        if let Err(panic) = thread.join() {
            resume_unwind(panic);
        }
    })
}

/// Before there is anything to be lost by its failing.
fn furnished() -> io::Result<(Runtime, Furnished)> {
    let runtime = bound(&mut Builder::new_current_thread())
        .enable_all()
        .build()?;
    let furnished = runtime.block_on(furnish())?;
    Ok((runtime, furnished))
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;
    use tokio::time::sleep;

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

    #[test]
    fn threads_of_a_rush_end_and_those_that_are_needed_stay() {
        const RUSH: usize = 20;
        let alive = Arc::new(AtomicUsize::new(0));
        let (more, fewer) = (Arc::clone(&alive), Arc::clone(&alive));
        let runtime = bound(&mut Builder::new_current_thread())
            .enable_all()
            .thread_keep_alive(IDLE_FOR / 100)
            .on_thread_start(move || {
                more.fetch_add(1, Ordering::SeqCst);
            })
            .on_thread_stop(move || {
                fewer.fetch_sub(1, Ordering::SeqCst);
            })
            .build()
            .expect("a runtime");
        let now = || alive.load(Ordering::SeqCst);
        let turns = Duration::from_millis(5);
        runtime.block_on(async {
            let furnished = furnish().await.expect("threads");
            assert!(now() >= THREADS, "{}", now());
            let mut holds = Vec::new();
            for _ in 0..RUSH {
                let (hold, held) = mpsc::channel::<()>();
                holds.push(hold);
                drop(spawn_blocking(move || held.recv()));
            }
            let ends = async {
                while now() < RUSH {
                    sleep(turns).await;
                }
                drop(holds);
                while now() > THREADS {
                    sleep(turns).await;
                }
            };
            let tended = tend_every(TEND_EVERY / 100, furnished);
            tokio::select! {
                ended = timeout(PATIENCE, ends) => ended.expect("in time"),
                never = tended => match never {},
            }
            assert!(now() > 1, "one that stays, and one that works");
        });
    }
}
