//! Opens an invoice safely: row first, then the request, then the record of its answer. Whatever dies in between, the
//! ledger knows that a request may have left, and nothing is ever posted twice by itself (A01, A32).

pub(crate) mod adopt;
mod earlier;
pub(crate) mod patient;
mod pauses;

use std::time::Duration;

use tokio::time::Instant;

use crate::client::Client;
use crate::client::error::CreateError;
use crate::client::gate::outage::Verdict;
use crate::client::gate::{Caller, Closed, Gate, Permit};
use crate::clock;
use crate::entropy;
use crate::invoice::ids::{InvoiceRef, OrderId};
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Asked, Observation, Source};
use crate::invoice::opening::{Difference, Judgement, Mode, Wanted, judge};
use crate::invoice::status::Outcome;
use crate::ledger::{
    Begun, Intent, InvoiceKey, InvoiceRow, ReadError, Reader, Settled, WriteError, Writer,
};
use crate::process_mark::ProcessMark;
use crate::secret::Secret;
use crate::shutdown::Shutdown;
use crate::telemetry::chain;
use crate::wire::create::{CreateRequest, ReturnUrls};

use earlier::Checked;
pub(crate) use earlier::Why;

/// A creator that has not recorded an answer this long after the request's own time limit never will.
const CREATOR_SLACK: Duration = Duration::from_secs(5);
/// How often a creation under way elsewhere is looked at. It takes as long as a request.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// An answer in hand is offered to the ledger for this long: it is worth more than the wait.
const RECORD_FOR: Duration = Duration::from_mins(1);
/// Between two offers.
const RECORD_EVERY: Duration = Duration::from_millis(500);
/// How long a request may wait for its turn at the gate before it is given up. Nothing was written by then.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// How invoices are opened here.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The address the service reaches the listener at, without a slash at the end; the notificationUrl is
    /// `{public_url}/{ref}`.
    pub public_url: String,
    /// The request's own time limit.
    pub request_timeout: Duration,
    /// The `startDeal` sent.
    pub start_deal: bool,
    /// How long a Redirect invoice, which has no `expireAt`, counts as open, milliseconds.
    pub window_ms: i64,
}

/// What is to be opened.
#[expect(clippy::struct_field_names, reason = "`order_id` is one word here")]
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The merchant's order.
    pub order_id: OrderId,
    /// Amount, method, mode.
    pub wanted: Wanted,
    /// The return addresses, exactly when the mode is Redirect.
    pub return_urls: Option<ReturnUrls>,
}

/// Everything an opening works with.
pub(crate) struct Opener<'a> {
    /// Where rows are written.
    pub writer: &'a Writer,
    /// Where rows are read.
    pub reader: &'a Reader,
    /// The service.
    pub client: &'a Client,
    /// The access token.
    pub token: &'a Secret,
    /// The gate all requests pass.
    pub gate: &'a Gate,
    /// How.
    pub settings: &'a Settings,
}

/// How it ended, where the ledger has the answer.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The service opened it just now.
    Fresh(Box<InvoiceRow>),
    /// The service opened it just now, and another invoice paid the order meanwhile.
    Overtaken(Box<InvoiceRow>),
    /// It was open already and is what was asked for.
    Standing(Box<InvoiceRow>),
    /// The order is paid: nothing was opened.
    Paid(Box<InvoiceRow>),
    /// An earlier request of this order may have arrived: nothing was sent.
    Unknown(Box<InvoiceRow>),
    /// This invoice of the order is superseded, and can be paid or holds a payment that does not pay the order: nothing was
    /// sent.
    Superseded(Box<InvoiceRow>),
    /// The order has an open invoice that differs in the named respect: nothing was sent.
    Differs(Box<InvoiceRow>, Difference),
}

