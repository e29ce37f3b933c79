//! SIGKILL at every step between an acknowledged notification and the stored end of its hook (A16, A41). What is at
//! stake: goods that are never sent, or a script that runs twice at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::json;

use crate::harness::{Issued, PATIENCE, Setup, Wire, World, wait_until};

/// Notes the beginning and the end of each run; waits in between until `$1.go` is there.
const HOLDS: &str = "echo \"begins $TILLD_EVENT_ID $TILLD_ATTEMPT $TILLD_ORDER_ID\" >> \"$1\"\n\
    while [ $TILLD_ORDER_ID = A-1 ] && [ ! -e \"$1.go\" ]; do sleep 0.02; done\n\
    echo \"ends $TILLD_EVENT_ID $TILLD_ATTEMPT $TILLD_ORDER_ID\" >> \"$1\"";

/// Lets those that hold go on.
fn let_go(world: &World) {
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
}

/// The lines of the hook's log about an order, without its name.
fn of_order(world: &World, order: &str) -> Vec<String> {
    let log = world.hook_log("fulfil");
    let mine = log.iter().filter_map(|line| line.strip_suffix(order));
    mine.map(|line| line.trim_end().to_owned()).collect()
}

fn results(world: &World) -> Vec<String> {
    world
        .sql("SELECT number || ' ' || result FROM attempts ORDER BY started_ms, number")
        .concat()
}

#[test]
fn what_was_acknowledged_before_a_crash_is_there_after_it_and_its_hook_runs() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .set("outbox.schedule_s", "[2, 1]")
        .start();
    world.pay("A-1");
    world.kill9_serve();
    assert_eq!(world.hook_log("fulfil"), [""; 0], "it has not begun");
    assert_eq!(world.invoice("A-1", "outcome"), "paid");
    world.start_serve();
    world.settle();
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    assert_eq!(world.hook_log("fulfil"), [format!("{event} paid A-1 1")]);
}

#[test]
fn a_hook_that_outlives_its_daemon_is_waited_for_before_it_runs_again() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], HOLDS)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || of_order(&world, "A-1").len() == 1);
    world.kill9_serve();
    world.start_serve();
    // The outbox works, and does not touch the one whose old process lives.
    world.pay("A-2");
    wait_until(PATIENCE, "another order", || {
        of_order(&world, "A-2").len() == 2
    });
    assert_eq!(of_order(&world, "A-1").len(), 1);
    let_go(&world);
    world.settle();
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid' AND order_id = 'A-1'");
    let wanted =
        ["begins", "ends"].map(|what| [1, 2].map(|attempt| format!("{what} {event} {attempt}")));
    let [[begins, begins_again], [ends, ends_again]] = wanted;
    assert_eq!(
        of_order(&world, "A-1"),
        [begins, ends, begins_again, ends_again]
    );
    let mine = "SELECT a.number || ' ' || a.result FROM attempts a JOIN events e USING (event_id) \
                WHERE e.order_id = 'A-1' ORDER BY a.number";
    assert_eq!(world.sql(mine).concat(), ["1 interrupted", "2 exit 0"]);
}

/// What it writes then has no reader, and no attempt begins beside it.
#[test]
fn a_hook_that_outlives_its_daemon_may_end_at_its_next_output() {
    let script = "echo \"begun $TILLD_ATTEMPT\" >> \"$1\"; \
        while [ ! -e \"$1.go\" ]; do sleep 0.01; done; echo output; echo \"ended $TILLD_ATTEMPT\" >> \"$1\"";
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], script)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    world.kill9_serve();
    let_go(&world);
    world.start_serve();
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["begun 1", "begun 2", "ended 2"]);
    assert_eq!(results(&world), ["1 interrupted", "2 exit 0"]);
}

