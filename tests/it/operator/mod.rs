//! What a person tells tilld: that the shop's own code opened an invoice, which id belongs to a create whose answer was
//! lost, and that a reported amount is agreed. What is at stake: a payment nobody hears of, and goods that leave twice.

mod accept;
mod ack;
mod adopt;
mod track;

use crate::harness::World;

/// What the shop's own code sent as `notificationToken`.
const TOKEN: &str = "notify-token-of-the-shops-own-code-0001";

/// The kinds of an order's events, in their order.
fn kinds(world: &World, order: &str) -> Vec<String> {
    let query = format!("SELECT kind FROM events WHERE order_id = '{order}' ORDER BY seq");
    world.sql(&query).concat()
}
