//! How the daemon stops, and who may start it: nothing is lost, nothing runs on, and two never serve one ledger.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::harness::{PATIENCE, Setup, World, skip, sql, wait_until};

/// Notes its run and waits until `$1.go` is there.
const HOLDS: &str = "echo \"$TILLD_EVENT_ID $TILLD_ATTEMPT\" >> \"$1\"\n\
    while [ ! -e \"$1.go\" ]; do sleep 0.02; done";

fn let_go(world: &World) {
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
}

fn signal(world: &World, signal: Signal) {
    let pid = i32::try_from(world.serve_pid())
        .ok()
        .and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), signal).expect("it runs");
}

/// Asks the daemon to stop without waiting for it.
fn ask_to_stop(world: &World) {
    signal(world, Signal::TERM);
    wait_until(PATIENCE, "the wish to be heard", || {
        world.serve_log().contains("waiting up to")
    });
}

#[test]
fn a_running_hook_finishes_and_no_other_begins() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], HOLDS)
        .set("outbox.concurrency", 1)
        .set("outbox.slow_concurrency", 0)
        .set("outbox.drain_s", 60)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    world.pay("A-2");
    ask_to_stop(&world);
    let_go(&world);
    assert_eq!(world.serve_ends(PATIENCE), 0);
    let states =
        "SELECT order_id || ' ' || state || ' ' || attempts FROM deliveries ORDER BY order_id";
    assert_eq!(world.sql(states).concat(), ["A-1 done 1", "A-2 waiting 0"]);
    assert_eq!(
        world.sql("SELECT result FROM attempts").concat(),
        ["exit 0"]
    );
    world.start_serve();
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
}

#[test]
fn a_second_signal_waits_for_no_hook() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], HOLDS)
        // Longer than the test waits.
        .set("outbox.drain_s", 3_600)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    ask_to_stop(&world);
    signal(&world, Signal::TERM);
    assert_eq!(world.serve_ends(PATIENCE), 0);
    let attempts = "SELECT number || ' ' || result FROM attempts ORDER BY number";
    assert_eq!(world.sql(attempts).concat(), ["1 interrupted"]);
    assert_eq!(world.value("SELECT state FROM deliveries"), "waiting");
}

#[test]
fn a_hook_longer_than_the_drain_is_ended_and_runs_again_at_the_next_start() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], HOLDS)
        // One attempt is all there is: being interrupted is no failure.
        .set("outbox.schedule_s", "[0]")
        .set("outbox.drain_s", 0)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    assert_eq!(world.stop_serve(Duration::from_secs(10)), 0);
    let attempts = "SELECT number || ' ' || result FROM attempts ORDER BY number";
    assert_eq!(world.sql(attempts).concat(), ["1 interrupted"]);
    assert_eq!(world.value("SELECT state FROM deliveries"), "waiting");
    let_go(&world);
    world.start_serve();
    world.settle();
    assert_eq!(world.sql(attempts).concat(), ["1 interrupted", "2 exit 0"]);
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    assert_eq!(
        world.hook_log("fulfil"),
        [1, 2].map(|attempt| format!("{event} {attempt}"))
    );
    assert_eq!(world.value("SELECT state FROM deliveries"), "done");
}

#[test]
fn a_ledger_that_was_taken_away_ends_the_daemon_and_nothing_is_acknowledged() {
    let mut world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let (ledger, away) = (
        world.dir().join("state/ledger.db"),
        world.dir().join("away.db"),
    );
    fs::rename(&ledger, &away).expect("taken away");
    let paid = world.dictate(&issued, "paid");
    let answer = world.tell(&paid, &paid.object.to_string());
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    fs::rename(&away, &ledger).expect("put back");
    world.start_serve();
    assert_eq!(world.tell(&paid, &paid.object.to_string()).status, 200);
    assert_eq!(world.value("SELECT outcome FROM invoices"), "paid");
}

