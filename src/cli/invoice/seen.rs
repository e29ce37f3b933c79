//! `tilld invoice seen`: a person has looked at what nothing else can settle, and `status` asks for nobody on its account any
//! more. Changes nothing of the invoice but that, and tells no hook.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{escape, talk};
use super::super::owner;
use super::view;
use crate::answer::attention::words;
use crate::answer::find::{find, not_found};
use crate::clock::wall_ms;
use crate::invoice::attention::End;
use crate::ledger::{InvoiceRow, Operated, Reader};

/// Flags of `invoice seen`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The order id; or the service's id or the ref of one invoice
    #[arg(value_name = "ORDER-OR-ID")]
    name: String,
}

/// Runs `invoice seen`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let row = choose(&ledger::open_reader(&context)?, &args.name).await?;
    let ledger = ledger::open(&context)?;
    let seen = ledger.writer().see_to(row.key, wall_ms()).await;
    ledger.close(ledger::CLOSE_WITHIN).await;
    match seen? {
        Operated::Done(now, _) => {
            let mut gone = row.attention;
            gone.retain(|reason| !now.needs(*reason));
            let order = escape(&now.order_id).into_owned();
            talk(&format!("order {order}: {} is seen to", words(&gone, ", ")));
            view::print(context.output, &now, wall_ms())?;
            Ok(Exit::Ok)
        }
        Operated::Already(now) | Operated::Refused(now, _) => {
            let order = escape(&now.order_id).into_owned();
            let hint = if now.attention.is_empty() {
                "nothing of it needs a person".to_owned()
            } else {
                let left = words(&now.attention, ", ");
                format!("{left} goes by what settles it: `tilld status` says how")
            };
            let error = format!("order `{order}` has nothing that can be seen to by hand");
            Err(Failure::new(Exit::Error, error).hint(hint))
        }
    }
}

/// The newest invoice of the order that has something to be seen to, else the newest.
async fn choose(reader: &Reader, name: &str) -> Result<InvoiceRow, Failure> {
    let found = find(reader, name).await?;
    let has_some = |row: &&InvoiceRow| row.attention.iter().any(|reason| reason.end() == End::Ack);
    let chosen = found.iter().find(has_some).or(found.first());
    chosen.cloned().ok_or_else(|| not_found(name))
}
