//! What was seen from outside while the course ran. Written by the world, read by the checks; nobody decides by it.

use std::collections::{HashMap, HashSet};

use crate::client::gate::Caller;
use crate::invoice::silence::Class;
use crate::ledger::InvoiceKey;

/// A request that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// When it left.
    pub at: i64,
    /// When it was over: answered, given up, or its daemon was stopped.
    pub until: i64,
    /// Who wanted it.
    pub caller: Caller,
    /// Its invoice and the class it was asked in; `None` of a create.
    pub about: Option<(InvoiceKey, Class)>,
    /// The service answered.
    pub answered: bool,
}

/// A person's request, from the wish to the moment it left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// By which lane it left.
    pub caller: Caller,
    /// When the person asked for it.
    pub wished: i64,
    /// When it left.
    pub left: i64,
}

/// An order of the time after the outage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// When it was paid.
    pub paid: i64,
    /// When the ledger knew.
    pub known: Option<i64>,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Every request, in the order in which they left.
    pub requests: Vec<Request>,
    /// What persons asked for.
    pub served: Vec<Served>,
    /// When the wish to be left alone was heard.
    pub throttled: Option<i64>,
    /// When the gate believed the service to be out, and when to be back.
    pub turns: Vec<(i64, bool)>,
    /// Invoices the ledger was wrong about when the outage ended.
    pub wrong: HashSet<InvoiceKey>,
    /// Of these, when the ledger was right again.
    pub right_at: HashMap<InvoiceKey, i64>,
    /// When each invoice was first answered about after the outage.
    pub answered_at: HashMap<InvoiceKey, i64>,
    /// Questions in a row without an answer, of each invoice that had any when the outage ended.
    pub failures: HashMap<InvoiceKey, u32>,
    /// The orders of the time after the outage.
    pub orders: HashMap<InvoiceKey, Order>,
}

impl Book {
    /// When the gate noticed that the service is back.
    pub(super) fn noticed(&self, ended: i64) -> Option<i64> {
        let mut turns = self.turns.iter();
        let noticed = turns.find(|(at, is_out)| *at >= ended && !is_out);
        noticed.map(|(at, _)| *at)
    }
}
