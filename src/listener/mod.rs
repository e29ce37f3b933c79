//! The public listener: hears the payment service's notifications.
//!
//! Relies on [`crate::http`] for everything a client may cost, and on [`Book`] for the ledger. Promises that 200 means
//! durable, that whatever is not beyond doubt changes nothing, and that a sender learns nothing from a refusal: the shape
//! is judged before the token, the token before anything else, and an unknown ref or id costs and answers like a wrong
//! token. Every refused POST is handed to the ledger's gatherer, which asks the service about the invoice if it is known.

mod address;
mod answer;
mod book;
mod heard;
pub mod notification;
mod outlive;
pub mod presentation;
mod reason;
mod remembered;
pub mod route;
mod sender;
mod tell;
#[cfg(test)]
mod tests;
mod trace;

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Request};
use tokio::time::{Duration, Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::http::{
    self, Bodies, BodyError, Certificates, Limits, Peer, Public, Response, Served, Unserved,
    read_body_among,
};
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::Observation;
use crate::invoice::transition::Decision;
use crate::ledger::{InvoiceKey, Refusal, Watched};
use crate::panics::contained;
use crate::secret::{Cutter, Hidden, Secret};
use crate::shutdown::Shutdown;
use crate::telemetry::LogRate;
use crate::{clock, entropy, fault};

pub use self::book::{Book, LedgerBook, Unavailable};
pub use self::heard::Heard;
pub use self::reason::Reason;
pub use self::sender::Trusted;

use self::address::Address;
use self::notification::{Misshapen, Notification, is_compressed, is_form};
use self::outlive::Outliving;
use self::presentation::{Carried, Place, Presentations, Verdict};
use self::remembered::Remembered;
use self::route::{PublicAddress, Route};
use self::trace::{header_names, sha256_hex};

/// The header in which `tilld doctor` marks its request.
pub(crate) const OWN_MARK: &str = "x-tilld-doctor";

/// How long after the last connection storing may go on. The writer's own budget for a lock held by others is 5 s.
const STORING_TIME: Duration = Duration::from_secs(6);

/// How often a refused notification of a known invoice is told as a warning. Whoever knows a ref could otherwise fill
/// the log; the ledger keeps the refusals.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// How often the others are told, and what came to a path that is none of ours: anybody can cause these.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// What the merchant chose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What stands in front of the ref.
    pub public: PublicAddress,
    /// Where the notify token may stand.
    pub presentations: Presentations,
    /// With them the port speaks TLS.
    pub certificates: Option<Certificates>,
    /// The proxies whose word on who sent a request is taken.
    pub trusted: Trusted,
    /// What a sender may cost.
    pub limits: Limits,
    /// Access tokens, which nothing that is kept or told may hold.
    pub hidden: Hidden,
    /// Bytes of bodies at once, of all senders together.
    pub bodies_bytes: usize,
    /// How long requests in progress may go on after a stop.
    pub drain: Duration,
    /// Where what is heard is counted.
    pub heard: Arc<Heard>,
}

/// Hears notifications on `socket` until `shutdown` is requested, then finishes requests in progress and what they
/// began to store. The ledger's writer must outlive it.
pub(crate) async fn run<B: Book>(
    socket: impl Into<Public>,
    settings: Settings,
    book: B,
    shutdown: Shutdown,
) -> Served {
    let (limits, drain) = (settings.limits.clone(), settings.drain);
    let certificates = settings.certificates.clone();
    let remembered = Remembered::load(&settings.presentations, &book).await;
    let bodies = Bodies::within(settings.bodies_bytes);
    let listener = Listener(Arc::new(Inner {
        settings,
        book,
        bodies,
        nobodys: NotifyToken::from_entropy(entropy::bytes()),
        remembered,
        storing: TaskTracker::new(),
        refused_known: LogRate::new(1, WARN_EVERY),
        refused: LogRate::new(1, TELL_EVERY),
        astray: LogRate::new(1, TELL_EVERY),
        unserved: LogRate::new(1, TELL_EVERY),
    }));
    let socket = (socket.into(), certificates);
    let served = http::serve_public(socket, limits, listener.clone(), shutdown, drain).await;
    let storing = &listener.0.storing;
    storing.close();
    if timeout(STORING_TIME, storing.wait()).await.is_err() {
        tracing::warn!(
            listener.storing = storing.len(),
            "notifications were still being stored at the end of the drain"
        );
    }
    served
}

