//! Sends notifications the way the sibling service documents: the invoice object as a POST, the notify token in a header,
//! two more tries when the answer is anything but 200, then never again.
//!
//! Their order is that of [`lanes`], what goes over the line that of [`post`]. Faults are obeyed here.

mod flow;
mod lanes;
mod names;
mod post;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::lanes::Lanes;
pub(super) use self::names::OwnNames;
use super::state::faults::{Flow, Treatment};
use super::state::notice::{Answer, Notice};
use super::world::World;
use crate::shutdown::Shutdown;

/// Tries in all: one and two more, as the sibling service documents.
const TRIES: u32 = 3;
/// Connections to shops at once. Enough for "twenty at the same time", few enough for any machine.
const AT_ONCE: usize = 64;
/// A shop has so long to take a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// A shop has so long to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("could not set up the sandbox's HTTP client")]
pub(crate) struct SetupError(#[source] pub(super) reqwest::Error);

/// Gives reqwest the TLS provider it wants to be given, once per process.
pub(super) fn provide_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Lost races leave the same provider installed by somebody else.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// Sends notifications. Cloned freely.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    client: Client,
    world: World,
    retry_after: Duration,
    slots: Arc<Semaphore>,
}

impl Notifier {
    /// A notifier that waits `retry_after` between two tries.
    pub(crate) fn new(world: World, retry_after: Duration) -> Result<Self, SetupError> {
        provide_tls();
        let client = Client::builder()
            .no_proxy()
            .dns_resolver(Arc::new(OwnNames))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME)
            .timeout(ANSWER_TIME)
            // Every notification on a connection of its own: a sender elsewhere shares nothing with the shop.
            .pool_max_idle_per_host(0)
            .user_agent("tilld-sandbox")
            .build()
            .map_err(SetupError)?;
        Ok(Self {
            client,
            world,
            retry_after,
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// Sends what arrives until the stop, then drops what is under way.
    pub(crate) async fn run(self, mut notices: mpsc::Receiver<Notice>, shutdown: Shutdown) {
        let mut lanes = Lanes::default();
        loop {
            let hold_ends = lanes.held.front().map(|(_, until)| *until);
            tokio::select! {
                () = shutdown.requested() => break,
                Some(notice) = notices.recv() => {
                    let reorder = self.world.with(|state, _| state.faults.reorders(&notice));
                    if let Err(dropped) = lanes.put(notice, reorder) {
                        self.record(&dropped, 0, Answer::Overflow);
                    }
                }
                Some(done) = lanes.running.join_next() => lanes.finished(done.ok()),
                () = sleep_until(hold_ends) => lanes.let_go(),
            }
            lanes.start(&self);
        }
        lanes.running.shutdown().await;
    }

    /// Delivers one notification: all its tries, as the faults say.
    async fn deliver(&self, notice: &Notice) {
        let treatment = self.world.with(|state, _| state.faults.treat(notice));
        if treatment.lost {
            self.record(notice, 1, Answer::Lost);
            return;
        }
        tokio::time::sleep(Duration::from_millis(treatment.delay_ms)).await;
        for attempt in 1..=TRIES {
            if attempt > 1 {
                tokio::time::sleep(self.retry_after).await;
            }
            let answers = self.send_copies(notice, attempt, &treatment).await;
            if answers.contains(&Answer::Code(200)) || answers.contains(&Answer::NotLoopback) {
                return;
            }
        }
    }

    /// Sends one notification `times` times at once, outside its lane and without further tries. Gives every answer.
    pub(crate) async fn send_now(&self, notice: &Notice, times: u32) -> Vec<Answer> {
        let mut treatment = self.world.with(|state, _| state.faults.treat(notice));
        if treatment.lost {
            self.record(notice, 1, Answer::Lost);
            return vec![Answer::Lost];
        }
        treatment.copies = treatment.copies.max(times);
        tokio::time::sleep(Duration::from_millis(treatment.delay_ms)).await;
        self.send_copies(notice, 1, &treatment).await
    }

    async fn send_copies(&self, notice: &Notice, attempt: u32, how: &Treatment) -> Vec<Answer> {
        let mut copies = JoinSet::new();
        for _ in 0..how.copies {
            let (own, notice, how) = (self.clone(), notice.clone(), how.clone());
            // A line that is bad once is a good one the next time.
            let flow = if attempt == 1 { how.flow } else { Flow::Whole };
            copies.spawn(async move {
                let answer = own.send(&notice, &how, flow).await;
                own.record(&notice, attempt, answer.clone());
                answer
            });
        }
        copies.join_all().await
    }

    fn record(&self, notice: &Notice, attempt: u32, answer: Answer) {
        self.world
            .with(|state, now| state.record_attempt(notice, attempt, answer, now));
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
