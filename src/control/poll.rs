//! `POST /v1/orders/{order_id}/poll` and the same of `/v1/invoices/by-…`: polls the service about an invoice now, and gives
//! what the ledger says then.
//!
//! Whoever asks about an invoice that is being asked about gets the answer of that question. At most [`POLLS`] are under way,
//! and the gate sees to it that the daemon's own questions have their turns beside them, however fast a client asks. A
//! question whose client has left is finished, so that what the service said is recorded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use hyper::StatusCode;

use super::Inner;
use super::flights::{Answered, Tell, Told, heard};
use super::problem;
use crate::answer::failure::Failure;
use crate::answer::find::find_one;
use crate::answer::name::{Kind, Name};
use crate::answer::order;
use crate::answer::poll::{failure, nothing_to_ask, remark};
use crate::answer::service;
use crate::client::gate::Caller;
use crate::http::Response;
use crate::ledger::{InvoiceKey, InvoiceRow};
use crate::panics::contained;
use crate::poller::now::{Error, Inquirer};

/// Questions under way at once, at most, those that wait for their turn among them. More would only wait longer.
const POLLS: usize = 8;

/// The questions under way, by invoice.
#[derive(Debug)]
pub(super) struct Polls {
    under_way: Mutex<HashMap<InvoiceKey, Told>>,
    places: Arc<Semaphore>,
}

/// What becomes of whoever wants to know.
enum Taken {
    /// Its invoice is being asked about.
    Joins(Told),
    /// It asks itself, and tells the end to [`Polls::land`].
    Begins(Tell, Told, OwnedSemaphorePermit),
    /// As many ask as may.
    Full,
}

impl Default for Polls {
    fn default() -> Self {
        Self {
            under_way: Mutex::default(),
            places: Arc::new(Semaphore::new(POLLS)),
        }
    }
}

impl Polls {
    fn take(&self, key: InvoiceKey) -> Taken {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // One that was ended by a panic tells nobody any more.
        let same = under_way.get(&key);
        if let Some(told) = same.filter(|told| told.has_changed().is_ok()) {
            return Taken::Joins(told.clone());
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Taken::Full;
        };
        let (tell, told) = watch::channel(None);
        under_way.insert(key, told.clone());
        Taken::Begins(tell, told, place)
    }

    fn land(&self, key: InvoiceKey) {
        let under_way = self.under_way.lock();
        under_way
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
    }
}

/// Asks, whether the invoice is due or not and however it stands.
pub(super) async fn run(inner: &Arc<Inner>, name: &Name) -> Result<Response, Failure> {
    let row = find_one(&inner.parts.reader, name).await?;
    if row.invoice_id.is_none() {
        return Ok(Answered::refused(&nothing_to_ask(&row), Some(&row)).response());
    }
    let Some(_seat) = inner.room.take() else {
        return Ok(problem::no_room());
    };
    let told = match inner.polls.take(row.key) {
        Taken::Joins(told) => told,
        Taken::Full => return Ok(problem::asking()),
        Taken::Begins(tell, told, place) => {
            let own = Arc::clone(inner);
            // Nobody waits for the task itself: it tells its end, and the stop waits for all of them.
            drop(inner.under_way.spawn(contained(Box::pin(async move {
                let key = row.key;
                let answered = ask(&own, row).await;
                // In this order: whoever hears the answer and asks again finds a place, and asks anew.
                own.polls.land(key);
                drop(place);
                tell.send_replace(Some(Arc::new(answered)));
            }))));
            told
        }
    };
    let answered = heard(told, "ask again").await?;
    if answered.is_problem || name.kind != Kind::Order {
        return Ok(answered.response());
    }
    let order = order::load(&inner.parts.reader, name).await?;
    Ok(answered.of_order(order.json()).response())
}

async fn ask(inner: &Inner, row: InvoiceRow) -> Answered {
    let parts = &inner.parts;
    let token = match parts.store.find(&parts.elsewhere, &parts.client.origin()) {
        Ok(Some(token)) => token,
        Ok(None) => return Answered::refused(&service::no_login(), None),
        Err(error) => return Answered::refused(&error.into(), None),
    };
    let inquirer = Inquirer::new(
        Caller::Operator,
        (parts.writer.clone(), parts.own.clone()),
        parts.client.clone(),
        parts.gate.clone(),
        token.token,
    );
    let asked = inquirer.ask_unless(row.key, &inner.stop).await;
    let row = match parts.reader.invoice(row.key).await {
        Ok(read) => read.unwrap_or(row),
        Err(error) => return Answered::refused(&error.into(), None),
    };
    let failed = match asked {
        Ok(decided) => {
            return Answered {
                remark: remark(decided).map(str::to_owned),
                ..Answered::stands(StatusCode::OK, &row)
            };
        }
        Err(Error::NoId) => nothing_to_ask(&row),
        Err(error) => failure(error, token.source),
    };
    Answered::refused(&failed, Some(&row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_invoice_is_joined_and_no_more_than_may_are_asked_about() {
        let polls = Polls::default();
        let most = i64::try_from(POLLS).expect("few");
        let begun: Vec<Taken> = (0..most).map(|key| polls.take(InvoiceKey(key))).collect();
        assert!(begun.iter().all(|taken| matches!(taken, Taken::Begins(..))));
        assert!(matches!(polls.take(InvoiceKey(most)), Taken::Full));
        assert!(matches!(polls.take(InvoiceKey(0)), Taken::Joins(_)));
        // As after panics: they can tell nobody any more.
        drop(begun);
        let again = polls.take(InvoiceKey(0));
        assert!(matches!(again, Taken::Begins(..)));
        polls.land(InvoiceKey(0));
        assert!(matches!(polls.take(InvoiceKey(0)), Taken::Begins(..)));
    }
}
