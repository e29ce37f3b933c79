//! A restore: a copy of the ledger is made while all goes on, and put back in the place of what the machine lost.
//! Relies on the store in memory, which catches up as an opening does.
//! Promises that whatever the service said before the restore is known in the end, though no notification repeats it.

use std::collections::{HashMap, HashSet};

use super::asking::Cut;
use super::book::Begun;
use super::world::{EPOCH_MS, Happens, Sabotage, World, say};
use crate::invoice::notify_token::NotifyToken;
use crate::ledger::memory::MemoryStore;
use crate::ledger::{
    Act, Acting, DeliveryKey, DeliveryState, InvoiceKey, LedgerCommand, REPOLL, Repoll,
};
use crate::poller::again::Next;

/// A copy of the ledger, with what was seen of it until then: the numbers behind are given anew.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    store: MemoryStore,
    tokens: HashMap<InvoiceKey, NotifyToken>,
    acknowledged: usize,
    waits: HashMap<DeliveryKey, i64>,
    done: HashSet<DeliveryKey>,
    operated: HashMap<DeliveryKey, i64>,
    begun: Vec<Begun>,
}

impl World {
    /// Copies the ledger as it is.
    pub(super) fn copy(&mut self) {
        say!(self, "operator", "copies the ledger");
        self.copy = Some(Box::new(Copied {
            store: self.store.clone(),
            tokens: self.tokens.clone(),
            acknowledged: self.book.acknowledged.len(),
            waits: self.book.waits.clone(),
            done: self.book.done.clone(),
            operated: self.book.operated.clone(),
            begun: self.book.begun.clone(),
        }));
    }

    /// The machine is lost with all that ran on it, and the copy is put back.
    pub(super) fn put_back(&mut self) {
        let Some(copied) = self.copy.take() else {
            return;
        };
        say!(self, "operator", "puts the copy back");
        let Copied {
            store,
            tokens,
            acknowledged,
            waits,
            done,
            operated,
            begun,
        } = *copied;
        (self.daemon, self.store, self.tokens) = (None, store, tokens);
        let book = &mut self.book;
        book.acknowledged.truncate(acknowledged);
        (book.waits, book.done, book.operated, book.begun) = (waits, done, operated, begun);
        book.children.clear();
        book.restored_at = Some(self.now);
        self.queue.retain(|_, what| {
            !matches!(
                what,
                Happens::Open(..)
                    | Happens::CreateArrives(..)
                    | Happens::CreateEnds(..)
                    | Happens::ProgramEnds(..)
            )
        });
        let now_ms = EPOCH_MS + self.now;
        let caught_up = self.store.catch_up(&mut self.rules, now_ms);
        caught_up.expect("a store in memory is written");
    }

    /// What happens next; when all is at rest, a person releases what is held for a restore, until nothing is.
    pub(super) fn next_happening(&mut self) -> Option<((i64, u64), Happens)> {
        if self.queue.is_empty() && self.book.restored_at.is_some() {
            self.release_held();
        }
        self.queue.pop_first()
    }

    fn release_held(&mut self) {
        let mut rows = self.store.deliveries();
        rows.retain(|row| row.state == DeliveryState::Held);
        let keys: Vec<DeliveryKey> = rows.iter().map(|row| row.key).collect();
        if keys.is_empty() {
            return;
        }
        say!(self, "operator", "releases {keys:?}");
        self.book
            .operated
            .extend(keys.iter().map(|key| (*key, self.now)));
        let acting = Acting {
            act: Act::Release,
            keys,
            now_ms: self.wall_ms(),
        };
        self.write(&[&LedgerCommand::Act(acting)]);
        self.plan_looks();
    }

    /// Files what the restore wants polled, as `poller/again` does. True when more was filed.
    pub(super) fn poll_again(&mut self, waits: bool, now_ms: i64) -> Result<bool, Cut> {
        if self.sabotage == Sabotage::NothingAgain {
            return Ok(false);
        }
        let now = self.instant();
        let generation = self.rules.restore.generation;
        let again = &mut self.daemon.as_mut().ok_or(Cut)?.again;
        if again.next(waits, now) == Next::Read {
            let known = self.store.fact_of(&REPOLL);
            let known = known.filter(|known| known.generation == generation);
            let begun = || Repoll::begin(generation);
            let known = (generation > 0).then(|| known.unwrap_or_else(begun));
            again.read(known);
        }
        let Next::GoOn(mut repoll) = again.next(waits, now) else {
            return Ok(false);
        };
        let mut keys = Vec::new();
        if let Some(below) = repoll.uncounted {
            // In pieces, as a big ledger is counted.
            repoll.count(self.store.count_ended(generation, below, 2));
        } else {
            keys = repoll.go_on(&self.store.passed(repoll.below, Repoll::LOOKED_AT));
        }
        self.redate(&keys, now_ms)?;
        self.write_now(&LedgerCommand::Note(REPOLL.note(&repoll)))?;
        self.daemon
            .as_mut()
            .ok_or(Cut)?
            .again
            .filed(repoll, &keys, now);
        Ok(!keys.is_empty())
    }
}

/// What the service said of an invoice before the restore is known, whoever was told of it then.
pub(super) fn known_after_restore(world: &World) -> Vec<String> {
    let Some(restored_at) = world.book.restored_at else {
        return Vec::new();
    };
    let mut broken = Vec::new();
    for row in world.store.invoices() {
        let Some(invoice) = world.store.judged(row.key) else {
            continue;
        };
        let (Some(id), Some(claim)) = (&invoice.id, &invoice.claim) else {
            continue;
        };
        let bodies = world.book.bodies.get(id).map_or(&[][..], Vec::as_slice);
        let before = bodies.iter().filter(|body| body.at <= restored_at).count();
        let since = bodies.get(before.saturating_sub(1)..).unwrap_or_default();
        if !since.iter().any(|body| body.report.status == claim.status) {
            broken.push(format!(
                "known after a restore: invoice {} shows {} ({}), and the service had said {}",
                row.key.0,
                claim.status,
                row.outcome,
                since
                    .first()
                    .map_or("nothing", |body| body.report.status.as_str())
            ));
        }
    }
    broken
}
