//! R05 and R07, syncs that fail and syncs that are slow.
//!
//! What a kill finds after a failed sync is in the kernel's memory and may never be on the disk. So power losses are played of
//! the same run, too.
//!
//! The control of the first is a daemon that takes a failed sync for a good one; of the second one that commits each
//! notification by itself.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::between::{Between, Wrong};
use crate::figures::{health, seconds, serves};
use crate::harness::{PATIENCE, Setup, World, wait_until};
use crate::load::{Ack, Load, since_1970};
use crate::options::Options;
use crate::power;
use crate::rows::{quiet, told};
use crate::stored;
use crate::traced::{self, SYNCS, Tracer};
use crate::verdict::{Found, Verdict};

/// How long syncs fail for good, short and long, seconds.
const BROKEN_S: (usize, usize) = (3, 60);
/// Once: rounds, short and long.
const ROUNDS: (usize, usize) = (5, 50);
/// From the fault to the first 503, and from its end to the first 200.
const SOON: Duration = Duration::from_secs(5);
/// Power losses that are played of it.
const STATES: usize = 200;
/// What did not happen took longer than anything.
const NEVER: Duration = Duration::from_hours(24);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

pub(crate) fn failing(options: &Options) -> Verdict {
    let broken = options.effort.of(BROKEN_S.0, BROKEN_S.1);
    let rounds = options.effort.of(ROUNDS.0, ROUNDS.1);
    Verdict::new(failed(broken, rounds, None, options.seed)).control(
        "a failed sync is taken for a good one",
        failed(1, 1, Some(Wrong::Deaf), options.seed),
    )
}

/// What came of faults so far.
struct Faults {
    /// Where `/healthz` is.
    admin: SocketAddr,
    acks: Vec<Ack>,
    injected: usize,
    /// Answers 200 that rest on a sync that failed.
    wrong: usize,
    to_503: Duration,
    to_200: Duration,
    /// From the first failed sync to a red `/healthz`, where they fail for good.
    to_red: Duration,
    restarts: usize,
}

fn failed(broken_s: usize, rounds: usize, wrong: Option<Wrong>, seed: u64) -> Found {
    let between = Between::build();
    let (setup, admin) = told(quiet());
    let mut world = setup.start();
    // One sender: what it is told of is what the failing sync was for.
    let mut load = Load::open(&world, 1);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let before = power::files(&world);
    world.under = between.program(wrong, Some(&world.state_dir()));
    world.is_sound = wrong.is_none();
    world.start_serve();
    let mut faults = Faults::new(admin);
    for _ in 0..rounds {
        faults.meet(&mut world, &mut load, "error=EIO:when=1", Duration::ZERO);
    }
    let broken = Duration::from_secs(broken_s.try_into().expect("small"));
    faults.meet(&mut world, &mut load, "error=EIO", broken);
    world.kill9_serve();
    let lost = stored::lost(&world.ledger(), &faults.acks);
    let lossy = power::replayed(&before, &between.record(), &faults.acks, STATES, seed);
    let Faults {
        admin: _,
        acks,
        injected,
        wrong,
        to_503,
        to_200,
        to_red,
        restarts,
    } = faults;
    let n = format!(
        "{rounds} × once, {broken_s} s for good: {injected} failed syncs, {} acks; {} power losses",
        acks.len(),
        lossy.played,
    );
    let time = |time: Duration| {
        if time > PATIENCE {
            "never".to_owned()
        } else {
            seconds(time)
        }
    };
    let figure = format!(
        "wrong 200s {wrong}; lost {lost}, after power losses {}; damaged {}; first 503 {}, `/healthz` red {}; first 200 afterwards {}; {restarts} restarts",
        lossy.lost,
        lossy.damaged,
        time(to_503),
        time(to_red),
        time(to_200)
    );
    Found::new(n, figure)
        .bar(
            wrong == 0,
            format!("{wrong} answered 200 over a failed sync"),
        )
        .bar(
            lost + lossy.lost == 0,
            format!("{} acknowledged and gone", lost + lossy.lost),
        )
        .bar(
            lossy.damaged == 0,
            format!("{} states damaged", lossy.damaged),
        )
        .bar(to_503 <= SOON && to_200 <= SOON, "not told in time")
        .bar(to_red <= SOON, "`/healthz` did not tell in time")
        .needs(injected > rounds, "no sync failed")
        .needs(
            lossy.looked_for > lossy.played,
            "too little was acknowledged",
        )
}