/// A copy of the one file after a clean stop has every commit, and a program that may only read opens the ledger as before.
#[test]
fn a_clean_stop_leaves_every_commit_in_the_file() {
    let mut world = Setup::new().quiet().start();
    world.pay("A-1");
    let log = world.stop_serve_log();
    assert!(log.trim_end().ends_with("tilld has stopped"), "{log}");
    let beside = |end: &str| {
        let name = format!("ledger.db{end}");
        fs::metadata(world.state_dir().join(name)).map(|about| about.len())
    };
    assert_eq!(beside("-wal").ok(), Some(0));
    assert!(beside("-shm").is_ok());
    let copy = world.dir().join("alone.db");
    fs::copy(world.ledger(), &copy).expect("copied");
    assert_eq!(
        sql(&copy, "SELECT outcome FROM invoices").concat(),
        ["paid"]
    );

    // One that reads what is newest keeps nothing from being moved: the start's own note is the last.
    let since = |world: &World| world.value("SELECT value FROM meta WHERE key = 'serving_since'");
    let before = since(&world);
    world.start_serve();
    wait_until(PATIENCE, "the note of the start", || {
        since(&world) != before
    });
    let reading = world.neighbour();
    reading.keep_reading();
    let log = world.stop_serve_log();
    assert!(log.trim_end().ends_with("tilld has stopped"), "{log}");
    drop(reading);

    // A reader keeps the newest ones from being moved, and the last line says so.
    world.start_serve();
    let neighbour = world.neighbour();
    neighbour.keep_reading();
    world.pay("A-2");
    let log = world.stop_serve_log();
    let last = log.trim_end().lines().next_back().unwrap_or_default();
    assert!(last.contains("the newest commits are in"), "{log}");
    assert!(last.contains("ledger.db-wal"), "{last}");
}

#[test]
fn two_daemons_never_serve_one_ledger() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    for is_deleted in [false, true] {
        if is_deleted {
            fs::remove_file(world.state_dir().join("serve.lock")).expect("it is there");
        }
        let second = world
            .tilld(&["serve", "--listen", "127.0.0.1:0"])
            .ends_with(11);
        let wanted = format!(
            "another tilld serves `{}` already",
            world.state_dir().display()
        );
        assert!(second.stderr.contains(&wanted), "{second:?}");
        assert!(
            second.stderr.contains("hint: stop the other one first"),
            "{second:?}"
        );
    }
    // The first one noticed nothing.
    world.pay("A-1");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    // A lock left by a crash is none.
    world.kill9_serve();
    world.start_serve();
}

#[test]
fn a_state_directory_of_another_user_is_left_alone() {
    /// A number no account has.
    const STRANGER: u32 = 4_000_000_001;
    if !geteuid().is_root() {
        skip!("only root can give a directory away");
    }
    let world = Setup::new().quiet().not_served().start();
    world.create("A-1");
    chown(world.state_dir(), Some(STRANGER), None).expect("root may");
    let before = tree(&world);
    for args in [
        ["serve", "--json"].as_slice(),
        &["login", "--json"],
        &["invoice", "wait", "A-1", "--timeout=20s"],
        &["delivery", "retry", "1"],
        &[
            "invoice",
            "track",
            "A-2",
            "--id=inv-1",
            "--amount=5",
            "--currency=RUB",
            "--token-file=-",
        ],
        &["invoice", "adopt", "A-1", "--id=inv-1"],
        &["invoice", "accept-amount", "A-1", "--amount", "590"],
        &[
            "invoice",
            "create",
            "--order=A-2",
            "--amount=5",
            "--currency=RUB",
            "--method=SBP",
        ],
    ] {
        let refused = world.tilld(args).ends_with(15);
        let hint = format!("hint: run `sudo -u '#{STRANGER}' tilld --config ");
        assert!(refused.stderr.contains(&hint), "{refused:?}");
        let line = format!(" {}`", args.join(" "));
        assert!(refused.stderr.contains(&line), "{refused:?}");
    }
    assert_eq!(tree(&world), before, "nothing was made or changed hands");
    assert_eq!((world.requests("create"), world.requests("login")), (1, 1));
    // Reading is free.
    world.tilld(&["invoice", "show", "A-1"]).ends_with(0);
    chown(world.state_dir(), Some(0), None).expect("root may");
}

/// Names, owners and sizes of what lies in the state directory, but for the side files a reader makes.
fn tree(world: &World) -> Vec<(String, u32, u64)> {
    let entries = |dir: &str| {
        let dir = world.state_dir().join(dir);
        fs::read_dir(dir).expect("readable").map(|entry| {
            let entry = entry.expect("readable");
            let about = entry.metadata().expect("readable");
            (entry.path().display().to_string(), about.uid(), about.len())
        })
    };
    let mut all: Vec<_> = entries("").chain(entries("secret")).collect();
    all.retain(|(path, _, _)| !path.ends_with("-shm") && !path.ends_with("-wal"));
    all.sort();
    all
}
