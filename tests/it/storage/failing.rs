//! A disk that fails to keep what was written (A26, R05), and a file that somebody takes away. What is at stake: an
//! acknowledged payment that was never on the disk.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::harness::{PATIENCE, Setup, skip, wait_until};

#[test]
fn after_a_sync_that_failed_the_file_is_opened_anew_before_anything_is_acknowledged() {
    let traced = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    if !traced.is_ok_and(|output| output.status.success()) {
        skip!("strace is not there or may not trace");
    }
    let traces = tempfile::tempdir().expect("a directory");
    let trace = traces.path().join("trace");
    let file = trace.display();
    // Of one thread, which is the writer's: its fifth to seventh sync fail.
    let strace = format!(
        "for part; do [ \"$before\" = --state-dir ] && ledger=$part/ledger.db; before=$part; done; \
         exec strace -D -f -y -o {file} -P $ledger -P $ledger-wal -e trace=openat,fsync,fdatasync \
         -e inject=fsync,fdatasync:error=EIO:when=5..7 \"$@\""
    );
    let world = Setup::new()
        .quiet()
        .under(&["sh", "-c", &strace, "sh"])
        .start();
    let issued = world.create("A-1");
    let mut answers = Vec::new();
    for number in 0..40 {
        // Each another one, so that each that is stored is an event.
        let body = issued.saying(&format!("waiting-{number}"), &issued.at_us(number + 1));
        answers.push(world.tell(&issued, &body).status);
        let failed = answers.contains(&503);
        if failed && answers.ends_with(&[200, 200]) {
            break;
        }
    }
    assert!(answers.contains(&503), "{answers:?}");
    assert!(answers.ends_with(&[200, 200]), "{answers:?}");
    let acknowledged = answers.iter().filter(|status| **status == 200).count();
    let events: usize = world
        .value("SELECT count(*) FROM events WHERE kind = 'status'")
        .parse()
        .expect("a number");
    // One whose answer was 503 may stand there all the same.
    assert!(events >= acknowledged, "{events} of {answers:?}");
    let log = world.serve_log();
    assert_eq!(
        log.matches("the ledger cannot store: the disk failed")
            .count(),
        1,
        "{log}"
    );
    assert!(log.contains("the ledger stores again"), "{log}");
    let trace = fs::read_to_string(&trace).expect("a trace");
    let lines: Vec<&str> = trace.lines().collect();
    let injected = lines.iter().rposition(|line| line.contains("INJECTED"));
    let after = lines
        .get(injected.expect("syncs failed")..)
        .unwrap_or_default();
    let opened = after
        .iter()
        .position(|line| line.contains("openat") && line.contains("ledger.db-wal\""));
    let synced = after.iter().position(|line| {
        line.contains("sync(") && !line.contains("INJECTED") && line.contains("ledger.db-wal")
    });
    assert!(opened.is_some() && opened < synced, "{}", after.join("\n"));
}

#[test]
fn a_ledger_that_was_removed_is_not_made_anew() {
    let mut world = Setup::new().quiet().start();
    let paid = world.dictate(&world.create("A-1"), "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let away = world.dir().join("away");
    fs::create_dir(&away).expect("a directory");
    let files = ["ledger.db", "ledger.db-wal", "ledger.db-shm"];
    for file in files {
        fs::rename(world.state_dir().join(file), away.join(file)).expect("taken away");
    }
    // Whoever looks is told the same, and not that there never was one.
    for args in [["status"], ["doctor"]] {
        let ran = world.tilld(&args);
        assert!(matches!(ran.code, 11 | 16), "{ran:?}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            told.contains("is gone") && told.contains("newest backup"),
            "{told}"
        );
        assert!(!told.contains("ever ran here"), "{told}");
    }
    let ran = world.tilld(&["serve"]).ends_with(11);
    assert!(
        ran.stderr
            .contains("is gone: the mark beside it knows of 2 events"),
        "{ran:?}"
    );
    assert!(
        ran.stderr
            .contains("hint: put the newest backup in its place"),
        "{ran:?}"
    );
    assert!(!world.ledger().exists());
    for file in files {
        fs::rename(away.join(file), world.state_dir().join(file)).expect("put back");
    }
    world.start_serve();
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
}

/// A daemon that stored on into a file which has no name any more would acknowledge what nobody will find.
#[test]
fn a_ledger_that_is_replaced_under_the_daemon_gets_no_acknowledgement() {
    let mut world = Setup::new().quiet().start();
    let paid = world.dictate(&world.create("A-1"), "paid");
    let copy = world.dir().join("copy.db");
    let file = copy.to_string_lossy().into_owned();
    world.tilld(&["db", "backup", &file]).ends_with(0);
    fs::rename(&copy, world.ledger()).expect("replaced");
    let body = json!({ "status": "paid" });
    let refused = world.tell(&paid, &paid.with(&body).to_string());
    assert_eq!(refused.status, 503, "{refused:?}");
    wait_until(PATIENCE, "the cause to be told", || {
        world.serve_log().contains("`ledger.db` was replaced")
    });
    // To be started anew, on what lies there then.
    assert_eq!(world.serve_ends(PATIENCE), 1);
    // Its WAL was emptied into the file it belongs to, so the copy can be served at once.
    world.start_serve();
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
}
