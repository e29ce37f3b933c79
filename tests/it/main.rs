//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod config;
mod crash;
mod create;
mod delivery;
mod demo;
#[expect(unused, reason = "furnished before all its guests have come")]
mod harness;
mod hook;
mod hooks;
mod invoice_read;
mod launch;
mod layout;
mod login;
mod notifications;
mod polling;
mod shop;
mod stop;
mod wait;
