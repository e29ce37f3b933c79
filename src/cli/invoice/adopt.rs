//! `tilld invoice adopt`: settles a create whose answer was lost, by the id a person found in the cabinet. The service is
//! asked about that id first, and what it says stands in the ledger at once.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, talk};
use super::super::which::parse_id;
use super::super::{argv, ledger, owner, service};
use super::view;
use crate::answer::create::doubtful;
use crate::answer::find::find_order;
use crate::answer::name::Kind;
use crate::client::credentials::TokenSource;
use crate::client::gate::Gate;
use crate::clock::wall_ms;
use crate::invoice::ids::InvoiceId;
use crate::invoice::opening::Opening;
use crate::ledger::{InvoiceRow, Objection, Operated, Reader};
use crate::opening::adopt::{Adopter, Error};
use crate::parts;

/// Flags of `invoice adopt`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The order whose create answer was lost
    #[arg(value_name = "ORDER")]
    order: String,
    /// The service's id of its invoice, as the cabinet shows it
    #[arg(long, value_name = "ID", value_parser = parse_id, allow_hyphen_values = true)]
    id: InvoiceId,
    /// Which of them, when several creates of the order were lost
    #[arg(long = "ref", value_name = "REF", allow_hyphen_values = true)]
    reference: Option<String>,
}

/// Runs `invoice adopt`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(&context)?;
    let row = match candidate(&reader, &args).await? {
        Found::Lost(row) => row,
        Found::Known(row) => return known(&context, &row),
    };
    let settings = context.settings()?;
    let client = service::client(&context)?;
    let found = service::token(&context, &client)?;
    let ledger = ledger::open_to_decide(&context)?;
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let adopter = Adopter {
        writer: &writer,
        reader: &reader,
        client: &client,
        token: &found.token,
        gate: &Gate::new(parts::gate_limits(settings)),
    };
    let adopted = adopter.adopt(&row, &args.id).await;
    drop(writer);
    ledger.close(ledger::CLOSE_WITHIN).await;
    match adopted.map_err(|error| failure(error, found.source))? {
        Operated::Done(row, _) => {
            view::print(context.output, &row, wall_ms())?;
            // As after a create: what the service opened may not be what was asked for.
            doubtful(&row).map_or(Ok(Exit::Ok), Err)
        }
        Operated::Already(row) => known(&context, &row),
        Operated::Refused(row, objection) => Err(refused(&row, &args.id, objection)),
    }
}

/// What the ledger has under the order.
enum Found {
    /// The one invoice whose create answer was lost.
    Lost(Box<InvoiceRow>),
    /// The one that has the id already.
    Known(Box<InvoiceRow>),
}

async fn candidate(reader: &Reader, args: &Args) -> Result<Found, Failure> {
    let track = "`tilld invoice track` has an invoice watched over that was opened elsewhere";
    let rows = find_order(reader, &args.order, track).await?;
    let has_id = |row: &InvoiceRow| row.invoice_id.as_deref() == Some(args.id.as_str());
    if let Some(row) = rows.iter().find(|row| has_id(row)) {
        return Ok(Found::Known(Box::new(row.clone())));
    }
    if let Some(other) = reader.invoice_by_id(args.id.as_str()).await? {
        return Err(refused(&other, &args.id, Objection::Taken));
    }
    let now_ms = wall_ms();
    let meant = |row: &&InvoiceRow| {
        let wanted = args.reference.as_deref();
        wanted.is_none_or(|wanted| wanted == row.reference.as_str())
    };
    let lost: Vec<&InvoiceRow> = rows.iter().filter(|row| row.is_lost(now_ms)).collect();
    let chosen: Vec<&InvoiceRow> = lost.iter().copied().filter(|row| meant(row)).collect();
    match (chosen.as_slice(), lost.as_slice()) {
        ([row], _) => Ok(Found::Lost(Box::new((*row).clone()))),
        ([], []) => Err(none_lost(&args.order, &rows)),
        ([], _) => {
            let wanted = args.reference.as_deref().unwrap_or_default();
            let error = format!(
                "no invoice of order `{}` with the ref `{wanted}` whose outcome is unknown",
                args.order
            );
            Err(Failure::new(Exit::NotFound, error).hint(refs(&lost)))
        }
        (_, _) => {
            let error = format!(
                "order `{}` has {} invoices whose outcome is unknown",
                args.order,
                lost.len()
            );
            Err(Failure::new(Exit::Error, error).hint(refs(&lost)))
        }
    }
}

