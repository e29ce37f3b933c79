//! `tilld invoice poll`: asks the service about one invoice now, whether it is due or not and however it stands, and shows
//! what the ledger says then. A daemon that answers is asked to do it; it works beside a running one, too: both write through
//! the same code.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, talk};
use super::super::remote::{self, Remote, Way};
use super::super::which::Which;
use super::super::{ledger, owner, service};
use super::view;
use crate::answer::find::find_one;
use crate::answer::poll::{failure, nothing_to_ask, remark};
use crate::client::gate::{Caller, Gate};
use crate::clock::wall_ms;
use crate::parts;
use crate::poller::now::{Error, Inquirer};

/// Flags of `invoice poll`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
}

/// Runs `invoice poll`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match remote::way_with_token(&context).await? {
        Way::Socket(remote) => over(&remote, &args, &context).await,
        Way::Direct(denied) => denied.explain(directly(&args, &context).await),
    }
}

async fn over(remote: &Remote, args: &Args, context: &Context) -> Result<Exit, Failure> {
    let asked = remote.poll(&args.which.name()).await?;
    if let Some(row) = &asked.row {
        view::print(context.output, row, wall_ms())?;
    }
    if let Some(failure) = asked.failure {
        return Err(failure);
    }
    if let Some(remark) = &asked.remark {
        talk(&escape(remark));
    }
    Ok(Exit::Ok)
}

async fn directly(args: &Args, context: &Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(context)?;
    let row = find_one(&reader, &args.which.name()).await?;
    if row.invoice_id.is_none() {
        view::print(context.output, &row, wall_ms())?;
        return Err(nothing_to_ask(&row));
    }
    let settings = context.settings()?;
    let client = service::client(context)?;
    let found = service::token(context, &client)?;
    let ledger = ledger::open_to_decide(context)?;
    let reader = ledger.reader();
    let inquirer = Inquirer::new(
        Caller::Operator,
        (ledger.writer(), reader.clone()),
        client,
        Gate::new(parts::gate_limits(settings)),
        found.token,
    );
    let asked = inquirer.ask(row.key).await;
    let now = reader.invoice(row.key).await;
    drop(inquirer);
    ledger.close(ledger::CLOSE_WITHIN).await;
    let row = now?.unwrap_or(row);
    view::print(context.output, &row, wall_ms())?;
    match asked {
        Ok(decision) => {
            if let Some(remark) = remark(decision) {
                talk(remark);
            }
            Ok(Exit::Ok)
        }
        Err(Error::NoId) => Err(nothing_to_ask(&row)),
        Err(error) => Err(failure(error, found.source)),
    }
}
