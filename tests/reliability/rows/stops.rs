//! R33, stops under load with scripts at work: by TERM, by INT, and by TERM twice. Afterwards what was running is done.
//!
//! The control is a daemon that ends at once (KILL) and acknowledges before the commit.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::between::{Between, Wrong};
use crate::figures::seconds;
use crate::harness::{PATIENCE, wait_until};
use crate::load::{Heard, Load};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Rounds of the three ways, short and long.
const ROUNDS: (usize, usize) = (2, 30);
/// Connections.
const SENDERS: usize = 32;
/// What a script takes; what a stop gives it is a second.
const SCRIPT: &str =
    "echo \"S $TILLD_EVENT_ID\" >> \"$1\"; sleep 0.3; echo \"E $TILLD_EVENT_ID\" >> \"$1\"";
/// From the first signal to the end: the seconds given to requests and to scripts, and two more.
const SOON: Duration = Duration::from_secs(8);

/// A way to end a daemon.
type Way = &'static [Signal];
const WAYS: [Way; 3] = [
    &[Signal::TERM],
    &[Signal::INT],
    &[Signal::TERM, Signal::TERM],
];
const AT_ONCE: [Way; 1] = [&[Signal::KILL]];

pub(crate) fn under_load(options: &Options) -> Verdict {
    let between = Between::build();
    let late = between.program(Some(Wrong::Late), None);
    let rounds = options.effort.of(ROUNDS.0, ROUNDS.1);
    Verdict::new(stopped(rounds, &WAYS, &[])).control(
        "ends at once, acknowledges early",
        stopped(2, &AT_ONCE, &late),
    )
}

fn stopped(rounds: usize, ways: &[Way], under: &[String]) -> Found {
    let mut world = quiet()
        .hook("fulfil", &["paid"], SCRIPT)
        .not_served()
        .start();
    world.under = under.to_vec();
    world.is_sound = under.is_empty();
    world.start_serve();
    let mut load = Load::open(&world, SENDERS);
    let (mut all, mut codes, mut running) = (Heard::default(), Vec::new(), 0);
    let mut slowest = Duration::ZERO;
    let mut orders = 0..;
    for _ in 0..rounds {
        for way in ways {
            let order = format!("P-{}", orders.next().expect("endless"));
            let (heard, (code, took)) = load.during(|live| {
                live.one_more();
                // Not where a daemon is wrong on purpose: another program would see its ledger half written.
                if world.is_sound {
                    let begun = world.hook_log("fulfil").len();
                    world.pay(&order);
                    wait_until(PATIENCE, "its script", || {
                        world.hook_log("fulfil").len() > begun
                    });
                    running += 1;
                }
                let began = Instant::now();
                let pid = i32::try_from(world.serve_pid())
                    .ok()
                    .and_then(Pid::from_raw);
                for signal in *way {
                    // Its end may come before the second one.
                    kill_process(pid.expect("a process id"), *signal).unwrap_or_default();
                    thread::sleep(Duration::from_millis(20));
                }
                (world.serve_ends(PATIENCE), began.elapsed())
            });
            all.add(heard);
            codes.push(code);
            slowest = slowest.max(took);
            world.start_serve();
        }
    }
    if world.is_sound {
        world.settle();
    }
    let unfinished = unfinished(&world.hook_log("fulfil"));
    world.kill9_serve();
    let lost = stored::lost(&world.ledger(), &all.acks);
    let wrong = codes.iter().filter(|code| **code != 0).count();
    let figure = format!(
        "exit 0 {} of {}, in {} at most; lost {lost}; cut {}; runs unfinished {unfinished}",
        codes.len() - wrong,
        codes.len(),
        seconds(slowest),
        all.cut
    );
    let n = format!(
        "{} stops, {} acks, {running} scripts at work",
        codes.len(),
        all.acks.len()
    );
    Found::new(n, figure)
        .bar(wrong == 0, format!("exit codes {codes:?}"))
        .bar(slowest <= SOON, "a stop took too long")
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .bar(all.cut == 0, format!("{} answers were cut", all.cut))
        .bar(
            unfinished == 0,
            format!("{unfinished} runs were never finished"),
        )
        .needs(all.acks.len() > codes.len(), "too little was acknowledged")
}

/// Events whose script began and never came to its end.
fn unfinished(log: &[String]) -> usize {
    let begun = log.iter().filter_map(|line| line.strip_prefix("S "));
    let is_done = |event: &str| {
        log.iter()
            .any(|line| line.strip_prefix("E ") == Some(event))
    };
    let open: std::collections::BTreeSet<&str> = begun.filter(|event| !is_done(event)).collect();
    open.len()
}
