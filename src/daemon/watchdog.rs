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

/// How often the word goes out within the time systemd wants one in. At most two of these times pass between two, as one may go
/// out at the beginning of its time and the next at the end: less than half of what systemd grants.
const WORDS_IN_TIME: u32 = 5;
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

/// How the writer is asked for a whole turn.
type Turn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Sends the word until it is dropped, when systemd wants it; during a stop in any case.
pub(super) async fn run(
    every: Option<Duration>,
    (writer, busy_budget): (Writer, Duration),
    watched: Vec<Watched>,
    stop: Shutdown,
) {
    match every {
        Some(every) => {
            let ask = move || turn(writer.clone());
            let within = writer_within(busy_budget);
            watch(every, (ask, within), watched, stop, systemd::tell).await;
        }
        None => std::future::pending().await,
    }
}

/// [`run`], the writer being asked by `ask` and the words going to `say`.
async fn watch(
    every: Duration,
    (ask, within): (impl Fn() -> Turn, Duration),
    mut watched: Vec<Watched>,
    stop: Shutdown,
    mut say: impl FnMut(&[Word]),
) {
    let tick = (every / WORDS_IN_TIME).min(LONGEST_TICK);
    let pulse = Pulse::default();
    watched.push(Watched {
        name: "the ledger's writer",
        pulse: pulse.clone(),
        within,
    });
    let (mut asked, mut is_new) = (ask(), true);
    let mut still: Option<&'static str> = None;
    loop {
        let until = Instant::now() + tick;
        if is_new {
            // From when it is asked: between two questions it owes nothing.
            pulse.turn();
        }
        is_new = timeout_at(until, asked.as_mut()).await.is_ok();
        if is_new {
            asked = ask();
        }
        let is_still = |one: &&Watched| one.pulse.still_for() > one.within;
        // Loops that have ended do not turn: how long a stop takes is bounded elsewhere.
        let stands = watched
            .iter()
            .find(is_still)
            .filter(|_| !stop.is_requested());
        tell(stands, &mut still, &mut say);
        if stands.is_none() {
            say(&[Word::Alive]);
        }
        sleep_until(until).await;
    }
}

/// One whole turn of the writer.
fn turn(writer: Writer) -> Turn {
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
fn tell(stands: Option<&Watched>, still: &mut Option<&'static str>, say: &mut impl FnMut(&[Word])) {
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
            say(&[Word::Status(format!("{name} stands still"))]);
        }
        (None, Some(name)) => {
            tracing::warn!("{name} goes on");
            say(&[Word::Status(format!("{name} stood still, and goes on"))]);
        }
        (None, None) => {}
    }
    *still = name;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const EVERY: Duration = Duration::from_secs(30);

    /// When the word went out, counted from the start, and what else was said.
    type Said = Arc<Mutex<(Vec<Duration>, Vec<String>)>>;

    /// Watches for so long, the writer's answers taking these times in turns.
    async fn watched_for(
        time: Duration,
        answers: &'static [u64],
        loops: Vec<Watched>,
        stop: Shutdown,
    ) -> (Vec<Duration>, Vec<String>) {
        let said = Said::default();
        let (began, asked) = (Instant::now(), Mutex::new(0_usize));
        let ask = || -> Turn {
            let mut asked = asked.lock().expect("no panic there");
            let takes = answers.get(*asked % answers.len()).copied();
            *asked += 1;
            Box::pin(sleep(Duration::from_millis(takes.unwrap_or_default())))
        };
        let told = Arc::clone(&said);
        let say = move |words: &[Word]| {
            let mut said = told.lock().expect("no panic there");
            for word in words {
                match word {
                    Word::Alive => said.0.push(began.elapsed()),
                    other => said.1.push(other.to_string()),
                }
            }
        };
        let watching = watch(EVERY, (ask, writer_within(SECOND * 5)), loops, stop, say);
        let ended = tokio::time::timeout(time, watching).await;
        assert!(ended.is_err(), "it ended by itself");
        let said = said.lock().expect("no panic there");
        said.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn less_than_half_of_the_time_passes_between_two_words() {
        for answers in [
            &[0][..],
            &[0, 5_900],
            &[0, 15_000, 1],
            &[19_900],
            &[7, 7_000],
        ] {
            let time = SECOND * 600;
            let (words, others) = watched_for(time, answers, Vec::new(), Shutdown::new()).await;
            let gaps = words.iter().zip(words.iter().skip(1));
            let longest = gaps.map(|(one, next)| next.saturating_sub(*one)).max();
            assert!(
                longest.is_some_and(|gap| gap < EVERY / 2),
                "{answers:?}: {longest:?}"
            );
            assert_eq!(others, Vec::<String>::new(), "{answers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_answers_too_late_is_not_told_as_alive_until_it_does() {
        // Its bound is 20 s; it takes a minute once, and then none at all.
        let answers = &[60_000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let time = SECOND * 90;
        let (words, others) = watched_for(time, answers, Vec::new(), Shutdown::new()).await;
        let within = |from: u64, to: u64| {
            let is_there = |at: &&Duration| {
                **at > SECOND * u32::try_from(from).expect("small")
                    && **at < SECOND * u32::try_from(to).expect("small")
            };
            words.iter().filter(is_there).count()
        };
        assert!(within(0, 21) > 1, "{words:?}");
        assert_eq!(within(24, 60), 0, "{words:?}");
        assert!(within(60, 90) > 3, "{words:?}");
        let name = "STATUS=the ledger's writer ";
        assert_eq!(
            others,
            [
                format!("{name}stands still"),
                format!("{name}stood still, and goes on")
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_named_and_a_stop_asks_for_none() {
        for (stops, wanted) in [(false, 6), (true, 21)] {
            let stop = Shutdown::new();
            if stops {
                stop.request();
            }
            let one = Watched {
                name: "the outbox",
                pulse: Pulse::default(),
                within: loop_within(SECOND * 15, SECOND * 5),
            };
            // 40 s: 15, 20 of the writer, and 5.
            let time = SECOND * 121;
            let (words, others) = watched_for(time, &[0], vec![one], stop).await;
            assert_eq!(words.len().min(wanted), wanted, "{words:?}");
            assert_eq!(words.last().is_some_and(|at| *at > SECOND * 41), stops);
            assert_eq!(others.is_empty(), stops, "{others:?}");
        }
    }
}
