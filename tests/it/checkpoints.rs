//! When the log is moved into the ledger's file, and what is committed together. What is at stake: the disk, when a program
//! reads without an end; the sender's time, when its notification waits for the move.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Issued, PATIENCE, Setup, World, skip, wait_until};

/// What the log takes at most while nothing stands in its way (`KEPT_BYTES`).
const USUAL_BYTES: u64 = 15 * 1024 * 1024;
/// What a notification carries here beside its invoice: two of a hundred fill the usual log.
const MUCH_BYTES: usize = 400_000;

/// What each sync of the ledger's file takes longer in a traced daemon.
const DELAY: Duration = Duration::from_secs(1);
/// So many that say the same are believed.
const ENOUGH: usize = 3;
/// Notifications that find a long log, at most: of some nothing is known.
const ROUNDS: usize = 12;
/// Between two looks at a trace.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn log_bytes(world: &World) -> u64 {
    let log = fs::metadata(world.dir().join("state/ledger.db-wal"));
    log.expect("the log is there").len()
}

/// A long notification that changes the status; the `number`th of its invoice.
#[track_caller]
fn tell_much(world: &World, issued: &Issued, number: usize) {
    // The first changes the status too.
    let status = if number.is_multiple_of(2) {
        "new"
    } else {
        "waiting"
    };
    let body = issued.with(&json!({
        "status": status,
        "updatedAt": issued.at_us(number + 1),
        "much": "x".repeat(MUCH_BYTES),
    }));
    assert_eq!(world.tell(issued, &body.to_string()).status, 200);
}

#[test]
fn a_read_without_an_end_is_told_once_and_its_end_too() {
    const WARNING: &str = "the ledger's log has grown to";
    const OVER: &str = "the ledger's log is moved into the ledger's file again";
    let world = Setup::new()
        .quiet()
        .set("ledger.log_attention_bytes", 16 * 1024 * 1024)
        .start();
    let issued = world.create("A-1");
    let told = |what: &str| world.serve_log().matches(what).count();
    let status = |code| world.tilld(&["status", "--json"]).ends_with(code).json();

    let neighbour = world.neighbour();
    neighbour.keep_reading();
    let mut number = 0;
    while told(WARNING) == 0 {
        number += 1;
        assert!(number < 200, "{} bytes of log", log_bytes(&world));
        tell_much(&world, &issued, number);
    }
    assert!(log_bytes(&world) > USUAL_BYTES);
    let log = world.serve_log();
    let warning = log.lines().find(|line| line.contains(WARNING));
    let warning = warning.expect("it was found");
    for part in [
        "WARN",
        "since 20",
        "read transaction",
        "fuser -v",
        "ledger.db",
        "bytes",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    wait_until(PATIENCE, "status to tell", || {
        let told = world.tilld(&["status", "--json"]).json();
        let since = told.pointer("/ledger/wal_held_since");
        since.is_some_and(|since| since.as_str().is_some_and(|since| since.starts_with("20")))
    });
    let people = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(people.contains("read transaction open"), "{people}");
    for _ in 0..20 {
        number += 1;
        tell_much(&world, &issued, number);
    }
    assert_eq!((told(WARNING), told(OVER)), (1, 0));

    neighbour.let_go();
    wait_until(PATIENCE, "the end to be told", || told(OVER) == 1);
    assert!(log_bytes(&world) <= USUAL_BYTES, "{}", log_bytes(&world));
    assert_eq!(
        status(0).pointer("/ledger/wal_held_since"),
        Some(&json!(null))
    );
    number += 1;
    tell_much(&world, &issued, number);
    assert_eq!((told(WARNING), told(OVER)), (1, 1));
    let events = world.value("SELECT count(*) FROM events WHERE kind = 'status'");
    assert_eq!(events, number.to_string());
}

#[test]
fn without_a_read_in_its_way_the_log_stays_short() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    for number in 1..=60 {
        tell_much(&world, &issued, number);
        assert!(log_bytes(&world) <= USUAL_BYTES, "{}", log_bytes(&world));
    }
    // All that was told is longer than the log.
    assert!(fs::metadata(world.ledger()).expect("there").len() > USUAL_BYTES / 2);
}

/// A command's commit ends although the log is long and somebody else reads, and leaves what there is to whoever serves the
/// ledger.
#[test]
fn a_command_does_not_wait_for_the_log_of_others() {
    let world = Setup::new()
        .quiet()
        .set("ledger.checkpoint", "\"in_commit\"")
        .not_served()
        .start();
    world.create("A-1");
    let neighbour = world.neighbour();
    neighbour.lengthen_log(8_000);
    let before = fs::metadata(world.ledger()).expect("there").len();
    world.create("A-2");
    let after = fs::metadata(world.ledger()).expect("there").len();
    assert!(
        after - before < 1_000_000,
        "the command moved {} bytes",
        after - before
    );
}

