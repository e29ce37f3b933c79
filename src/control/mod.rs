//! The control socket: through it the shop, which is another user, opens invoices, shows them and learns that money came,
//! without holding the access token, the key file or the ledger.
//!
//! HTTP/1.1 and JSON over a Unix socket, never over a network. Whoever may connect is judged by the socket's mode and group
//! alone, and the log names who did. `Host` and `Origin` are not looked at, as they are where a browser could come by: none
//! reaches a Unix socket, and whoever connects may write any name there. Relies on [`crate::http`] for what a client may cost, on [`crate::opening`] and
//! [`crate::poller::now`] for what leaves the machine, and on [`crate::answer`] for the words. Promises that no answer holds
//! a secret, that what was begun for a client who left is finished, that a slow client delays nobody, and that at a stop every
//! task has ended, or [`Settings::stop_within`] is over.

mod call;
mod create;
mod events;
mod feed;
mod flights;
mod line;
mod list;
mod negotiate;
mod openapi;
mod poll;
mod position;
mod problem;
mod room;
mod route;
mod stream;
mod wait;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use crate::answer::failure::Failure;
use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::Gate;
use crate::http::{self, Limits, Local, Named, Response, Served, serve_local};
use crate::ledger::{Reader, Writer};
use crate::opening;
use crate::shutdown::Shutdown;
use crate::telemetry::LogRate;
use crate::wake::Wake;

use call::Call;
use feed::Feed;
use flights::Flights;
use line::Line;
pub(crate) use openapi::TEXT as OPENAPI;
use poll::Polls;
use room::Room;
use route::{Route, route};

/// On top of the time its request may take, an opening or a question may go on so long at a stop, until its answer is recorded.
const OPENING_MARGIN: Duration = Duration::from_secs(5);

/// How everything stands, looked up anew for each question.
pub(crate) type Status =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>> + Send + Sync>;

/// What the merchant chose.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// What a client may cost.
    pub limits: Limits,
    /// Followers of events at once, at most.
    pub followers: usize,
    /// Calls that wait for anything at once, at most: fewer than connections.
    pub waits: usize,
    /// How long requests in progress may go on after a stop.
    pub drain: Duration,
    /// How invoices are opened.
    pub opening: opening::Settings,
}

impl Settings {
    /// How long after the wish to stop it has stopped. Whoever is connected is cut off sooner, after the drain; an opening
    /// that was begun is finished, since nobody would know what became of it, and so is a question whose request has left.
    pub(crate) fn stop_within(&self) -> Duration {
        self.drain
            .max(self.opening.request_timeout + OPENING_MARGIN)
    }
}

/// What it works with.
pub(crate) struct Parts {
    /// Where rows are written.
    pub writer: Writer,
    /// Where clients read, at places of their own.
    pub reader: Reader,
    /// Where what is opened and polled for them is read: no list of another client holds a customer up.
    pub own: Reader,
    /// The service.
    pub client: Client,
    /// The gate all requests of this process pass.
    pub gate: Gate,
    /// The credentials file.
    pub store: Store,
    /// Where else an access token may lie.
    pub elsewhere: Elsewhere,
    /// Rung after each commit that holds an event.
    pub told: Wake,
    /// How everything stands.
    pub status: Status,
}

/// Serves the socket until `shutdown` is requested, then finishes what is in progress. The ledger's writer must outlive it.
pub(crate) async fn run(
    socket: Named,
    settings: Settings,
    parts: Parts,
    shutdown: Shutdown,
) -> Served {
    let (limits, drain) = (settings.limits.clone(), settings.drain);
    let stop_within = settings.stop_within();
    let under_way = TaskTracker::new();
    let room = Room::new(settings.waits);
    let (reader, told) = (parts.reader.clone(), parts.told.clone());
    let (feed, reading) = Feed::new(reader, told, settings.followers, room.clone());
    drop(under_way.spawn(reading.run(shutdown.clone())));
    let control = Control(Arc::new(Inner {
        settings,
        parts,
        feed,
        flights: Flights::default(),
        polls: Polls::default(),
        lines: line::rate(),
        stop: shutdown.clone(),
        room,
        under_way,
    }));
    // From the wish to stop, whether clients are there still or not.
    let stop_by = async {
        shutdown.requested().await;
        Instant::now() + stop_within
    };
    let serving = serve_local(socket, limits, control.clone(), shutdown.clone(), drain);
    let (served, stop_by) = tokio::join!(serving, stop_by);
    let under_way = &control.0.under_way;
    under_way.close();
    if timeout_at(stop_by, under_way.wait()).await.is_err() {
        tracing::warn!(
            control.under_way = under_way.len(),
            "tasks were still under way at the end: what becomes of an opening is heard by a notification"
        );
    }
    served
}

struct Control(Arc<Inner>);

impl Clone for Control {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner {
    settings: Settings,
    parts: Parts,
    feed: Feed,
    flights: Flights,
    polls: Polls,
    lines: LogRate,
    /// The wish to stop.
    stop: Shutdown,
    /// Seats of all that wait.
    room: Room,
    /// Every task of the socket's beside its connections, most of which go on whoever waits for them.
    under_way: TaskTracker,
}

impl http::Service for Control {
    type Peer = Local;

    async fn call(&self, request: Request<http::Body>, peer: Local) -> Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let routed = route(&method, &path);
        let mut line = Line::new(&self.0.lines, method, path, peer);
        let response = match routed {
            Ok(route) => self.answer(route, request).await,
            Err(no_route) => problem::no_route(&no_route),
        };
        line.answered(response.status());
        response
    }

    fn refuses(&self, refused: http::Refused) -> Response {
        problem::refused(refused)
    }
}

impl Control {
    async fn answer(&self, route: Route, request: Request<http::Body>) -> Response {
        let call = match Call::read(request, &self.0.settings.limits).await {
            Ok(call) => call,
            Err(error) => return problem::unread(error),
        };
        let answered = match route.takes(&call) {
            Ok(()) => self.called(route, &call).await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| problem::response(&failure))
    }

    async fn called(&self, route: Route, call: &Call) -> Result<Response, Failure> {
        let inner = &self.0;
        match route {
            Route::Create => create::run(inner, call).await,
            Route::List => list::run(inner, call).await,
            Route::Show(name) => list::show(inner, &name).await,
            Route::Wait(name) => wait::run(inner, call, &name).await,
            Route::Poll(name) => poll::run(inner, &name).await,
            Route::Events => events::run(inner, call).await,
            Route::Status => self.status().await,
            Route::OpenApi => Ok(openapi::response()),
        }
    }

    async fn status(&self) -> Result<Response, Failure> {
        let report = (self.0.parts.status)().await?;
        Ok(call::json(hyper::StatusCode::OK, &report))
    }
}
