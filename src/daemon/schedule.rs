//! The bell that sets the poller's cadence: the only home of `tokio_cron_scheduler`.
//!
//! The scheduler's jobs are detached, may overlap, and go silent when the clock is set back. So its one job only rings a
//! channel that holds one ring; the work is done by the poller's own loop, which looks by itself when no ring comes and
//! then has the scheduler built anew.
//!
//! The scheduler looks at the clock twice a second, for a job that is due every few: more wake-ups than all else of an idle
//! daemon. So it lives in a runtime of its own, on a thread of its own, which stands still while nothing is due: the thread
//! sleeps as long as the scheduler says, and then lets it run until it has rung.

use std::io;
use std::sync::mpsc::{self as between_threads, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

use crate::poller::Bell;

/// The scheduler runs so long for one ring at most. It needs some microseconds, or one of its half seconds.
const RUNS_AT_MOST: Duration = Duration::from_secs(1);
/// Between two looks whether it has planned the next ring, while it runs.
const PLANNED_WITHIN: Duration = Duration::from_millis(1);
/// Places in each of the scheduler's channels, which it makes for hundreds of jobs otherwise: 130 KiB for one.
const CHANNELS: usize = 4;
/// The thread's stack, bytes: it calls nothing that is deep.
const STACK: usize = 256 * 1024;

/// Why the scheduler could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BellError {
    /// No thread or runtime for it.
    #[error("could not start a thread")]
    Thread(#[source] io::Error),
    /// It would not start.
    #[error("the scheduler refused its job")]
    Scheduler(#[source] JobSchedulerError),
    /// Its thread ended.
    #[error("the scheduler's thread ended at once")]
    Ended,
}

/// A bell rung by a cron job in UTC.
pub(super) struct CronBell {
    cadence: Duration,
    ring: Sender<()>,
    rings: Receiver<()>,
    scheduler: Option<Driver>,
}

impl CronBell {
    /// Starts ringing every `cadence`, which must be whole seconds that divide 60: cron's steps restart each minute.
    pub(super) async fn start(cadence: Duration) -> Result<Self, BellError> {
        let (ring, rings) = mpsc::channel(1);
        let scheduler = Some(Driver::start(cadence, ring.clone()).await?);
        Ok(Self {
            cadence,
            ring,
            rings,
            scheduler,
        })
    }
}

impl Bell for CronBell {
    async fn rung(&mut self) {
        // The bell holds a sender itself, so the channel never closes.
        self.rings.recv().await;
    }

    async fn renew(&mut self) {
        drop(self.scheduler.take());
        match Driver::start(self.cadence, self.ring.clone()).await {
            Ok(new) => self.scheduler = Some(new),
            // The poller goes on looking by itself and asks for a new bell again.
            Err(error) => tracing::warn!(reason = %error, "the scheduler could not be started"),
        }
    }
}

/// The thread that lets the scheduler run. Ends when this is dropped, within [`RUNS_AT_MOST`]; nobody waits for it, since
/// whoever drops this has other things to do, and it holds nothing that is missed.
struct Driver {
    /// Its end is the thread's.
    _stop: between_threads::Sender<()>,
}

impl Driver {
    async fn start(cadence: Duration, ring: Sender<()>) -> Result<Self, BellError> {
        let (stop, stopped) = between_threads::channel();
        let (started, has_started) = oneshot::channel();
        thread::Builder::new()
            .name("poll-bell".into())
            .stack_size(STACK)
            .spawn(move || match Standing::start(cadence, ring) {
                Ok(mut standing) => {
                    if started.send(Ok(())).is_ok() {
                        standing.run(&stopped);
                    }
                }
                // Whoever asked for it may be gone, and then needs no answer.
                Err(error) => drop(started.send(Err(error))),
            })
            .map_err(BellError::Thread)?;
        has_started.await.unwrap_or(Err(BellError::Ended))?;
        Ok(Self { _stop: stop })
    }
}

/// A scheduler that stands still except when it is let run.
struct Standing {
    runtime: Runtime,
    scheduler: JobScheduler,
    cadence: Duration,
    /// The job's own channel, so that the scheduler is let run until the ring is heard.
    rung: Receiver<()>,
    ring: Sender<()>,
}

impl Standing {
    fn start(cadence: Duration, ring: Sender<()>) -> Result<Self, BellError> {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(BellError::Thread)?;
        let (job, rung) = mpsc::channel(1);
        let scheduler = runtime.block_on(started(cadence, job));
        Ok(Self {
            scheduler: scheduler.map_err(BellError::Scheduler)?,
            runtime,
            cadence,
            rung,
            ring,
        })
    }

    fn run(&mut self, stopped: &between_threads::Receiver<()>) {
        loop {
            // No longer than a cadence: by a clock that was set back the scheduler waits for hours, and by one that was set
            // forward since it was asked it would have rung long ago.
            let wait = self.till_next().unwrap_or(self.cadence).min(self.cadence);
            if let Ok(()) | Err(RecvTimeoutError::Disconnected) = stopped.recv_timeout(wait) {
                return;
            }
            if self.let_run()
                && let Err(TrySendError::Closed(())) = self.ring.try_send(())
            {
                return;
            }
        }
    }

    fn till_next(&mut self) -> Option<Duration> {
        let asked = self.runtime.block_on(self.scheduler.time_till_next_job());
        asked.ok().flatten()
    }

    /// Lets the scheduler run until its job has rung and the next ring is planned. False when nothing rang.
    fn let_run(&mut self) -> bool {
        let (scheduler, rung) = (&mut self.scheduler, &mut self.rung);
        self.runtime.block_on(async move {
            let has_rung = timeout(RUNS_AT_MOST, rung.recv()).await.is_ok();
            let planned = async {
                while let Ok(None) = scheduler.time_till_next_job().await {
                    sleep(PLANNED_WITHIN).await;
                }
            };
            // What is not planned now is by the next time it is let run.
            drop(timeout(RUNS_AT_MOST, planned).await);
            has_rung
        })
    }
}

async fn started(cadence: Duration, ring: Sender<()>) -> Result<JobScheduler, JobSchedulerError> {
    let scheduler = JobScheduler::new_with_channel_size(CHANNELS).await?;
    let seconds = cadence.as_secs().clamp(1, 60);
    // `*/60` is no step of seconds; once a minute is second 0.
    let cron = if seconds == 60 {
        "0 * * * * *".to_owned()
    } else {
        format!("*/{seconds} * * * * *")
    };
    let job = Job::new_async(cron.as_str(), move |_id, _scheduler| {
        let ring = ring.clone();
        Box::pin(async move {
            // Full means: a ring waits already, and one is enough.
            if let Err(TrySendError::Closed(())) = ring.try_send(()) {
                tracing::trace!("the poller's bell rang after the poller had ended");
            }
        })
    })?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    Ok(scheduler)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Standing still must cost no ring: the scheduler is asked and run again and again.
    #[tokio::test]
    async fn it_rings_at_every_step_of_the_clock() {
        let second = Duration::from_secs(1);
        let mut bell = CronBell::start(second).await.expect("a scheduler");
        let mut times = Vec::new();
        for _ in 0..5 {
            timeout(second * 30, bell.rung()).await.expect("a ring");
            times.push(Instant::now());
        }
        // Without standing still it would be the same number; a ring that was lost would double one of the pauses.
        let pauses = times.iter().zip(times.iter().skip(1));
        let pauses: Vec<Duration> = pauses.map(|(one, next)| *next - *one).collect();
        let middle = {
            let mut sorted = pauses.clone();
            sorted.sort_unstable();
            sorted.get(pauses.len() / 2).copied()
        };
        assert!(
            middle.is_some_and(|middle| middle < second * 2),
            "{pauses:?}"
        );
        bell.renew().await;
        timeout(second * 30, bell.rung()).await.expect("a ring");
    }
}
