//! What the daemon costs a machine that has something else to do: processor time and wake-ups when nothing happens, and
//! memory idle, at full load, after it, and beside a million open invoices. Wake-ups are the voluntary context switches of
//! all its threads, as the kernel counts them.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Part;
use crate::load::{Pace, Plan, Sender};
use crate::machine::process;
use crate::options::{Effort, MANY, Options};
use crate::report::{Bar, Report};
use crate::subjects::crowd::{Crowd, told};
use crate::subjects::daemon::{Daemon, Home};
use crate::subjects::held;

/// The part.
pub(crate) const PART: Part = Part {
    name: "idle",
    what: "processor time and wake-ups at idle; memory idle, at full load and with 1 M open invoices",
    run,
};

/// Invoices that are notified of.
const STOCKED: usize = 2_000;
/// Connections of the full load.
const CONNECTIONS: usize = 256;
/// What a start leaves to be done is done by then, and the threads that did it have ended, which they do after 10 s. A
/// quick run counts their ends as well.
const SETTLED_AFTER: Duration = Duration::from_secs(12);
/// Between two looks at what its threads did at idle: none that did anything is gone before the next.
const COUNT_EVERY: Duration = Duration::from_secs(2);
/// Between two looks at its memory under load.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long is measured.
struct Lasts {
    settle: Duration,
    idle: Duration,
    load: Duration,
}

fn run(options: &Options, report: &mut Report) {
    let seconds = Duration::from_secs;
    let many = options.effort.many();
    let lasts = match options.effort {
        Effort::Smoke => Lasts {
            settle: seconds(1),
            idle: seconds(2),
            load: seconds(1),
        },
        Effort::Quick => Lasts {
            settle: seconds(2),
            idle: seconds(4),
            load: seconds(2),
        },
        Effort::Full => Lasts {
            settle: SETTLED_AFTER,
            idle: seconds(60),
            load: seconds(30),
        },
    };
    let directory = options.directory.join("idle");
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("an earlier run's");
    }
    let home = Home::make(&directory, "");
    let few = u32::try_from(STOCKED).expect("small");
    let mut sender = Sender::new(home.stock(few), Home::path());
    measure(
        options,
        report,
        &home,
        &mut sender,
        ("few", &told(few), &lasts),
    );
    fs::remove_dir_all(&directory).expect("its own directory");

    // A smaller crowd would show nothing that the few do not.
    if many == MANY {
        let crowd = Crowd::of(options, many);
        let mut sender = Sender::new(crowd.take(STOCKED), Home::path());
        measure(
            options,
            report,
            &crowd.home,
            &mut sender,
            ("many", &told(many), &lasts),
        );
    }

    report.bar("idle.cpu.few", Bar::AtMost(1.0));
    report.bar("idle.wakes.few", Bar::AtMost(4.0));
    report.bar("memory.idle.few", Bar::AtMost(12.0));
    report.bar("memory.load.few", Bar::AtMost(24.0));
    report.bar("memory.growth.few", Bar::AtMost(0.5));
    if many == MANY {
        report.bar("idle.wakes.many", Bar::AtMost(4.0));
        report.bar("memory.idle.many", Bar::AtMost(24.0));
        report.bar("memory.load.many", Bar::AtMost(24.0));
        report.bar("memory.growth.many", Bar::AtMost(0.5));
    }
}

