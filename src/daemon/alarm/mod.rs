//! Runs the program of `[attention]` when something comes to need a person: once for each word on the list of needs, and again
//! only when that was over and came back; what is measured, of the disk and the log, is over when it was gone for ten minutes.
//! A reversal has no end, so each is told, those of one look together.
//!
//! Works from the ledger's state alone, as `status` does, so whatever is on that list is told here. What was told is a small
//! fact of the ledger: a restart repeats nothing. Relies on [`crate::hook::process`] for the isolation that hooks have.
//! Promises that a program that fails is run a few times more and then every hour, as long as there is something to tell; that
//! it runs once at a time, that one that hangs holds up another word for its time limit alone, and that it is run at least
//! once: one that was cut off by a stop runs again.

mod episodes;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::clock::wall_ms;
use crate::hook;
use crate::hook::process::{Ending, Program, Surroundings, launch_told};
use crate::invoice::attention::Severity;
use crate::invoice::event::EventKind;
use crate::ledger::{ALARMED, Fact, ReadError, Reader, Writer};
use crate::shutdown::Shutdown;
use crate::status::{Need, Reason};
use crate::telemetry::{chain, escape};

use episodes::Episodes;
use told::{Alarm, told};

/// How often it is looked. It costs a dozen short questions, and only where a program is set.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Before each further run of a program that failed.
const AGAIN_AFTER: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_mins(1),
];
/// How long a program that failed each time is left alone.
const LEAVE_FOR: Duration = Duration::from_hours(1);
/// The pause after a start that failed for want of something.
const WANT_FOR: Duration = Duration::from_secs(10);
/// The pause while others may change what would be run: somebody has to put that right.
const EXPOSED_FOR: Duration = Duration::from_mins(5);
/// Between TERM and KILL.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// Where the ledger keeps what was told.
static FACT: Fact<Episodes> = Fact::json(ALARMED);
/// So many looks in a row must find it so: one may meet a moment in which the file is opened anew.
const BLIND_LOOKS: u32 = 3;
/// Events looked at for reversals at a time.
const EVENTS: u32 = 5_000;

/// What needs a person, looked up anew each time.
pub(super) type Look = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<Need>, ReadError>> + Send>> + Send + Sync,
>;

/// What it works with.
pub(super) struct Parts {
    /// What needs a person.
    pub(super) look: Look,
    /// Where what was told is remembered.
    pub(super) writer: Writer,
    /// Where it is read.
    pub(super) reader: Reader,
    /// The program.
    pub(super) program: Program,
    /// Launcher, home, and a directory of its own.
    pub(super) around: Surroundings,
}

/// Looks and runs until the stop; a program that still runs then is ended.
pub(super) async fn run(parts: Parts, shutdown: Shutdown) {
    let work_dir = parts.around.work_dir.clone();
    drop(spawn_blocking(move || hook::remove(left_in(&work_dir))).await);
    let mut watch = Watch {
        episodes: None,
        stored: None,
        untold: BTreeSet::new(),
        runs: JoinSet::new(),
        parts: Arc::new(parts),
        shutdown: shutdown.clone(),
        turn: Arc::default(),
        begun: Instant::now(),
        unseen: 0,
    };
    while !shutdown.is_requested() {
        watch.look().await;
        tokio::select! {
            () = shutdown.requested() => {}
            () = sleep(LOOK_EVERY) => {}
            Some(ended) = watch.runs.join_next() => watch.ended(ended.ok()),
        }
    }
    // Each ends its program within its grace; what was not told by then is told after the next start.
    while let Some(ended) = watch.runs.join_next().await {
        watch.ended(ended.ok());
    }
    watch.store().await;
}

fn left_in(work_dir: &std::path::Path) -> Vec<PathBuf> {
    hook::leftovers(work_dir)
}

struct Watch {
    parts: Arc<Parts>,
    /// `None` until the first look.
    episodes: Option<Episodes>,
    /// What the ledger has.
    stored: Option<Episodes>,
    /// Those that could not be told by the last try.
    untold: BTreeSet<Reason>,
    /// Each gives its word, and whether it is told now.
    runs: JoinSet<Told>,
    shutdown: Shutdown,
    /// Whoever has it runs the program.
    turn: Arc<Mutex<()>>,
    begun: Instant,
    /// Looks in a row that could not read the ledger.
    unseen: u32,
}

/// A run that is over.
struct Told {
    word: Reason,
    /// The last event it told of, of reversals.
    upto: Option<i64>,
    /// It need not be told again.
    done: bool,
}

impl Watch {
    async fn look(&mut self) {
        let looked = self.look_once().await;
        match looked {
            Ok(()) => {
                self.unseen = 0;
                if let Some(episodes) = self.episodes.as_mut() {
                    episodes.end_blind();
                }
            }
            Err(error) => self.blind(&chain(&error)),
        }
        self.store().await;
    }

    /// The ledger cannot be read: a word of its own, for no list can be made then.
    fn blind(&mut self, why: &str) {
        tracing::debug!(reason = %why, "it could not be looked what needs a person");
        self.unseen = self.unseen.saturating_add(1);
        let unseen = self.unseen;
        let Some(episodes) = self.episodes.as_mut().filter(|_| unseen >= BLIND_LOOKS) else {
            return;
        };
        if episodes.begin_blind() {
            self.alarm(Reason::CannotRead, vec![Need::cannot_read(why)], None);
        }
    }

