//! What happens to the shop's orders while the daemon is being killed: each waits, and then is paid; of most the daemon is
//! told, the others it finds by asking. A notification may die with the daemon: then it is found by asking too.

use crate::harness::dice::Dice;
use crate::harness::{Issued, Wire, World, head};

/// Invoices for each kill.
const EACH: usize = 2;
/// One payment of so many is not told.
const UNTOLD: usize = 4;

/// The invoices, and how far they are.
#[derive(Debug)]
pub(super) struct Load {
    invoices: Vec<Issued>,
    /// Those before this one wait for their payment.
    waiting: usize,
    /// Those before this one are paid.
    paid: usize,
    /// Connections whose answers nobody reads before they are closed.
    wires: Vec<Wire>,
}

impl Load {
    /// Opens as many invoices as that many kills need.
    pub(super) fn open(world: &World, kills: usize) -> Self {
        let orders: Vec<String> = (0..kills * EACH)
            .map(|number| format!("A-{number}"))
            .collect();
        Self {
            invoices: world.create_all(&orders),
            waiting: 0,
            paid: 0,
            wires: Vec::new(),
        }
    }

    /// What happens before one kill: some invoices wait, and those that waited before are paid.
    pub(super) fn go_on(&mut self, world: &World, dice: &mut Dice) {
        self.wires.clear();
        let (from, to) = (self.waiting, self.waiting + EACH);
        self.say(world, dice, (self.paid, from), "paid");
        self.say(world, dice, (from, to), "waiting");
        (self.paid, self.waiting) = (from, to);
    }

    /// The rest is paid.
    pub(super) fn come_to_its_end(&mut self, world: &World, dice: &mut Dice) {
        let all = self.invoices.len();
        self.say(world, dice, (self.paid, all), "paid");
        (self.paid, self.waiting) = (all, all);
        // Read here, since nobody kills the daemon any more.
        for wire in &mut self.wires {
            drop(wire.answer());
        }
        self.wires.clear();
    }

    fn say(&mut self, world: &World, dice: &mut Dice, (from, to): (usize, usize), status: &str) {
        for invoice in self.invoices.get(from..to).unwrap_or_default() {
            let now = world.dictate(invoice, status);
            if status == "paid" && dice.below(UNTOLD) == 0 {
                continue;
            }
            let body = now.object.to_string();
            let target = World::target(&now.reference);
            let headers = [("X-Notification-Token", now.token.as_str())];
            let head = head("shop.example", "POST", &target, &headers, Some(body.len()));
            let mut wire = Wire::open(world.listen());
            wire.send(&(head + &body));
            self.wires.push(wire);
        }
    }

    /// The orders the service says are paid.
    pub(super) fn orders(&self) -> Vec<String> {
        let paid = self.invoices.iter().take(self.paid);
        paid.map(|invoice| invoice.order.clone()).collect()
    }
}

/// How many payments the daemon found by asking.
pub(super) fn found_by_poll(world: &World) -> usize {
    let query = "SELECT count(*) FROM events WHERE kind = 'paid' AND source = 'poll'";
    world.value(query).parse().expect("a number")
}
