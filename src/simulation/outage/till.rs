//! The shop, its customers and the service of the course: invoices are opened, tracked and paid, and one notification comes.

use super::super::world::EPOCH_MS;
use super::book::Order;
use super::course::PAID_AFTER;
use super::world::{Happens, World};
use crate::invoice::amount::Amount;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Asked, Observation, Source};
use crate::invoice::sum::Sum;
use crate::ledger::{InvoiceKey, LedgerCommand, LedgerReply, Operated, Sealed, Tracking};
use crate::sandbox::statuses::Happening;
use crate::wire::create::CreateRequest;

/// Of every invoice.
const AMOUNT: &str = "1500.00";
/// Of every invoice.
const CURRENCY: &str = "RUB";

impl World {
    /// What an order asks of the service.
    pub(super) fn request(&mut self, number: usize) -> (CreateRequest, InvoiceRef) {
        let reference = InvoiceRef::from_entropy(self.dice.bytes());
        let token = NotifyToken::from_entropy(self.dice.bytes());
        let request = CreateRequest {
            internal_id: order(number).as_str().to_owned(),
            amount: sum().amount,
            currency: sum().currency,
            start_deal: true,
            method: "SBP".to_owned(),
            notification_url: format!("http://127.0.0.1:9/n/{}", reference.as_str()),
            notification_token: token.secret().clone(),
            return_urls: None,
        };
        (request, reference)
    }

    /// The service makes an invoice.
    pub(super) fn make(&mut self, request: CreateRequest, at: i64) -> InvoiceId {
        let made = self.service.create_invoice(0, request, EPOCH_MS + at);
        InvoiceId::new(made.expect("there is room").id.as_str()).expect("an id")
    }

    /// An invoice that stands at the start: opened then, asked about then.
    pub(super) fn stands(&mut self, number: usize, at: i64, asked: i64) {
        self.track(number, at);
        let key = *self.keys.get(&number).expect("tracked");
        let report = self.report(self.ids.get(&key).expect("tracked"));
        let observation = Observation {
            source: Source::Poll,
            report,
            asked: Some(Asked {
                revision: 0,
                at_ms: EPOCH_MS + asked,
            }),
            received_ms: EPOCH_MS + asked,
        };
        self.write(&LedgerCommand::Record(key, Box::new(observation)), &[key]);
    }

    /// The shop's own code opens an invoice and has it watched over from now on.
    pub(super) fn track(&mut self, number: usize, at: i64) {
        let (request, reference) = self.request(number);
        let id = self.make(request, at);
        let wish = Tracking {
            order_id: order(number),
            invoice_id: id.clone(),
            agreed: sum(),
            reference,
            sealed: Sealed(Vec::new()),
            now_ms: EPOCH_MS + at,
        };
        let reply = self.write(&LedgerCommand::Track(Box::new(wish)), &[]);
        let LedgerReply::Operated(Operated::Done(row, _)) = reply else {
            panic!("could not track invoice {number}: {reply:?}");
        };
        self.shelf.refresh(&self.store, row.key);
        self.keys.insert(number, row.key);
        self.ids.insert(row.key, id);
    }

    pub(super) fn change(&mut self, number: usize, happening: Happening) {
        let key = self.keys.get(&number).expect("opened before it changes");
        let id = self.ids.get(key).expect("opened").clone();
        self.happen_to(&id, happening);
    }

    pub(super) fn hear(&mut self, number: usize) {
        let key = *self.keys.get(&number).expect("opened");
        let observation = Observation {
            source: Source::Notification,
            report: self.report(self.ids.get(&key).expect("opened")),
            asked: None,
            received_ms: self.wall_ms(),
        };
        self.write(&LedgerCommand::Record(key, Box::new(observation)), &[key]);
        let judged = self.store.judged(key).expect("it is there");
        assert!(judged.doubt, "only a poll can tell");
    }

    fn happen_to(&mut self, id: &InvoiceId, happening: Happening) {
        let page = self.service.find_invoice(id.as_str()).expect("it is there");
        let page = page.opaque.clone();
        let done = self.service.happen(&page, happening, self.wall_ms());
        assert!(done, "{happening:?} cannot happen to {id:?}");
        // Every notification is lost, but for one: see `hear`.
        drop(self.service.take_notices());
    }

    /// An order of the time after the outage stands, and will be paid.
    pub(super) fn ordered(&mut self, number: usize, key: InvoiceKey, id: InvoiceId) {
        self.keys.insert(number, key);
        self.ids.insert(key, id);
        self.at(self.now + PAID_AFTER, Happens::Pay(key));
    }

    pub(super) fn pay(&mut self, key: InvoiceKey) {
        let id = self.ids.get(&key).expect("opened").clone();
        self.happen_to(&id, Happening::Paid);
        let order = Order {
            paid: self.now,
            known: None,
        };
        self.book.orders.insert(key, order);
    }
}

/// The order of an invoice.
pub(super) fn order(number: usize) -> OrderId {
    OrderId::new(format!("order-{number}")).expect("an order id")
}

/// Of every order.
pub(super) fn sum() -> Sum {
    let amount = Amount::parse_payable(AMOUNT).expect("payable");
    Sum::new(amount, CURRENCY).expect("a currency")
}
