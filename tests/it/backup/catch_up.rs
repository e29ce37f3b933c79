//! After a restore: what may have been run before is held until a person releases it, and what is new runs.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{back_up, backups, deliveries, put_back};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Polls only what is asked for, and what stands open every second.
fn polling() -> Setup {
    Setup::new()
        .sandbox(&["--pool=100"])
        // Times to the millisecond: a payment and the copy of the ledger are told apart within a second.
        .plain()
        .noting_hook("fulfil", &["paid"])
}

/// The lines of the hook's log, without event ids.
fn ran(world: &World) -> Vec<String> {
    let lines = world.hook_log("fulfil");
    let mut lines: Vec<String> = lines
        .iter()
        .filter_map(|line| Some(line.split_once(' ')?.1.to_owned()))
        .collect();
    lines.sort();
    lines
}

/// Asks about an order, and waits until the answer is stored.
#[track_caller]
fn poll(world: &World, order: &str) {
    world
        .tilld(&["invoice", "poll", order, "--json"])
        .ends_with(0);
}

#[test]
fn what_a_poll_finds_again_is_held_and_runs_once_after_its_release() {
    let mut world = polling().quiet().start();
    let issued = ["A-1", "A-2"].map(|order| world.create(order));
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    // Both are paid and run after the backup was made; then the machine is lost.
    for issued in &issued {
        let paid = world.dictate(issued, "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    }
    world.settle();
    assert_eq!(ran(&world), ["paid A-1 1", "paid A-2 1"]);
    world.kill9_serve();
    put_back(&world, &file);
    world.start_serve();
    let log = world.serve_log();
    assert!(
        log.contains("the ledger was restored (it is a backup)"),
        "{log}"
    );
    for order in ["A-1", "A-2"] {
        assert_eq!(world.invoice(order, "outcome"), "open", "as in the copy");
        poll(&world, order);
    }
    assert_eq!(
        deliveries(&world),
        ["A-1 paid held restored", "A-2 paid held restored"]
    );
    // Another order shows that the outbox is at work.
    world.pay("B-1");
    world.settle();
    assert_eq!(ran(&world), ["paid A-1 1", "paid A-2 1", "paid B-1 1"]);

    let status = world.tilld(&["status", "--json"]).ends_with(16).json();
    let restored = status.pointer("/restored/held/count");
    assert_eq!(restored, Some(&json!(2)), "{status}");
    let people = world.tilld(&["status"]).ends_with(16);
    assert!(people.stdout.contains("2 held for it"), "{people:?}");
    // Whoever was not told of the restore is told here, and not to run everything.
    for part in [
        "2 deliveries that may have run before the ledger was put back",
        "`tilld delivery abandon --order ORDER` where it is done",
    ] {
        assert!(people.stdout.contains(part), "{part}: {people:?}");
    }
    assert!(!people.stdout.contains("release --all"), "{people:?}");
    let listed = world.tilld(&["delivery", "list", "--state", "held"]).stdout;
    assert_eq!(listed.matches("held: restored").count(), 2, "{listed}");
    let explained = world.tilld(&["explain", "A-1"]).ends_with(0);
    assert!(
        explained.stdout.contains("held for restored"),
        "{explained:?}"
    );
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid' AND order_id = 'A-1'");
    let shown = world.tilld(&["delivery", "show", &event]).ends_with(0);
    assert!(shown.stdout.contains("restored"), "{shown:?}");

    world
        .tilld(&["delivery", "release", "--order=A-1"])
        .ends_with(0);
    world.settle();
    assert_eq!(
        ran(&world),
        ["paid A-1 1", "paid A-1 1", "paid A-2 1", "paid B-1 1"]
    );

    // A second start is an ordinary one, and so is what is news now.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.start_serve();
    assert!(!world.serve_log().contains("was restored"));
    let refunded = world.dictate(&issued[1], "refunded");
    assert_eq!(world.tell_as_it_is(&refunded).status, 200);
    world.pay("B-2");
    world.settle();
    assert_eq!(deliveries(&world).len(), 4, "{:?}", deliveries(&world));
    assert!(ran(&world).contains(&"paid B-2 1".to_owned()));
}

#[test]
fn what_waited_or_ran_when_the_copy_was_made_is_held_with_gapless_attempts() {
    let script = "echo \"$TILLD_ORDER_ID $TILLD_ATTEMPT\" >> \"$1\"\n\
                  test $TILLD_ORDER_ID = A-2 && while [ ! -e \"$1.go\" ]; do sleep 0.02; done\n\
                  test -e \"$1.go\"";
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], script)
        .set("outbox.schedule_s", "[0, 3600]")
        .start();
    world.pay("A-1");
    let once = "SELECT count(*) FROM attempts";
    wait_until(PATIENCE, "the first failure", || world.value(once) == "1");
    world.pay("A-2");
    wait_until(PATIENCE, "the one that hangs", || {
        world.hook_log("fulfil").len() == 2
    });
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    world.kill9_serve();
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
    put_back(&world, &file);
    world.start_serve();
    assert!(
        world
            .serve_log()
            .contains("of what waited in it 2 are held")
    );
    wait_until(PATIENCE, "what ran to be found gone, and held", || {
        deliveries(&world) == ["A-1 paid held restored", "A-2 paid held restored"]
    });
    let marks =
        "SELECT count(*) FROM delivery WHERE claimant_pid IS NOT NULL OR child_pid IS NOT NULL";
    assert_eq!(world.value(marks), "0");
    world.tilld(&["delivery", "release", "--all"]).ends_with(0);
    world.settle();
    let attempts = "SELECT order_id || ' ' || number || ' ' || result FROM attempts \
                    JOIN events USING (event_id) ORDER BY order_id, number";
    assert_eq!(
        world.sql(attempts).concat(),
        [
            "A-1 1 exit 1",
            "A-1 2 exit 0",
            "A-2 1 interrupted",
            "A-2 2 exit 0"
        ]
    );
}

