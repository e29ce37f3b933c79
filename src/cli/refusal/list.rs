//! `tilld refusal list`: which notifications were refused, newest first. Needs no secret: the reader group may run it.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::talk;
use super::super::{ledger, page, when};
use super::view;
use crate::invoice::moment::Moment;
use crate::ledger::RefusalFilter;
use crate::listener::Reason;

/// Flags of `refusal list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only those for invoices of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// Only those refused for this reason
    #[arg(long, value_name = "CODE", value_parser = reasons(), hide_possible_values = true)]
    reason: Option<Reason>,
    /// Only those from this time on
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    since: Option<Moment>,
    /// Only those before the one with this number: how a list that was cut goes on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
    /// At most N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

fn reasons() -> impl clap::builder::TypedValueParser<Value = Reason> {
    PossibleValuesParser::new(Reason::ALL.map(Reason::as_str))
        .try_map(|word| Reason::parse(&word).ok_or("no such reason"))
}

/// The table of reasons behind the flags of `refusal list --help`.
pub(super) fn reasons_help() -> String {
    let told = Reason::ALL.map(Reason::told);
    let width = told.iter().map(|(word, _)| word.len()).max();
    let width = width.unwrap_or_default();
    let lines = told.map(|(word, meaning)| format!("  {word:width$}  {meaning}"));
    format!("{}\n\nReasons:\n{}", when::FORMS, lines.join("\n"))
}

/// Runs `refusal list`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let Args {
        order,
        reason,
        since,
        before,
        limit,
    } = args;
    let narrowed = order.is_some() || reason.is_some() || since.is_some() || before.is_some();
    let filter = RefusalFilter {
        order_id: order,
        reason: reason.map(Reason::as_str),
        since_ms: since.map(Moment::as_ms),
        before,
        ..RefusalFilter::default()
    };
    let reader = ledger::open_reader(&context)?;
    let mut rows = reader.refusals(filter, page::one_more(limit)).await?;
    let more = page::cut(&mut rows, limit);
    if rows.is_empty() {
        talk(if narrowed {
            "no such refused notification in the ledger"
        } else {
            "no refused notification in the ledger"
        });
        return Ok(Exit::Ok);
    }
    view::print_many(context.output, &rows)?;
    if let Some(last) = rows.last().filter(|_| more) {
        page::go_on(rows.len(), "--before", &last.number.to_string());
    }
    Ok(Exit::Ok)
}
