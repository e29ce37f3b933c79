//! A create that does not give up at the first refusal: it waits for requisites, and may end on the payment page instead.
//!
//! Relies on [`CreateError::may_be_sent_again`] for the one question that matters (A32). Promises that another request
//! leaves only after an end that certainly created nothing; any other end, an unknown one above all, is the end of the
//! waiting. All tries in one mode have one row, one ref and one notify token, so a notification that gives such an end the
//! lie settles the row, and nothing more is sent, in the other mode neither.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::pauses::Pauses;
use super::{Error, Opened, Opener, Order, TURN_WITHIN, Ticket, look_first};
use crate::client::error::CreateError;
use crate::entropy;
use crate::invoice::opening::{Difference, Mode};
use crate::ledger::Reader;
use crate::shutdown::Shutdown;
use crate::wire::create::ReturnUrls;

/// How much is put up with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    /// How long requisites are waited for, from the first try on; zero is one try. The last try begins when it is over.
    pub wait: Duration,
    /// The return addresses with which it is opened in the Redirect mode when the H2H mode has no requisites to the end.
    pub fallback: Option<ReturnUrls>,
    /// Ends the waiting, and a try that has sent nothing yet; one that was sent is finished.
    pub stop: Shutdown,
}

/// What whoever waits is told meanwhile.
#[derive(Debug)]
pub(crate) enum Told<'a> {
    /// The first try opened nothing; there will be others.
    Waits(&'a Error),
    /// It is tried in the Redirect mode now.
    FallsBack,
}

impl Opened {
    /// The same where either mode will do: an invoice that differs in its mode alone is what was asked for.
    fn in_either_mode(self, either_mode: bool) -> Self {
        match self {
            Self::Differs(row, Difference::Mode) if either_mode => Self::Standing(row),
            opened => opened,
        }
    }
}

/// How it ends without a request, as far as the ledger says: for whoever needs no [`Opener`] then, nor a place among those who
/// open. `None` when it is to be opened, or is being.
pub(crate) async fn look(
    reader: &Reader,
    window_ms: i64,
    order: &Order,
    falls_back: bool,
) -> Option<Opened> {
    let found = look_first(reader, window_ms, order).await?;
    Some(found.in_either_mode(falls_back))
}

impl Opener<'_> {
    /// Opens an invoice, or finds why none is to be opened, with patience. A standing invoice of the other mode is as good as one of
    /// the wanted mode when there is a fallback: a repeated command may have opened it.
    pub(crate) async fn open_patiently(
        &self,
        order: &Order,
        patience: Patience,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<Opened, Error> {
        let either_mode = patience.fallback.is_some();
        let mut ticket = Ticket::new();
        let waited = self.wait_for_requisites(order, &mut ticket, &patience, tell);
        let ended = match waited.await {
            Err(error) => match patience.fallback {
                // A stop is no end of the waiting that was wished for.
                Some(return_urls) if is_full(&error) && !patience.stop.is_requested() => {
                    tell(Told::FallsBack);
                    let mut order = order.clone();
                    order.wanted.mode = Mode::Redirect;
                    order.return_urls = Some(return_urls);
                    let mut ticket = ticket.instead();
                    let turn = (TURN_WITHIN, &patience.stop);
                    self.try_once(&order, &mut ticket, turn).await
                }
                Some(_) | None => Err(error),
            },
            opened @ Ok(_) => opened,
        };
        Ok(ended?.in_either_mode(either_mode))
    }

    /// Tries until the time is over. What the service said about its requisites outlasts a connection that failed later.
    async fn wait_for_requisites(
        &self,
        order: &Order,
        ticket: &mut Ticket,
        patience: &Patience,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<Opened, Error> {
        let looked = look_first(self.reader, self.settings.window_ms, order);
        if let Some(opened) = looked.await {
            return Ok(opened);
        }
        let until = Instant::now() + patience.wait;
        let left = || until.saturating_duration_since(Instant::now());
        let mut pauses = Pauses::default();
        let (mut full, mut told) = (None, false);
        loop {
            let turn = (left().max(TURN_WITHIN), &patience.stop);
            let error = match self.try_once(order, ticket, turn).await {
                Ok(opened) => return Ok(opened),
                // What the service said stands.
                Err(Error::Stopping) => return Err(full.unwrap_or(Error::Stopping)),
                Err(error) => error,
            };
            let Some(wish) = may_try_again(&error) else {
                return Err(error);
            };
            let pause = pauses.next(wish, left(), u16::from_le_bytes(entropy::bytes()));
            if pause.is_some() && !told {
                tell(Told::Waits(&error));
                told = true;
            }
            let ended = if is_full(&error) {
                full = Some(error);
                None
            } else {
                Some(error)
            };
            let Some(pause) = pause else {
                return Err(full.or(ended).expect("the last try ended in one of them"));
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = patience.stop.requested() => {
                    return Err(full.or(ended).expect("the last try ended in one of them"));
                }
            }
        }
    }
}

/// `Some` when nothing was created for a reason that may pass, with how long the service wants to be left alone.
fn may_try_again(error: &Error) -> Option<Duration> {
    match error {
        Error::Create { source, .. } => source
            .may_be_sent_again()
            .then(|| source.retry_after().unwrap_or_default()),
        Error::Gate(closed) => Some(closed.opens_in),
        Error::Unsettled { why, .. } => why.again_in(),
        Error::Before(_)
        | Error::Late
        | Error::Stopping
        | Error::Look { .. }
        | Error::After { .. } => None,
    }
}

fn is_full(error: &Error) -> bool {
    matches!(
        error,
        Error::Create {
            source: CreateError::NoRequisites { .. },
            ..
        }
    )
}