fn measure(
    options: &Options,
    report: &mut Report,
    home: &Home,
    sender: &mut Sender,
    (name, open, lasts): (&str, &str, &Lasts),
) {
    let hooked = fs::read_to_string(home.config()).expect("a config");
    fs::write(home.config(), without_work(&hooked)).expect("written");
    let daemon = home.start(&options.daemon);
    thread::sleep(lasts.settle);
    let mut add = |kind: &str, what: &str, unit, value: f64| {
        let key = format!("{kind}.{name}");
        report.add(&key, &format!("{what}, {open} open"), unit, value);
    };
    let (ran, waits) = count(&daemon, lasts.idle);
    let seconds = lasts.idle.as_secs_f64();
    let per_hour = ran.as_secs_f64() / seconds * 3_600.0;
    add("idle.cpu", "processor time per hour at idle", "s", per_hour);
    let per_second = float(waits) / seconds;
    add(
        "idle.wakes",
        "wake-ups per second at idle",
        "1/s",
        per_second,
    );
    let (rss, pss) = memory(&daemon);
    add("memory.idle", "memory at idle (RSS)", "MiB", rss);
    add("memory.idle.pss", "memory at idle (PSS)", "MiB", pss);
    add(
        "idle.threads",
        "threads at idle",
        "",
        float(threads(&daemon)),
    );

    daemon.stop();
    fs::write(home.config(), hooked).expect("written");

    let daemon = home.start(&options.daemon);
    let plan = Plan {
        connections: CONNECTIONS,
        pace: Pace::Closed,
        warm: Duration::from_millis(200),
        run: lasts.load,
    };
    let over = AtomicBool::new(false);
    let mut seen = Vec::new();
    let heard = held(PART.name, &daemon, || {
        thread::scope(|scope| {
            let watching = scope.spawn(|| watch(&daemon, &over));
            let heard = sender.run(daemon.address, &plan);
            over.store(true, Ordering::Relaxed);
            seen = watching.join().expect("it only looks");
            heard
        })
    });
    assert!(heard.acknowledged > 0, "{:?}", heard.whole);
    let most = |some: &[f64]| some.iter().copied().fold(0.0, f64::max);
    let (first, last) = seen.split_at(seen.len() / 2);
    add(
        "memory.load",
        "the most memory at full load (RSS)",
        "MiB",
        most(&seen),
    );
    let growth = (most(last) - most(first)).max(0.0);
    add(
        "memory.growth",
        "what it grew by in the last half of it",
        "MiB",
        growth,
    );
    add(
        "memory.after",
        "memory after it (RSS)",
        "MiB",
        memory(&daemon).0,
    );
    add(
        "memory.load.rate",
        "acknowledgements at that load",
        "1/s",
        heard.rate(),
    );
    daemon.stop();
}

/// The config with another hook, that nothing is owed to: one that runs is no idleness.
fn without_work(config: &str) -> String {
    let named = config.replace("name = \"shop\"", "name = \"other\"");
    named.replace(r#"on = ["status:new", "status:wip"]"#, r#"on = ["paid"]"#)
}

/// What all its threads ran and how often they waited, in so long. They are looked at often: what one does after the last
/// look before its end is not seen.
fn count(daemon: &Daemon, lasts: Duration) -> (Duration, u64) {
    let look = || process::by_thread(daemon.pid()).expect("it runs");
    let began = Instant::now();
    let (mut before, mut ran, mut waits) = (look(), Duration::ZERO, 0);
    while began.elapsed() < lasts {
        thread::sleep(COUNT_EVERY.min(lasts.saturating_sub(began.elapsed())));
        let now = look();
        for (thread, (ran_now, waits_now)) in &now {
            let (ran_before, waits_before) = before.get(thread).copied().unwrap_or_default();
            ran += ran_now.saturating_sub(ran_before);
            waits += waits_now.saturating_sub(waits_before);
        }
        before = now;
    }
    (ran, waits)
}

/// Its memory in MiB: all, and its share of what is shared.
fn memory(daemon: &Daemon) -> (f64, f64) {
    let memory = process::memory(daemon.pid()).expect("it runs");
    let mib = |kib| float(kib) / 1_024.0;
    (mib(memory.rss_kib), mib(memory.pss_kib))
}

/// Its memory in MiB, again and again until it is over; at least twice.
fn watch(daemon: &Daemon, over: &AtomicBool) -> Vec<f64> {
    let mut seen = vec![memory(daemon).0];
    loop {
        seen.push(memory(daemon).0);
        if over.load(Ordering::Relaxed) {
            return seen;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn threads(daemon: &Daemon) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid()));
    tasks.expect("it runs").count() as u64
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn float(number: u64) -> f64 {
    number as f64
}
