//! Openings under way: whoever wishes for the same as one of them waits for that one and gets its answer, so that a page that
//! is loaded two hundred times opens one invoice with one request, and waits for one turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue, LOCATION};
use serde_json::Value;
use tokio::sync::watch;

use super::create::Wish;
use super::problem;
use crate::answer::failure::{Exit, Failure};
use crate::answer::{REMARK, invoice};
use crate::http::{self, Response};
use crate::ledger::InvoiceRow;

/// What an opening, or a question to the service, is answered with: shared by all who wished for it.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// The status.
    pub(super) status: StatusCode,
    /// The JSON text.
    pub(super) body: String,
    /// Why an invoice is not to be handed to the customer, where the status alone says so.
    pub(super) remark: Option<String>,
    /// The invoice that was made has this ref.
    pub(super) made: Option<String>,
    /// It is a problem document.
    pub(super) is_problem: bool,
}

impl Answered {
    /// An invoice as it stands, in the very text of the other calls.
    pub(super) fn stands(status: StatusCode, row: &InvoiceRow) -> Self {
        Self {
            status,
            body: serde_json::to_string(&invoice::json(row)).expect("plain data"),
            made: (status == StatusCode::CREATED).then(|| row.reference.as_str().to_owned()),
            remark: None,
            is_problem: false,
        }
    }

    /// A failure, with the invoice it is about.
    pub(super) fn refused(failure: &Failure, row: Option<&InvoiceRow>) -> Self {
        let shown: Option<Value> =
            row.map(|row| serde_json::to_value(invoice::json(row)).expect("plain data"));
        let (status, body) = problem::document(failure, shown.as_ref());
        Self {
            status,
            body: body.to_string(),
            made: None,
            remark: None,
            is_problem: true,
        }
    }

    /// It for one client.
    pub(super) fn response(&self) -> Response {
        if self.is_problem {
            return problem::told(self.status, self.body.clone());
        }
        let mut response = http::json(self.status, self.body.clone());
        // Escaped as it is it holds no control character, so it is fit for a header.
        let remark = self.remark.as_deref().map(str::as_bytes);
        if let Some(remark) = remark.and_then(|text| HeaderValue::from_bytes(text).ok()) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(REMARK), remark);
        }
        let at = self
            .made
            .as_ref()
            .map(|made| format!("/v1/invoices/{made}"));
        if let Some(at) = at.and_then(|at| HeaderValue::from_str(&at).ok()) {
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
pub(super) async fn heard(mut told: Told, again: &str) -> Result<Response, Failure> {
    let answered = match told.wait_for(Option::is_some).await {
        Ok(answered) => answered.clone(),
        Err(_ended_by_a_panic) => None,
    };
    let answered = answered.ok_or_else(|| {
        Failure::new(Exit::Unknown, "it ended before its answer was known").hint(again)
    })?;
    Ok(answered.response())
}

/// The openings under way, by order.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<String, (Wish, Told)>>);

/// What becomes of a wish.
pub(super) enum Taken {
    /// Somebody's opening of the same is under way.
    Joins(Told),
    /// It is its own, to be ended by [`Flights::land`].
    Begins(Tell, Told),
}

impl Flights {
    /// Joins an opening of exactly the same wish, or begins one. A wish for another invoice beside the first joins nobody's.
    pub(super) fn take(&self, wish: &Wish) -> Taken {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that was ended by a panic tells nobody any more.
        let under_way = flights.get(&wish.order_id);
        let under_way = under_way.filter(|(_, told)| told.has_changed().is_ok());
        if let Some((same, told)) = under_way
            && same == wish
            && !wish.new
        {
            return Taken::Joins(told.clone());
        }
        let is_first = under_way.is_none();
        let (tell, told) = watch::channel(None);
        // One that wishes for something else goes its own way: the ledger lets it wait for the first.
        if is_first {
            flights.insert(wish.order_id.clone(), (wish.clone(), told.clone()));
        }
        Taken::Begins(tell, told)
    }

    /// The opening that began with this has ended.
    pub(super) fn land(&self, wish: &Wish) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if flights
            .get(&wish.order_id)
            .is_some_and(|(same, _told)| same == wish)
        {
            flights.remove(&wish.order_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(text: &str) -> Wish {
        serde_json::from_str(text).expect("a wish")
    }

    #[test]
    fn the_same_wish_joins_and_another_goes_its_own_way() {
        let flights = Flights::default();
        let one = r#"{"order_id":"1","amount":"5.00","currency":"RUB","method":"SBP"}"#;
        let other = r#"{"order_id":"1","amount":"6.00","currency":"RUB","method":"SBP"}"#;
        let Taken::Begins(_tell, _told) = flights.take(&wish(one)) else {
            panic!("nobody was at it");
        };
        assert!(matches!(flights.take(&wish(one)), Taken::Joins(_)));
        assert!(matches!(flights.take(&wish(other)), Taken::Begins(..)));
        flights.land(&wish(other));
        assert!(matches!(flights.take(&wish(one)), Taken::Joins(_)));
        flights.land(&wish(one));
        assert!(matches!(flights.take(&wish(one)), Taken::Begins(..)));
    }

    /// Else an order whose opening was ended by a panic could not be opened before the next start.
    #[test]
    fn nobody_joins_an_opening_that_cannot_tell_its_end() {
        let flights = Flights::default();
        let one = wish(r#"{"order_id":"1","amount":"5.00","currency":"RUB","method":"SBP"}"#);
        drop(flights.take(&one));
        let Taken::Begins(_tell, _told) = flights.take(&one) else {
            panic!("it joined one that has ended");
        };
        assert!(matches!(flights.take(&one), Taken::Joins(_)));
    }
}
