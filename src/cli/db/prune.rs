//! `tilld db prune`: empties what was over long ago, now instead of with the daemon's next walk; or says what it would.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::print_json;
use super::super::{ledger, owner};
use crate::clock::wall_ms;
use crate::ledger::{CLOCK, Cutoffs, Emptied, WalkError, WrongClock, is_served, walk};

/// Before each step, while the log is long.
const WAIT_FOR_THE_LOG: Duration = Duration::from_secs(10);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What `--help` says below the flags.
pub(super) const ENDS: &str = "Amounts, statuses, events and deliveries are kept. An invoice that is open, or owed to a hook, \
  is left alone. A raw document has the requisites in it and goes with them at the latest. A running `serve` does the same once \
  a day by the settings. While `status` says that this machine's clock is ahead of the service's, nothing is emptied: it ends with 1.";

/// Flags of `db prune`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only count what would be emptied
    #[arg(long)]
    dry_run: bool,
    /// Empty requisites and payment page of invoices that were over DAYS ago, 0 for never [default: as
    /// `retention.requisites_days`]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(0..=36_500))]
    requisites_after: Option<u64>,
    /// Empty the service's raw documents, and what scripts wrote, of invoices that were over DAYS ago, 0 for never [default: as
    /// `retention.raw_days`]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(0..=36_500))]
    raw_after: Option<u64>,
}

/// Runs `db prune`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let kept = &context.settings()?.retention;
    let requisites_days = args.requisites_after.unwrap_or(kept.requisites_days);
    let raw_days = args.raw_after.unwrap_or(kept.raw_days);
    let cutoffs = Cutoffs::after_days(requisites_days, raw_days, wall_ms());
    if !args.dry_run {
        refuse_a_clock_ahead(&context).await?;
    }
    let no_rest = std::future::ready::<()>;
    let emptied = if args.dry_run {
        let reader = ledger::open_reader(&context)?;
        walk(&reader, None, cutoffs, || no_rest(())).await?
    } else {
        owner::check(&context.state_dir()?)?;
        // One that is not there is not made for it.
        drop(ledger::open_reader(&context)?);
        let open = ledger::open(&context)?;
        let (reader, writer) = (open.reader(), open.writer());
        let served = is_served(&context.state_dir()?);
        let rest = || async {
            // A daemon moves the log, unless a long read holds it: then it must not grow fast up to its bound.
            let shorter = Instant::now() + WAIT_FOR_THE_LOG;
            while served && reader.log_is_long() && Instant::now() < shorter {
                sleep(LOOK_EVERY).await;
            }
        };
        let walked = walk(&reader, Some(&writer), cutoffs, rest).await;
        drop((reader, writer));
        open.close(ledger::CLOSE_WITHIN).await;
        walked?
    };
    let Emptied { requisites, raw } = emptied;
    if context.output.json() {
        print_json(&json!({
            "dry_run": args.dry_run,
            "requisites_days": requisites_days,
            "raw_days": raw_days,
            "requisites": requisites,
            "raw": raw,
        }))?;
        return Ok(Exit::Ok);
    }
    let age = |days: u64| match days {
        0 => "never".to_owned(),
        1 => "after 1 day".to_owned(),
        _ => format!("after {days} days"),
    };
    let done = if args.dry_run {
        "would be emptied"
    } else {
        "emptied"
    };
    context.output.pairs(&[
        (
            "requisites",
            format!("of {requisites} invoices {done}, {}", age(requisites_days)),
        ),
        (
            "raw documents",
            format!("of {raw} invoices {done}, {}", age(raw_days)),
        ),
    ])?;
    Ok(Exit::Ok)
}

/// A clock that is ahead makes old what is new.
async fn refuse_a_clock_ahead(context: &Context) -> Result<(), Failure> {
    let seen = ledger::open_reader(context)?.fact(&CLOCK).await?;
    let Some(WrongClock::Differs { ahead_ms: 1.. }) = seen.and_then(|note| note.wrong) else {
        return Ok(());
    };
    let told = "this machine's clock is ahead of the service's: nothing is emptied by it";
    Err(Failure::new(Exit::Error, told)
        .hint("set the clock; `tilld status` shows when the daemon has seen that"))
}

impl From<WalkError> for Failure {
    fn from(error: WalkError) -> Self {
        Self::new(Exit::Ledger, error)
            .context("could not empty all that is old")
            .hint("what was emptied is; run the command again")
    }
}
