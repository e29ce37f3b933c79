//! What `benches/` reach of the crate, and nobody else. Everything that is measured here is the daemon's own; what is made
//! here are the ledgers it is measured on.

mod road;
mod shop;
mod stock;

pub use road::{Arrived, Road};
pub use shop::{Looked, Shop};
pub use stock::{Stocked, settings, stock};