impl Faults {
    fn new(admin: SocketAddr) -> Self {
        Self {
            admin,
            acks: Vec::new(),
            injected: 0,
            wrong: 0,
            to_503: Duration::ZERO,
            to_200: Duration::ZERO,
            to_red: Duration::ZERO,
            restarts: 0,
        }
    }

    /// Lets syncs fail for so long, or once. A daemon that ends over it is started again, as its unit does.
    fn meet(&mut self, world: &mut World, load: &mut Load, fault: &str, length: Duration) {
        let (pid, logs) = (world.serve_pid(), world.log_dir());
        let (heard, (told, period)) = load.during(|live| {
            live.one_more();
            let tracer = Tracer::attach(pid, &logs, "syncs", SYNCS, fault);
            let (began, from) = (Instant::now(), since_1970());
            wait_until(PATIENCE, "a sync to fail", || tracer.injected() > 0);
            let mut told = None;
            while began.elapsed() < SOON && told.is_none() {
                told = (live.unavailable() > 0 || !serves(world)).then(|| began.elapsed());
                thread::sleep(LOOK_EVERY);
            }
            if !length.is_zero() {
                let is_red = || health(self.admin) == Some(503);
                while began.elapsed() < SOON && !is_red() {
                    thread::sleep(LOOK_EVERY);
                }
                let red = is_red().then(|| began.elapsed());
                self.to_red = red.unwrap_or(NEVER);
            }
            thread::sleep(length);
            // Once: the daemon goes on at once, and no instant parts the good from the bad.
            let period = (!length.is_zero()).then(|| (from, since_1970()));
            self.injected += tracer.let_go();
            let again = Instant::now();
            if !serves(world) {
                self.restarts += 1;
                world.serve_ends(PATIENCE);
                world.start_serve();
            }
            if told.is_some() {
                live.one_more();
                self.to_200 = self.to_200.max(again.elapsed());
            }
            (told, period)
        });
        self.to_503 = self.to_503.max(told.unwrap_or(NEVER));
        // A sync that had begun before strace was there did not fail.
        let begun = Duration::from_millis(300).as_nanos();
        self.wrong += period.map_or(usize::from(told.is_none()), |(from, to)| {
            let during = |at: u128| at > from + begun && at < to;
            heard.acks.iter().filter(|ack| during(ack.at_ns)).count()
        });
        self.acks.extend(heard.acks);
    }
}

/// How much longer each sync takes.
const DELAY_US: u32 = 300_000;
/// Connections, and for how long, short and long, seconds.
const SENDERS: usize = 128;
const LOAD_S: (usize, usize) = (10, 60);
/// At least so many acknowledgements a second.
const ACKS_PER_S: usize = 100;

pub(crate) fn slow(options: &Options) -> Verdict {
    let seconds = options.effort.of(LOAD_S.0, LOAD_S.1);
    let each_alone = quiet().set("ledger.batch", 1);
    Verdict::new(slowed(quiet(), seconds)).control("a commit for each", slowed(each_alone, 5))
}

fn slowed(setup: Setup, load_s: usize) -> Found {
    let mut world = setup.start();
    let mut load = Load::open(&world, SENDERS);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let trace = world.log_dir().join("syncs.trace");
    let fault = format!("delay_enter={DELAY_US}");
    world.under = traced::from_start(&trace, SYNCS, &fault, &[], &[]);
    world.start_serve();
    let length = Duration::from_secs(load_s.try_into().expect("small"));
    let (heard, ()) = load.during(|_live| thread::sleep(length));
    world.kill9_serve();
    let injected = traced::injected(&trace);
    let lost = stored::lost(&world.ledger(), &heard.acks);
    let rate = heard.acks.len() / load_s;
    let figure = format!(
        "{rate} acks/s; longest {}; {} later than 15 s; lost {lost}",
        seconds(heard.longest()),
        heard.timed_out
    );
    Found::new(
        format!(
            "{injected} slow syncs, {} acks in {load_s} s",
            heard.acks.len()
        ),
        figure,
    )
    .bar(rate >= ACKS_PER_S, format!("{rate} acks/s"))
    .bar(heard.timed_out == 0, "senders gave up")
    .bar(lost == 0, format!("{lost} acknowledged and gone"))
    .needs(injected >= load_s, "syncs were not slow")
}
