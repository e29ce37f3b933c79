//! Many quick runs one after another: nothing is left of them, neither processes nor memory, descriptors or directories,
//! and what a run costs is shown beside what a bare start of the same script costs.

use std::fs;
use std::io::{Write as _, stderr};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::dice;
use crate::harness::{Issued, PATIENCE, Setup, Wire, World, children, head, wait_until};

/// Runs that are counted, unless `TILLD_RUNS` says otherwise.
const RUNS: usize = 200;
/// Events of each invoice whose runs come before those that are counted: caches fill up meanwhile, and connections to the
/// ledger are opened.
const EARLIER: usize = 10;
/// Events of each invoice whose runs are counted; more invoices take longer to open than their runs take.
const COUNTED: usize = 40;
/// Until all have run, ten thousand of them too.
const BOUND: Duration = Duration::from_mins(10);
/// The script that is run. While its gate is shut it waits, so that all is owed before the first run is counted.
const SCRIPT: &str = "while [ ! -e \"$1.go\" ]; do sleep 0.05; done";
/// Connections the notifications come by, each with invoices of its own.
const CONNECTIONS: usize = 8;
/// Descriptors that may be open beyond those before the counted runs: some connections to the ledger are opened late. One
/// left open by each run would be two hundred and more.
const DESCRIPTORS: usize = 40;
/// Memory that may be taken beyond that before the counted runs, KiB. A single buffer left by each run, of 64 KiB as they
/// are, would be more.
const MEMORY_KIB: u64 = 12 * 1024;
/// Bare starts that are measured at most.
const BARE: usize = 1_000;

/// What a process holds.
#[derive(Debug)]
struct Holds {
    descriptors: usize,
    memory_kib: u64,
}

impl Holds {
    fn now(pid: u32) -> Self {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        Self {
            descriptors: open.count(),
            memory_kib: memory.expect("its memory"),
        }
    }
}

/// The long form, with its command in `CONTRIBUTING.md`, does as many as it is told.
#[test]
fn quick_runs_leave_nothing_behind() {
    let runs = dice::count("TILLD_RUNS", RUNS);
    let invoices = runs.div_ceil(COUNTED);
    let world = Setup::new()
        .quiet()
        .sandbox(&[&format!("--pool={invoices}")])
        .set("log_level", "\"info\"")
        .set("outbox.concurrency", 4)
        .set("outbox.slow_concurrency", 0)
        .hook("quick", &["status:waiting", "status:new"], SCRIPT)
        .start();
    let orders: Vec<String> = (0..invoices).map(|number| format!("A-{number}")).collect();
    let issued = world.create_all(&orders);
    let pid = world.serve_pid();
    run_all(&world, &issued, 0..EARLIER);
    let before = Holds::now(pid);
    let (did, took) = run_all(&world, &issued, EARLIER..EARLIER + COUNTED);
    assert!(did >= runs, "{did} of {runs} were owed");
    wait_until(PATIENCE, "no child to be left", || children(pid).is_empty());
    let after = Holds::now(pid);
    assert!(
        after.descriptors <= before.descriptors + DESCRIPTORS,
        "{before:?} {after:?}"
    );
    assert!(
        after.memory_kib <= before.memory_kib + MEMORY_KIB,
        "{before:?} {after:?}"
    );
    let left = fs::read_dir(world.state_dir().join("run")).expect("it was made");
    assert_eq!(left.count(), 0, "working directories");
    // Each event once, the opening too.
    let all_done = "SELECT count(*), sum(state = 'done'), sum(attempts) FROM deliveries";
    let wanted = (invoices * (1 + EARLIER + COUNTED)).to_string();
    assert_eq!(world.sql(all_done), [[wanted.as_str(); 3]]);
    show(&world, did, took, (&before, &after));
}

/// Prints the pace beside that of a bare loop, and what the daemon holds.
fn show(world: &World, did: usize, took: Duration, (before, after): (&Holds, &Holds)) {
    let (pace, bare) = (per_second(did, took), bare_pace(world, did.min(BARE)));
    let children = children(world.serve_pid()).into_iter();
    let zombies = children.filter(|(_, state)| *state == 'Z').count();
    let mib = |holds: &Holds| {
        format!(
            "{}.{}",
            holds.memory_kib / 1024,
            holds.memory_kib % 1024 * 10 / 1024
        )
    };
    // A test's output may have no reader.
    drop(writeln!(
        stderr(),
        "{did} runs in {:.1} s: {pace:.0} per second; bare fork+exec loop: {bare:.0} per second; ratio {:.2}; \
         zombies {zombies}; descriptors {} -> {}; RSS {} -> {} MiB",
        took.as_secs_f64(),
        pace / bare,
        before.descriptors,
        after.descriptors,
        mib(before),
        mib(after),
    ));
}

/// Runs a second of a loop that starts the same script and waits for it.
fn bare_pace(world: &World, runs: usize) -> f64 {
    let file = |end: &str| world.dir().join(format!("hooks/quick.{end}"));
    let begun = Instant::now();
    for _ in 0..runs {
        let mut script = Command::new("/bin/sh");
        script.args([file("sh"), file("log")]).stdin(Stdio::null());
        assert!(script.output().expect("it starts").status.success());
    }
    per_second(runs, begun.elapsed())
}

fn per_second(runs: usize, took: Duration) -> f64 {
    f64::from(u32::try_from(runs).expect("not so many")) / took.as_secs_f64()
}

/// Has these events of each invoice told while the gate is shut, and then opens it. How many runs that made, and how long
/// they took.
fn run_all(world: &World, invoices: &[Issued], events: Range<usize>) -> (usize, Duration) {
    let gate = world.dir().join("hooks/quick.log.go");
    if gate.exists() {
        fs::remove_file(&gate).expect("removed");
    }
    thread::scope(|scope| {
        for part in invoices.chunks(invoices.len().div_ceil(CONNECTIONS)) {
            let events = events.clone();
            scope.spawn(|| tell(world, part, events));
        }
    });
    let owed = "SELECT count(*) FROM deliveries WHERE state IN ('waiting', 'running')";
    let all = world.value(owed);
    let begun = Instant::now();
    fs::write(&gate, "").expect("written");
    wait_until(BOUND, "all to have run", || world.value(owed) == "0");
    (all.parse().expect("a count"), begun.elapsed())
}

/// Tells each invoice these of its events: it goes to and fro between two names of the same meaning.
fn tell(world: &World, invoices: &[Issued], events: Range<usize>) {
    let mut wire = Wire::open(world.listen());
    for event in events {
        let status = if event % 2 == 0 { "waiting" } else { "new" };
        for issued in invoices {
            let body = issued.saying(status, &issued.at_us(event + 1));
            let target = World::target(&issued.reference);
            let headers = [("X-Notification-Token", issued.token.as_str())];
            wire.send(&(head("shop.example", "POST", &target, &headers, Some(body.len())) + &body));
            let answer = wire.answer().expect("the connection is kept");
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
}
