//! What the daemon survives, as a table: `cargo test --release --test reliability`, with `-- --help` for its arguments.
//!
//! Each row does one thing to the release binary over real sockets and real files, counts what it did, and judges what it
//! found by its bar. Each has a control that is wrong on purpose and must miss the same bar: a figure of 0 is worth what
//! its control shows. A run that injected nothing fails, and so does a row for which this machine lacks something: nothing
//! is skipped. Traffic stays on loopback, loops are bounded, and what was started is ended by its process id.
//!
//! The worlds are those of `tests/it` (`harness`), and so is the run of kills while scripts work (`kills`): this programme
//! adds the load, the faults below the daemon (`between`, `traced`, `power`) and the counting.

#![expect(clippy::print_stdout, reason = "a table is printed")]

mod between;
mod figures;
#[expect(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "what scenarios need is more than what rows need"
)]
#[path = "../it/harness/mod.rs"]
mod harness;
#[expect(
    dead_code,
    unused_imports,
    reason = "its tests are those of `tests/it`; here it is run"
)]
#[path = "../it/kills/mod.rs"]
mod kills;
mod list;
mod load;
mod options;
mod power;
mod report;
mod rows;
mod stored;
mod traced;
mod verdict;

use std::env;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use options::{Effort, HELP, Options};
use report::Line;

/// Says to the program itself that it has its own view of what is mounted.
const APART: &str = "RELIABILITY_APART";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [word, port] = args.as_slice()
        && word == rows::SPIN
    {
        rows::spin(port);
    }
    let options = match Options::read(args.into_iter()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            println!("{wrong}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if options.is_list {
        for row in list::ROWS {
            println!("{}  {}\n     {}", row.id, row.what, row.bar);
        }
        return ExitCode::SUCCESS;
    }
    live_apart();
    keep_panics();
    run(&options)
}

/// Goes on with mounts of its own, so that a disk that was made small for a row is gone with this process, however it ends.
fn live_apart() {
    if !rustix::process::geteuid().is_root() || env::var_os(APART).is_some() {
        return;
    }
    let own = env::current_exe().expect("a program");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation=private"]).arg(own);
    command.args(env::args().skip(1)).env(APART, "1");
    // It comes back only when it could not: then the row that mounts says so.
    println!("unshare: {}", command.exec());
}

fn run(options: &Options) -> ExitCode {
    let began = Instant::now();
    let about = about(options);
    println!("{about}\n");
    let mut lines = Vec::new();
    for row in list::ROWS {
        if !options.wants(row.id) {
            continue;
        }
        let began = Instant::now();
        let verdict = catch_unwind(AssertUnwindSafe(|| rows::run(row.id, options)));
        let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let line = Line {
            row,
            seed: options.seed,
            date: today(),
            verdict: verdict.map_err(|_panic| first.unwrap_or_default()),
        };
        println!(
            "{}     took     {:.1} s\n",
            report::block(&line),
            began.elapsed().as_secs_f32()
        );
        lines.push(line);
    }
    if options.is_markdown {
        println!("{}", report::markdown(&lines));
    }
    let failed: Vec<&str> = lines
        .iter()
        .filter(|line| !line.faults().is_empty())
        .map(|line| line.row.id)
        .collect();
    println!("{about}; {:.0} s", began.elapsed().as_secs_f32());
    if failed.is_empty() {
        println!("{} rows hold, and every control fails", lines.len());
        return ExitCode::SUCCESS;
    }
    println!("FAILED: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// What the first panic of a row said, of whatever thread: the others follow from it.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Keeps what panics say.
fn keep_panics() {
    let shown = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| said(about));
        drop(first);
        shown(about);
    }));
}

/// The beginning of what a panic says, and where.
fn said(about: &PanicHookInfo<'_>) -> String {
    let text: String = about.to_string().chars().take(400).collect();
    text.lines().collect::<Vec<_>>().join(" ")
}

/// The run as a whole: what is under test, on which machine, and how busy that is.
fn about(options: &Options) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |rest| {
        rest.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let busy = read("/proc/loadavg");
    let busy = busy.split(' ').next().unwrap_or_default();
    let form = match options.effort {
        Effort::Short => "short",
        Effort::Long => "long",
    };
    let build = match env::var("TILLD_PROGRAM") {
        Ok(program) => program,
        Err(_) if cfg!(debug_assertions) => "a debug build, whose figures are none".to_owned(),
        Err(_) => "the release build".to_owned(),
    };
    format!(
        "{form} form of {}, seed {}, on {build}; {model}, {cores} cores, Linux {}, load of the machine at the start {busy}",
        today(),
        options.seed,
        kernel.trim(),
    )
}

fn today() -> String {
    let now = jiff::Timestamp::now().to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}
