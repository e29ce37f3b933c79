//! The one integration test binary: the real `tilld` from outside, and the source tree read as data.

mod config;
mod demo;
mod launch;
mod layout;
mod login;