struct Listener<B>(Arc<Inner<B>>);

impl<B> Clone for Listener<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<B> {
    settings: Settings,
    book: B,
    bodies: Bodies,
    /// The token of no invoice, compared with what is presented for unknown refs, so that they cost the same.
    nobodys: NotifyToken,
    /// The place that worked.
    remembered: Remembered,
    /// What is still being stored although the connection it came by is gone (A17), and what is remembered.
    storing: TaskTracker,
    /// Lines on refusals for known invoices, on other refusals, on POSTs to other paths, and on what was no request.
    refused_known: LogRate,
    refused: LogRate,
    astray: LogRate,
    unserved: LogRate,
}

/// What was found in one that could be read.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it moves once"
)]
enum Seen<'p> {
    /// It is authentic: what it says, and the place that carried its token.
    Right(Observation, &'p Place),
    /// It is not, as far as could be seen.
    Doubtful(Verdict<'p>),
}

/// What is known of a POST when it is refused.
struct Arrival {
    address: Address,
    parts: Parts,
    peer: Peer,
    received_ms: i64,
    body: Option<Bytes>,
}

impl<B: Book> http::Service for Listener<B> {
    type Peer = Peer;

    fn unserved(&self, why: Unserved, peer: &Peer) {
        self.0.settings.heard.unserved(why);
        self.0.tell_unserved(why, *peer);
    }

    async fn call(&self, request: Request<http::Body>, peer: Peer) -> Response {
        let inner = &self.0;
        let target = request.uri();
        match inner.settings.public.route(request.method(), target) {
            Route::Look => answer::present(),
            Route::OtherMethod => answer::other_method(),
            Route::Elsewhere => {
                if request.method() == Method::POST {
                    inner.tell_astray(target, peer, request.headers());
                }
                answer::elsewhere()
            }
            Route::Notification(segment) => {
                let address = InvoiceRef::parse(segment)
                    .map_or_else(|| Address::Nobodys(segment.to_owned()), Address::Own);
                inner.hear(address, request, peer).await
            }
            Route::Bare => inner.hear(Address::Bare, request, peer).await,
        }
    }
}

impl<B: Book> Inner<B> {
    /// One POST on an address: its headers, its body's shape, then its token.
    async fn hear(&self, address: Address, request: Request<http::Body>, peer: Peer) -> Response {
        fault::point("request");
        let received_ms = clock::wall_ms();
        let (parts, body) = request.into_parts();
        let mut arrival = Arrival {
            address,
            parts,
            peer,
            received_ms,
            body: None,
        };
        if is_compressed(&arrival.parts.headers) {
            return self
                .refuse_unseen(arrival, Reason::BodyCompressed, answer::unsupported())
                .await;
        }
        let body = match self.read(&arrival.address, body).await {
            Ok(body) => {
                // One buffer for both: the notification is read where it lies.
                arrival.body = Some(body.clone());
                body
            }
            Err(error) => {
                if error == BodyError::NoRoom {
                    self.settings.heard.unserved(Unserved::BodiesFull);
                    self.tell_unserved(Unserved::BodiesFull, arrival.peer);
                }
                let Some(reason) = Reason::of_body(error) else {
                    // Says nothing of the sender, and there is no time for the ledger.
                    return error.response();
                };
                return self.refuse_unseen(arrival, reason, error.response()).await;
            }
        };
        // Before the body is looked into: what is read of it may be several times its size, and is never kept for a wait.
        let watched = self.watched(&arrival.address, &body).await;
        let is_unavailable = watched.is_err();
        let watched = watched.ok().flatten();
        let token = watched.as_ref().and_then(|watched| watched.token.as_ref());
        match self.look_into(&arrival, &body, token) {
            Ok(_seen) if is_unavailable => {
                let reason = Reason::LedgerUnavailable;
                self.refuse(&arrival, None, reason, answer::unavailable())
            }
            Ok(seen) => self.judge(arrival, watched.as_ref(), seen).await,
            Err(misshapen) => {
                let (reason, response) = if is_form(&arrival.parts.headers) {
                    (Reason::BodyForm, answer::unsupported())
                } else {
                    (misshapen.into(), answer::misshapen())
                };
                self.refuse(&arrival, watched.as_ref(), reason, response)
            }
        }
    }

    async fn read(&self, address: &Address, body: http::Body) -> Result<Bytes, BodyError> {
        let is_known = async {
            match address {
                Address::Own(reference) => {
                    let watched = self.book.watched(reference.clone()).await;
                    watched.is_ok_and(|watched| watched.is_some())
                }
                Address::Nobodys(_) | Address::Bare => false,
            }
        };
        let bodies = self.bodies.clone();
        read_body_among(body, &self.settings.limits, bodies, is_known).await
    }

    /// What it carries as its token, and what it says if that is the right one. All that is looked at is looked at whether the
    /// invoice is known or not.
    fn look_into(
        &self,
        arrival: &Arrival,
        body: &Bytes,
        token: Option<&NotifyToken>,
    ) -> Result<Seen<'_>, Misshapen> {
        let notification = Notification::read(body)?;
        let carried = Carried {
            headers: &arrival.parts.headers,
            query: arrival.parts.uri.query(),
            body: notification.object(),
            raw: body,
        };
        let presentations = &self.settings.presentations;
        let verdict = presentations.judge(token.unwrap_or(&self.nobodys), carried);
        Ok(match (verdict, token) {
            (Verdict::Right(place), Some(token)) => {
                let hidden = self.settings.hidden.all();
                let at_ms = arrival.received_ms;
                Seen::Right(notification.into_observation(token, &hidden, at_ms), place)
            }
            (verdict, _) => Seen::Doubtful(verdict),
        })
    }

    /// What becomes of one that could be read.
    async fn judge(&self, arrival: Arrival, watched: Option<&Watched>, seen: Seen<'_>) -> Response {
        // Looked at for every invoice, known or not.
        let is_own = self.is_own(&arrival);
        match (watched, seen) {
            (Some(invoice), Seen::Right(observation, place)) => {
                tracing::debug!(
                    invoice.key = invoice.key.0,
                    listener.place = %place,
                    "a notification carried its token in `{place}`"
                );
                self.store(&arrival, invoice, observation, place).await
            }
            // What is missing from a ledger that was written over was never looked for.
            (invoice, _) if !self.book.stands().await => {
                let reason = Reason::LedgerUnavailable;
                self.refuse(&arrival, invoice, reason, answer::unavailable())
            }
            // The invoice is known, so a sender that is right must come again.
            (Some(known), _) if known.token.is_none() => {
                let reason = Reason::TokenUnreadable;
                self.refuse(&arrival, Some(known), reason, answer::unavailable())
            }
            (invoice, seen) => {
                let reason = match (invoice, seen, &arrival.address) {
                    (None, _, Address::Own(_)) if is_own => Reason::Doctor,
                    (None, _, Address::Own(_) | Address::Nobodys(_)) => Reason::RefUnknown,
                    (None, _, Address::Bare) => Reason::InvoiceUnknown,
                    (Some(_), Seen::Doubtful(verdict), _) => Reason::of_verdict(verdict)
                        .expect("the right token is what makes one right"),
                    (Some(_), Seen::Right(..), _) => unreachable!("it was stored above"),
                };
                self.refuse(&arrival, invoice, reason, answer::unauthorized())
            }
        }
    }

    /// `tilld doctor` asks for nobody's invoice, to see whether its request arrives.
    fn is_own(&self, arrival: &Arrival) -> bool {
        match (&arrival.address, arrival.parts.headers.get(OWN_MARK)) {
            (Address::Own(reference), Some(mark)) => self.book.is_own(reference, mark.as_bytes()),
            _ => false,
        }
    }

    /// Stores it, whatever becomes of the request.
    async fn store(
        &self,
        arrival: &Arrival,
        invoice: &Watched,
        observation: Observation,
        place: &Place,
    ) -> Response {
        let (book, key) = (self.book.clone(), invoice.key);
        let storing = async move { book.record(key, observation).await };
        let recorded = Outliving::new(storing, &self.storing).await;
        match recorded {
            Ok(Decision::NotThisInvoice) => self.refuse(
                arrival,
                Some(invoice),
                Reason::NotThisInvoice,
                answer::unauthorized(),
            ),
            Ok(_stored) => {
                self.settings.heard.stored(arrival.received_ms);
                self.remember(place);
                self.note_heard(key, arrival.received_ms);
                answer::stored()
            }
            Err(Unavailable) => self.refuse(
                arrival,
                Some(invoice),
                Reason::LedgerUnavailable,
                answer::unavailable(),
            ),
        }
    }

    /// Writes down, beside the answer and only when it is news, where a stored notification had its token.
    fn remember(&self, place: &Place) {
        if let Some(news) = self.remembered.news(place, Instant::now()) {
            let writing = self.remembered.write(news, self.book.clone());
            // Nobody waits for it but the stop.
            drop(self.storing.spawn(contained(Box::pin(writing))));
        }
    }

    /// Writes down now and then that one was stored. One that cannot be written is written with the next: it tells hours.
    fn note_heard(&self, invoice: InvoiceKey, at_ms: i64) {
        if self.settings.heard.is_worth_a_note(at_ms) {
            let book = self.book.clone();
            let writing = async move {
                let remembered = book.remember_heard(at_ms, invoice).await;
                remembered.unwrap_or_default();
            };
            drop(self.storing.spawn(contained(Box::pin(writing))));
        }
    }

    /// The invoice it is for. On the bare path only a body of the right shape names one.
    async fn watched(
        &self,
        address: &Address,
        body: &[u8],
    ) -> Result<Option<Watched>, Unavailable> {
        match address {
            Address::Own(reference) => self.book.watched(reference.clone()).await,
            Address::Bare => match names(body) {
                Some((id, order_id)) => self.book.watched_by_names(id, order_id).await,
                None => Ok(None),
            },
            Address::Nobodys(_) => Ok(None),
        }
    }

    /// Refuses before the invoice was looked up. The look-up is only for the nudge, and its trouble changes no answer.
    async fn refuse_unseen(
        &self,
        arrival: Arrival,
        reason: Reason,
        response: Response,
    ) -> Response {
        let watched = self.watched(&arrival.address, &[]).await;
        self.refuse(&arrival, watched.ok().flatten().as_ref(), reason, response)
    }

    fn refuse(
        &self,
        arrival: &Arrival,
        watched: Option<&Watched>,
        reason: Reason,
        response: Response,
    ) -> Response {
        self.settings.heard.refused(reason);
        let headers = &arrival.parts.headers;
        let peer = self.sender(arrival.peer, headers);
        let invoice = watched.map(|watched| watched.key);
        let own = watched.and_then(|watched| watched.token.as_ref());
        let hidden = self.settings.hidden.all();
        let hidden: Vec<&Secret> = hidden.iter().chain(own.map(NotifyToken::secret)).collect();
        if reason != Reason::Doctor {
            self.tell_refused(invoice, reason.as_str(), &peer);
        }
        let reason = reason.as_str();
        let body = arrival.body.as_deref();
        self.book.refuse(Refusal {
            invoice,
            ref_hash: arrival.address.hash(),
            header_names: header_names(headers, &Cutter::new(&hidden)),
            reason,
            at_ms: arrival.received_ms,
            peer,
            body_bytes: body.map_or(0, <[u8]>::len),
            body_sha256: body.map(sha256_hex).unwrap_or_default(),
        });
        response
    }

    /// Who sent it, for people.
    fn sender(&self, peer: Peer, headers: &HeaderMap) -> String {
        let sender = self.settings.trusted.sender(peer.ip(), headers);
        sender.map_or_else(|| peer.host(), |address| address.to_string())
    }
}

/// The names in a body by which an invoice without a ref is found.
fn names(body: &[u8]) -> Option<(InvoiceId, Option<String>)> {
    let told = Notification::read(body).ok()?;
    Some((told.id().clone(), told.order_id().map(str::to_owned)))
}
