//! Openings under way: whoever wishes for the same as one of them waits for that one and gets its answer, so that a page that
//! is loaded two hundred times opens one invoice with one request, and waits for one turn.
//!
//! Promises that an opening is joined only while it can tell its end, and that it is known when nobody waits for it any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue, LOCATION};
use tokio::sync::watch;

use super::create::Wish;
use super::problem;
use crate::answer::failure::{Exit, Failure};
use crate::answer::name::Kind;
use crate::answer::{REMARK, invoice};
use crate::http::{self, Response};
use crate::ledger::InvoiceRow;
use crate::telemetry::visible_json;

/// What an opening, or a question to the service, is answered with: shared by all who wished for it.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// The status.
    pub(super) status: StatusCode,
    /// The JSON text.
    pub(super) body: String,
    /// Why an invoice is not to be handed to the customer, where the status alone says so.
    pub(super) remark: Option<String>,
    /// The path of the invoice that was made.
    pub(super) made: Option<String>,
    /// It is a problem document.
    pub(super) is_problem: bool,
    /// When to ask again, seconds, where somebody named a time.
    pub(super) again_in_s: Option<u64>,
}

impl Answered {
    /// An invoice as it stands, in the very text of the other calls.
    pub(super) fn stands(status: StatusCode, row: &InvoiceRow) -> Self {
        Self {
            status,
            body: visible_json(&invoice::json(row)),
            made: (status == StatusCode::CREATED)
                .then(|| Kind::Ref.of(row.reference.as_str()).path()),
            remark: None,
            is_problem: false,
            again_in_s: None,
        }
    }

    /// A failure, with the invoice it is about.
    pub(super) fn refused(failure: &Failure, row: Option<&InvoiceRow>) -> Self {
        let (status, body) = problem::document(failure, row.map(invoice::json));
        Self {
            status,
            body: visible_json(&body),
            made: None,
            remark: None,
            is_problem: true,
            again_in_s: failure.again_in_s(),
        }
    }

    /// The same of an order, which is more than its invoice.
    pub(super) fn of_order(&self, order: String) -> Self {
        Self {
            body: order,
            ..self.clone()
        }
    }

    /// It for one client.
    pub(super) fn response(&self) -> Response {
        if self.is_problem {
            return problem::told(self.status, self.body.clone(), self.again_in_s);
        }
        let mut response = http::json(self.status, self.body.clone());
        // Escaped as it is it holds no control character, so it is fit for a header.
        let remark = self.remark.as_deref().map(str::as_bytes);
        if let Some(remark) = remark.and_then(|text| HeaderValue::from_bytes(text).ok()) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(REMARK), remark);
        }
        let at = self.made.as_deref();
        if let Some(at) = at.and_then(|at| HeaderValue::from_str(at).ok()) {
            response.headers_mut().insert(LOCATION, at);
        }
        response
    }
}

/// Whoever tells the answer.
pub(super) type Tell = watch::Sender<Option<Arc<Answered>>>;
/// Whoever waits for it.
pub(super) type Told = watch::Receiver<Option<Arc<Answered>>>;

/// Waits for the answer. A panic of whoever was to tell it is told as that; `again` says whether to ask again.
pub(super) async fn heard(mut told: Told, again: &str) -> Result<Arc<Answered>, Failure> {
    let answered = match told.wait_for(Option::is_some).await {
        Ok(answered) => answered.clone(),
        Err(_ended_by_a_panic) => None,
    };
    answered.ok_or_else(|| {
        Failure::new(Exit::Unknown, "it ended before its answer was known").hint(again)
    })
}

/// The openings under way, by order. There are no more of them than calls that may wait, beside those that have sent their
/// request: whose clients have left is given up.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// Each can be met for as long as somebody is to tell its end.
    under_way: Mutex<HashMap<String, (Wish, Weak<Tell>)>>,
}

/// An opening under way, to be ended by [`Flights::land`].
#[derive(Debug)]
pub(super) struct Flight {
    order_id: String,
    tell: Arc<Tell>,
}

/// What becomes of a wish.
pub(super) enum Taken {
    /// Somebody's opening of the same is under way.
    Joins(Told),
    /// It is its own.
    Begins(Flight, Told),
}

