//! The imitation payment service: the whole contract in one process, memory only, loopback only, seeded.
//!
//! Three addresses on two listeners: the service's API, the cabinet and the payment pages on one, the control listener for
//! tests on the other. It plays the remote party, so it shares the wire format with the rest of tilld and nothing else:
//! no ledger, no client, no config. What the contract leaves open is decided here once and said to be so.

mod config_file;
mod control;
mod form;
mod guard;
mod inventions;
mod notifier;
mod pages;
mod presented;
mod routes;
mod speed;
pub(crate) mod state;
pub(crate) mod statuses;
#[cfg(test)]
mod tests;
mod visitor;
mod waiting;
mod world;

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hyper::Request;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::notifier::Notifier;
use self::routes::Reply;
use self::speed::Speed;
use self::state::{Rules, State};
use self::world::{MOST_HANDED_OVER, World};
use crate::http::{self, Limits, Response};
use crate::shutdown::Shutdown;

pub(crate) use self::config_file::{WriteError, config_text, write_config};
pub(crate) use self::form::encode;
pub(crate) use self::inventions::text as inventions;
pub(crate) use self::notifier::SetupError;
pub(crate) use self::statuses::Statuses;
pub(crate) use self::visitor::{Page, VisitError, Visitor};

/// [`openapi`], but for the inventions, which have their place in its description.
const OPENAPI: &str = include_str!("openapi.json");
/// That place.
const INVENTIONS: &str = "{inventions}";

/// The service's API in the words of `OpenAPI` 3.1: `tilld sandbox openapi` prints it.
pub(crate) fn openapi() -> String {
    let text = serde_json::Value::from(inventions()).to_string();
    // Within the quotes of the description.
    OPENAPI.replacen(INVENTIONS, text.trim_matches('"'), 1)
}

/// Requests in progress at a stop get so long. Nobody's money waits for them.
const DRAIN: Duration = Duration::from_secs(1);
/// A stop takes at most so long, the drain included.
const STOP_TIME: Duration = Duration::from_secs(5);
/// How often closed payment windows are looked for when no request comes.
const TICK: Duration = Duration::from_millis(200);

/// What is wrong with faults, in the words of `POST /faults`, that are to be asked for later.
pub(crate) fn check_faults(asked: &serde_json::Value) -> Result<(), String> {
    control::fault::check(asked)
}

/// What the sandbox is started with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Address of the service, the cabinet and the payment pages. Loopback only; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the control listener. Loopback only; port 0 takes a free one.
    pub control: SocketAddr,
    /// Seed of its ids, codes and tokens. The same seed gives the same ids again, which a ledger that outlives the
    /// sandbox refuses: fixed only where the ledger is as young as the sandbox.
    pub seed: u64,
    /// Its status names.
    pub statuses: Statuses,
    /// Life of a login request, s. The contract's is 600, which is also what stands for none: at speed it then becomes no
    /// shorter than a person needs.
    pub login_lifetime_s: Option<u64>,
    /// Polling interval of a login, s, at least 1. The contract's is 5.
    pub interval_s: u64,
    /// Payment window of an invoice, s.
    pub invoice_lifetime_s: u64,
    /// Requisites of each method, each of which takes one open invoice of an amount. A Redirect invoice takes one when its
    /// customer chooses a method.
    pub pool: usize,
    /// Pause before a notification is tried again, ms. The sibling service's is 60 s.
    pub notify_retry_ms: u64,
    /// All of these times pass so many times faster, 1 to 3,600; see [`Times`].
    pub speed: u32,
    /// Answers are spelt plainly, without the freedom the contract leaves.
    pub is_plain: bool,
}

/// Life of a login request (contract 8), s.
const LOGIN_S: u64 = 600;
/// A person confirms a login at a person's speed: its life does not become shorter than this by itself, s.
const SHORTEST_LOGIN_S: u64 = 120;

/// The sandbox's times as they are, whatever its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Times {
    /// Life of a login request, s: its `expiresIn` at the beginning.
    pub login_s: u64,
    /// Between two polls of a login, s: its `interval`.
    pub interval_s: u64,
    /// In which an invoice can be paid, s: what its `expireAt` is after its `createdAt`.
    pub window_s: u64,
    /// Before a notification is tried again, ms.
    pub notify_retry_ms: u64,
}

