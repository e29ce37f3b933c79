//! What a scenario needs around the real binary: a payment service that is imitated, a daemon that is started, killed and
//! stopped, a sender of notifications, and a look into the ledger.
//!
//! Begin with [`Setup`]. Relies on nothing but loopback and a temporary directory, so scenarios run side
//! by side. Promises that nothing outlives a [`World`], and that each one ends with the invariants of the ledger looked
//! at (`ledger.rs`) unless the scenario has already failed; then the logs are shown instead.

mod clock;
pub(crate) mod dice;
mod http;
mod invoice;
mod ledger;
mod probe;
mod process;
mod secrets;
mod service;
mod setup;
mod shop;
mod world;

use std::env;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use self::clock::Clock;
pub(crate) use self::http::{Answer, Wire, head, request, request_to};
pub(crate) use self::invoice::{Issued, segment};
pub(crate) use self::ledger::{KINDS, load_sql, sql, try_sql};
pub(crate) use self::probe::{Probe, cannot_probe};
pub(crate) use self::process::{Process, Ran, children, run, running_in};
pub(crate) use self::secrets::{access_token, holding};
pub(crate) use self::service::{ACCESS_TOKEN, CUT, DEVICE_CODE, HELD, Heard, RAW, Service};
pub(crate) use self::setup::{SECRET, Setup, write_secret};
pub(crate) use self::world::{World, next_name};

/// Until something that must happen has happened. Generous: the machine may be busy, and only a failure waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The program under test: the one that was built for this run, or another build of it that `TILLD_PROGRAM` names, so that
/// what is promised can be looked at where the figures are taken.
pub(crate) fn under_test() -> String {
    env::var("TILLD_PROGRAM").unwrap_or_else(|_none| env!("CARGO_BIN_EXE_tilld").to_owned())
}

/// Waits until `cond` holds, looking every 20 ms; panics with `what` after `bound`.
#[track_caller]
pub(crate) fn wait_until(bound: Duration, what: &str, mut cond: impl FnMut() -> bool) {
    let deadline = Instant::now() + bound;
    while !cond() {
        assert!(
            Instant::now() < deadline,
            "waited {bound:?} in vain: {what}"
        );
        thread::sleep(LOOK_EVERY);
    }
}

/// Waits like [`wait_until`], for a value.
#[track_caller]
pub(crate) fn wait_for<T>(bound: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until(bound, what, || {
        found = look();
        found.is_some()
    });
    found.expect("waited for it")
}

/// Ends a test for which the machine lacks something: says why and returns, or fails when `TILLD_NO_SKIP=1`.
macro_rules! skip {
    ($($why:tt)*) => {{
        let why = format!($($why)*);
        assert!(
            std::env::var_os("TILLD_NO_SKIP").is_none_or(|value| value != "1"),
            "may not be skipped: {why}"
        );
        // A test's output may have no reader.
        drop(std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("skipped: {why}\n"),
        ));
        return;
    }};
}
pub(crate) use skip;
