//! What was seen from outside while a scenario ran: what the service said and when, what was acknowledged, which requests
//! left, which programs ran. Written by the world, read by the checks; nobody decides by it.

use std::collections::{HashMap, HashSet};

use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::Report;
use crate::ledger::{DeliveryKey, InvoiceKey};

/// One state of an invoice at the service.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// Since when, virtual.
    pub at: i64,
    /// The invoice object as the service writes it.
    pub text: String,
    /// What the real decoder reads in it.
    pub report: Report,
}

/// A notification that was answered 200.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    /// The invoice.
    pub invoice: InvoiceKey,
    /// What it said.
    pub report: Report,
}

/// A hook's program that runs, or ran.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// The delivery.
    pub delivery: DeliveryKey,
    /// Its invoice.
    pub invoice: InvoiceKey,
    /// It runs until then, virtual.
    pub until: i64,
}

/// An invoice whose state at the service the ledger does not show when the network heals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    /// Its age then, milliseconds.
    pub age: i64,
    /// A question about it had failed, or was under way.
    pub has_failed: bool,
    /// Its outcome was open.
    pub is_open: bool,
    /// So long may the gate still be held by what was before the healing.
    pub held: i64,
}

/// An invoice that stands for its order from its beginning.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// Its order.
    pub order_id: String,
    /// The invoice.
    pub key: InvoiceKey,
    /// The newest event at that time.
    pub after: i64,
}

/// How much happened, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Notifications that reached the listener.
    pub notifications: u64,
    /// Requests for an invoice's state.
    pub polls: u64,
    /// Outages the gate noticed.
    pub outages: u64,
    /// Deaths of the daemon.
    pub crashes: u64,
    /// Events recorded.
    pub events: u64,
    /// Programs run.
    pub runs: u64,
    /// Transactions.
    pub commits: u64,
    /// Invoices whose end nobody told us and nobody had to ask for.
    pub untold: u64,
}

impl Counts {
    /// Adds another scenario's.
    pub(super) fn add(&mut self, other: Self) {
        self.notifications += other.notifications;
        self.polls += other.polls;
        self.outages += other.outages;
        self.crashes += other.crashes;
        self.events += other.events;
        self.runs += other.runs;
        self.commits += other.commits;
        self.untold += other.untold;
    }
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Every state of every invoice at the service, oldest first.
    pub bodies: HashMap<InvoiceId, Vec<Body>>,
    /// Notifications answered 200.
    pub acknowledged: Vec<Acknowledged>,
    /// When requests left, each with the daemon's life.
    pub requests: Vec<(u64, i64)>,
    /// How long each delivery is to wait for its next attempt, milliseconds.
    pub waits: HashMap<DeliveryKey, i64>,
    /// Programs that run.
    pub children: Vec<Child>,
    /// Events a hook's program ended with 0 for.
    pub done: HashSet<DeliveryKey>,
    /// Deliveries the operator did something with, or tried to, and when last.
    pub operated: HashMap<DeliveryKey, i64>,
    /// After the healing: when the ledger's status was seen to be the service's, by invoice.
    pub known_at: HashMap<InvoiceKey, i64>,
    /// Invoices that were not known when the network healed.
    pub unknown: HashMap<InvoiceKey, Unknown>,
    /// When a copy of the ledger was put back.
    pub restored_at: Option<i64>,
    /// Invoices that superseded all others of their order.
    pub begun: Vec<Begun>,
    /// Promises that were seen broken while the scenario ran.
    pub broken: Vec<String>,
    /// How much happened.
    pub counts: Counts,
}

impl Book {
    /// The service's state of an invoice as of a time.
    pub(super) fn body_at(&self, id: &InvoiceId, at: i64) -> Option<&Body> {
        let bodies = self.bodies.get(id)?;
        bodies.iter().rev().find(|body| body.at <= at)
    }

    /// The service's last word on an invoice.
    pub(super) fn last(&self, id: &InvoiceId) -> Option<&Body> {
        self.bodies.get(id)?.last()
    }
}
