//! `tilld event follow`: each event as soon as it is recorded, until the command is ended or its reader goes away.
//!
//! Promises that no event is left out or told twice, whatever becomes of the daemon meanwhile: it goes on after the last
//! number it has told. A daemon that restarts or cannot read its ledger is waited for, however long it takes; what ends it is
//! a user who may not connect any more, and an answer that cannot be understood.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::reader_gone;
use super::super::remote::{self, Away, Events, Remote, Way};
use super::view;
use crate::answer::event::json;

/// How often the ledger is looked at without a daemon: one indexed read each.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A daemon that holds nothing back, since it stops, is asked no oftener.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long a daemon holds its answer back, seconds.
const WAIT_S: u64 = 60;
/// Events in one answer, or one look.
const PAGE: u32 = 200;

/// Flags of `event follow`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Begin after the event with this number, 0 with the first one; without it only what happens from now on is told
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    after: Option<i64>,
    /// Only those of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
}

/// Runs `event follow`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let way = remote::way(&context).await?;
    let followed = async {
        match &way {
            Way::Socket(remote) => over(remote, &args, &context).await,
            Way::Direct(denied) => denied.explain(directly(&args, &context).await),
        }
    };
    // There may be nothing to tell for days, and so no write that would find it out.
    tokio::select! {
        ended = followed => ended,
        () = reader_gone() => Ok(Exit::Ok),
    }
}

async fn over(remote: &Remote, args: &Args, context: &Context) -> Result<Exit, Failure> {
    let order = args.order.as_deref();
    let mut after = args.after;
    let mut away = Away::default();
    loop {
        let begun = Instant::now();
        // Without a number only the newest one is asked for: what came while that is held back could be lost with it.
        let most = after.map_or((1, 0), |_| (PAGE, WAIT_S));
        let (events, next_after) = match remote.events(after, order, most).await {
            Ok(Events { events, next_after }) => (events, next_after),
            Err(error) => match away.lost(&error) {
                Some(pause) => {
                    sleep(pause).await;
                    continue;
                }
                None => return Err(error.into()),
            },
        };
        away.answered();
        for event in &events {
            view::print(context.output, event)?;
        }
        let is_first = after.replace(next_after).is_none();
        if events.is_empty() && !is_first {
            sleep_until(begun + ASK_EVERY).await;
        }
    }
}

async fn directly(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(context)?;
    let order = args.order.as_deref();
    let mut after = match args.after {
        Some(after) => after,
        None => reader.newest_event().await?,
    };
    loop {
        let rows = reader.events(order, after, PAGE).await?;
        for row in &rows {
            view::print(context.output, &json(row))?;
            after = row.seq;
        }
        if rows.is_empty() {
            sleep(LOOK_EVERY).await;
        }
    }
}
