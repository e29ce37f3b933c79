//! R05 and R07, syncs that fail and syncs that are slow.
//!
//! The control of the first is a daemon that takes a failed sync for a good one; of the second one that commits each
//! notification by itself.

use std::thread;
use std::time::{Duration, Instant};

use crate::between::{Between, Wrong};
use crate::figures::{seconds, serves};
use crate::harness::{PATIENCE, Setup};
use crate::load::{Load, since_1970};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::traced::{self, SYNCS, Tracer};
use crate::verdict::{Found, Verdict};

/// How long syncs fail for good, short and long, seconds.
const BROKEN_S: (usize, usize) = (3, 60);
/// Once: rounds, short and long.
const ROUNDS: (usize, usize) = (5, 50);
/// From the fault to the first 503, and from its end to the first 200.
const SOON: Duration = Duration::from_secs(5);

pub(crate) fn failing(options: &Options) -> Verdict {
    let between = Between::build();
    let deaf = between.program(Some(Wrong::Deaf), false);
    let broken = options.effort.of(BROKEN_S.0, BROKEN_S.1);
    let rounds = options.effort.of(ROUNDS.0, ROUNDS.1);
    Verdict::new(failed(broken, rounds, &[]))
        .control("a failed sync is taken for a good one", failed(1, 1, &deaf))
}

/// A daemon that ends over this is started again, as its unit does.
fn failed(broken_s: usize, rounds: usize, under: &[String]) -> Found {
    let mut world = quiet().not_served().start();
    world.under = under.to_vec();
    world.start_serve();
    // One sender: what it is told of is what the failing sync was for.
    let mut load = Load::open(&world, 1);
    let (mut acks, mut wrong, mut injected) = (Vec::new(), 0, 0);
    let (mut to_503, mut to_200) = (Duration::ZERO, Duration::ZERO);
    let mut restarts = 0;
    let faults = (0..rounds).map(|_| ("error=EIO:when=1", 0));
    for (fault, for_s) in faults.chain([("error=EIO", broken_s)]) {
        let (pid, logs) = (world.serve_pid(), world.log_dir());
        let (heard, (told, count, healed, good)) = load.during(|live| {
            live.one_more();
            let tracer = Tracer::attach(pid, &logs, "syncs", SYNCS, fault);
            let began = Instant::now();
            let broken_from = since_1970();
            while tracer.injected() == 0 && began.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(2));
            }
            let mut told = None;
            while began.elapsed() < SOON && told.is_none() {
                told = (live.unavailable() > 0 || !serves(&world)).then(|| began.elapsed());
                thread::sleep(Duration::from_millis(5));
            }
            thread::sleep(Duration::from_secs(for_s.try_into().expect("small")));
            // Once: the daemon goes on at once, and no instant parts the good from the bad.
            let good = (for_s > 0).then(|| (broken_from, since_1970()));
            let count = tracer.let_go();
            let again = Instant::now();
            if !serves(&world) {
                restarts += 1;
                world.serve_ends(PATIENCE);
                world.start_serve();
            }
            let healed = if told.is_some() {
                again.elapsed() + live.one_more()
            } else {
                Duration::ZERO
            };
            (told, count, healed, good)
        });
        injected += count;
        to_503 = to_503.max(told.unwrap_or(Duration::MAX / 4));
        to_200 = to_200.max(healed);
        let settled = Duration::from_millis(300).as_nanos();
        wrong += good.map_or(usize::from(told.is_none()), |(from, to)| {
            let during = |at: u128| at > from + settled && at < to;
            heard.acks.iter().filter(|ack| during(ack.at_ns)).count()
        });
        acks.extend(heard.acks);
    }
    world.kill9_serve();
    let lost = stored::lost(&world.ledger(), &acks);
    let n = format!(
        "{rounds} × once, {broken_s} s for good: {injected} failed syncs, {} acks",
        acks.len()
    );
    let time = |time: Duration| {
        if time > PATIENCE {
            "never".to_owned()
        } else {
            seconds(time)
        }
    };
    let figure = format!(
        "wrong 200s {wrong}; lost {lost}; first 503 {}; first 200 afterwards {}; {restarts} restarts",
        time(to_503),
        time(to_200)
    );
    Found::new(n, figure)
        .bar(
            wrong == 0,
            format!("{wrong} answered 200 over a failed sync"),
        )
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .bar(to_503 <= SOON && to_200 <= SOON, "not told in time")
        .needs(injected > rounds, "no sync failed")
        .needs(!acks.is_empty(), "nothing was acknowledged")
}

/// How much longer each sync takes.
const DELAY_US: u32 = 300_000;
/// Connections, and for how long, short and long, seconds.
const SENDERS: usize = 64;
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
