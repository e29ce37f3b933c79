//! The imitation payment service: the whole contract in one process, memory only, loopback only, seeded.
//!
//! Three addresses on two listeners: the service's API, the cabinet and the payment pages on one, the control listener for
//! tests on the other. It plays the remote party, so it shares the wire format with the rest of tilld and nothing else:
//! no ledger, no client, no config. What the contract leaves open is decided here once and said to be so.

mod config_file;
mod control;
mod form;
mod guard;
mod notifier;
mod pages;
mod presented;
mod routes;
pub(crate) mod state;
pub(crate) mod statuses;
#[cfg(test)]
mod tests;
mod visitor;
mod waiting;
mod world;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::Request;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::notifier::Notifier;
use self::routes::Reply;
use self::state::{Rules, State};
use self::world::{MOST_HANDED_OVER, World};
use crate::http::{self, Limits, Response};
use crate::shutdown::Shutdown;

pub(crate) use self::config_file::{WriteError, config_text, write_config};
pub(crate) use self::notifier::SetupError;
pub(crate) use self::statuses::Statuses;
pub(crate) use self::visitor::{Page, VisitError, Visitor};

/// The service's API in the words of `OpenAPI` 3.1: `tilld sandbox openapi` prints it.
pub(crate) const OPENAPI: &str = include_str!("openapi.json");

/// Requests in progress at a stop get so long. Nobody's money waits for them.
const DRAIN: Duration = Duration::from_secs(1);
/// A stop takes at most so long, the drain included.
const STOP_TIME: Duration = Duration::from_secs(5);
/// How often closed payment windows are looked for when no request comes.
const TICK: Duration = Duration::from_millis(200);

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
    /// Life of a login request, s. The contract's is 600.
    pub login_lifetime_s: u64,
    /// Polling interval of a login, s, at least 1. The contract's is 5.
    pub interval_s: u64,
    /// Payment window of an invoice, s.
    pub invoice_lifetime_s: u64,
    /// Requisites in the pool. A Redirect invoice takes one when its customer chooses a method.
    pub pool: usize,
    /// Pause before a notification is tried again, ms. The sibling service's is 60 s.
    pub notify_retry_ms: u64,
    /// All of these times pass so many times faster, 1 to 3,600; see [`Settings::hastened`].
    pub speed: u32,
    /// Answers are spelt plainly, without the freedom the contract leaves.
    pub is_plain: bool,
}

/// A person confirms a login at a person's speed: its life does not become shorter than this, s.
const SHORTEST_LOGIN_S: u64 = 120;

impl Settings {
    /// With the times as they are at this speed. What is told of them (`expiresIn`, `interval`, `expireAt`) is what they are;
    /// none becomes nothing.
    fn hastened(mut self) -> Self {
        let speed = u64::from(self.speed.max(1));
        let login_s = (self.login_lifetime_s / speed).max(SHORTEST_LOGIN_S);
        self.login_lifetime_s = login_s.min(self.login_lifetime_s);
        self.interval_s = (self.interval_s / speed).max(u64::from(self.interval_s > 0));
        self.invoice_lifetime_s = (self.invoice_lifetime_s / speed).max(1);
        self.notify_retry_ms /= speed;
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8490)),
            control: SocketAddr::from(([127, 0, 0, 1], 8491)),
            seed: 1,
            statuses: Statuses::default(),
            login_lifetime_s: 600,
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
    Statuses(&'static str),
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
    statuses: Statuses,
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
    let settings = settings.hastened();
    let (service_listener, service) = bind(settings.listen).await?;
    let (control_listener, control) = bind(settings.control).await?;
    let rules = Rules {
        statuses: settings.statuses.clone(),
        login_lifetime_s: settings.login_lifetime_s,
        interval_s: settings.interval_s,
        invoice_lifetime_s: settings.invoice_lifetime_s,
        pool: settings.pool,
        speed: settings.speed,
        is_plain: settings.is_plain,
        cabinet_url: format!("http://{service}"),
        control_url: format!("http://{control}"),
        payment_url: format!("http://{service}/pay"),
    };
    let (sender, notices) = mpsc::channel(MOST_HANDED_OVER);
    let world = World::new(State::new(rules, settings.seed), sender);
    let retry_after = Duration::from_millis(settings.notify_retry_ms);
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
        Controls { world, notifier },
        shutdown.clone(),
    ));
    Ok(Sandbox {
        service,
        control,
        seed: settings.seed,
        speed: settings.speed,
        statuses: settings.statuses,
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

    /// Its status names.
    pub(crate) fn statuses(&self) -> &Statuses {
        &self.statuses
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
        let caller = body.caller();
        let body = match http::read_body(body, &Limits::default()).await {
            Ok(body) => body,
            Err(error) => return error.response(),
        };
        if let Err(foreign) = guard::check(&parts) {
            return foreign.response();
        }
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
        let body = match http::read_body(body, &Limits::default()).await {
            Ok(body) => body,
            Err(error) => return error.response(),
        };
        match guard::check(&parts) {
            Ok(()) => control::answer(&self.world, &self.notifier, &parts, &body).await,
            Err(foreign) => foreign.response(),
        }
    }
}

#[cfg(test)]
mod speed_tests {
    use super::Settings;

    #[test]
    fn times_pass_faster_and_none_becomes_nothing() {
        let at = |speed| {
            let settings = Settings {
                speed,
                ..Settings::default()
            };
            let at = settings.hastened();
            [
                at.login_lifetime_s,
                at.interval_s,
                at.invoice_lifetime_s,
                at.notify_retry_ms,
            ]
        };
        assert_eq!(at(1), [600, 5, 1_800, 60_000]);
        assert_eq!(at(60), [120, 1, 30, 1_000]);
        assert_eq!(at(3_600), [120, 1, 1, 16]);
    }
}
