//! SIGKILL of the daemon again and again while orders are paid and hooks run, then a quiet end (A40, A41). What is at
//! stake: goods that are never sent, sent twice for no reason, or two scripts at work on one order at once.
//!
//! The long form, with its command in `CONTRIBUTING.md`, kills as often as it is told and prints its seed and a table;
//! `TILLD_SEED` repeats its plan (the machine's own timing cannot be repeated). The plan of [`Load`] says what is sent
//! before each kill, [`Moment`] when it comes; the scripts note what they do (`marks`), and `judge` compares that with
//! what the service says and with the ledger.

mod judge;
mod judge_tests;
mod load;
mod marks;
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use self::judge::Verdict;
use self::judge::{Owed, judge};
use self::load::Load;
use self::marks::Run;
use crate::harness::dice::Dice;
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// As many kills more are made at most when the moments that matter were not met so far.
const MORE_KILLS: usize = 60;
/// A kill comes at the latest so long after the daemon was ready, milliseconds.
const LONGEST_LIFE_MS: usize = 400;
/// Until the next of what is owed is done after the last kill: polls every two seconds, retries after one, hooks that hang for
/// two. Many kills leave much, and a busy machine takes its time for it.
const QUIET_END: Duration = Duration::from_mins(2);
/// The hooks, and what they want.
const HOOKS: [(&str, &[&str]); 2] = [("fulfil", &["paid"]), ("all", &["*"])];
/// What each of them runs.
const SCRIPT: &str = include_str!("../../fixtures/marking.sh");

/// What a kill is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// Nothing: it comes at a random time.
    Any,
    /// A delivery is claimed, and no process named yet.
    Unnamed,
    /// A hook has noted its end, which is not stored yet.
    Unstored,
}

/// What a kill interrupted, as the ledger and the marks show it afterwards: deliveries.
#[derive(Clone, Copy, Debug, Default)]
struct Hit {
    /// Claimed, and their process not named.
    unnamed: usize,
    /// Named, and their script has not begun.
    unbegun: usize,
    /// Their script is running.
    running: usize,
    /// Their script has noted its end, and it is not stored.
    unstored: usize,
}

impl Hit {
    /// The deliveries that stand as running by this daemon; what an earlier one left is not its doing.
    fn of(world: &World, daemon: u32) -> Self {
        let runs = runs(world);
        let query = format!(
            "SELECT e.event_id, d.hook, d.attempts, d.child_pid FROM delivery d \
             JOIN event e ON e.seq = d.event WHERE d.state = 'running' AND d.claimant_pid = {daemon}"
        );
        let mut hit = Self::default();
        for row in world.sql(&query) {
            let [event, hook, attempt, child] = row.as_slice() else {
                panic!("{row:?}")
            };
            let of_it =
                |run: &&Run| run.delivery() == (event, hook) && run.attempt.to_string() == *attempt;
            match runs.iter().find(of_it) {
                Some(run) if run.ended.is_some() => hit.unstored += 1,
                Some(_) => hit.running += 1,
                None if child.is_empty() => hit.unnamed += 1,
                None => hit.unbegun += 1,
            }
        }
        hit
    }

    fn shows(self, moment: Moment) -> bool {
        match moment {
            Moment::Any => false,
            Moment::Unnamed => self.unnamed > 0,
            Moment::Unstored => self.unstored > 0,
        }
    }
}

/// Kills that interrupted something, counted.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    kills: usize,
    unnamed: usize,
    unbegun: usize,
    running: usize,
    unstored: usize,
}

impl Hits {
    fn add(&mut self, hit: Hit) {
        self.kills += 1;
        self.unnamed += usize::from(hit.unnamed > 0);
        self.unbegun += usize::from(hit.unbegun > 0);
        self.running += usize::from(hit.running > 0);
        self.unstored += usize::from(hit.unstored > 0);
    }