impl Settings {
    /// The times as they are at this speed. What is told of them (`expiresIn`, `interval`, `expireAt`) is what they are.
    fn times(&self) -> Times {
        let speed = Speed::new(self.speed);
        let person_s = SHORTEST_LOGIN_S.max(speed.seconds(LOGIN_S));
        Times {
            login_s: self.login_lifetime_s.map_or(person_s, |s| speed.seconds(s)),
            interval_s: speed.seconds(self.interval_s),
            window_s: speed.seconds(self.invoice_lifetime_s.max(1)),
            notify_retry_ms: speed.ms(self.notify_retry_ms),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8490)),
            control: SocketAddr::from(([127, 0, 0, 1], 8491)),
            seed: 1,
            statuses: Statuses::default(),
            login_lifetime_s: None,
            interval_s: 5,
            invoice_lifetime_s: 1_800,
            pool: 20,
            notify_retry_ms: 60_000,
            speed: 1,
            is_plain: false,
        }
    }
}

/// Why the sandbox does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It hands out tokens to everybody who asks: only this machine may.
    #[error("the sandbox listens on loopback addresses only, not on `{0}`")]
    NotLoopback(SocketAddr),
    /// A status list it cannot work with.
    #[error("{0}")]
    Statuses(Cow<'static, str>),
    /// An interval of nothing.
    #[error("the polling interval is at least 1 second")]
    Interval,
    /// The port is taken, or may not be used.
    #[error("could not listen on `{address}`")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// No client for notifications.
    #[error(transparent)]
    Notifier(#[from] SetupError),
    /// A task of the sandbox ended by itself: a bug.
    #[error("a part of the sandbox ended by itself")]
    Ended,
}

/// A running sandbox. Dropping it ends it at once; [`Sandbox::stop`] ends it in order.
#[derive(Debug)]
pub(crate) struct Sandbox {
    service: SocketAddr,
    control: SocketAddr,
    seed: u64,
    speed: u32,
    times: Times,
    statuses: Statuses,
    world: World,
    shutdown: Shutdown,
    tasks: JoinSet<()>,
}

/// Starts the sandbox. Once this returns, both addresses answer. It stops when `shutdown` is requested.
pub(crate) async fn start(settings: Settings, shutdown: Shutdown) -> Result<Sandbox, Error> {
    if let Some(lack) = settings.statuses.lack() {
        return Err(Error::Statuses(lack));
    }
    if settings.interval_s == 0 {
        return Err(Error::Interval);
    }
    let times = settings.times();
    let (service_listener, service) = bind(settings.listen).await?;
    let (control_listener, control) = bind(settings.control).await?;
    let rules = Rules {
        statuses: settings.statuses.clone(),
        login_lifetime_s: times.login_s,
        interval_s: times.interval_s,
        invoice_lifetime_s: times.window_s,
        notify_retry_ms: times.notify_retry_ms,
        pool: settings.pool,
        speed: settings.speed,
        is_plain: settings.is_plain,
        cabinet_url: format!("http://{service}"),
        control_url: format!("http://{control}"),
        payment_url: format!("http://{service}/pay"),
    };
    let (sender, notices) = mpsc::channel(MOST_HANDED_OVER);
    let world = World::new(State::new(rules, settings.seed), sender);
    let retry_after = Duration::from_millis(times.notify_retry_ms);
    let notifier = Notifier::new(world.clone(), retry_after)?;
    let shutdown = shutdown.child();
    let mut tasks = JoinSet::new();
    tasks.spawn(notifier.clone().run(notices, shutdown.clone()));
    tasks.spawn(tick(world.clone(), shutdown.clone()));
    tasks.spawn(serve(
        service_listener,
        Site(world.clone()),
        shutdown.clone(),
    ));
    tasks.spawn(serve(
        control_listener,
        Controls {
            world: world.clone(),
            notifier,
        },
        shutdown.clone(),
    ));
    Ok(Sandbox {
        service,
        control,
        seed: settings.seed,
        speed: settings.speed,
        times,
        statuses: settings.statuses,
        world,
        shutdown,
        tasks,
    })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    if !address.ip().is_loopback() {
        return Err(Error::NotLoopback(address));
    }
    let failed = |source| Error::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Closes payment windows while nobody asks for anything.
async fn tick(world: World, shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            () = shutdown.requested() => return,
            _ = ticks.tick() => world.with(|_state, _now| ()),
        }
    }
}

async fn serve<S: http::Service<Peer = SocketAddr>>(
    listener: TcpListener,
    service: S,
    shutdown: Shutdown,
) {
    let served = http::serve(listener, Limits::default(), service, shutdown, DRAIN).await;
    tracing::debug!(?served, "a listener of the sandbox has stopped");
}