/// Commits in the log since it was begun, in the words of SQLite's file format: frames that name the size of the database.
fn commits(world: &World) -> usize {
    let log = fs::read(world.dir().join("state/ledger.db-wal")).expect("a log");
    let word = |at: usize| log.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let salt = log.get(16..24).expect("a head");
    (32..log.len())
        .step_by(24 + 4096)
        .take_while(|at| log.get(at + 8..at + 16) == Some(salt))
        .filter(|at| word(at + 4).is_some_and(|size: [u8; 4]| u32::from_be_bytes(size) > 0))
        .count()
}

/// How many commits so many notifications make that wait at once.
fn commits_of(batch: u32, count: usize) -> usize {
    let world = Setup::new()
        .quiet()
        .set("ledger.batch", batch)
        .set("ledger.busy_budget_ms", 30_000)
        .start();
    let orders: Vec<String> = (0..count).map(|number| format!("A-{number}")).collect();
    let issued = world.create_all(&orders);
    let paid: Vec<Issued> = issued
        .iter()
        .map(|one| world.dictate(one, "paid"))
        .collect();
    let neighbour = world.neighbour();
    let before = commits(&world);
    neighbour.hold();
    thread::scope(|scope| {
        for one in &paid {
            scope.spawn(|| assert_eq!(world.tell_as_it_is(one).status, 200));
        }
        wait_until(PATIENCE, "all to be read", || {
            world.serve_log().matches("carried its token in").count() >= count
        });
        neighbour.let_go();
    });
    commits(&world) - before
}

#[test]
fn a_batch_of_one_commits_each_by_itself() {
    const COUNT: usize = 12;
    assert!(commits_of(1, COUNT) >= COUNT);
    // The first may be alone, and the daemon remembers small facts of its own.
    assert!(commits_of(256, COUNT) < COUNT / 2);
}

/// When the log was moved that a notification found long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    /// Synced in the ledger's file when the notification was answered.
    Before,
    /// Not yet then.
    Behind,
}

/// When the log was moved, for each of some notifications that found a long one. The move is slowed down. Somebody else than
/// the notification may have moved it too, since an idle daemon looks after its log: then nothing is known.
fn moved(checkpoint: &str) -> Vec<Moved> {
    let traces = tempfile::tempdir().expect("a directory");
    let trace = traces.path().join("trace");
    let file = trace.display();
    // Only the ledger's own file: its log is synced by each commit.
    let strace = format!(
        "for part; do [ \"$before\" = --state-dir ] && ledger=$part/ledger.db; before=$part; done; \
         exec strace -D -f -o {file} -P $ledger -e trace=fsync,fdatasync \
         -e inject=fsync,fdatasync:delay_enter={} \"$@\"",
        DELAY.as_micros()
    );
    let world = Setup::new()
        .quiet()
        .set("ledger.checkpoint", format!("\"{checkpoint}\""))
        .under(&["sh", "-c", &strace, "sh"])
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    let synced = || {
        read(&trace)
            .lines()
            .filter(|line| line.contains(" = 0"))
            .count()
    };
    let mut moved = Vec::new();
    let seen = |moved: &[Moved], when| moved.iter().filter(|one| **one == when).count();
    for _ in 0..ROUNDS {
        if [Moved::Before, Moved::Behind]
            .map(|when| seen(&moved, when))
            .contains(&ENOUGH)
        {
            break;
        }
        world.neighbour().lengthen_log(1_200);
        let before = synced();
        assert_eq!(world.tell_as_it_is(&invoice).status, 200);
        if synced() > before {
            moved.push(Moved::Before);
            continue;
        }
        let answered = Instant::now();
        while answered.elapsed() < DELAY * 2 {
            if synced() > before {
                moved.push(Moved::Behind);
                break;
            }
            thread::sleep(LOOK_EVERY);
        }
        // Else somebody was reading just then, and the last of it was left in the log.
    }
    moved
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn the_log_is_moved_behind_the_answer_unless_the_config_wants_it_before() {
    let traced = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    if !traced.is_ok_and(|output| output.status.success()) {
        skip!("strace is not there or may not trace");
    }
    // An idle daemon's own move may end, or begin, around any of the answers: one is too few to judge by.
    let count = |moved: &[Moved], when| moved.iter().filter(|one| **one == when).count();
    let (after, within) = (moved("after_answers"), moved("in_commit"));
    assert_eq!(count(&after, Moved::Behind), ENOUGH, "{after:?}");
    assert_eq!(count(&within, Moved::Before), ENOUGH, "{within:?}");
}
