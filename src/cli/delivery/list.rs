//! `tilld delivery list`: which events are owed to which hooks, newest first.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::{ledger, page, when};
use super::view;
use crate::invoice::moment::Moment;
use crate::ledger::{Choice, DeliveryKey, DeliveryState, Whose};

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
    /// Only those before the one with this number: how a list that was cut goes on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
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
        before,
        limit,
    } = args;
    let choice = Choice {
        whose: order.map_or(Whose::All, Whose::Order),
        hook,
        state,
        since_ms: since.map(Moment::as_ms),
        until_ms: until.map(Moment::as_ms),
        below: before.map(DeliveryKey),
    };
    let reader = ledger::open_reader(&context)?;
    let most = page::one_more(limit);
    let mut rows = reader.chosen_deliveries(choice, most).await?;
    let more = page::cut(&mut rows, limit);
    view::print_page(context.output, &rows, true)?;
    if let Some(last) = rows.last().filter(|_| more) {
        page::go_on(rows.len(), "--before", &last.key.0.to_string());
    }
    Ok(Exit::Ok)
}
