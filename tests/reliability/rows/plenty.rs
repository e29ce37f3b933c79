//! R37, notifications without end, on connections that come and go: nothing grows with them.
//!
//! The first tenth fills what is kept on purpose: pages of the ledger, buffers, the history. From the second on memory that no
//! file stands behind is compared. The control is a daemon that keeps a KiB of each request, and a descriptor now and then.

use std::thread;
use std::time::{Duration, Instant};

use crate::between::{Between, Wrong};
use crate::figures::{anonymous_kib, open_files};
use crate::harness::{PATIENCE, wait_until};
use crate::load::{Ack, Load};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Notifications, short and long, and of the control.
const NOTIFICATIONS: (usize, usize) = (50_000, 1_000_000);
const OF_CONTROL: usize = 20_000;
const TENTHS: usize = 10;
/// Connections at once, and notifications on each before another is made.
const SENDERS: usize = 16;
const ON_ONE: u64 = 100;
/// What it may grow by from the second tenth to the last, KiB.
const GROWTH_KIB: u64 = 2 * 1024;
/// Descriptors of readers of the ledger, which are opened when several ask at once, and kept.
const READERS: usize = 8;
/// The connections of a tenth are closed by then.
const CLOSES: Duration = Duration::from_millis(300);

pub(crate) fn heard(options: &Options) -> Verdict {
    let between = Between::build();
    let leaks = between.program(Some(Wrong::Leaks), None);
    let count = options.effort.of(NOTIFICATIONS.0, NOTIFICATIONS.1);
    Verdict::new(plenty(count, &[])).control("keeps a KiB of each", plenty(OF_CONTROL, &leaks))
}

fn plenty(count: usize, under: &[String]) -> Found {
    let mut world = quiet()
        // It is full within the first tenth.
        .set("ledger.history_rows", (count / TENTHS).min(100_000))
        .not_served()
        .start();
    world.under = under.to_vec();
    world.start_serve();
    let mut load = Load::open(&world, SENDERS).on_one(ON_ONE);
    let pid = world.serve_pid();
    let (mut acks, mut samples): (Vec<Ack>, Vec<Sample>) = (Vec::new(), Vec::new());
    for tenth in 1..=TENTHS {
        let due = (count * tenth / TENTHS).saturating_sub(acks.len());
        let (heard, ()) = load.during(|live| {
            wait_until(PATIENCE * 20, "a tenth of them", || live.acks() >= due);
        });
        acks.extend(heard.acks);
        samples.push(Sample::quiet(pid));
    }
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let lost = stored::lost(&world.ledger(), &acks);
    let (second, last) = match samples.as_slice() {
        [_, second, .., last] => (*second, *last),
        _ => unreachable!("ten"),
    };
    let grown = last.memory_kib.saturating_sub(second.memory_kib);
    let figure = format!(
        "memory {} KiB, at the end {} KiB; descriptors {}, at the end {}; lost {lost}",
        second.memory_kib,
        last.memory_kib,
        second.of_ledger + second.others,
        last.of_ledger + last.others
    );
    Found::new(format!("{} notifications", acks.len()), figure)
        .bar(grown <= GROWTH_KIB, format!("memory grew by {grown} KiB"))
        .bar(
            last.others <= second.others && last.of_ledger <= second.of_ledger + READERS,
            "descriptors grew",
        )
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .needs(acks.len() >= count, "too little was acknowledged")
}

/// What the daemon has when nobody is connected.
#[derive(Clone, Copy, Debug)]
struct Sample {
    memory_kib: u64,
    of_ledger: usize,
    others: usize,
}

impl Sample {
    #[track_caller]
    fn quiet(pid: u32) -> Self {
        // Connections that were let go are closed soon; what is not closed by then was kept.
        let mut least = usize::MAX;
        let began = Instant::now();
        while began.elapsed() < CLOSES {
            least = least.min(open_files(pid).1);
            thread::sleep(Duration::from_millis(20));
        }
        let (of_ledger, _) = open_files(pid);
        Self {
            memory_kib: anonymous_kib(pid),
            of_ledger,
            others: least,
        }
    }
}