#[test]
fn a_hook_that_outlives_its_daemon_and_its_time_is_ended_before_it_runs_again() {
    // Its child ends with it: what a script waits for would go on working otherwise, beside the second attempt.
    let script = "echo \"$TILLD_ATTEMPT\" >> \"$1\"; [ $TILLD_ATTEMPT -gt 1 ] || sleep 600; true";
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], script)
        .within_s(1)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    world.kill9_serve();
    world.start_serve();
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["1", "2"]);
    assert_eq!(results(&world), ["1 interrupted", "2 exit 0"]);
}

#[test]
fn after_a_reboot_nothing_is_waited_for_and_nobody_is_signalled() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], HOLDS)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || of_order(&world, "A-1").len() == 1);
    world.kill9_serve();
    // The claim is one of another boot, and what bears its number now is a stranger: it lives on beside the second attempt.
    let other_boot = "UPDATE delivery SET claimant_boot = 'another', child_boot = 'another'";
    world.neighbour().tamper(other_boot);
    world.start_serve();
    wait_until(PATIENCE, "the second attempt", || {
        of_order(&world, "A-1").len() == 2
    });
    let begun = of_order(&world, "A-1");
    assert!(begun.iter().all(|line| line.starts_with("begins")));
    let_go(&world);
    world.settle();
    wait_until(PATIENCE, "both to end", || {
        of_order(&world, "A-1").len() == 4
    });
    assert_eq!(results(&world), ["1 interrupted", "2 exit 0"]);
}

#[test]
fn what_a_hook_waits_for_is_over_before_it_runs_again() {
    // The worker outlives the script, which ends when it is told to, and lives on beyond its time unless it is ended.
    let script = "note() { echo \"$1\" >> \"$log\"; }; log=$1\n\
        note \"start $TILLD_ATTEMPT\"\n\
        [ $TILLD_ATTEMPT -eq 1 ] || { [ ! -e /proc/$(cat \"$1.worker\")/exe ] || note overlap; exit 0; }\n\
        sh -c 'trap \"\" TERM; echo $$ > \"$0.worker\"; sleep 1; echo worker finishes >> \"$0\"; sleep 600' \"$log\"; note end";
    for (case, kill_leader) in [("its leader lives", false), ("its leader is dead", true)] {
        let noting = format!("echo $$ > \"$1.pid\"\n{script}");
        let mut world = Setup::new()
            .quiet()
            .hook("fulfil", &["paid"], &noting)
            .within_s(3)
            .start();
        world.pay("A-1");
        let worker = world.dir().join("hooks/fulfil.log.worker");
        wait_until(PATIENCE, "the worker", || {
            fs::read_to_string(&worker).is_ok_and(|pid| pid.ends_with('\n'))
        });
        world.kill9_serve();
        let log = world.dir().join("hooks/fulfil.log");
        if kill_leader {
            let kill = "kill -9 $(cat \"$0.pid\")";
            let killed = Command::new("/bin/sh")
                .args(["-c", kill])
                .arg(&log)
                .status();
            assert!(killed.expect("sh starts").success());
        }
        world.start_serve();
        world.settle();
        let wanted = ["start 1", "worker finishes", "start 2"];
        assert_eq!(world.hook_log("fulfil"), wanted, "{case}");
        assert_eq!(results(&world), ["1 interrupted", "2 exit 0"], "{case}");
    }
}

#[test]
fn a_hook_whose_end_was_not_stored_runs_again_as_the_next_attempt() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], HOLDS)
        .set("ledger.busy_budget_ms", 100)
        // One attempt is all there is: an interrupted one does not count.
        .set("outbox.schedule_s", "[0]")
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || of_order(&world, "A-1").len() == 1);
    let neighbour = world.neighbour();
    neighbour.hold();
    let_go(&world);
    wait_until(PATIENCE, "its end to be known and not stored", || {
        world
            .serve_log()
            .contains("the end of a hook is not stored yet")
    });
    assert_eq!(of_order(&world, "A-1").len(), 2, "it has done its work");
    world.kill9_serve();
    neighbour.let_go();
    world.start_serve();
    world.settle();
    let lines = of_order(&world, "A-1");
    let ids: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!((lines.len(), ids.len()), (4, 1), "{lines:?}");
    assert_eq!(results(&world), ["1 interrupted", "2 exit 0"]);
}