impl Sandbox {
    /// The service base address, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.service)
    }

    /// The cabinet address, without a slash at its end. The same as the service's.
    pub(crate) fn cabinet_url(&self) -> String {
        self.url()
    }

    /// The address of the control listener, without a slash at its end.
    pub(crate) fn control_url(&self) -> String {
        format!("http://{}", self.control)
    }

    /// The seed its ids, codes and tokens are made from.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// How many times faster than usual its times pass.
    pub(crate) const fn speed(&self) -> u32 {
        self.speed
    }

    /// Its times as they are at this speed.
    pub(crate) const fn times(&self) -> Times {
        self.times
    }

    /// Its status names.
    pub(crate) fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// This config of tilld was written for it: its pages name it.
    pub(crate) fn has_config(&self, path: &Path) {
        self.world
            .with(|state, _| state.config = Some(path.to_owned()));
    }

    /// Resolves when the stop was requested, or with an error when a part of the sandbox ended by itself.
    pub(crate) async fn stopping(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.shutdown.requested() => Ok(()),
            _ended = self.tasks.join_next() => if self.shutdown.is_requested() { Ok(()) } else { Err(Error::Ended) },
        }
    }

    /// Stops: finishes requests in progress for a second, drops notifications under way, and forgets everything.
    pub(crate) async fn stop(mut self) {
        self.shutdown.request();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIME, all).await.is_err() {
            tracing::warn!("the sandbox did not stop in time and is cut off");
            self.tasks.shutdown().await;
        }
    }
}

/// The service's listener: API and pages.
#[derive(Clone)]
struct Site(World);

impl http::Service for Site {
    type Peer = SocketAddr;

    async fn call(&self, request: Request<http::Body>, _peer: SocketAddr) -> Response {
        let (parts, body) = request.into_parts();
        // Before a byte of its body is waited for.
        if let Err(foreign) = guard::check(&parts) {
            return foreign.response();
        }
        let caller = body.caller();
        let body = match http::read_body(body, &Limits::default()).await {
            Ok(body) => body,
            Err(error) => return error.response(),
        };
        if !parts.uri.path().starts_with("/api/") {
            return pages::answer(&self.0, &parts, &body);
        }
        match routes::answer(&self.0, &parts, &body) {
            Reply::Now(response) => response,
            Reply::Held(response, ticket, time) => {
                waiting::hold(&self.0, ticket, time).await;
                response
            }
            Reply::HangUp => http::hang_up(),
            Reply::Never(ticket) => {
                waiting::hang(&self.0, ticket, &caller).await;
                http::hang_up()
            }
        }
    }
}

/// The control listener.
#[derive(Clone)]
struct Controls {
    world: World,
    notifier: Notifier,
}

impl http::Service for Controls {
    type Peer = SocketAddr;

    async fn call(&self, request: Request<http::Body>, _peer: SocketAddr) -> Response {
        let (parts, body) = request.into_parts();
        if let Err(foreign) = guard::check(&parts) {
            return foreign.response();
        }
        match http::read_body(body, &Limits::default()).await {
            Ok(body) => control::answer(&self.world, &self.notifier, &parts, &body).await,
            Err(error) => error.response(),
        }
    }
}

#[cfg(test)]
mod own_tests {
    use super::{Settings, Times, openapi};

    #[test]
    fn times_are_what_is_told_of_them_and_a_person_has_time() {
        let at = |speed, login_lifetime_s| {
            let settings = Settings {
                login_lifetime_s,
                speed,
                ..Settings::default()
            };
            settings.times()
        };
        let usual = Times {
            login_s: 600,
            interval_s: 5,
            window_s: 1_800,
            notify_retry_ms: 60_000,
        };
        assert_eq!(at(1, None), usual);
        let fast = Times {
            login_s: 120,
            interval_s: 1,
            window_s: 30,
            notify_retry_ms: 1_000,
        };
        assert_eq!(at(60, None), fast);
        // Said, it passes as all others do.
        assert_eq!(at(60, Some(600)).login_s, 10);
        assert_eq!(
            (at(3_600, None).window_s, at(3_600, None).login_s),
            (1, 120)
        );
    }

    #[test]
    fn the_description_says_what_is_invented() {
        let text: serde_json::Value = serde_json::from_str(&openapi()).expect("JSON");
        let described = text.pointer("/info/description").and_then(|d| d.as_str());
        let described = described.expect("a description");
        assert!(described.contains(&super::inventions()), "{described}");
    }
}
