//! R01 and R02, SIGKILL: at any time, and at each write or sync of the ledger in turn.
//!
//! The control is a daemon whose writes to the log reach the kernel 50 ms after it was told that they did: it acknowledges
//! before the commit, and a kill finds it out.

use std::thread;
use std::time::{Duration, Instant};

use crate::between::{Between, Wrong};
use crate::figures::{seconds, serves};
use crate::harness::dice::Dice;
use crate::harness::{PATIENCE, World, wait_until};
use crate::load::{Ack, Load};
use crate::options::Options;
use crate::rows::quiet;
use crate::traced::{self, SYNCS};
use crate::verdict::{Found, Verdict};

/// Kills, short and long, and of the control.
const KILLS: (usize, usize) = (25, 500);
const CONTROL_KILLS: usize = 5;
/// Fault points, short and long, and of the control; a point is so many calls after the one before.
const POINTS: (usize, usize) = (25, 400);
/// At some of them nothing is under way, so that few would not do.
const CONTROL_POINTS: usize = 25;
const STEP: usize = 11;
/// Connections.
const SENDERS: usize = 32;
/// A life lasts so long after the first acknowledgement, milliseconds.
const LIFE_MS: (usize, usize) = (100, 900);
/// From the start until it listens, at most.
const READY: Duration = Duration::from_secs(1);
/// A daemon that meets its fault point does so by then.
const MET: Duration = Duration::from_secs(20);

pub(crate) fn at_any_time(options: &Options) -> Verdict {
    let between = Between::build();
    let late = between.program(Some(Wrong::Late), None);
    let mut dice = Dice::new(options.seed);
    let kills = options.effort.of(KILLS.0, KILLS.1);
    Verdict::new(killed(kills, &[], &mut dice)).control(
        "acknowledged before the commit",
        killed(CONTROL_KILLS, &late, &mut dice),
    )
}

fn killed(kills: usize, under: &[String], dice: &mut Dice) -> Found {
    let mut world = quiet().not_served().start();
    world.under = under.to_vec();
    world.is_sound = under.is_empty();
    world.start_serve();
    let mut load = Load::open(&world, SENDERS);
    let (mut acks, mut under_way): (Vec<Ack>, usize) = (Vec::new(), 0);
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        let life = LIFE_MS.0 + dice.below(LIFE_MS.1 - LIFE_MS.0);
        let life = Duration::from_millis(life.try_into().expect("small"));
        let (heard, ()) = load.during(|live| {
            live.one_more();
            // Not to wait for something: the length of a life is part of the plan.
            thread::sleep(life);
            world.kill9_serve();
        });
        under_way += heard.unanswered + heard.cut;
        acks.extend(heard.acks);
        let began = Instant::now();
        world.start_serve();
        slowest = slowest.max(began.elapsed());
    }
    world.kill9_serve();
    let lost = crate::stored::lost(&world.ledger(), &acks);
    let figure = format!("lost {lost}; ready in {} at most", seconds(slowest));
    Found::new(format!("{kills} kills, {} acks", acks.len()), figure)
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .bar(slowest <= READY, "not ready in time")
        .needs(under_way >= kills, "the kills cut nothing off")
        .needs(acks.len() > kills, "too little was acknowledged")
}

pub(crate) fn at_each_write(options: &Options) -> Verdict {
    let between = Between::build();
    let late = between.variables(Some(Wrong::Late), None);
    let mut dice = Dice::new(options.seed);
    let points = options.effort.of(POINTS.0, POINTS.1);
    Verdict::new(killed_at_calls(points, &[], &mut dice)).control(
        "acknowledged before the commit",
        killed_at_calls(CONTROL_POINTS, &late, &mut dice),
    )
}

fn killed_at_calls(points: usize, variables: &[String], dice: &mut Dice) -> Found {
    let mut world = quiet().start();
    world.is_sound = variables.is_empty();
    let mut load = Load::open(&world, SENDERS);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let files = ["ledger.db", "ledger.db-wal"].map(|name| world.state_dir().join(name));
    let trace = world.log_dir().join("calls.trace");
    let calls = format!("{SYNCS},pwrite64");
    let (mut acks, mut met, mut while_starting) = (Vec::new(), 0, 0);
    for point in 0..points {
        let nth = 1 + point * STEP + dice.below(STEP);
        let fault = format!("signal=KILL:when={nth}");
        let under = traced::from_start(&trace, &calls, &fault, &files, variables);
        world.under = under;
        if let Err((code, said)) = world.try_start_serve() {
            assert_eq!(code, 128 + 9, "{said}");
            (met, while_starting) = (met + 1, while_starting + 1);
            continue;
        }
        let (heard, died) = load.during(|_live| {
            let until = Instant::now() + MET;
            wait_until(MET + PATIENCE, "its end", || {
                !serves(&world) || Instant::now() > until
            });
            !serves(&world)
        });
        acks.extend(heard.acks);
        met += usize::from(died);
        ended(&mut world, died);
    }
    // What is left must come up by itself.
    world.under = Vec::new();
    world.start_serve();
    world.kill9_serve();
    let lost = crate::stored::lost(&world.ledger(), &acks);
    let n = format!("{met} of {points} fault points met, {} acks", acks.len());
    Found::new(
        n,
        format!("lost {lost}; {while_starting} died while they started"),
    )
    .bar(lost == 0, format!("{lost} acknowledged and gone"))
    .needs(met == points, "a fault point was not met")
    .needs(acks.len() > points, "too little was acknowledged")
}

fn ended(world: &mut World, died: bool) {
    if died {
        assert_eq!(world.serve_ends(PATIENCE), 128 + 9);
    } else {
        world.kill9_serve();
    }
}
