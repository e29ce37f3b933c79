//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod config;
mod delivery;
mod demo;
mod hook;
mod invoice_read;
mod launch;
mod layout;
mod login;
mod shop;
