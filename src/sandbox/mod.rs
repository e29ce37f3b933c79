//! placeholder
pub(crate) mod state;
pub mod statuses;