fn refs(lost: &[&InvoiceRow]) -> String {
    let refs: Vec<String> = lost
        .iter()
        .map(|row| format!("`--ref {}`", row.reference.as_str()))
        .collect();
    format!(
        "say which with {}; the notificationUrl of each ends with its ref",
        refs.join(" or ")
    )
}

fn none_lost(order: &str, rows: &[InvoiceRow]) -> Failure {
    let error = format!("order `{order}` has no invoice whose outcome is unknown");
    let under_way = rows.iter().any(|row| row.opening == Opening::Creating);
    let known = shown(order);
    Failure::new(Exit::Error, error).hint(if under_way {
        "its create is still under way: wait for its answer"
    } else {
        &known
    })
}

fn known(context: &Context, row: &InvoiceRow) -> Result<Exit, Failure> {
    talk(&format!(
        "order {} has invoice {} already; nothing was asked",
        escape(&row.order_id),
        escape(row.invoice_id.as_deref().unwrap_or_default()),
    ));
    view::print(context.output, row, wall_ms())?;
    doubtful(row).map_or(Ok(Exit::Ok), Err)
}

fn refused(row: &InvoiceRow, id: &InvoiceId, objection: Objection) -> Failure {
    let order = &row.order_id;
    let error = match objection {
        Objection::Taken => format!("invoice `{id}` belongs to order `{order}` in the ledger"),
        Objection::OtherId => format!(
            "order `{order}` got the id `{}` meanwhile",
            row.invoice_id.as_deref().unwrap_or_default()
        ),
        Objection::OtherOrder
        | Objection::NotLost
        | Objection::OtherSum
        | Objection::NothingReported
        | Objection::Unreadable
        | Objection::ReportedSince
        | Objection::Paid
        | Objection::OrderPaid => {
            format!("order `{order}` has no invoice whose outcome is unknown")
        }
    };
    Failure::new(Exit::Error, error).hint(shown(order))
}

/// What to look at, as it can be typed: an order's name may hold anything.
fn shown(order: &str) -> String {
    let flag = Kind::Order.of(order).flag();
    format!("`tilld invoice show --all {flag}` shows what is known of it")
}

fn failure(error: Error, source: TokenSource) -> Failure {
    match error {
        Error::Fetch { id, source: cause } => {
            let not_found = matches!(cause, crate::client::error::Error::NotFound { .. });
            let failure = service::failure(cause, Some(source))
                .context(format!("could not ask the service about invoice `{id}`"));
            if not_found {
                failure.hint("look for the id in the cabinet of the shop that `tilld whoami` names")
            } else {
                failure
            }
        }
        error @ Error::Gate(_) => Failure::new(Exit::Unreachable, error).hint("try again later"),
        error @ Error::OtherOrder { .. } => Failure::new(Exit::Error, error)
            .hint("look the order up in the cabinet; nothing was changed"),
        error @ (Error::Token(_) | Error::Store { .. }) => {
            Failure::new(Exit::Ledger, error).hint(format!(
                "mend the ledger or its disk, then run `{}` again",
                argv::again()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::invoice::tests::row;

    #[test]
    fn a_hint_can_be_typed_whatever_the_order_is_called() {
        let refused = |order: &str| {
            let row = InvoiceRow {
                order_id: order.to_owned(),
                ..row()
            };
            let id = parse_id("id-1").expect("an id");
            let failures = [
                refused(&row, &id, Objection::Taken),
                none_lost(order, &[row]),
            ];
            failures.map(|failure| failure.way_out().unwrap_or_default())
        };
        for (order, typed) in [
            ("A-1", "--order A-1"),
            ("x; $(cmd)", "--order 'x; $(cmd)'"),
            ("-x", "--order='-x'"),
        ] {
            let wanted = format!("`tilld invoice show --all {typed}` shows");
            for hint in refused(order) {
                assert!(hint.contains(&wanted), "{hint}");
            }
        }
    }
}