    /// How many kills there were.
    pub(crate) fn kills(&self) -> usize {
        self.kills
    }

    /// Every moment at which a kill could do harm was met.
    pub(crate) fn are_enough(&self) -> bool {
        self.unnamed > 0 && self.running > 0 && self.unstored > 0
    }
}

/// What came of a run of kills.
#[derive(Debug)]
pub(crate) struct Course {
    /// What the kills interrupted.
    pub(crate) hits: Hits,
    /// Deliveries there were.
    pub(crate) owed: usize,
    /// What the judge found.
    pub(crate) verdict: Verdict,
    /// Payments that were found by asking.
    pub(crate) by_poll: usize,
    /// All of it, for a person.
    pub(crate) table: String,
}

/// Kills the daemon so often, and then as often again at most until every moment that matters was met.
pub(crate) fn killed_under_load(kills: usize, seed: u64) -> Course {
    let mut dice = Dice::new(seed);
    let mut setup = Setup::new()
        .sandbox(&["--pool=100000"])
        .set("log_level", "\"info\"")
        .set("outbox.concurrency", 8)
        // Long enough for every unlucky run, since nobody is unlucky for ever.
        .set("outbox.schedule_s", "[0, 0, 1, 1, 1, 1, 1, 1]");
    for (name, on) in HOOKS {
        setup = setup.hook(name, on, SCRIPT).within_s(2);
    }
    let mut world = setup.start();
    let mut load = Load::open(&world, kills);
    let mut hits = Hits::default();
    while hits.kills < kills || (!hits.are_enough() && hits.kills < kills + MORE_KILLS) {
        if hits.kills < kills {
            load.go_on(&world, &mut dice);
        }
        wait_for(&world, &mut dice);
        let daemon = world.serve_pid();
        world.kill9_serve();
        hits.add(Hit::of(&world, daemon));
        world.start_serve();
    }
    load.come_to_its_end(&world, &mut dice);
    quiet_end(&world);
    let hooks = HOOKS.map(|(name, _)| name);
    let owed = owed(&world);
    let verdict = judge(&runs(&world), &owed, &load.orders(), &hooks);
    Course {
        table: table(&hits, &load, &owed, &verdict),
        owed: owed.len(),
        by_poll: load::found_by_poll(&world),
        hits,
        verdict,
    }
}

/// The control, in the product's own place: a daemon that knows nothing of what an earlier one left running waits for
/// nobody, and the same script finds that it is not alone. Gives how many runs overlapped.
pub(crate) fn found_out() -> usize {
    // Every run naps longer than a daemon takes to start, and ends by itself: nothing is left that nobody would end.
    let lucky = SCRIPT.replace("[ \"$TILLD_ATTEMPT\" -le 3 ] ||", "");
    let naps = lucky.replace("nap=0.${ms#1}", "nap=3");
    assert!(lucky != SCRIPT && naps != lucky);
    let mut world = Setup::new().quiet().hook("all", &["*"], &naps).start();
    let mut orders = 0..;
    wait_until(PATIENCE, "two runs of one order at once", || {
        let order = orders.next().expect("endless");
        world.create(&format!("A-{order}"));
        wait_until(PATIENCE, "a hook", || {
            Hit::of(&world, world.serve_pid()).running > 0
        });
        world.kill9_serve();
        world
            .neighbour()
            .tamper("UPDATE delivery SET child_boot = 'another'");
        world.start_serve();
        // The first order's second run is begun beside its first.
        wait_until(PATIENCE, "the second run", || {
            runs(&world).iter().any(|run| run.attempt == 2)
        });
        runs(&world).iter().any(|run| run.found_held)
    });
    quiet(&world);
    let verdict = judge(&runs(&world), &owed(&world), &[], &["all"]);
    verdict.overlapping.len()
}

