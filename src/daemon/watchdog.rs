//! Tells systemd that all goes on, as long as it does (A43): the word goes out only while each loop that does the work is
//! seen to turn, so that systemd starts a daemon anew that looks well and does nothing.
//!
//! The ledger's writer is asked and must answer at the end of a whole turn; the others say so at each turn of theirs. Each
//! has a bound that follows from how often it turns and from what a turn may wait for. Whoever waits for a lock or an answer
//! within its bound is alive: a neighbour that holds the ledger ends no daemon.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::systemd::{self, Word};
use crate::ledger::{WriteError, Writer};
use crate::pulse::Pulse;
use crate::shutdown::Shutdown;

/// How often the word goes out within the time systemd wants one in: less than half of it passes between two.
const WORDS_IN_TIME: u32 = 3;
/// Long waits are cut, so that a loop that stands still is logged soon.
const LONGEST_TICK: Duration = Duration::from_secs(10);
/// What each loop is given beyond what it may wait for: a slow disk's worst sync, a machine that is busy.
const SLACK: Duration = Duration::from_secs(5);
/// In one turn the writer waits for others' lock at most so often: to store, to write refusals, and to move the log.
const LOCKS_IN_A_TURN: u32 = 3;
/// The writer is asked again so soon when its queue has no place.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A loop that is watched.
pub(super) struct Watched {
    /// Its name for people.
    pub(super) name: &'static str,
    /// Its turns.
    pub(super) pulse: Pulse,
    /// It turns at least so often, or it stands still.
    pub(super) within: Duration,
}

/// How long the writer may take for one turn.
pub(super) fn writer_within(busy_budget: Duration) -> Duration {
    busy_budget * LOCKS_IN_A_TURN + SLACK
}

/// How long a loop that turns this often may take, each turn waiting for the writer once.
pub(super) fn loop_within(turns_within: Duration, busy_budget: Duration) -> Duration {
    turns_within + writer_within(busy_budget) + SLACK
}

/// Sends the word until it is dropped, when systemd wants it; during a stop in any case.
pub(super) async fn run(
    every: Option<Duration>,
    (writer, busy_budget): (Writer, Duration),
    mut watched: Vec<Watched>,
    stop: Shutdown,
) {
    let Some(every) = every else {
        return std::future::pending().await;
    };
    let tick = (every / WORDS_IN_TIME).min(LONGEST_TICK);
    let pulse = Pulse::default();
    watched.push(Watched {
        name: "the ledger's writer",
        pulse: pulse.clone(),
        within: writer_within(busy_budget),
    });
    let mut asked = turn(writer.clone());
    let mut still: Option<&'static str> = None;
    loop {
        let until = Instant::now() + tick;
        if timeout_at(until, asked.as_mut()).await.is_ok() {
            asked = turn(writer.clone());
            pulse.turn();
        }
        let is_still = |one: &&Watched| one.pulse.still_for() > one.within;
        // Loops that have ended do not turn: how long a stop takes is bounded elsewhere.
        let stands = watched
            .iter()
            .find(is_still)
            .filter(|_| !stop.is_requested());
        tell(stands, &mut still);
        if stands.is_none() {
            systemd::tell(&[Word::Alive]);
        }
        sleep_until(until).await;
    }
}

/// One whole turn of the writer.
fn turn(writer: Writer) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        loop {
            match writer.probe().await {
                Ok(()) => return,
                Err(WriteError::QueueFull) => sleep(ASK_AGAIN_AFTER).await,
                // Its end is heard by whoever supervises it; until then it does not turn.
                Err(_ended) => return std::future::pending().await,
            }
        }
    })
}

/// Says once that one stands still, and once that it goes on.
fn tell(stands: Option<&Watched>, still: &mut Option<&'static str>) {
    let name = stands.map(|one| one.name);
    if *still == name {
        return;
    }
    match (stands, still.take()) {
        (Some(one), _) => {
            let (name, for_s) = (one.name, one.pulse.still_for().as_secs());
            tracing::error!(
                still_for_s = for_s,
                "{name} stands still since {for_s} s: systemd is not told that all goes on, and will start tilld anew"
            );
            systemd::tell(&[Word::Status(format!("{name} stands still"))]);
        }
        (None, Some(name)) => {
            tracing::warn!("{name} goes on");
            systemd::tell(&[Word::Status(format!("{name} stood still, and goes on"))]);
        }
        (None, None) => {}
    }
    *still = name;
}
