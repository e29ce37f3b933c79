//! Hooks as the merchant's scripts experience them, run by the real daemon: what they are told, what their end means, and
//! that none of them stands in another's way (A36, A41).

mod abandoned;
mod apart;
mod exposed;
mod hostile;
mod retry;
mod starts;
mod told;
mod turns;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, children, under_test, wait_until};

/// The results of a hook's attempts, by their number.
fn results(world: &World, hook: &str) -> Vec<String> {
    let query =
        format!("SELECT result FROM attempts WHERE hook = '{hook}' ORDER BY started_ms, number");
    world.sql(&query).concat()
}

/// The state of a hook's deliveries.
fn state(world: &World, hook: &str) -> String {
    let query = format!("SELECT DISTINCT state FROM deliveries WHERE hook = '{hook}'");
    world.sql(&query).concat().join(" ")
}

/// A file a script may wait for: `while [ ! -e "$1.go" ]; do sleep 0.02; done`.
fn go(world: &World, hook: &str) -> PathBuf {
    world.dir().join(format!("hooks/{hook}.log.go"))
}

/// Waits in a script until [`go`] is written.
const WAIT: &str = "while [ ! -e \"$1.go\" ]; do sleep 0.02; done";

#[test]
fn each_end_means_what_the_contract_says() {
    let mut setup = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 1]")
        .set("outbox.concurrency", 16);
    let ends = [
        ("done", "exit 0", ["exit 0"].as_slice(), "done"),
        ("fails", "exit 1", &["exit 1", "exit 1"], "abandoned"),
        ("no-data", "exit 65", &["exit 65"], "abandoned"),
        ("no-perm", "exit 77", &["exit 77"], "abandoned"),
        ("no-conf", "exit 78", &["exit 78"], "abandoned"),
        ("absent", "exit 127", &["exit 127", "exit 127"], "abandoned"),
        (
            "signal",
            "kill -SEGV $$",
            &["signal 11", "signal 11"],
            "abandoned",
        ),
        // It asks to be run again, and is never given up for that.
        (
            "later",
            "[ $TILLD_ATTEMPT -ge 3 ] || exit 75",
            &["exit 75", "exit 75", "exit 0"],
            "done",
        ),
        (
            "recovers",
            "[ $TILLD_ATTEMPT -eq 2 ]",
            &["exit 1", "exit 0"],
            "done",
        ),
    ];
    for (name, script, _, _) in ends {
        setup = setup.hook(
            name,
            &["paid"],
            &format!("echo $TILLD_ATTEMPT >> \"$1\"\n{script}"),
        );
    }
    let world = setup.start();
    world.pay("A-1");
    world.settle();
    for (name, _, wanted, end) in ends {
        assert_eq!(results(&world, name), wanted, "{name}");
        assert_eq!(state(&world, name), end, "{name}");
        let attempts: Vec<String> = (1..=wanted.len())
            .map(|number| number.to_string())
            .collect();
        assert_eq!(world.hook_log(name), attempts, "{name}");
    }
    // One line per attempt, and an error for each that was given up.
    let log = world.serve_log();
    assert!(
        log.contains("hook no-data for order A-1: exit 65, abandoned"),
        "{log}"
    );
    let given_up = log
        .lines()
        .filter(|line| line.contains("ERROR") && line.contains("abandoned"));
    assert_eq!(given_up.count(), 6);
    // What tilld gets over by itself is a warning.
    let again: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("will be run again"))
        .collect();
    assert_eq!(again.len(), 6, "{again:?}");
    assert!(again.iter().all(|line| line.contains("WARN")), "{again:?}");
    // A person reads when, and where to look.
    assert!(
        again.iter().all(|line| line.contains("again at 20")),
        "{again:?}"
    );
    let id = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    let where_to_look = format!("abandoned: `tilld delivery show {id}` shows all attempts");
    assert!(log.contains(&where_to_look), "{log}");
}

#[test]
fn a_program_that_is_gone_fails_and_is_tried_again() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 1]")
        .not_served()
        .start();
    let program = world.dir().join("gone");
    fs::copy("/bin/true", &program).expect("copied");
    let block = format!("[[hook]]\nname = \"gone\"\non = [\"paid\"]\nrun = [{program:?}]\n");
    let file = world.dir().join("config.toml");
    let config = fs::read_to_string(&file).expect("readable");
    fs::write(&file, config + &block).expect("written");
    world.start_serve();
    fs::remove_file(&program).expect("removed");
    world.pay("A-1");
    world.settle();
    let results = results(&world, "gone");
    assert_eq!(results.len(), 2, "{results:?}");
    for result in results {
        let wanted = format!("not started: `{}`: No such file", program.display());
        assert!(result.starts_with(&wanted), "{result}");
    }
    assert_eq!(state(&world, "gone"), "abandoned");
}