/// A person who releases it must not get two copies of one delivery.
#[test]
fn what_still_runs_after_a_restore_is_held_only_when_it_has_ended() {
    let script =
        "echo begin >> \"$1\"\nwhile [ ! -e \"$1.go\" ]; do sleep 0.02; done\necho end >> \"$1\"";
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], script)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "it to run", || {
        world.hook_log("fulfil").len() == 1
    });
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    world.kill9_serve();
    put_back(&world, &file);
    world.start_serve();
    assert_eq!(deliveries(&world), ["A-1 paid running -"]);
    world.tilld(&["delivery", "release", "--all"]).ends_with(1);
    assert_eq!(deliveries(&world), ["A-1 paid running -"]);
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
    wait_until(PATIENCE, "it to be held", || {
        deliveries(&world) == ["A-1 paid held restored"]
    });
    world.tilld(&["delivery", "release", "--all"]).ends_with(0);
    world.settle();
    assert_eq!(
        world.hook_log("fulfil"),
        ["begin", "end", "begin", "end"],
        "no two at once"
    );
}

#[test]
fn a_notification_of_what_happened_after_the_restore_runs_and_an_old_one_is_held() {
    let mut world = polling().quiet().start();
    let old = world.create("A-1");
    let new = world.create("A-2");
    let open = world.create("A-3");
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    let old = world.dictate(&old, "paid");
    assert_eq!(world.tell_as_it_is(&old).status, 200);
    world.settle();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    put_back(&world, &file);
    world.start_serve();
    // The service repeats what was answered long ago.
    assert_eq!(world.tell_as_it_is(&old).status, 200);
    let new = world.dictate(&new, "paid");
    assert_eq!(world.tell_as_it_is(&new).status, 200);
    // Asked about once, an invoice is as every other, whenever its news are dated.
    poll(&world, "A-3");
    let body = world.dictate(&open, "paid").object.to_string();
    assert_eq!(world.tell(&open, &body).status, 200);
    world.settle();
    assert_eq!(
        deliveries(&world),
        [
            "A-1 paid held restored",
            "A-2 paid done -",
            "A-3 paid done -"
        ]
    );
    assert_eq!(ran(&world), ["paid A-1 1", "paid A-2 1", "paid A-3 1"]);
}