/// How it ended, where there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The service wants to be left alone for longer than this command waits. Nothing was sent.
    #[error("could not send the request")]
    Gate(#[source] Closed),
    /// The request's end, as far as it is known; it stands in the ledger too.
    #[error("could not open an invoice for order `{order_id}`")]
    Create {
        /// The order.
        order_id: String,
        /// How the request ended.
        #[source]
        source: CreateError,
    },
    /// The ledger could not be written before the request: nothing was sent.
    #[error("could not write the invoice's row, so no request was sent")]
    Before(#[source] WriteError),
    /// An earlier invoice of the order may have been paid: nothing was sent.
    #[error("invoice `{}` of order `{}` may have been paid: {why}", row.invoice_id.as_deref().unwrap_or_default(), row.order_id)]
    Unsettled {
        /// That invoice.
        row: Box<InvoiceRow>,
        /// Why it is not settled.
        why: Why,
    },
    /// The process stops, or nobody waits any more: no request leaves. Nothing was sent.
    #[error("tilld stops, so no request was sent")]
    Stopping,
    /// The ledger took the row too late for the request to leave within its time: nothing was sent.
    #[error("the ledger was busy for too long, so no request was sent")]
    Late,
    /// The ledger could not be read while waiting for a creation under way: nothing was sent.
    #[error("could not look at the creation under way for order `{order_id}`")]
    Look {
        /// The order.
        order_id: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The service answered and the answer could not be recorded.
    #[error(
        "the service opened invoice `{invoice_id}` for order `{order_id}`, but the ledger could not record it"
    )]
    After {
        /// The order.
        order_id: String,
        /// The service's id.
        invoice_id: String,
        /// Why.
        #[source]
        source: WriteError,
    },
}

/// What one invoice to be opened goes by, made before its row. A try that certainly created nothing may be followed by
/// another with the same ticket: then its row begins anew.
#[derive(Debug)]
struct Ticket {
    reference: InvoiceRef,
    token: NotifyToken,
    /// The ref of the tries in another mode that these stand in for.
    instead_of: Option<InvoiceRef>,
    /// Requests that left, or were to leave.
    tries: u32,
}

impl Ticket {
    fn new() -> Self {
        Self {
            reference: InvoiceRef::from_entropy(entropy::bytes()),
            token: NotifyToken::from_entropy(entropy::bytes()),
            instead_of: None,
            tries: 0,
        }
    }

    /// A ticket for another mode, of no use any more once the service is heard of this one's invoice after all.
    fn instead(&self) -> Self {
        Self {
            instead_of: Some(self.reference.clone()),
            ..Self::new()
        }
    }

    /// How a try ended, as it stands in the ledger.
    fn note(&self, reason: &str) -> String {
        match self.tries {
            0 | 1 => reason.to_owned(),
            tries => format!("{reason} (try {tries})"),
        }
    }
}

/// What the ledger says by itself. A page that is loaded again needs no turn at the gate, and is answered while the
/// service is away; whatever else is found is judged again by the writer.
async fn look_first(reader: &Reader, window_ms: i64, order: &Order) -> Option<Opened> {
    let found = reader.standing_of_order(order.order_id.as_str(), window_ms);
    // The writer reports trouble with the ledger.
    let (mut rows, standing): (Vec<_>, Vec<_>) = found.await.ok()??.into_iter().unzip();
    let judged = judge(&standing, &order.wanted, clock::wall_ms());
    let mut row = |at| (at < rows.len()).then(|| Box::new(rows.swap_remove(at)));
    match judged {
        // A superseded one must stand for the order first.
        Judgement::Standing(at) => row(at)
            .filter(|row| row.superseded.is_none())
            .map(Opened::Standing),
        Judgement::Paid(at) => row(at).map(Opened::Paid),
        Judgement::Superseded(at) => row(at).map(Opened::Superseded),
        Judgement::Unknown(at) => row(at).map(Opened::Unknown),
        Judgement::Differs(at, what) => row(at).map(|row| Opened::Differs(row, what)),
        Judgement::Open | Judgement::BeingCreated(_) | Judgement::Unsettled(_) => None,
    }
}

