//! `tilld invoice wait`: returns when an order's money has come, or when it is clear that it will not.
//!
//! A daemon that answers on its socket is asked, and waited for while it restarts or cannot read its ledger; while one serves
//! that does not, the ledger is watched; without one, the command asks the service itself.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, talk};
use super::super::remote::{self, Away, NoAnswer, Remote, Way};
use super::super::which::Which;
use super::super::{ledger, owner, service};
use super::view;
use crate::answer::find::{end, find_one, still_open};
use crate::client::error::Error as FetchError;
use crate::client::gate::{Caller, Gate};
use crate::clock::wall_ms;
use crate::ledger::{InvoiceRow, is_served};
use crate::parts;
use crate::poller::now::{Error, Inquirer, Nothing};
use crate::telemetry::chain;

/// How often the ledger is looked at: quick enough for a person, and one indexed read each.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Flags of `invoice wait`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// Give up after this long, for example 90s or 15m; then the exit code is 6
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_time)]
    timeout: Duration,
}

/// Reads `90`, `90s`, `15m` or `2h`.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let factor = match unit {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    let seconds = digits
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(count, factor)| count.checked_mul(factor));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is no time such as `90s`, `15m` or `2h`"))
}

/// Runs `invoice wait`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let until = Instant::now() + args.timeout;
    match remote::way(&context).await? {
        Way::Socket(remote) => match over(&remote, &args, &context, until).await? {
            Some(exit) => Ok(exit),
            None => directly(&args, &context, until).await,
        },
        Way::Direct(denied) => denied.explain(directly(&args, &context, until).await),
    }
}

/// Asks a daemon until it is decided. One that went away is waited for; `None` when this user may go on without it.
async fn over(
    remote: &Remote,
    args: &Args,
    context: &Context,
    until: Instant,
) -> Result<Option<Exit>, Failure> {
    let (mut last, mut away) = (None, Away::default());
    loop {
        let begun = Instant::now();
        let left = until.saturating_duration_since(begun);
        let mut next = begun + LOOK_EVERY;
        match remote.wait(&args.which.name(), left).await {
            Ok((is_decided, row)) => {
                away.answered();
                let end = end(&row, wall_ms()).filter(|_| is_decided);
                if let Some(end) = end {
                    view::print(context.output, &row, wall_ms())?;
                    return end.map(Some);
                }
                last = Some(row);
            }
            Err(NoAnswer::Ended(failure)) => return Err(failure),
            Err(gone) => {
                let is_there = matches!(gone, NoAnswer::Busy(_));
                if !is_there && context.socket().is_none() && owns(context) {
                    return Ok(None);
                }
                let is_over = Instant::now() >= until;
                if is_over && last.is_none() {
                    return Err(gone.into());
                }
                if !is_over {
                    match away.lost(&gone) {
                        Some(pause) => next = Instant::now() + pause,
                        None => return Err(gone.into()),
                    }
                }
            }
        }
        if Instant::now() >= until
            && let Some(row) = &last
        {
            view::print(context.output, row, wall_ms())?;
            return Err(still_open(row, args.timeout.as_secs()));
        }
        sleep_until(until.min(next)).await;
    }
}

fn owns(context: &Context) -> bool {
    let state_dir = context.state_dir();
    state_dir.is_ok_and(|state_dir| owner::owns_ledger(&state_dir))
}

async fn directly(args: &Args, context: &Context, until: Instant) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(context)?;
    let mut asking: Option<Asking> = None;
    loop {
        let row = find_one(&reader, &args.which.name()).await?;
        if let Some(end) = end(&row, wall_ms()) {
            close(asking).await;
            view::print(context.output, &row, wall_ms())?;
            return end;
        }
        if Instant::now() >= until {
            close(asking).await;
            view::print(context.output, &row, wall_ms())?;
            return Err(still_open(&row, args.timeout.as_secs()));
        }
        if is_served(&context.state_dir()?) {
            close(asking.take()).await;
        } else {
            let asker = match &mut asking {
                Some(asker) => asker,
                None => asking.insert(Asking::begin(context)?),
            };
            // A question cut short leaves nothing behind: its answer is recorded whole or not at all.
            let asked = timeout_at(until, asker.ask_when_due(&row)).await;
            if let Ok(Err(failure)) = asked {
                close(asking).await;
                return Err(failure);
            }
        }
        sleep_until(until.min(Instant::now() + LOOK_EVERY)).await;
    }
}

/// What it takes to ask without a daemon.
struct Asking {
    ledger: crate::ledger::Ledger,
    inquirer: Inquirer,
    every: Duration,
    next: Instant,
}

impl Asking {
    fn begin(context: &Context) -> Result<Self, Failure> {
        let settings = context.settings()?;
        let client = service::client(context)?;
        let found = service::token(context, &client)?;
        let ledger = ledger::open_to_decide(context)?;
        let gate = Gate::new(parts::gate_limits(settings));
        let ends = (ledger.writer(), ledger.reader());
        let inquirer = Inquirer::new(Caller::Operator, ends, client, gate, found.token);
        let every = Duration::from_secs(settings.poller.cadence_s);
        talk("no `tilld serve` runs on this state directory: asking the service from here");
        Ok(Self {
            ledger,
            inquirer,
            every,
            next: Instant::now(),
        })
    }

    /// Asks, unless it did so a moment ago or the service wants to be left alone. Trouble on the way is told and waited
    /// out; a refused login is not.
    async fn ask_when_due(&mut self, row: &InvoiceRow) -> Result<(), Failure> {
        if Instant::now() < self.next || !self.inquirer.shut_for().is_zero() {
            return Ok(());
        }
        self.next = Instant::now() + self.every;
        match self.inquirer.ask(row.key).await {
            Ok(_) | Err(Error::NoId) => Ok(()),
            Err(Error::Nothing(Nothing::Fetch {
                source: FetchError::LoginNeeded,
                ..
            })) => Err(
                Failure::new(Exit::LoginNeeded, "the service refuses the access token")
                    .hint(service::log_in()),
            ),
            Err(Error::Read(error)) => Err(error.into()),
            Err(trouble @ (Error::Gate(_) | Error::Stopping | Error::Nothing(_))) => {
                let reason = chain(&trouble);
                talk(&format!("no answer yet: {}", escape(&reason)));
                Ok(())
            }
        }
    }
}

async fn close(asking: Option<Asking>) {
    if let Some(Asking {
        ledger, inquirer, ..
    }) = asking
    {
        drop(inquirer);
        ledger.close(ledger::CLOSE_WITHIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("15m", 900),
            ("2h", 7_200),
            ("0", 0),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "-1s", "1.5m", "1d", "99999999999999999999h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
