//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod answers;
mod config;
mod crash;
mod create;
mod delivery;
mod demo;
mod durability;
mod harness;
mod hook;
mod hooks;
mod invoice_read;
mod launch;
mod layout;
mod limits;
mod line;
mod login;
mod notifications;
mod operator;
mod polling;
mod readme;
mod secrets;
mod shapes;
mod shop;
mod stop;
mod unit;
mod wait;
