//! `tilld event follow`: each event as soon as it is recorded, until the command is ended or its reader goes away.
//!
//! Promises that no event is left out or told twice, whatever becomes of the daemon meanwhile: it goes on after the last
//! number it has told. A daemon that restarts or cannot read its ledger is waited for, however long it takes; what ends it is
//! a user who may not connect any more, and an answer that cannot be understood. A ledger that was restored meanwhile gives numbers
//! anew: that is said, and what may not have been told yet is told, some of it perhaps a second time. A number that was given
//! on the command line and that the ledger never gave is an end: whoever gave it knows where to go on.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{has_reader, reader_gone, talk};
use super::super::remote::{self, Away, Events, NoAnswer, Remote, Way};
use super::view;
use crate::answer::event::{json, not_given};
use crate::ledger::Ledger;

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
    /// Begin after the event with this number, 0 with the first one; without it only events from now on
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
    let (mut generation, mut after) = (None, args.after);
    let mut away = Away::default();
    loop {
        let begun = Instant::now();
        // Without a number only the newest one is asked for: what came while that is held back could be lost with it. So could
        // a restore, while it is not known yet of which ledger a number is.
        let most = match (after, generation) {
            (None, _) => (1, 0),
            (Some(_), None) => (PAGE, 0),
            (Some(_), Some(_)) => (PAGE, WAIT_S),
        };
        let (events, next_after) = match remote.events((generation, after), order, most).await {
            Ok(Events {
                told: events,
                next_after,
                generation: now,
            }) => {
                generation = now;
                (events, next_after)
            }
            Err(NoAnswer::Restored {
                at: (now, begin), ..
            }) if generation.is_some() => {
                away.answered();
                talk(&restored(begin));
                (generation, after) = (Some(now), Some(begin));
                continue;
            }
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
        // A long backlog is not read to its end for nobody.
        if !has_reader() {
            return Ok(Exit::Ok);
        }
        let is_first = after.replace(next_after).is_none();
        if events.is_empty() && !is_first {
            sleep_until(begun + ASK_EVERY).await;
        }
    }
}

/// What is said of a ledger that is another one.
fn restored(begin: i64) -> String {
    format!(
        "the ledger was restored from a copy: going on after its event {begin}; some may come again"
    )
}

async fn directly(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(context)?;
    let order = args.order.as_deref();
    let lineage = reader.lineage().await?;
    let mut after = match args.after {
        Some(after) => match lineage.go_on(None, after) {
            Ok(()) => after,
            Err(restored) => return Err(not_given(after, restored)),
        },
        None => lineage.newest,
    };
    let state_dir = context.state_dir()?;
    let opened = Ledger::identity(&state_dir);
    loop {
        // A file that was put in its place is another one, and the old one, which is open here, tells nothing any more.
        if Ledger::identity(&state_dir).is_some_and(|now| Some(now) != opened) {
            return Err(Failure::new(
                Exit::Ledger,
                format!("another ledger was put in the place of this one, after event {after}"),
            )
            .hint("run the command again; without `--after` it tells what happens from then on"));
        }
        let rows = reader.events(order, after, PAGE).await?;
        for row in &rows {
            view::print(context.output, &json(row))?;
            after = row.seq;
        }
        if !has_reader() {
            return Ok(Exit::Ok);
        }
        if rows.is_empty() {
            sleep(LOOK_EVERY).await;
        }
    }
}
