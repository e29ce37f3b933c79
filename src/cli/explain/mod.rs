//! `tilld explain`: what happened to an order, oldest first, and why each thing was decided. Asks nobody and needs no
//! secret, so the reader group may use it.

mod fact;
mod people;
mod timeline;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::ledger;
use super::output::print_json;
use super::which::AnyName;
use crate::ledger::StoryOutput;

/// Flags of `explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: AnyName,
    /// All that scripts wrote, as far as it was kept, instead of the beginning
    #[arg(long)]
    full: bool,
}

/// Runs `explain`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(&context)?;
    let mut found = args.which.find(&reader).await?;
    found.reverse();
    let output = if args.full {
        StoryOutput::Full
    } else {
        StoryOutput::Beginning
    };
    let mut first = true;
    for row in found {
        // Invoices are never removed, but whoever holds the file may do as they please.
        let Some(story) = reader.story(row.key, output).await? else {
            continue;
        };
        let facts = timeline::facts(&story);
        if context.output.json() {
            for fact in &facts {
                print_json(fact)?;
            }
            continue;
        }
        if !std::mem::take(&mut first) {
            context.output.line("")?;
        }
        people::print(context.output, &story, &facts, output)?;
    }
    Ok(Exit::Ok)
}
