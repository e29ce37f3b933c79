//! Sends notifications the way the sibling service documents: the invoice object as a POST, the notify token in a header,
//! two more tries when the answer is anything but 200, then never again.
//!
//! Their order is that of [`lanes`], what goes over the line that of [`post`]. Faults are obeyed here.

mod flow;
mod lanes;
mod post;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::lanes::Lanes;
use super::state::faults::Treatment;
use super::state::notice::{Answer, Notice, Sent};
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

/// What is left to do with one notification.
#[derive(Debug)]
struct Delivery {
    notice: Notice,
    treatment: Treatment,
    /// The try that comes next, from 1.
    attempt: u32,
}

impl Notifier {
    /// A notifier that waits `retry_after` between two tries.
    pub(crate) fn new(world: World, retry_after: Duration) -> Result<Self, SetupError> {
        provide_tls();
        let client = Client::builder()
            .no_proxy()
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
                        self.record(&dropped, 0, Sent::default(), Answer::Overflow);
                    }
                }
                Some(done) = lanes.running.join_next() => lanes.finished(done.ok(), &self),
                // A delivery that has left its lane is over, or its task died: nobody waits for it.
                Some(_over) = lanes.apart.join_next() => {}
                () = sleep_until(hold_ends) => lanes.let_go(),
            }
            lanes.start(&self);
        }
        lanes.running.shutdown().await;
        lanes.apart.shutdown().await;
    }

    /// Sends one notification for the first time, unless that takes its time by intention. What is left to do with it after
    /// that: newer ones of its invoice may pass it then.
    async fn begin(&self, notice: Notice) -> Option<Delivery> {
        let treatment = self.world.with(|state, _| state.faults.treat(&notice));
        if treatment.lost {
            self.record(&notice, 1, treatment.sent(1), Answer::Lost);
            return None;
        }
        let delivery = Delivery {
            notice,
            treatment,
            attempt: 1,
        };
        if delivery.treatment.lets_others_pass() {
            return Some(delivery);
        }
        self.attempt(delivery).await
    }

    /// All tries that are left.
    async fn finish(&self, delivery: Delivery) {
        if delivery.attempt == 1 {
            tokio::time::sleep(Duration::from_millis(delivery.treatment.delay_ms)).await;
        } else {
            tokio::time::sleep(self.retry_after).await;
        }
        let mut left = self.attempt(delivery).await;
        while let Some(delivery) = left {
            tokio::time::sleep(self.retry_after).await;
            left = self.attempt(delivery).await;
        }
    }

    /// One try. What is left after it, if it was not the last.
    async fn attempt(&self, mut delivery: Delivery) -> Option<Delivery> {
        let Delivery {
            notice,
            treatment,
            attempt,
        } = &delivery;
        let answers = self.send_copies(notice, *attempt, treatment).await;
        let is_over =
            answers.contains(&Answer::Code(200)) || answers.contains(&Answer::NotLoopback);
        delivery.attempt += 1;
        (!is_over && delivery.attempt <= TRIES).then_some(delivery)
    }

    /// Sends one notification `times` times at once, outside its lane and without further tries. Gives every answer.
    pub(crate) async fn send_now(&self, notice: &Notice, times: u32) -> Vec<Answer> {
        let mut treatment = self.world.with(|state, _| state.faults.treat(notice));
        if treatment.lost {
            self.record(notice, 1, treatment.sent(1), Answer::Lost);
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
            copies.spawn(async move {
                let answer = own.send(&notice, &how, how.flow_of(attempt)).await;
                own.record(&notice, attempt, how.sent(attempt), answer.clone());
                answer
            });
        }
        copies.join_all().await
    }

    fn record(&self, notice: &Notice, attempt: u32, sent: Sent, answer: Answer) {
        self.world
            .with(|state, now| state.record_attempt(notice, attempt, sent, answer, now));
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
