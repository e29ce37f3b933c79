//! What whoever asks is told, in the same words at every door: the command line and the control socket.
//!
//! Relies on rows and errors holding nothing secret. Promises that an end has one code, one name and one way out, whoever hears
//! of it, and that an invoice is one JSON object everywhere. Prints nothing and decides nothing.

/// The header in which the control socket says what the command line says of an answer that is an invoice.
pub(crate) const REMARK: &str = "tilld-remark";

pub(crate) mod account;
pub(crate) mod argv;
pub(crate) mod attention;
pub(crate) mod create;
pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod find;
pub(crate) mod invoice;
mod ledger;
pub(crate) mod name;
pub(crate) mod order;
pub(crate) mod poll;
pub(crate) mod problem;
pub(crate) mod service;
