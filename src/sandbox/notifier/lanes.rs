//! The notifications that wait: those of one invoice go out one after another, each only when the one before it was
//! answered; those of different invoices side by side. One that was not answered 200, or takes its time by intention, leaves
//! its lane, and newer ones pass it: whoever hears notifications can rely on no order, and here learns not to.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Delivery, Notifier};
use crate::sandbox::state::notice::Notice;

/// Notifications waiting in all lanes. Beyond them new ones are dropped, and the book says so.
const MOST_WAITING: usize = 50_000;
/// A notification held for reordering goes out by itself after this, should no other one follow.
const LONGEST_HOLD: Duration = Duration::from_secs(10);

/// The notifications that wait, one lane per invoice.
#[derive(Default)]
pub(super) struct Lanes {
    by_invoice: HashMap<u64, Lane>,
    /// Lanes that have something to start.
    ready: VecDeque<u64>,
    /// Notifications held for reordering and when they go out by themselves, the soonest first.
    pub(super) held: VecDeque<(Notice, Instant)>,
    waiting: usize,
    /// One try each, of a lane that is busy meanwhile.
    pub(super) running: JoinSet<(u64, Option<Delivery>)>,
    /// Deliveries that have left their lane.
    pub(super) apart: JoinSet<()>,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Notice>,
    busy: bool,
}

impl Lanes {
    /// Takes a notification in; under `reorder` it is held, or goes before the one that is. `Err` gives it back: full.
    pub(super) fn put(&mut self, notice: Notice, reorder: bool) -> Result<(), Box<Notice>> {
        if self.waiting + self.held.len() + self.apart.len() >= MOST_WAITING {
            return Err(Box::new(notice));
        }
        let held = self
            .held
            .iter()
            .position(|(held, _)| held.invoice == notice.invoice)
            .and_then(|at| self.held.remove(at));
        match (held, reorder) {
            (None, true) => self.held.push_back((notice, Instant::now() + LONGEST_HOLD)),
            (None, false) => self.queue(notice),
            (Some((mut older, _)), true) => {
                older.reordered = true;
                self.queue(notice);
                self.queue(older);
            }
            (Some((older, _)), false) => {
                self.queue(older);
                self.queue(notice);
            }
        }
        Ok(())
    }

    fn queue(&mut self, notice: Notice) {
        let invoice = notice.invoice;
        let lane = self.by_invoice.entry(invoice).or_default();
        lane.waiting.push_back(notice);
        self.waiting += 1;
        if !lane.busy {
            self.ready.push_back(invoice);
        }
    }

    /// Lets the longest-held notification go.
    pub(super) fn let_go(&mut self) {
        if let Some((notice, _)) = self.held.pop_front() {
            self.queue(notice);
        }
    }

    /// A first try is over; `None` when its task died.
    pub(super) fn finished(&mut self, done: Option<(u64, Option<Delivery>)>, notifier: &Notifier) {
        let Some((invoice, left)) = done else { return };
        if let Some(delivery) = left {
            let notifier = notifier.clone();
            self.apart
                .spawn(async move { notifier.finish(delivery).await });
        }
        let Some(lane) = self.by_invoice.get_mut(&invoice) else {
            return;
        };
        lane.busy = false;
        if lane.waiting.is_empty() {
            self.by_invoice.remove(&invoice);
        } else {
            self.ready.push_back(invoice);
        }
    }

    pub(super) fn start(&mut self, notifier: &Notifier) {
        while let Some(invoice) = self.ready.pop_front() {
            let Some(lane) = self.by_invoice.get_mut(&invoice).filter(|lane| !lane.busy) else {
                continue;
            };
            let Some(notice) = lane.waiting.pop_front() else {
                continue;
            };
            lane.busy = true;
            self.waiting -= 1;
            let notifier = notifier.clone();
            self.running.spawn(async move {
                let left = notifier.begin(notice).await;
                (invoice, left)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn notice(invoice: u64, number: u64) -> Notice {
        Notice {
            invoice,
            key: invoice,
            number,
            id: invoice.to_string(),
            order: invoice.to_string(),
            url: "http://127.0.0.1:9/".into(),
            token: Secret::new("t".repeat(40)),
            status: "paid".into(),
            body: "{}".into(),
            reordered: false,
            dated: None,
        }
    }

    fn order(reorder: &[bool]) -> Vec<u64> {
        let mut lanes = Lanes::default();
        for (number, reorder) in (1..).zip(reorder) {
            assert!(lanes.put(notice(1, number), *reorder).is_ok());
        }
        lanes.let_go();
        let lane = lanes.by_invoice.remove(&1).expect("a lane");
        lane.waiting.into_iter().map(|n| n.number).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn reordering_swaps_neighbours_and_loses_none() {
        assert_eq!(order(&[false, false, false]), [1, 2, 3]);
        assert_eq!(order(&[true, true, true, true]), [2, 1, 4, 3]);
        assert_eq!(order(&[true, true, true]), [2, 1, 3]);
        assert_eq!(order(&[true, false, false]), [1, 2, 3]);
    }
}