#[test]
fn an_invoice_that_is_tracked_after_a_restore_is_held_for_what_is_old_alone() {
    let mut world = polling().start();
    let lost = world.create_past_tilld("A-1", &"t".repeat(40), &json!({}));
    world.dictate(&lost, "paid");
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    put_back(&world, &file);
    world.start_serve();
    let token = world.dir().join("shops-own.token");
    fs::write(&token, "t".repeat(40)).expect("written");
    let token = token.to_string_lossy();
    let track = |id: &str, order: &str| {
        let args = ["invoice", "track", order, "--id", id, "--amount=599.80"];
        let more = ["--currency=RUB", "--token-file", &token];
        world.tilld(&[&args[..], &more].concat()).ends_with(0);
    };
    track(&lost.id, "A-1");
    let new = world.create_past_tilld("A-2", &"t".repeat(40), &json!({}));
    world.dictate(&new, "paid");
    track(&new.id, "A-2");
    wait_until(PATIENCE, "both to be found", || {
        world.value("SELECT count(*) FROM events WHERE kind = 'paid'") == "2"
    });
    world.settle();
    let mut found = deliveries(&world);
    found.sort();
    assert_eq!(found, ["A-1 paid held restored", "A-2 paid done -"]);
}

#[test]
fn a_kill_at_any_moment_of_the_catch_up_holds_once_and_runs_nothing_twice() {
    let mut world = polling().set("outbox.schedule_s", "[0, 1]").start();
    let orders: Vec<String> = (0..6).map(|at| format!("A-{at}")).collect();
    for order in &orders {
        world.create(order);
    }
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    for order in &orders {
        let issued = world.issued(order).expect("it is there");
        let paid = world.dictate(&issued, "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    }
    world.settle();
    world.kill9_serve();
    put_back(&world, &file);
    // The first is killed before it says anything, the others while they poll.
    let mut first = world.start_tilld(&["serve"]);
    first.signal(Signal::KILL);
    first.wait(PATIENCE);
    for held in 1..=3 {
        world.start_serve();
        wait_until(PATIENCE, "one more to be found", || {
            let found = "SELECT count(*) FROM deliveries WHERE state = 'held'";
            world.value(found).parse::<u32>().unwrap_or_default() >= held
        });
        world.kill9_serve();
    }
    world.start_serve();
    let held = "SELECT count(*) FROM deliveries WHERE state = 'held' AND held_why = 'restored'";
    wait_until(PATIENCE, "all to be found", || world.value(held) == "6");
    assert_eq!(
        world.value("SELECT value FROM meta WHERE key = 'generation'"),
        "1"
    );
    assert_eq!(world.hook_log("fulfil").len(), 6, "nothing ran again");
    world.tilld(&["delivery", "release", "--all"]).ends_with(0);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 12);
    // The mark may be a second behind what was lost: then there is nothing to acknowledge.
    world.tilld(&["ack", "--all"]);
    let status = world.tilld(&["status", "--json"]).ends_with(0).json();
    assert_eq!(status.pointer("/restored/generation"), Some(&json!(1)));
    assert_ne!(status.pointer("/restored/at"), Some(&Value::Null));
}

#[test]
fn the_log_of_the_ledger_before_is_not_applied_to_a_backup() {
    let mut world = polling().quiet().start();
    world.create("A-1");
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    world.create("A-2");
    world.kill9_serve();
    fs::copy(&file, world.ledger()).expect("put back, and the log forgotten");
    let before = fs::read(&file).expect("read");
    for args in [&["serve"][..], &["invoice", "list"]] {
        let refused = world.tilld(args).ends_with(11);
        assert!(
            refused.stderr.contains("`tilld db restore FILE`"),
            "{refused:?}"
        );
        let now = fs::read(world.ledger()).expect("read");
        assert!(now == before, "the ledger was changed");
    }
    put_back(&world, &file);
    // Read before it is served for the first time.
    world.tilld(&["invoice", "show", "A-1"]).ends_with(0);
    world.start_serve();
    assert_eq!(world.invoice("A-1", "outcome"), "open");
    // Its own log is no stray one, whenever the daemon dies.
    world.kill9_serve();
    world.start_serve();
    assert!(!world.serve_log().contains("was restored"));
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "1");
}
