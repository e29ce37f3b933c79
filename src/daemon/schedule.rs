//! The bell that sets the poller's cadence: the only home of `tokio_cron_scheduler`.
//!
//! The scheduler's jobs are detached, may overlap, and go silent when the clock is set back. So its one job only rings a
//! channel that holds one ring; the work is done by the poller's own loop, which looks by itself when no ring comes and
//! then has the scheduler built anew.

use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

use crate::poller::Bell;

/// Why the scheduler could not be started.
pub(super) type BellError = JobSchedulerError;

/// A bell rung by a cron job in UTC.
pub(super) struct CronBell {
    cadence: Duration,
    ring: Sender<()>,
    rings: Receiver<()>,
    scheduler: Option<JobScheduler>,
}

impl CronBell {
    /// Starts ringing every `cadence`, which must be whole seconds that divide 60: cron's steps restart each minute.
    pub(super) async fn start(cadence: Duration) -> Result<Self, JobSchedulerError> {
        let (ring, rings) = mpsc::channel(1);
        let scheduler = Some(start(cadence, ring.clone()).await?);
        Ok(Self {
            cadence,
            ring,
            rings,
            scheduler,
        })
    }
}

async fn start(cadence: Duration, ring: Sender<()>) -> Result<JobScheduler, JobSchedulerError> {
    let scheduler = JobScheduler::new().await?;
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

impl Bell for CronBell {
    async fn rung(&mut self) {
        // The bell holds a sender itself, so the channel never closes.
        self.rings.recv().await;
    }

    async fn renew(&mut self) {
        if let Some(mut old) = self.scheduler.take()
            && let Err(error) = old.shutdown().await
        {
            tracing::debug!(reason = %error, "the old scheduler did not stop");
        }
        match start(self.cadence, self.ring.clone()).await {
            Ok(new) => self.scheduler = Some(new),
            // The poller goes on looking by itself and asks for a new bell again.
            Err(error) => tracing::warn!(reason = %error, "the scheduler could not be started"),
        }
    }
}