/// Lets the daemon live until the moment this kill is for has come, or a random time is over.
fn wait_for(world: &World, dice: &mut Dice) {
    let moment = match dice.below(4) {
        0 => Moment::Unnamed,
        1 => Moment::Unstored,
        _ => Moment::Any,
    };
    let life = Duration::from_millis(dice.below(LONGEST_LIFE_MS).try_into().expect("small"));
    let deadline = Instant::now() + life;
    if moment == Moment::Any {
        // Not to wait for something: the length of a life is part of the plan.
        thread::sleep(life);
    }
    let daemon = world.serve_pid();
    while Instant::now() < deadline && !Hit::of(world, daemon).shows(moment) {}
}

fn quiet_end(world: &World) {
    let open = "SELECT count(*) FROM invoices WHERE outcome <> 'paid' OR doubt";
    wait_until(QUIET_END, "all to be heard", || world.value(open) == "0");
    quiet(world);
}

fn quiet(world: &World) {
    let query = "SELECT count(*) FROM deliveries WHERE state NOT IN ('done', 'abandoned')";
    let owed = || -> usize { world.value(query).parse().expect("a count") };
    let mut left = owed();
    while left > 0 {
        wait_until(QUIET_END, "one more to be done", || owed() < left);
        left = owed();
    }
}

/// Where the hooks note what they do.
fn marks_file(dir: &Path) -> PathBuf {
    dir.join("hooks/marks.log")
}

fn runs(world: &World) -> Vec<Run> {
    let text = fs::read_to_string(marks_file(world.dir())).unwrap_or_default();
    // A line is written at once, and read whole or not at all.
    marks::read(&text).unwrap_or_else(|strange| panic!("{strange}"))
}

fn owed(world: &World) -> Vec<Owed> {
    let mut attempts: BTreeMap<(String, String), Vec<(u32, String)>> = BTreeMap::new();
    for row in world.sql("SELECT event_id, hook, number, result FROM attempts ORDER BY number") {
        let [event, hook, number, result] = <[String; 4]>::try_from(row).expect("four columns");
        let number = number.parse().expect("a number");
        let of_it = attempts.entry((event, hook)).or_default();
        of_it.push((number, result));
    }
    let rows = world.sql("SELECT event_id, hook, order_id, seq, state FROM deliveries");
    let owed = rows.into_iter().map(|row| {
        let [event, hook, order, seq, state] = <[String; 5]>::try_from(row).expect("five columns");
        let of_it = attempts.remove(&(event.clone(), hook.clone()));
        let (seq, attempts) = (seq.parse().expect("a number"), of_it.unwrap_or_default());
        Owed {
            hook,
            order,
            event,
            seq,
            state,
            attempts,
        }
    });
    owed.collect()
}

fn table(hits: &Hits, load: &Load, owed: &[Owed], verdict: &Verdict) -> String {
    let results = owed.iter().flat_map(|delivery| &delivery.attempts);
    let with = |wanted: &str| {
        results
            .clone()
            .filter(|(_, result)| result == wanted)
            .count()
    };
    let rows = [
        ("kills", hits.kills),
        ("  between claim and naming", hits.unnamed),
        ("  between naming and start", hits.unbegun),
        ("  while a script ran", hits.running),
        ("  before an end was stored", hits.unstored),
        ("paid invoices", load.orders().len()),
        ("deliveries", owed.len()),
        ("attempts", results.clone().count()),
        ("  interrupted", with("interrupted")),
        ("  timed out", with("timeout")),
        ("runs", verdict.runs),
        ("doubled (allowed)", verdict.doubled),
        ("doubled without need", verdict.needless.len()),
        ("missing", verdict.missing.len()),
        ("overlapping", verdict.overlapping.len()),
        ("out of order", verdict.out_of_order.len()),
        ("gaps", verdict.gaps.len()),
        ("payments with two ids", verdict.ids.len()),
    ];
    let mut text = String::new();
    for (what, count) in rows {
        writeln!(text, "{what:<28} {count:>6}").expect("a string");
    }
    text
}
