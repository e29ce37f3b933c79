//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod config;
mod crash;
mod create;
#[expect(unused, reason = "furnished before all its guests have come")]
mod harness;
mod hooks;
mod launch;
mod layout;
mod login;
mod notifications;
mod polling;
mod stop;
mod wait;