    async fn look_once(&mut self) -> Result<(), ReadError> {
        let reader = &self.parts.reader;
        if self.episodes.is_none() {
            // One that cannot be read now is read by the next look: nothing is told twice for it, and nothing passed over.
            self.stored = reader.fact(&FACT).await?;
            self.episodes = match &self.stored {
                Some(stored) => Some(stored.clone()),
                // What was reversed before anybody wanted to know is nobody's alarm.
                None => Some(Episodes::new(reader.newest_event().await?)),
            };
        }
        let needs = (self.parts.look)().await?;
        let mut by_word: BTreeMap<Reason, Vec<Need>> = BTreeMap::new();
        for need in needs {
            by_word.entry(need.reason).or_default().push(need);
        }
        let Some(episodes) = self.episodes.as_mut() else {
            return Ok(());
        };
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let words = episodes.begin(by_word.keys().copied(), now_ms);
        for word in words {
            let needs = by_word.remove(&word).unwrap_or_default();
            self.alarm(word, needs, None);
        }
        self.look_for_reversals().await
    }

    async fn look_for_reversals(&mut self) -> Result<(), ReadError> {
        let Some(episodes) = self
            .episodes
            .as_mut()
            .filter(|all| !all.tells(Reason::Reversed))
        else {
            return Ok(());
        };
        let reader = &self.parts.reader;
        let (upto, orders) = reader
            .orders_of_kind(EventKind::Reversed, episodes.seq(), EVENTS)
            .await?;
        if orders.is_empty() {
            episodes.heard(upto);
            return Ok(());
        }
        episodes.begin_one(Reason::Reversed);
        let need = Need::reversed(&orders);
        self.alarm(Reason::Reversed, vec![need], Some(upto));
        Ok(())
    }

    fn alarm(&mut self, word: Reason, needs: Vec<Need>, upto: Option<i64>) {
        let what = format!("something needs a person: {word}");
        match word.severity() {
            // It is tried once more.
            _ if self.untold.contains(&word) => {}
            Severity::Critical => tracing::error!(reason = %word, "{what}"),
            Severity::Warning => tracing::warn!(reason = %word, "{what}"),
        }
        let (parts, stop) = (Arc::clone(&self.parts), self.shutdown.clone());
        let alarm = Alarm {
            word,
            needs,
            at_ms: wall_ms(),
        };
        let turn = Arc::clone(&self.turn);
        self.runs.spawn(async move {
            let done = tell(&parts, &alarm, &turn, &stop).await;
            Told {
                word: alarm.word,
                upto,
                done,
            }
        });
    }

    /// `None` is a run that was cut off, or panicked.
    fn ended(&mut self, told: Option<Told>) {
        let (Some(told), Some(episodes)) = (told, self.episodes.as_mut()) else {
            return;
        };
        if told.done {
            self.untold.remove(&told.word);
        } else {
            self.untold.insert(told.word);
        }
        if let Some(upto) = told.upto.filter(|_| told.done) {
            episodes.heard(upto);
            // However few events that was.
            self.stored = None;
        }
        episodes.ended(told.word, told.done && told.upto.is_none());
    }

    /// Writes down what was told, when that has changed; what cannot be written is tried again by the next look.
    async fn store(&mut self) {
        let Some(episodes) = &self.episodes else {
            return;
        };
        if self
            .stored
            .as_ref()
            .is_some_and(|stored| stored.same(episodes))
        {
            return;
        }
        match self.parts.writer.note(&FACT, episodes).await {
            Ok(()) => self.stored = Some(episodes.clone()),
            Err(error) => {
                tracing::debug!(reason = %chain(&error), "what was told of needs could not be stored");
            }
        }
    }
}

/// Runs the program until it ends with 0, a few times. False when it did not, after [`LEAVE_FOR`], when it cannot be started,
/// after [`WANT_FOR`] or [`EXPOSED_FOR`], or when the daemon stops before: then it is told anew, if it still stands.
async fn tell(parts: &Parts, alarm: &Alarm, turn: &Mutex<()>, stop: &Shutdown) -> bool {
    let mut pauses = AGAIN_AFTER.into_iter();
    let mut attempt = 1_u32;
    loop {
        let ending = {
            let _turn = turn.lock().await;
            run_once(parts, alarm, attempt, stop).await
        };
        let word = &alarm.word;
        let pause = match ending {
            Ending::Exited(0) => {
                tracing::info!(reason = %word, attempt, "a person was told of {word}");
                return true;
            }
            Ending::Interrupted => return false,
            // No attempt. What stands then is looked at anew: it may be something else.
            Ending::Wanting(ref why) | Ending::Exposed(ref why) => {
                let is_want = matches!(ending, Ending::Wanting(_));
                let pause = if is_want { WANT_FOR } else { EXPOSED_FOR };
                let why = escape(why);
                tracing::warn!(reason = %word, "the program of `[attention]` waits, since it cannot be started: {why}");
                tokio::select! {
                    () = stop.requested() => {}
                    () = sleep(pause) => {}
                }
                return false;
            }
            other => {
                let result = escape(&other.to_string()).into_owned();
                tracing::warn!(reason = %word, attempt, %result, "the program of `[attention]` failed: {result}");
                let Some(pause) = pauses.next() else { break };
                attempt += 1;
                pause
            }
        };
        tokio::select! {
            () = stop.requested() => return false,
            () = sleep(pause) => {}
        }
    }
    tracing::error!(reason = %alarm.word, "nobody was told of {}: the program of `[attention]` failed each time; in an hour it is tried again", alarm.word);
    tokio::select! {
        () = stop.requested() => {}
        () = sleep(LEAVE_FOR) => {}
    }
    false
}

async fn run_once(parts: &Parts, alarm: &Alarm, attempt: u32, stop: &Shutdown) -> Ending {
    let launched = launch_told(&parts.program, &parts.around, told(alarm, attempt)).await;
    match launched {
        Ok(launched) => launched.run(stop).await.ending,
        Err(error) => error.ending(),
    }
}
