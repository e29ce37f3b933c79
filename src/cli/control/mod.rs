//! `tilld control …`: about the control socket itself. To add a command: as in [`super::invoice`].

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::print;
use crate::control::OPENAPI;

/// The commands about the control socket.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print what the socket answers, as OpenAPI 3.1 in JSON
    Openapi,
}

/// Runs `control`.
pub(super) fn run(args: &Args, _context: &Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Openapi => print(OPENAPI)?,
    }
    Ok(Exit::Ok)
}
