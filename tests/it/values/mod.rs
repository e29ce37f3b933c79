//! What the service says about money in forms that the contract does not show, and what a shop may ask for.
//! Relies on a service of the test's own, which says what it is made to say about each invoice.
//! Promises nothing by itself: it is where the parts meet.

mod accept;
mod amounts;
mod refunds;
mod shops;
mod till;
mod types;
