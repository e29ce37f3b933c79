//! What an invoice is and how it moves. Pure: no IO, no clock, no randomness; everything comes in as an argument.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod amount;
pub mod attention;
mod currency;
pub mod event;
pub mod ids;
pub mod moment;
pub mod notify_token;
pub mod observation;
pub mod opening;
pub mod polled;
pub mod silence;
pub mod status;
pub mod sum;
pub mod transition;
