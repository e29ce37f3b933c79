//! tilld stands beside a merchant's shop. (The map follows as the house is built.)

mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod entropy;
pub mod hook;
pub mod http;
pub mod invoice;
pub mod ledger;
pub mod listener;
pub mod opening;
pub mod outbox;
pub mod poller;
pub mod process_mark;
pub mod sandbox;
pub mod secret;
pub mod shutdown;
pub mod telemetry;
pub mod wake;
pub mod wire;

use std::process::ExitCode;

/// The command line.
pub fn run() -> ExitCode {
    // Before anything looks at arguments, environment or standard input: a hook's process starts this way.
    if let Some(code) = hook::launch::entry(std::env::args_os()) {
        return code;
    }
    cli::run()
}