#[test]
fn events_of_one_invoice_come_in_order_and_others_do_not_wait() {
    let order = format!(
        "echo \"$TILLD_ORDER_ID $TILLD_EVENT begins\" >> \"$1\"; [ $TILLD_ORDER_ID != slow ] || {WAIT}; echo \"$TILLD_ORDER_ID $TILLD_EVENT ends\" >> \"$1\""
    );
    let world = Setup::new()
        .quiet()
        .hook("all", &["*"], &order)
        .noting_hook("other", &["*"])
        .start();
    let slow = world.create("slow");
    wait_until(PATIENCE, "the first hook to hang", || {
        !world.hook_log("all").is_empty()
    });
    for (status, ms) in [("waiting", 1), ("paid", 2)] {
        let body = slow.saying(status, &slow.at(ms));
        assert_eq!(world.tell(&slow, &body).status, 200);
    }
    // The one that hangs holds up its own invoice, whichever hook, and no other.
    world.pay("quick");
    wait_until(PATIENCE, "the other order", || {
        world
            .hook_log("all")
            .contains(&"quick paid ends".to_owned())
    });
    let of_slow = |name: &str| -> Vec<String> {
        world
            .hook_log(name)
            .into_iter()
            .filter(|line| line.contains("slow"))
            .collect()
    };
    assert_eq!(of_slow("all"), ["slow opened begins"]);
    fs::write(go(&world, "all"), "").expect("written");
    world.settle();
    let wanted = ["opened", "status", "paid"]
        .map(|kind| [format!("slow {kind} begins"), format!("slow {kind} ends")]);
    assert_eq!(of_slow("all"), wanted.concat());
    let kinds: Vec<String> = of_slow("other")
        .iter()
        .filter_map(|line| line.split(' ').nth(1).map(str::to_owned))
        .collect();
    assert_eq!(kinds, ["opened", "status", "paid"]);
    // Two hooks of one invoice never run at once.
    let overlap = "SELECT count(*) FROM attempts a JOIN attempts b ON (a.event_id, a.hook) <> (b.event_id, b.hook) \
                   JOIN events e ON e.event_id = a.event_id JOIN events f ON f.event_id = b.event_id \
                   WHERE e.order_id = f.order_id AND a.started_ms < b.started_ms AND b.started_ms < a.ended_ms";
    assert_eq!(world.value(overlap), "0");
}

#[test]
fn no_more_hooks_run_at_once_than_allowed() {
    let script = format!("echo begins >> \"$1\"; {WAIT}; echo ends >> \"$1\"");
    let world = Setup::new()
        .quiet()
        .set("outbox.concurrency", 2)
        .set("outbox.slow_concurrency", 0)
        .hook("all", &["paid"], &script)
        .start();
    for order in ["A-1", "A-2", "A-3", "A-4", "A-5"] {
        world.pay(order);
    }
    wait_until(PATIENCE, "two to begin", || {
        world.hook_log("all").len() == 2
    });
    let running = "SELECT count(*) FROM deliveries WHERE state = 'running'";
    assert_eq!(world.value(running), "2");
    fs::write(go(&world, "all"), "").expect("written");
    world.settle();
    let (mut now, mut most) = (0, 0);
    for line in world.hook_log("all") {
        now += if line == "begins" { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2));
}

#[test]
fn a_hook_may_ask_tilld() {
    let script = format!(
        "{} --config \"${{1%/hooks/*}}/config.toml\" --state-dir \"${{1%/hooks/*}}/state\" --json invoice show \"$TILLD_ORDER_ID\" >> \"$1\"",
        under_test()
    );
    let world = Setup::new().quiet().hook("ask", &["paid"], &script).start();
    world.pay("A-1");
    world.settle();
    assert_eq!(results(&world, "ask"), ["exit 0"]);
    let told: Value = serde_json::from_str(&world.hook_log("ask").concat()).expect("JSON");
    assert_eq!(told.get("outcome"), Some(&json!("paid")));
}

#[test]
fn what_a_hook_leaves_behind_holds_nobody_up() {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .set("outbox.concurrency", 8)
        // Its output stays open in a child, which is ended after the short drain.
        .hook("pipe", &["paid"], "sleep 600 & echo ok; exit 0")
        .hook("hangs", &["paid"], "sleep 600; true")
        .within_s(1)
        .hook(
            "stubborn",
            &["paid"],
            "trap '' TERM; (trap '' TERM; sleep 600) & wait; sleep 600",
        )
        .within_s(1)
        .hook("unread", &["paid"], "exec 0<&-; exit 0")
        .hook(
            "loud",
            &["paid"],
            "head -c 3000000 /dev/zero | tr '\\0' x; echo end",
        )
        .start();
    world.pay("A-1");
    let begun = Instant::now();
    world.settle();
    for (hook, result, longest_s) in [
        ("pipe", "exit 0", 5),
        ("hangs", "timeout", 6),
        ("stubborn", "timeout", 6),
        ("unread", "exit 0", 5),
        ("loud", "exit 0", 10),
    ] {
        assert_eq!(results(&world, hook), [result], "{hook}");
        let took = world.value(&format!(
            "SELECT ended_ms - started_ms FROM attempts WHERE hook = '{hook}'"
        ));
        let took: i64 = took.parse().expect("a number");
        assert!(took < longest_s * 1_000, "{hook} took {took} ms");
    }
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    let kept = "SELECT length(a.stdout) FROM attempt a JOIN delivery d ON d.id = a.delivery WHERE d.hook = 'loud'";
    let kept: usize = world.value(kept).parse().expect("a number");
    assert!(
        (64 * 1024..66 * 1024).contains(&kept),
        "head and tail of it: {kept}"
    );
    let pid = world.serve_pid();
    wait_until(PATIENCE, "no zombie and no descendant to be left", || {
        children(pid).is_empty()
    });
}