impl Flights {
    /// Joins an opening of exactly the same wish, or begins one. A wish for another invoice beside the first joins nobody's.
    pub(super) fn take(&self, wish: &Wish) -> Taken {
        let mut under_way = self.lock();
        // One that was ended by a panic tells nobody any more.
        let first = under_way.get(&wish.order_id);
        let first = first.and_then(|(same, tell)| Some((same, tell.upgrade()?)));
        if let Some((same, tell)) = &first
            && *same == wish
            && !wish.new
        {
            return Taken::Joins(tell.subscribe());
        }
        let (tell, told) = watch::channel(None);
        let tell = Arc::new(tell);
        // One that wishes for something else goes its own way: the ledger lets it wait for the first.
        if first.is_none() {
            let entry = (wish.clone(), Arc::downgrade(&tell));
            under_way.insert(wish.order_id.clone(), entry);
        }
        let order_id = wish.order_id.clone();
        Taken::Begins(Flight { order_id, tell }, told)
    }

    /// Resolves when everybody who waited for it has left. Nobody joins it from then on.
    pub(super) async fn abandoned(&self, flight: &Flight) {
        loop {
            flight.tell.closed().await;
            let mut under_way = self.lock();
            // Somebody may have come just now.
            if flight.tell.receiver_count() == 0 {
                return flight.leave(&mut under_way);
            }
        }
    }

    /// The opening has ended. In this order: a client that hears the answer and repeats its call begins another one.
    pub(super) fn land(&self, flight: &Flight, answered: Answered) {
        flight.leave(&mut self.lock());
        flight.tell.send_replace(Some(Arc::new(answered)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Wish, Weak<Tell>)>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    fn leave(&self, under_way: &mut HashMap<String, (Wish, Weak<Tell>)>) {
        let own = under_way.get(&self.order_id);
        if own.is_some_and(|(_, tell)| std::ptr::eq(tell.as_ptr(), Arc::as_ptr(&self.tell))) {
            under_way.remove(&self.order_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn wish(order: &str, amount: &str) -> Wish {
        let text = format!(
            r#"{{"order_id":"{order}","amount":"{amount}","currency":"RUB","method":"SBP"}}"#
        );
        serde_json::from_str(&text).expect("a wish")
    }

    fn begins(flights: &Flights, wish: &Wish) -> (Flight, Told) {
        match flights.take(wish) {
            Taken::Begins(flight, told) => (flight, told),
            Taken::Joins(_) => panic!("it joined another"),
        }
    }

    fn answered() -> Answered {
        let failure = Failure::new(Exit::Error, "an end");
        Answered::refused(&failure, None)
    }

    #[test]
    fn the_same_wish_joins_and_another_goes_its_own_way() {
        let flights = Flights::default();
        let (one, other) = (wish("1", "5.00"), wish("1", "6.00"));
        let (first, _told) = begins(&flights, &one);
        assert!(matches!(flights.take(&one), Taken::Joins(_)));
        let (second, _told) = begins(&flights, &other);
        flights.land(&second, answered());
        assert!(matches!(flights.take(&one), Taken::Joins(_)));
        flights.land(&first, answered());
        assert!(matches!(flights.take(&one), Taken::Begins(..)));
    }

    /// Else an order whose opening was ended by a panic could not be opened before the next start.
    #[test]
    fn nobody_joins_an_opening_that_cannot_tell_its_end() {
        let flights = Flights::default();
        let one = wish("1", "5.00");
        drop(begins(&flights, &one));
        let _again = begins(&flights, &one);
        assert!(matches!(flights.take(&one), Taken::Joins(_)));
    }

    #[tokio::test]
    async fn an_opening_is_abandoned_when_the_last_who_waits_has_left() {
        let flights = Flights::default();
        let one = wish("1", "5.00");
        let (flight, first) = begins(&flights, &one);
        let Taken::Joins(second) = flights.take(&one) else {
            panic!("it is under way");
        };
        drop(first);
        let abandoned = timeout(Duration::ZERO, flights.abandoned(&flight));
        assert!(abandoned.await.is_err(), "one still waits");
        drop(second);
        flights.abandoned(&flight).await;
        assert!(
            matches!(flights.take(&one), Taken::Begins(..)),
            "nobody joins it any more"
        );
    }
}
