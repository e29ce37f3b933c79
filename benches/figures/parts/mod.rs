//! What is measured, in the order in which it is.

mod acks;
mod checkout;
mod crash;
mod hooks;
mod idle;
mod instructions;
mod poll_beside;
pub(crate) mod raw;
mod rounds;
mod rush;
mod size;
mod slices;
mod start;
mod tails;
mod ticks;
mod wal;

use crate::options::Options;
use crate::report::Report;

/// One part of the bench.
pub(crate) struct Part {
    /// Its name, for `--only`.
    pub(crate) name: &'static str,
    /// What it measures, in a line.
    pub(crate) what: &'static str,
    /// Measures it.
    pub(crate) run: fn(&Options, &mut Report),
}

/// All parts.
pub(crate) const ALL: &[Part] = &[
    acks::PART,
    raw::PART,
    wal::PART,
    tails::PART,
    rush::PART,
    checkout::PART,
    size::PART,
    hooks::PART,
    instructions::PART,
    idle::PART,
    start::PART,
    ticks::PART,
    poll_beside::PART,
    crash::PART,
];
