//! `tilld delivery list`: which events are owed to which hooks, newest first.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::view;
use crate::ledger::DeliveryState;

/// Flags of `delivery list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only those that have come this far
    #[arg(long, value_parser = states())]
    state: Option<DeliveryState>,
    /// At most N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

fn states() -> impl clap::builder::TypedValueParser<Value = DeliveryState> {
    PossibleValuesParser::new(DeliveryState::ALL.map(DeliveryState::as_str))
        .try_map(|word| DeliveryState::parse(&word).ok_or("no such state"))
}

/// Runs `delivery list`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(&context)?;
    let rows = reader.list_deliveries(args.state, args.limit).await?;
    view::print_many(context.output, &rows)?;
    Ok(Exit::Ok)
}
