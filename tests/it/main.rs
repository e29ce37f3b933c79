//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod config;
mod demo;
#[expect(unused, reason = "furnished before all its guests have come")]
mod harness;
mod launch;
mod layout;
mod login;
mod notifications;
