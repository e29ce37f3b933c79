//! Sends notifications the way the sibling service documents: the invoice object as a POST, the notify token in a header,
//! two more tries when the answer is anything but 200, then never again.
//!
//! Notifications of one invoice go out one after another, each only when the one before it is done with; those of
//! different invoices side by side. Faults are obeyed here. Only loopback addresses are ever spoken to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::guard;
use super::presented::{self, Message};
use super::state::faults::{Presentation, Treatment};
use super::state::notice::{Answer, Notice};
use super::world::World;
use crate::secret::Secret;
use crate::shutdown::Shutdown;

/// Tries in all: one and two more, as the sibling service documents.
const TRIES: u32 = 3;
/// Connections to shops at once. Enough for "twenty at the same time", few enough for any machine.
const AT_ONCE: usize = 64;
/// Notifications waiting in all lanes. Beyond them new ones are dropped, and the book says so.
const MOST_WAITING: usize = 50_000;
/// A shop has so long to take a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// A shop has so long to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// A notification held for reordering goes out by itself after this, should no other one follow.
const LONGEST_HOLD: Duration = Duration::from_secs(10);

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
                    let reorder = self.world.with(|state, _| state.faults.reorder);
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
        let treatment = self.world.with(|state, _| state.faults.treat());
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
        let mut treatment = self.world.with(|state, _| state.faults.treat());
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
            copies.spawn(async move {
                let answer = own.send(&notice, &how).await;
                own.record(&notice, attempt, answer.clone());
                answer
            });
        }
        copies.join_all().await
    }

    async fn send(&self, notice: &Notice, how: &Treatment) -> Answer {
        let Some(mut url) = loopback(&notice.url) else {
            return Answer::NotLoopback;
        };
        // Never closed: the notifier owns it.
        let Ok(_slot) = self.slots.acquire().await else {
            return Answer::None("stopping");
        };
        let wrong = how.wrong_token.then(|| wrong_token(&notice.token));
        let token = wrong.as_ref().unwrap_or(&notice.token);
        let mut body = notice.body.clone();
        let headers = match &how.presentation {
            Presentation::Query(name) => {
                url.query_pairs_mut().append_pair(name, token.expose());
                Vec::new()
            }
            Presentation::Body(pointer) => {
                body = with_token(&body, pointer, token.expose());
                Vec::new()
            }
            in_headers => {
                let message = Message {
                    id: format!("msg_{}_{}", notice.invoice, notice.number),
                    sent_s: self.world.with(|_, now| now) / 1_000,
                    body: &body,
                };
                presented::headers(in_headers, token, &message)
            }
        };
        let mut request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json");
        for (name, text) in headers {
            let Ok(mut value) = HeaderValue::from_str(&text) else {
                return Answer::None("the token does not fit into a header");
            };
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        match request.body(body).send().await {
            Ok(response) => Answer::Code(response.status().as_u16()),
            Err(error) if error.is_timeout() => Answer::None("time-out"),
            Err(error) if error.is_connect() => Answer::None("no connection"),
            Err(_cut_short) => Answer::None("connection closed"),
        }
    }

    fn record(&self, notice: &Notice, attempt: u32, answer: Answer) {
        self.world
            .with(|state, now| state.record_attempt(notice, attempt, answer, now));
    }
}

/// The notifications that wait, one lane per invoice.
#[derive(Default)]
struct Lanes {
    by_invoice: HashMap<u64, Lane>,
    /// Lanes that have something to start.
    ready: VecDeque<u64>,
    /// Notifications held for reordering and when they go out by themselves, the soonest first.
    held: VecDeque<(Notice, Instant)>,
    waiting: usize,
    running: JoinSet<u64>,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Notice>,
    busy: bool,
}

impl Lanes {
    /// Takes a notification in; under `reorder` it is held, or goes before the one that is. `Err` gives it back: full.
    fn put(&mut self, notice: Notice, reorder: bool) -> Result<(), Notice> {
        if self.waiting + self.held.len() >= MOST_WAITING {
            return Err(notice);
        }
        let held = self
            .held
            .iter()
            .position(|(held, _)| held.invoice == notice.invoice)
            .and_then(|at| self.held.remove(at));
        match (held, reorder) {
            (None, true) => self.held.push_back((notice, Instant::now() + LONGEST_HOLD)),
            (None, false) => self.queue(notice),
            (Some((older, _)), true) => {
                self.queue(notice);
                self.queue(older);
            }
            (Some((older, _)), false) => {
                self.queue(older);
                self.queue(notice);
            }
        }
        Ok(())
    }

