//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod answers;
mod config;
mod demo;
mod durability;
mod harness;
mod launch;
mod layout;
mod limits;
mod login;
mod notifications;
mod secrets;
mod shapes;
