//! R12, panics of the release binary, into which no fault is built: the clock cannot be read, once, by one of its threads, and
//! the standard library panics over that. In the writer, in a loop or in a task it is the end of the process; in one request
//! it is the end of that request.
//!
//! The controls are a daemon whose part is dead while the others go on, and one that ends over a request.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::between::{Between, Wrong};
use crate::figures::{seconds, serves};
use crate::harness::{PATIENCE, World, head, wait_until};
use crate::load::{Heard, Load, once};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Its threads that no request has alone: the writer, the loops, what rings for the poller, and those of the tasks beside them.
const THREADS: [&str; 5] = [
    "ledger-writer",
    "poller",
    "outbox",
    "poll-bell",
    "tokio-rt-worker",
];
/// How often each, short and long.
const ROUNDS: (usize, usize) = (1, 20);
/// Requests that panic, short and long.
const REQUESTS: (usize, usize) = (5, 100);
/// Connections beside them.
const SENDERS: usize = 8;
/// The code of an end by a bug.
const BUG: i32 = 17;
/// From the panic to the end of the process.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Between two looks for it.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// One that has not ended by then lives on.
const LIVES_ON: Duration = Duration::from_secs(3);

pub(crate) fn met(options: &Options) -> Verdict {
    let rounds = options.effort.of(ROUNDS.0, ROUNDS.1);
    let threads: Vec<&str> = THREADS
        .iter()
        .copied()
        .cycle()
        .take(THREADS.len() * rounds)
        .collect();
    let requests = options.effort.of(REQUESTS.0, REQUESTS.1);
    Verdict::new(panicked(&threads, requests, None))
        .control(
            "a part is dead and the others go on",
            panicked(&["ledger-writer"], 0, Some(Wrong::Lives)),
        )
        .control("ends over a request", panicked(&[], 1, Some(Wrong::Aborts)))
}

/// What came of the panics so far.
#[derive(Default)]
struct Ends {
    codes: Vec<i32>,
    slowest: Duration,
    living: usize,
}

/// What came of those in requests.
struct Requests {
    sent: usize,
    contained: usize,
    /// Others that got no answer meanwhile.
    hurt: usize,
}

/// What is found of it all.
struct After {
    acks: usize,
    lost: usize,
    orders: usize,
    undone: usize,
}

fn panicked(threads: &[&str], requests: usize, wrong: Option<Wrong>) -> Found {
    let between = Between::build();
    let mut world = quiet()
        .noting_hook("fulfil", &["paid"])
        .not_served()
        .start();
    let (under, clock) = between.without_a_clock(wrong);
    world.under = under;
    world.is_sound = wrong.is_none();
    world.start_serve();
    let mut load = Load::open(&world, SENDERS);
    let (mut ends, mut heard) = (Ends::default(), Heard::default());
    let mut orders = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        let order = format!("P-{number}");
        let (all, ()) = load.during(|live| {
            live.one_more();
            world.pay(&order);
            ends.meet(&mut world, &clock, thread);
        });
        orders.push(order);
        heard.add(all);
        world.start_serve();
    }
    let (contained, beside) = one_by_one(&mut load, &world, requests);
    let requests = Requests {
        sent: requests,
        contained,
        hurt: beside.unanswered + beside.cut,
    };
    heard.add(beside);
    if world.is_sound {
        world.settle();
    }
    let told = world.hook_log("fulfil");
    let is_told = |order: &&String| {
        told.iter()
            .any(|line| line.split(' ').nth(2) == Some(order.as_str()))
    };
    let undone = orders.len() - orders.iter().filter(is_told).count();
    if serves(&world) {
        world.kill9_serve();
    } else {
        world.serve_ends(PATIENCE);
    }
    let after = After {
        acks: heard.acks.len(),
        lost: stored::lost(&world.ledger(), &heard.acks),
        orders: orders.len(),
        undone,
    };
    judged(&ends, &requests, &after)
}

impl Ends {
    /// Takes the clock from a thread, and sees what becomes of the process.
    fn meet(&mut self, world: &mut World, clock: &Path, thread: &str) {
        let fault = clock.join(thread);
        fs::write(&fault, "").expect("written");
        let until = Instant::now() + PATIENCE;
        while fault.exists() {
            assert!(
                Instant::now() < until,
                "`{thread}` never looked at the clock"
            );
            thread::sleep(LOOK_EVERY);
        }
        let began = Instant::now();
        while serves(world) && began.elapsed() < LIVES_ON {
            thread::sleep(LOOK_EVERY);
        }
        self.slowest = self.slowest.max(began.elapsed());
        if serves(world) {
            self.living += 1;
            // Nobody would answer the senders any more.
            world.kill9_serve();
        } else {
            self.codes.push(world.serve_ends(PATIENCE));
        }
    }
}

/// Requests that panic, one after another beside a load. Gives how many were answered 500, and what the others heard.
///
/// Between reading one and its look at the time another may have its turn, and then it is that one's panic.
fn one_by_one(load: &mut Load, world: &World, requests: usize) -> (usize, Heard) {
    if requests == 0 {
        return (0, Heard::default());
    }
    let issued = world.create("R-1");
    let body = issued.saying("waiting", &issued.at(1));
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Notification-Token", issued.token.as_str()),
        ("X-Clock", "gone"),
    ];
    let target = World::target(&issued.reference);
    let request = head("shop.example", "POST", &target, &headers, Some(body.len())) + &body;
    let (heard, own) = load.during(|live| {
        live.one_more();
        let answers = (0..requests).map(|_| once(world.listen(), &request));
        let own = answers.filter(|code| *code == Some(500)).count();
        // One that ends over it takes its time, so that it is not asked once whether it is there.
        let before = live.acks();
        wait_until(PATIENCE, "another acknowledgement, or its end", || {
            live.acks() > before || !serves(world)
        });
        own
    });
    let others = heard.refused.get(&500).copied().unwrap_or_default();
    (own + others, heard)
}

fn judged(ends: &Ends, requests: &Requests, after: &After) -> Found {
    let Ends {
        codes,
        slowest,
        living,
    } = ends;
    let right = codes.iter().filter(|code| **code == BUG).count();
    let met = codes.len() + living;
    let time = if *living > 0 {
        "lives on".to_owned()
    } else {
        format!("in {} at most", seconds(*slowest))
    };
    let n = format!(
        "{met} threads, {} requests; {} acks, {} orders",
        requests.sent, after.acks, after.orders
    );
    let figure = format!(
        "exit 17 {right} of {met}, {time}; 500 {} of {}, others hurt {}; lost {}; not handed over {}",
        requests.contained, requests.sent, requests.hurt, after.lost, after.undone
    );
    Found::new(n, figure)
        .bar(right == met, format!("exit codes {codes:?}"))
        .bar(*slowest <= AT_ONCE, "did not end at once")
        .bar(
            requests.contained == requests.sent && requests.hurt == 0,
            "a request's panic was not its own",
        )
        .bar(
            after.lost == 0,
            format!("{} acknowledged and gone", after.lost),
        )
        .bar(
            after.undone == 0,
            format!("{} orders were never handed over", after.undone),
        )
        .needs(met + requests.sent > 0, "nothing panicked")
        .needs(after.acks > 0, "nothing was acknowledged")
}
