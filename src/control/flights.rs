//! Openings under way: whoever wishes for the same as one of them waits for that one and gets its answer, so that a page that
//! is loaded two hundred times opens one invoice with one request, and waits for one turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use tokio::sync::watch;

use super::create::Wish;

/// What an opening is answered with: shared by all who wished for it.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// The status.
    pub(super) status: StatusCode,
    /// The JSON text.
    pub(super) body: String,
    /// Why an invoice is not to be handed to the customer, where the status alone says so.
    pub(super) remark: Option<String>,
    /// It is a problem document.
    pub(super) is_problem: bool,
}

type Told = watch::Receiver<Option<Arc<Answered>>>;

/// The openings under way, by order.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<String, (Wish, Told)>>);

/// What becomes of a wish.
pub(super) enum Taken {
    /// Somebody's opening of the same is under way.
    Joins(Told),
    /// It is its own, to be ended by [`Flights::land`].
    Begins(watch::Sender<Option<Arc<Answered>>>, Told),
}

impl Flights {
    /// Joins an opening of exactly the same wish, or begins one. A wish for another invoice beside the first joins nobody's.
    pub(super) fn take(&self, wish: &Wish) -> Taken {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((same, told)) = flights.get(&wish.order_id)
            && same == wish
            && !wish.new
        {
            return Taken::Joins(told.clone());
        }
        let (tell, told) = watch::channel(None);
        // One that wishes for something else goes its own way: the ledger lets it wait for the first.
        flights
            .entry(wish.order_id.clone())
            .or_insert_with(|| (wish.clone(), told.clone()));
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
