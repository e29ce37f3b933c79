//! `[attention]`: the program is run once when something comes to need a person, whatever it is, and again only when that
//! was over and came back. What is at stake: one that cries all the time is switched off, and one that is silent is none.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, wait_until};

/// A setup whose alarm notes a line for each run, its word and attempt, and keeps the document; then it does `then`.
fn alarmed(setup: Setup, dir: &tempfile::TempDir, then: &str) -> Setup {
    let file = dir.path().join("alarm.sh");
    let log = dir.path().join("alarm.log");
    let script = format!(
        "#!/bin/sh\ncat >\"$1.$TILLD_ALERT.json\"\ncmp -s \"$TILLD_PAYLOAD_FILE\" \"$1.$TILLD_ALERT.json\" || exit 9\n\
         echo \"$TILLD_EVENT $TILLD_ALERT $TILLD_ATTEMPT\" >>\"$1\"\n{then}\n"
    );
    fs::write(&file, script).expect("written");
    let run = [
        "/bin/sh",
        &file.display().to_string(),
        &log.display().to_string(),
    ];
    setup.set("attention.run", format!("{run:?}"))
}

/// The lines of its log with this word.
fn runs(dir: &tempfile::TempDir, word: &str) -> Vec<String> {
    let log = fs::read_to_string(dir.path().join("alarm.log")).unwrap_or_default();
    let lines = log.lines().map(str::to_owned);
    lines
        .filter(|line| line.split(' ').nth(1) == Some(word))
        .collect()
}

fn document(dir: &tempfile::TempDir, word: &str) -> Value {
    let name = format!("alarm.log.{word}.json");
    let text = fs::read_to_string(dir.path().join(name)).expect("a document");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
fn wait_for_runs(dir: &tempfile::TempDir, word: &str, count: usize) {
    wait_until(PATIENCE, &format!("{count} runs for {word}"), || {
        runs(dir, word).len() >= count
    });
    assert_eq!(runs(dir, word).len(), count, "{:?}", runs(dir, word));
}

/// What was told so far is stored.
#[track_caller]
fn wait_for_told(world: &World, word: &str, is_told: bool) {
    wait_until(PATIENCE, "it to be remembered", || {
        let fact = "SELECT coalesce(max(value), '') FROM meta WHERE key = 'attention_told'";
        world.value(fact).contains(&format!("\"{word}\"")) == is_told
    });
}

#[test]
fn each_episode_is_told_once_over_restarts_and_again_when_it_comes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let setup = Setup::new().quiet().set("outbox.schedule_s", "[0]");
    let setup = setup.hook("fails", &["paid"], "exit 1");
    let mut world = alarmed(setup, &dir, "exit 0").start();
    let less = world.create("A-1");
    let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    world.pay("A-2");
    world.settle();
    wait_for_runs(&dir, "mismatch", 1);
    wait_for_runs(&dir, "abandoned", 1);
    let told = document(&dir, "mismatch");
    let found = |pointer: &str| told.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(found("/schema"), 1);
    assert_eq!(found("/kind"), "attention");
    assert_eq!(found("/needs/0/orders"), json!(["A-1"]));
    assert!(
        found("/needs/0/advice/0")
            .as_str()
            .is_some_and(|advice| advice.contains("accept-amount")),
        "{told}"
    );
    let given_up = document(&dir, "abandoned");
    let found = |pointer: &str| given_up.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(found("/needs/0/orders"), json!(["A-2"]));
    assert_eq!(found("/needs/0/told"), "1 delivery, order A-2");
    assert!(
        found("/needs/0/advice/0")
            .as_str()
            .is_some_and(|advice| advice.contains("delivery retry EVENT")),
        "{given_up}"
    );
    let requisites = world.value("SELECT coalesce(max(requisites), 'none') FROM invoice");
    assert!(
        !told.to_string().contains(&requisites) && !told.to_string().contains(&less.token),
        "{told}"
    );

    wait_for_told(&world, "mismatch", true);
    wait_for_told(&world, "abandoned", true);
    world.kill9_serve();
    world.start_serve();
    // A reversal has no end: it is told by itself, and marks that the daemon has looked again. As the ledger has one: the
    // service's own is believed half a minute later.
    world.neighbour().tamper(
        "INSERT INTO event (seq, event_id, invoice, kind, rewound, status, previous_status, outcome, previous_outcome, at_ms, source) \
         SELECT (SELECT max(seq) FROM event) + 1, 'reversal', id, 'reversed', 0, 'refunded', 'paid', 'reversed', 'paid', \
           updated_ms, 'poll' FROM invoice WHERE order_id = 'A-2'",
    );
    wait_for_runs(&dir, "reversed", 1);
    assert_eq!(
        document(&dir, "reversed").pointer("/needs/0/orders"),
        Some(&json!(["A-2"]))
    );
    assert_eq!(
        (runs(&dir, "mismatch").len(), runs(&dir, "abandoned").len()),
        (1, 1)
    );

    // A restart repeats none of them.
    let newest = world.value("SELECT max(seq) FROM event");
    wait_until(PATIENCE, "the reversal to be remembered", || {
        let fact = "SELECT value FROM meta WHERE key = 'attention_told'";
        world.value(fact).contains(&format!("\"seq\":{newest}"))
    });
    world.kill9_serve();
    world.start_serve();

    // Over, and back.
    world.tilld(&["ack", "--all", "--hook=fails"]).ends_with(0);
    wait_for_told(&world, "abandoned", false);
    world.pay("A-3");
    wait_for_runs(&dir, "abandoned", 2);
    assert_eq!(
        (runs(&dir, "mismatch").len(), runs(&dir, "reversed").len()),
        (1, 1)
    );
}