/// Kills, and notifications sent before each. Every connection carries one, so a kill finds some of them in each state.
const KILLS: usize = 20;
const AT_ONCE: usize = 12;

#[test]
fn twenty_kills_under_load_lose_nothing_that_was_acknowledged() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.concurrency", 8)
        .hook("fulfil", &["*"], "echo \"$TILLD_STATUS\" >> \"$1\"")
        .start();
    let issued: Vec<Issued> = (0..6)
        .map(|number| world.create(&format!("A-{number}")))
        .collect();
    let mut acknowledged: Vec<String> = Vec::new();
    for kill in 0..KILLS {
        let mut wires: Vec<(String, Wire)> = Vec::new();
        for (number, invoice) in issued.iter().cycle().take(AT_ONCE).enumerate() {
            // Every one is newer than all before it, so each that is stored is an event of its own.
            let status = format!("s-{kill}-{number}");
            let at = invoice.at_us(kill * AT_ONCE + number + 1);
            let mut wire = Wire::open(world.listen());
            wire.send(&post(&world, invoice, &invoice.saying(&status, &at)));
            wires.push((status, wire));
        }
        // After none, one, two … answers were read; the rest is read from what had arrived when the daemon died.
        let mut unread = wires.split_off(kill % AT_ONCE);
        let before = take_answers(&mut wires);
        world.kill9_serve();
        acknowledged.extend(before);
        acknowledged.extend(take_answers(&mut unread));
        world.start_serve();
    }
    world.settle();
    assert!(acknowledged.len() > KILLS, "{acknowledged:?}");
    let events: BTreeSet<String> = world
        .sql("SELECT status FROM events")
        .concat()
        .into_iter()
        .collect();
    // Two notifications of one invoice sent at once may come out of order: the older one makes no event.
    let heard: BTreeSet<String> = world
        .sql("SELECT status FROM heard")
        .concat()
        .into_iter()
        .collect();
    let lost: Vec<&String> = acknowledged
        .iter()
        .filter(|status| !heard.contains(*status))
        .collect();
    assert_eq!(lost, [""; 0], "acknowledged and gone");
    let told: BTreeSet<String> = world.hook_log("fulfil").into_iter().collect();
    assert_eq!(told, events, "each event reached the hook");
    assert_eq!(
        world.sql("SELECT DISTINCT state FROM deliveries").concat(),
        ["done"]
    );
    let overlap = "SELECT count(*) FROM attempts a JOIN attempts b USING (event_id, hook) \
                   WHERE a.number < b.number AND b.started_ms < a.started_ms";
    assert_eq!(world.value(overlap), "0");
}

fn post(world: &World, invoice: &Issued, body: &str) -> String {
    let (target, length) = (World::target(&invoice.reference), body.len());
    format!(
        "POST {target} HTTP/1.1\r\nHost: {}\r\nX-Notification-Token: {}\r\nContent-Length: {length}\r\n\r\n{body}",
        world.listen(),
        invoice.token,
    )
}

/// The statuses that were answered with 200.
fn take_answers(wires: &mut [(String, Wire)]) -> Vec<String> {
    let answered = wires.iter_mut().filter_map(|(status, wire)| {
        let answer = wire.answer()?;
        (answer.status == 200).then(|| status.clone())
    });
    answered.collect()
}

#[test]
fn a_crash_between_two_notifications_of_a_sender_is_mended_by_its_retry() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let issued = world.create("A-1");
    world.kill9_serve();
    // The service finds nobody and tries again a second later.
    world.happens(&issued, &json!({ "status": "paid" }));
    world.start_serve();
    wait_until(PATIENCE, "the retry", || {
        world.hook_log("fulfil").len() == 1
    });
    world.settle();
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind = 'paid'"),
        "1"
    );
}
