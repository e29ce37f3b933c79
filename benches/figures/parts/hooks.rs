//! What a run of a hook costs: runs per second, two at once, beside a bare loop that starts the same program and waits for
//! it, two at once as well. Every run must have ended well, and nothing may be left of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::Part;
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::daemon::Home;

/// The part.
pub(crate) const PART: Part = Part {
    name: "hooks",
    what: "hook runs per second beside bare starts of the same program, two at once",
    run,
};

/// Runs at once, of both.
const AT_ONCE: u32 = 2;
/// All runs of a round must be over by then.
const PATIENCE: Duration = Duration::from_mins(5);
/// Between two looks at the ledger: they cost the daemon a core meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is run, with the name of its figures: the cheapest program there is, and the cheapest script.
const PROGRAMS: [(&str, &str); 2] = [("true", "/bin/true"), ("script", "#!/bin/sh\n:\n")];

fn run(options: &Options, report: &mut Report) {
    let (rounds, runs) = match options.effort {
        Effort::Smoke => (1, 100),
        Effort::Quick => (2, 400),
        Effort::Full => (8, 3_000),
    };
    for (name, program) in PROGRAMS {
        let directory = options.directory.join("hooks").join(name);
        let key = |who: &str, what: &str| format!("{who}.{name}.{what}");
        for _ in 0..rounds {
            // One that was there is of an earlier run, or none.
            drop(fs::remove_dir_all(&directory));
            fs::create_dir_all(&directory).expect("a directory");
            let program = placed(&directory, program);
            // On both sides of the hooks: a machine that drifts meets both.
            let before = bare(&program, runs / 2);
            let hooks = hooks(options, &directory, &program, runs);
            let after = bare(&program, runs / 2);
            for (who, pace) in [("hooks", hooks), ("bare", before.between(after))] {
                let words = format!("{who} {name}, {AT_ONCE} at once");
                report.add(&key(who, "rate"), &words, "1/s", pace.rate);
                let words = format!("processor time for each, {words}");
                report.add(&key(who, "cpu"), &words, "us", pace.cpu_us);
            }
        }
        let rates = format!("hook runs ÷ bare starts of a {name}");
        let (hooks, bare) = (key("hooks", "rate"), key("bare", "rate"));
        report.ratio(&rates, &hooks, &bare, Some(Bar::AtLeast(0.5)));
        let cpu = format!("processor time of a bare start ÷ that of a hook run of a {name}");
        report.ratio(&cpu, &key("bare", "cpu"), &key("hooks", "cpu"), None);
    }
}

/// How fast it went, and what it cost.
#[derive(Clone, Copy)]
struct Pace {
    /// Runs a second.
    rate: f64,
    /// Processor time of a run, all that had a part in it together, microseconds.
    cpu_us: f64,
}

impl Pace {
    fn of(runs: u32, took: Duration, cpu: Duration) -> Self {
        Self {
            rate: f64::from(runs) / took.as_secs_f64(),
            cpu_us: cpu.as_secs_f64() * 1e6 / f64::from(runs),
        }
    }

    fn between(self, other: Self) -> Self {
        Self {
            rate: f64::midpoint(self.rate, other.rate),
            cpu_us: f64::midpoint(self.cpu_us, other.cpu_us),
        }
    }
}

/// The program's path; a script is written there first.
fn placed(directory: &Path, program: &str) -> PathBuf {
    if !program.starts_with("#!") {
        return program.into();
    }
    // By another process: one of ours that is about to start something would keep it open for writing.
    let path = directory.join("script");
    let script = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "sh", program]).arg(&path);
    assert!(shell.status().expect("sh").success(), "it is written");
    path
}

/// A loop that does nothing else.
fn bare(program: &Path, runs: u32) -> Pace {
    let runs = runs / AT_ONCE * AT_ONCE;
    let (began, before) = (Instant::now(), cpu(std::process::id()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                for _ in 0..runs / AT_ONCE {
                    let mut command = Command::new(program);
                    command.env_clear().stdin(Stdio::null());
                    command.stdout(Stdio::null()).stderr(Stdio::null());
                    assert!(command.status().expect("it starts").success());
                }
            });
        }
    });
    let took = began.elapsed();
    let used = cpu(std::process::id()).saturating_sub(before);
    Pace::of(runs, took, used)
}

/// A daemon that has so many due when it starts, from the first begin of a run to the last end. The processor time is all that it
/// takes from its start on.
fn hooks(options: &Options, directory: &Path, program: &Path, runs: u32) -> Pace {
    let home = Home::make(&directory.join("home"), "");
    let config = fs::read_to_string(home.config()).expect("its config");
    let quoted = |path: &Path| format!("['{}']", path.display());
    let hangs = directory.join("home/hangs");
    let config = config.replace(&quoted(&hangs), &quoted(program));
    assert!(config.contains(&quoted(program)), "it is what is run");
    let config = config.replace("concurrency = 1", &format!("concurrency = {AT_ONCE}"));
    fs::write(home.config(), config).expect("written");
    // The opening of each is an event that the hook is owed.
    drop(home.stock(runs));
    let daemon = home.start(&options.daemon);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let ledger = Connection::open_with_flags(home.ledger(), flags).expect("a ledger");
    let descriptors = || {
        fs::read_dir(format!("/proc/{}/fd", daemon.pid()))
            .expect("it runs")
            .count()
    };
    let ran = |least: u32| {
        let began = Instant::now();
        while count(&ledger, "SELECT count(*) FROM attempts") < i64::from(least) {
            assert!(began.elapsed() < PATIENCE, "the hooks are not run");
            thread::sleep(LOOK_EVERY);
        }
    };
    ran(runs / 4);
    let open = descriptors();
    ran(runs);
    let took_ms = count(
        &ledger,
        "SELECT max(ended_ms) - min(started_ms) FROM attempts",
    );
    let well = "SELECT count(*) FROM attempts WHERE result = 'exit 0' AND number = 1";
    assert_eq!(
        count(&ledger, well),
        i64::from(runs),
        "each ran once, and ended well"
    );
    assert!(descriptors() <= open, "descriptors are left open");
    // The launcher ends a while after the last of its hooks, and takes no zombie along.
    let began = Instant::now();
    while has_children(daemon.pid()) {
        assert!(began.elapsed() < PATIENCE, "a child of the daemon is left");
        thread::sleep(LOOK_EVERY);
    }
    let took = Duration::from_millis(u64::try_from(took_ms).expect("forwards"));
    let pace = Pace::of(runs, took, cpu(daemon.pid()));
    daemon.stop();
    pace
}

/// Processor time of a process, and of those that ended and were reaped below it. The kernel counts it in hundredths of a
/// second.
fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let four = fields.split(' ').skip(11).take(4);
    let ticks: u64 = four.map(|ticks| ticks.parse().unwrap_or(0)).sum();
    Duration::from_millis(10 * ticks)
}

/// Each thread has its own; a process that ended and was not reaped is one.
fn has_children(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    threads.flatten().any(|thread| {
        let children = fs::read_to_string(thread.path().join("children"));
        children.is_ok_and(|children| !children.is_empty())
    })
}

fn count(ledger: &Connection, sql: &str) -> i64 {
    ledger
        .query_row(sql, [], |row| row.get(0))
        .expect("its views")
}