#[test]
fn a_revoked_login_and_lost_notifications_are_told_and_a_program_that_fails_is_run_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let setup = Setup::new().set("attention.polled_in_a_row", 2);
    let fails_once = "[ \"$TILLD_ATTEMPT\" = 1 ] && exit 3; exit 0";
    let world = alarmed(setup, &dir, fails_once).start();
    world.faults(&json!({ "lose": true }));
    for order in ["A-1", "A-2"] {
        let lost = world.create(order);
        world.dictate(&lost, "paid");
    }
    wait_for_runs(&dir, "polled", 2);
    assert_eq!(
        runs(&dir, "polled"),
        ["attention polled 1", "attention polled 2"]
    );
    wait_for_told(&world, "polled", true);
    // One that arrives at last ends it.
    let told = world.create("A-3");
    world.tell_as_it_is(&told);
    wait_for_told(&world, "polled", false);
    world.control("POST", "/tokens/revoke", &Value::Null);
    wait_for_runs(&dir, "login", 2);
    assert_eq!(runs(&dir, "polled").len(), 2);
}

#[test]
fn silence_is_told_when_it_lasts_too_long() {
    let dir = tempfile::tempdir().expect("a directory");
    let setup = Setup::new().quiet().set("attention.silent_after_s", 3);
    let world = alarmed(setup, &dir, "exit 0").start();
    world.pay("A-1");
    assert_eq!(runs(&dir, "silent"), Vec::<String>::new());
    wait_for_runs(&dir, "silent", 1);
    let told = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(
        told.contains("silent  no notification was heard for "),
        "{told}"
    );
    world.pay("A-2");
    wait_for_told(&world, "silent", false);
}

#[test]
fn a_program_that_cannot_run_is_found_before_the_start() {
    let world = Setup::new()
        .quiet()
        .not_served()
        .set("attention.run", "[\"/no/such/alert\"]")
        .start();
    let refused = world.tilld(&["serve", "--check"]).ends_with(10);
    assert!(
        refused.stderr.contains("`/no/such/alert`: No such file"),
        "{refused:?}"
    );
    let left: Vec<PathBuf> = fs::read_dir(world.dir())
        .expect("a directory")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    assert!(!left.iter().any(|path| path.ends_with("alarm")), "{left:?}");
}
