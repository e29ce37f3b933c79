//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod config;
mod delivery;
mod demo;
#[expect(unused, reason = "furnished before all its guests have come")]
mod harness;
mod hook;
mod invoice_read;
mod launch;
mod layout;
mod login;
mod notifications;
mod readme;
mod shop;
mod unit;