    fn queue(&mut self, notice: Notice) {
        let invoice = notice.invoice;
        let lane = self.by_invoice.entry(invoice).or_default();
        lane.waiting.push_back(notice);
        self.waiting += 1;
        if !lane.busy {
            self.ready.push_back(invoice);
        }
    }

    /// Lets the longest-held notification go.
    fn let_go(&mut self) {
        if let Some((notice, _)) = self.held.pop_front() {
            self.queue(notice);
        }
    }

    /// A delivery is over; `None` when its task died.
    fn finished(&mut self, invoice: Option<u64>) {
        let Some(invoice) = invoice else { return };
        let Some(lane) = self.by_invoice.get_mut(&invoice) else {
            return;
        };
        lane.busy = false;
        if lane.waiting.is_empty() {
            self.by_invoice.remove(&invoice);
        } else {
            self.ready.push_back(invoice);
        }
    }

    fn start(&mut self, notifier: &Notifier) {
        while let Some(invoice) = self.ready.pop_front() {
            let Some(lane) = self.by_invoice.get_mut(&invoice).filter(|lane| !lane.busy) else {
                continue;
            };
            let Some(notice) = lane.waiting.pop_front() else {
                continue;
            };
            lane.busy = true;
            self.waiting -= 1;
            let notifier = notifier.clone();
            self.running.spawn(async move {
                notifier.deliver(&notice).await;
                invoice
            });
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The address, when it is one of this machine.
fn loopback(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    url.host_str()
        .is_some_and(guard::is_loopback)
        .then_some(url)
}

/// A token of the same length that is not this one.
fn wrong_token(token: &Secret) -> Secret {
    let length = token.expose().chars().count();
    let guess = "x".repeat(length);
    Secret::new(if guess == token.expose() {
        "y".repeat(length)
    } else {
        guess
    })
}

/// The document with the token at a JSON pointer; objects on the way are made.
fn with_token(body: &str, pointer: &str, token: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(body) else {
        return body.to_owned();
    };
    let mut place = &mut document;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(object) = place else { break };
        place = object.entry(name).or_insert(Value::Null);
    }
    *place = token.into();
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(invoice: u64, number: u64) -> Notice {
        Notice {
            invoice,
            number,
            url: "http://127.0.0.1:9/".into(),
            token: Secret::new("t".repeat(40)),
            status: "paid".into(),
            body: "{}".into(),
        }
    }

    fn order(reorder: &[bool]) -> Vec<u64> {
        let mut lanes = Lanes::default();
        for (number, reorder) in (1..).zip(reorder) {
            assert!(lanes.put(notice(1, number), *reorder).is_ok());
        }
        lanes.let_go();
        let lane = lanes.by_invoice.remove(&1).expect("a lane");
        lane.waiting.into_iter().map(|n| n.number).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn reordering_swaps_neighbours_and_loses_none() {
        assert_eq!(order(&[false, false, false]), [1, 2, 3]);
        assert_eq!(order(&[true, true, true, true]), [2, 1, 4, 3]);
        assert_eq!(order(&[true, true, true]), [2, 1, 3]);
        assert_eq!(order(&[true, false, false]), [1, 2, 3]);
    }

    #[test]
    fn the_token_stands_where_it_was_told_to() {
        assert_eq!(
            with_token("{\"id\":\"a\"}", "/notificationToken", "secret"),
            "{\"id\":\"a\",\"notificationToken\":\"secret\"}"
        );
        assert_eq!(with_token("{}", "/a/b~1c", "s"), "{\"a\":{\"b/c\":\"s\"}}");
    }

    #[test]
    fn only_loopback_is_spoken_to() {
        assert!(loopback("http://127.0.0.1:8480/n/ref").is_some());
        assert!(loopback("http://[::1]:8480/n").is_some());
        for elsewhere in [
            "https://shop.example/n",
            "http://10.0.0.1/",
            "http://127.0.0.1@shop.example/",
            "n",
        ] {
            assert!(loopback(elsewhere).is_none(), "{elsewhere}");
        }
    }

    #[test]
    fn a_wrong_token_is_as_long_and_not_the_same() {
        for text in ["t".repeat(43), "x".repeat(43)] {
            let wrong = wrong_token(&Secret::new(text.clone()));
            assert!(wrong.expose().len() == 43 && wrong.expose() != text);
        }
    }
}
