//! `tilld delivery list`: which events are owed to which hooks, newest first.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::talk;
use super::super::{ledger, when};
use super::view;
use crate::invoice::moment::Moment;
use crate::ledger::{Choice, DeliveryState, Whose};

/// Flags of `delivery list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only those that have come this far
    #[arg(long, value_name = "STATE", value_parser = states(&DeliveryState::ALL))]
    state: Option<DeliveryState>,
    /// Only those to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only those of events of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// Only those of events from this time on
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    since: Option<Moment>,
    /// Only those of events before this time
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    until: Option<Moment>,
    /// At most N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Reads one of these states.
pub(super) fn states(
    states: &'static [DeliveryState],
) -> impl TypedValueParser<Value = DeliveryState> {
    PossibleValuesParser::new(states.iter().map(|state| state.as_str()))
        .try_map(|word| DeliveryState::parse(&word).ok_or("no such state"))
}

/// Runs `delivery list`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let Args {
        state,
        hook,
        order,
        since,
        until,
        limit,
    } = args;
    let choice = Choice {
        whose: order.map_or(Whose::All, Whose::Order),
        hook,
        state,
        since_ms: since.map(Moment::as_ms),
        until_ms: until.map(Moment::as_ms),
    };
    let reader = ledger::open_reader(&context)?;
    let mut rows = reader
        .chosen_deliveries(choice, limit.saturating_add(1))
        .await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    view::print_page(context.output, &rows, true)?;
    if more {
        talk(&format!(
            "there are more than these {limit}: `--limit N` shows more"
        ));
    }
    Ok(Exit::Ok)
}
