//! R35, a daemon that stands still for longer than a script may take, while scripts end.
//!
//! The control is scripts that do not end meanwhile: the same look finds them late.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{PATIENCE, Setup, wait_until};
use crate::options::Options;
use crate::verdict::{Found, Verdict};

/// Pauses, short and long.
const PAUSES: (usize, usize) = (2, 20);
/// Scripts at once.
const SCRIPTS: usize = 10;
/// What one may take, seconds.
const SCRIPT_S: u64 = 6;

pub(crate) fn stood_still(options: &Options) -> Verdict {
    let pauses = options.effort.of(PAUSES.0, PAUSES.1);
    Verdict::new(paused(pauses, true)).control("scripts that hang", paused(1, false))
}

fn paused(pauses: usize, they_end: bool) -> Found {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    let script = format!(
        "echo begun >> \"$1\"; until [ -e '{}' ]; do sleep 0.1; done; echo ended >> \"$1\"",
        gate.display()
    );
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], &script)
        .at_once(10)
        .within_s(SCRIPT_S)
        .start();
    let serve = i32::try_from(world.serve_pid())
        .ok()
        .and_then(Pid::from_raw);
    let serve = serve.expect("a process id");
    let noted = |word: &str| {
        let log = world.hook_log("fulfil");
        log.iter().filter(|line| *line == word).count()
    };
    let count = |what: &str| {
        let sql = format!("SELECT count(*) FROM attempts WHERE {what}");
        world.value(&sql).parse::<usize>().unwrap_or_default()
    };
    for pause in 0..pauses {
        for number in 0..SCRIPTS {
            world.pay(&format!("A-{pause}-{number}"));
        }
        let all = SCRIPTS * (pause + 1);
        wait_until(PATIENCE, "all to begin", || noted("begun") >= all);
        let began = Instant::now();
        kill_process(serve, Signal::STOP).expect("it lives");
        if they_end {
            fs::write(&gate, "").expect("opened");
            wait_until(PATIENCE, "all to end", || noted("ended") >= all);
        }
        let passed = Duration::from_secs(SCRIPT_S + 1);
        std::thread::sleep(passed.saturating_sub(began.elapsed()));
        kill_process(serve, Signal::CONT).expect("it lives");
        wait_until(PATIENCE, "all to be stored", || count("number = 1") >= all);
        fs::remove_file(&gate).unwrap_or_default();
    }
    let (late, twice) = (count("result <> 'exit 0'"), count("number > 1"));
    // What hangs in the control may end, or the world would not.
    fs::write(&gate, "").expect("opened");
    let n = format!("{pauses} pauses, {} scripts", SCRIPTS * pauses);
    Found::new(n, format!("called late {late}, run twice {twice}"))
        .bar(late == 0, format!("{late} were called late"))
        .bar(twice == 0, format!("{twice} ran twice"))
}
