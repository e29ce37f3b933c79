//! The rows, one function each, and what they share: a world in which nothing happens but what a row does.

mod bodies;
mod clocks;
mod damaged;
mod descriptors;
mod disk;
mod files;
mod framing;
mod hooks;
mod kills;
mod limits;
mod locks;
mod panics;
mod pauses;
mod plenty;
mod readers;
mod secrets;
mod slow;
mod stops;
mod syncs;

pub(crate) use self::descriptors::{SPIN, spin};

use std::net::{SocketAddr, TcpListener};

use crate::harness::Setup;
use crate::options::Options;
use crate::power;
use crate::verdict::Verdict;

/// Runs a row of `list`.
pub(crate) fn run(id: &str, options: &Options) -> Verdict {
    match id {
        "R01" => kills::at_any_time(options),
        "R02" => kills::at_each_write(options),
        "R03" => power::run(options),
        "R05" => syncs::failing(options),
        "R06" => disk::full(options),
        "R07" => syncs::slow(options),
        "R08" => descriptors::none_left(options),
        "R09" => locks::held(options),
        "R10" => readers::long_and_foreign(options),
        "R11" => damaged::refused(),
        "R12" => panics::met(options),
        "R13" => hooks::killed(options),
        "R21" => slow::beside_an_honest_one(options),
        "R22" => framing::corpus(),
        "R23" => limits::passed(),
        "R33" => stops::under_load(options),
        "R34" => clocks::corrected(),
        "R35" => pauses::stood_still(options),
        "R36" => secrets::searched(),
        "R37" => plenty::heard(options),
        "R43" => files::taken_away(options),
        "R44" => bodies::flooded(options),
        other => unreachable!("`{other}` is on the list"),
    }
}

/// A setting that has an admin listener, and where that is.
pub(crate) fn told(setup: Setup) -> (Setup, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let admin = free.local_addr().expect("bound");
    (setup.set("admin.listen", format!("\"{admin}\"")), admin)
}

/// A world for a load: no polls, no hooks, and a log of what matters alone.
pub(crate) fn quiet() -> Setup {
    let setup = Setup::new().quiet().set("log_level", "\"warn\"");
    setup.sandbox(&["--pool=100000"])
}
