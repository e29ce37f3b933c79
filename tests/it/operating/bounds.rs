//! What an operator cannot do: touch a run under way, change what moved on a moment ago, or change anything as somebody
//! else than the owner. And that a dry run is for whoever may read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::geteuid;

use super::{NOTE, SLOW, all, delivery, event, file, states};
use crate::harness::{PATIENCE, Setup, skip, wait_until};

#[test]
fn a_run_under_way_is_never_touched() {
    let world = Setup::new()
        .quiet()
        .hook("slow", &["paid"], SLOW)
        .hook("then", &["paid"], NOTE)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the run", || !world.hook_log("slow").is_empty());
    let paid = event(&world, "A-1");
    let before = all(&world);
    for act in ["abandon", "retry", "replay", "release"] {
        let refused = delivery(&world, &[act, &paid, "--hook=slow"], 1);
        let error = format!("nothing to {act}: `slow` is running now");
        assert!(refused.stderr.contains(&error), "{refused:?}");
        let dry = delivery(&world, &[act, &paid, "--hook=slow", "--dry-run"], 1);
        assert!(dry.stderr.contains(&error), "{dry:?}");
    }
    let refused = delivery(&world, &["abandon", &paid, "--hook=slow"], 1);
    assert!(
        refused
            .stderr
            .contains("hint: a run under way is never cut short"),
        "{refused:?}"
    );
    let refused = delivery(&world, &["abandon", "--order=A-1", "--hook=slow"], 1);
    assert!(refused.stderr.contains("; 1 is running now"), "{refused:?}");
    assert_eq!(all(&world), before);

    // Of two, the one that waits is given up, and the other is told of.
    let told = delivery(&world, &["abandon", &paid], 0);
    assert_eq!(told.stdout, "1 delivery is given up\n");
    assert!(
        told.stderr
            .contains("1 delivery is running now and left alone"),
        "{told:?}"
    );
    fs::write(file(&world, "slow.log.go"), "").expect("written");
    world.settle();
    assert_eq!(states(&world), ["slow A-1 done 1", "then A-1 abandoned 0"]);
    assert!(world.hook_log("then").is_empty());
}

#[test]
fn what_moves_on_between_the_look_and_the_change_is_left_alone() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], NOTE)
        .set("outbox.schedule_s", "[3600]")
        .start();
    for order in ["A-1", "A-2"] {
        world.pay(order);
    }
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert_eq!(
        states(&world),
        ["fulfil A-1 waiting 0", "fulfil A-2 waiting 0"]
    );
    for (done, code) in [("A-1", 0), ("A-2", 1)] {
        let neighbour = world.neighbour();
        neighbour.hold();
        let mut command = world.start_tilld(&["delivery", "retry", "--all"]);
        let pid = command.pid();
        // The writer's thread begins when the look is over, and finds the lock taken.
        wait_until(PATIENCE, "the look to be over", || {
            threads(pid).contains(&"ledger-writer".to_owned())
        });
        neighbour.tamper(&format!(
            "UPDATE delivery SET state = 'done' WHERE id IN (SELECT d.id FROM delivery d JOIN invoice i ON i.id = d.invoice \
             WHERE i.order_id = '{done}'); COMMIT"
        ));
        let ended = command.wait(PATIENCE);
        assert_eq!(ended, code, "{}", command.stderr());
        assert!(
            command.stderr().contains("1 delivery moved on meanwhile"),
            "{}",
            command.stderr()
        );
    }
    assert_eq!(states(&world), ["fulfil A-1 done 0", "fulfil A-2 done 0"]);
}

#[test]
fn many_are_shown_and_changed_to_the_last() {
    let mut world = Setup::new().quiet().hook("fulfil", &["paid"], NOTE).start();
    world.pay("A-1");
    world.settle();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    // More than two commits' worth.
    world.neighbour().tamper(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) \
         INSERT INTO delivery (event, invoice, hook, state, held_why) \
         SELECT d.event, d.invoice, 'h' || i, 'held', 'newly_sorted' FROM n, delivery d",
    );
    let shown = delivery(
        &world,
        &["abandon", "--all", "--state=held", "--dry-run"],
        0,
    );
    assert_eq!(shown.stdout.lines().count(), 1_201, "a heading and all");
    assert!(
        shown.stderr.contains("1200 deliveries would be given up"),
        "{}",
        shown.stderr
    );
    let told = delivery(&world, &["release", "--all", "--hook=h7"], 0);
    assert_eq!(told.stdout, "1 delivery is due now\n");
    let told = delivery(&world, &["abandon", "--all", "--state=held"], 0);
    assert_eq!(told.stdout, "1199 deliveries are given up\n");
    let left = "SELECT state || ' ' || count(*) FROM deliveries GROUP BY state ORDER BY state";
    assert_eq!(
        world.sql(left).concat(),
        ["abandoned 1199", "done 1", "waiting 1"]
    );
}

/// The names of a process's threads.
fn threads(pid: u32) -> Vec<String> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

/// An account without rights, and its group.
const NOBODY: u32 = 65_534;

#[test]
fn a_dry_run_is_for_whoever_may_read_and_a_change_is_the_owners() {
    if !geteuid().is_root() {
        skip!("only root can become somebody else");
    }
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[3600]")
        .hook("fulfil", &["paid"], NOTE)
        .start();
    world.pay("A-1");
    let state_dir = world.state_dir();
    fs::set_permissions(world.dir(), Permissions::from_mode(0o755)).expect("ours");
    chown(&state_dir, None, Some(NOBODY)).expect("ours");
    for entry in fs::read_dir(&state_dir).expect("a directory") {
        chown(entry.expect("an entry").path(), None, Some(NOBODY)).expect("ours");
    }
    for (more, code) in [(&["--dry-run"][..], 0), (&[], 15)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
        command.env_clear().uid(NOBODY + 1).gid(NOBODY);
        command.arg("--state-dir").arg(&state_dir);
        command
            .args(["delivery", "abandon", "--order=A-1"])
            .args(more);
        let Ok(output) = command.output() else {
            skip!("others may not run this binary");
        };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(shown.contains("A-1"), code == 0, "{output:?}");
    }
    assert_eq!(states(&world), ["fulfil A-1 waiting 0"]);
}