impl Opener<'_> {
    /// A turn at the gate, unless the wish to stop comes first: a request that left then might be cut off.
    async fn turn(&self, within: Duration, stop: &Shutdown) -> Result<Permit, Error> {
        let permit = tokio::select! {
            permit = self.gate.admit_within(Caller::Create, within) => permit.map_err(Error::Gate)?,
            () = stop.requested() => return Err(Error::Stopping),
        };
        if stop.is_requested() {
            return Err(Error::Stopping);
        }
        Ok(permit)
    }

    /// Opens an invoice, or finds why none is to be opened. Waits for a creation of the same order that is under way.
    async fn try_once(
        &self,
        order: &Order,
        ticket: &mut Ticket,
        (turn_within, stop): (Duration, &Shutdown),
    ) -> Result<Opened, Error> {
        let mut checked = Checked::default();
        let was_paid = order.wanted.anew && self.is_paid(order).await?;
        loop {
            // The turn comes first: once the row is written, the request must leave within its time.
            let permit = self.turn(turn_within, stop).await?;
            let began = Instant::now();
            let begun = self
                .writer
                .begin_opening(self.intent(order, ticket, checked.keys()))
                .await
                .map_err(Error::Before)?;
            // The row's deadline counts from before the wait for the ledger; a request that left now could outlive it.
            let leaves = matches!(begun, Begun::Fresh(_)) && began.elapsed() <= CREATOR_SLACK / 2;
            let permit = if leaves {
                Some(permit)
            } else {
                permit.unused();
                None
            };
            match (begun, permit) {
                (Begun::Fresh(key), None) => {
                    let note = Settled::Refused("the ledger was busy for too long".to_owned());
                    self.settle(key, note).await.map_err(Error::Before)?;
                    return Err(Error::Late);
                }
                (Begun::Fresh(key), Some(permit)) => {
                    ticket.tries += 1;
                    let row = Box::new(self.request(order, key, ticket, permit).await?);
                    let paid = Outcome::Paid.as_str();
                    let by = row.superseded.as_ref().filter(|by| by.outcome == paid);
                    if by.is_some() && !was_paid {
                        return Ok(Opened::Overtaken(row));
                    }
                    return Ok(Opened::Fresh(row));
                }
                (Begun::Standing(row), _) => return Ok(Opened::Standing(row)),
                (Begun::Paid(row), _) => return Ok(Opened::Paid(row)),
                (Begun::Superseded(row), _) => return Ok(Opened::Superseded(row)),
                (Begun::Unknown(row), _) => return Ok(Opened::Unknown(row)),
                (Begun::Differs(row, what), _) => return Ok(Opened::Differs(row, what)),
                (Begun::BeingCreated(row), _) => self.wait_for(&row, stop).await?,
                (Begun::Unsettled(row), _) => self.check(row, &mut checked, stop).await?,
            }
        }
    }

    /// Whether the order is paid before another invoice of it is opened on purpose.
    async fn is_paid(&self, order: &Order) -> Result<bool, Error> {
        let found = self.reader.invoices_of_order(order.order_id.as_str()).await;
        let found = found.map_err(|source| Error::Look {
            order_id: order.order_id.to_string(),
            source,
        })?;
        Ok(found
            .first()
            .is_some_and(|row| row.outcome == Outcome::Paid))
    }

    fn intent(&self, order: &Order, ticket: &Ticket, polled: Vec<InvoiceKey>) -> Intent {
        let now_ms = clock::wall_ms();
        let limit = self.settings.request_timeout + CREATOR_SLACK;
        Intent {
            order_id: order.order_id.clone(),
            wanted: order.wanted.clone(),
            sealed: self.writer.seal(&ticket.token, &ticket.reference),
            reference: ticket.reference.clone(),
            instead_of: ticket.instead_of.clone(),
            creator: ProcessMark::own(),
            now_ms,
            deadline_ms: now_ms
                .saturating_add(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)),
            window_ms: self.settings.window_ms,
            polled,
        }
    }

    /// Sends the request whose row stands, and records how it ended.
    async fn request(
        &self,
        order: &Order,
        key: InvoiceKey,
        ticket: &Ticket,
        permit: Permit,
    ) -> Result<InvoiceRow, Error> {
        let Ticket {
            reference, token, ..
        } = ticket;
        let Wanted {
            sum,
            method,
            mode,
            anew: _,
        } = &order.wanted;
        let request = CreateRequest {
            internal_id: order.order_id.as_str().to_owned(),
            amount: sum.amount.clone(),
            currency: sum.currency.clone(),
            start_deal: self.settings.start_deal,
            method: method.clone(),
            notification_url: format!("{}/{}", self.settings.public_url, reference.as_str()),
            notification_token: token.secret().clone(),
            return_urls: match mode {
                Mode::H2h | Mode::Unknown => None,
                Mode::Redirect => order.return_urls.clone(),
            },
        };
        let order_id = || order.order_id.to_string();
        let asked_ms = clock::wall_ms();
        permit.leaves();
        match self.client.create_invoice(self.token, &request).await {
            Ok(report) => {
                permit.ended(Verdict::Alive);
                let invoice_id = report.id.to_string();
                let (source, received_ms) = (Source::Create, clock::wall_ms());
                let answer = Observation {
                    source,
                    report,
                    asked: Some(Asked {
                        revision: 0,
                        at_ms: asked_ms,
                    }),
                    received_ms,
                };
                let settled = self.settle(key, Settled::Answered(Box::new(answer))).await;
                settled.map_err(|source| Error::After {
                    order_id: order_id(),
                    invoice_id,
                    source,
                })
            }
            Err(source) => {
                // That requisites are occupied says nothing about other requests.
                if let (false, Some(wait)) = (
                    matches!(source, CreateError::NoRequisites { .. }),
                    source.retry_after(),
                ) {
                    permit.heed(Caller::Create, wait);
                }
                permit.ended(source.verdict());
                let settled = match &source {
                    CreateError::NoRequisites { .. } | CreateError::NotCreated { .. } => {
                        Settled::Refused(ticket.note(&chain(&source)))
                    }
                    CreateError::OutcomeUnknown { .. } => {
                        Settled::Unknown(ticket.note(&chain(&source)))
                    }
                };
                // When even this cannot be stored, the row stays as being created by a process that is gone: unknown.
                if let Err(error) = self.settle(key, settled).await {
                    tracing::error!(reason = %error, order.id = %order.order_id, "the end of a creation could not be recorded");
                }
                Err(Error::Create {
                    order_id: order_id(),
                    source,
                })
            }
        }
    }

    /// Records the end of an opening, offering it again while the ledger is busy.
    async fn settle(&self, key: InvoiceKey, settled: Settled) -> Result<InvoiceRow, WriteError> {
        let until = Instant::now() + RECORD_FOR;
        loop {
            match self.writer.settle_opening(key, settled.clone()).await {
                Ok((row, _recorded)) => return Ok(row),
                Err(error) if error.is_transient() && Instant::now() < until => {
                    tokio::time::sleep(RECORD_EVERY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until a creation under way has ended, and gives it up when its creator is gone or too late.
    async fn wait_for(&self, row: &InvoiceRow, stop: &Shutdown) -> Result<(), Error> {
        use crate::invoice::opening::Opening;
        loop {
            let look = self.reader.invoice(row.key).await;
            let now = look.map_err(|source| Error::Look {
                order_id: row.order_id.clone(),
                source,
            })?;
            let Some(now) = now.filter(|row| row.opening == Opening::Creating) else {
                return Ok(());
            };
            if now.is_given_up(clock::wall_ms()) {
                return self
                    .writer
                    .give_up_opening(now.key)
                    .await
                    .map_err(Error::Before);
            }
            tokio::select! {
                () = stop.requested() => return Err(Error::Stopping),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}
