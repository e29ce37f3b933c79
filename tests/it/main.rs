//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod answers;
mod config;
mod create;
mod delivery;
mod demo;
mod durability;
#[expect(unused, reason = "furnished before all its guests have come")]
mod harness;
mod hook;
mod invoice_read;
mod launch;
mod layout;
mod limits;
mod login;
mod notifications;
mod polling;
mod readme;
mod secrets;
mod shapes;
mod shop;
mod unit;
mod wait;
