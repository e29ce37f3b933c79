//! `tilld db prune`, and the same by the daemon. What is at stake: account numbers of years ago in a file that others may read,
//! and a shop that loses what it still needs.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Setup, World, wait_until};

/// In the service's document and nowhere else.
const MARKED: &str = "unlikely-account-4711";

/// 2025: before that no clock was ever set, and nothing is old by its word.
const FIRST_MS: i64 = 1_735_689_600_000;

/// What must be told as before.
const STANDING: &str = "SELECT i.order_id, i.status, i.outcome, i.amount_agreed, e.seq, e.kind, e.status \
  FROM invoices i JOIN events e USING (order_id) ORDER BY e.seq";

/// Paid orders whose document has the mark, an open one, and one whose script is not through with it.
fn world(setup: Setup) -> World {
    let script = "cat; test \"$TILLD_ORDER_ID\" != owed || exit 75";
    let world = setup.hook("fulfil", &["paid"], script).start();
    for order in ["old", "young", "owed"] {
        pay(&world, &world.create(order));
    }
    world.create("open");
    wait_until(PATIENCE, "the scripts to have run", || {
        world.value("SELECT count(DISTINCT event_id) FROM attempts") == "3"
            && world.value("SELECT count(*) FROM deliveries WHERE state = 'done'") == "2"
    });
    world
}

fn pay(world: &World, issued: &Issued) {
    let much = format!("{MARKED} {}", "x".repeat(9_000));
    let paid = world.dictate(issued, "paid");
    let body = paid.with(&json!({ "requisites": { "account": MARKED, "much": much } }));
    assert_eq!(world.tell(&paid, &body.to_string()).status, 200);
}

/// What this very test writes anew must leave nothing behind either.
const OVERWRITE: &str = "PRAGMA secure_delete = ON";

/// Makes all but the young one as old as this, with the runs so far.
fn age(world: &World, days: u32) {
    let others = "order_id <> 'young'";
    let older = format!(
        "{OVERWRITE}; UPDATE invoice SET outcome_ms = outcome_ms - {days} * 86400000, created_ms = created_ms - {days} * 86400000, \
           newest_ns = newest_ns - {days} * 86400000000000 WHERE {others}; \
         UPDATE attempt SET ended_ms = ended_ms - {days} * 86400000 WHERE delivery IN \
           (SELECT d.id FROM delivery d JOIN invoice i ON i.id = d.invoice WHERE {others})"
    );
    world.neighbour().tamper(&older);
}

/// Per paid order: whether requisites, document, documents of events and output are there.
fn kept(world: &World) -> Vec<String> {
    let ask = "SELECT order_id || ' ' || (requisites IS NOT NULL) || (raw IS NOT NULL) \
        || (SELECT count(*) > 0 FROM event e WHERE e.invoice = i.id AND e.raw IS NOT NULL) \
        || (SELECT count(*) > 0 FROM delivery d JOIN attempt a ON a.delivery = d.id \
            WHERE d.invoice = i.id AND length(a.stdout) > 0) \
        FROM invoice i WHERE order_id <> 'open' ORDER BY id";
    world.sql(ask).concat()
}

fn count(told: &Value) -> (Option<u64>, Option<u64>) {
    let number = |name: &str| told.get(name).and_then(Value::as_u64);
    (number("requisites"), number("raw"))
}

/// Whether the mark of an order of this state is in the files.
fn marks(world: &World) -> usize {
    let files = ["ledger.db", "ledger.db-wal"].map(|name| fs::read(world.state_dir().join(name)));
    let needle = MARKED.as_bytes();
    files
        .into_iter()
        .flatten()
        .map(|bytes| {
            bytes
                .windows(needle.len())
                .filter(|found| *found == needle)
                .count()
        })
        .sum()
}

#[test]
fn what_was_over_long_ago_is_emptied_and_all_else_stays() {
    let mut world = world(Setup::new().quiet());
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let before = world.sql(STANDING);
    age(&world, 100);
    let prune = |more: &[&str]| {
        let args = [&["db", "prune", "--json"], more].concat();
        count(&world.tilld(&args).ends_with(0).json())
    };
    let all = ["old 1111", "young 1111", "owed 1111"];
    assert_eq!(kept(&world), all);
    // By the settings: documents after 90 days, requisites after 180.
    assert_eq!(prune(&["--dry-run"]), (Some(0), Some(1)));
    assert_eq!(
        prune(&["--dry-run", "--requisites-after", "99"]),
        (Some(1), Some(1))
    );
    assert_eq!(
        prune(&["--requisites-after", "0", "--raw-after", "0"]),
        (Some(0), Some(0))
    );
    assert_eq!(kept(&world), all, "nothing is written");
    assert_eq!(prune(&[]), (Some(0), Some(1)));
    assert_eq!(kept(&world), ["old 1000", "young 1111", "owed 1111"]);
    assert_eq!(prune(&["--requisites-after", "99"]), (Some(1), Some(0)));
    assert_eq!(kept(&world), ["old 0000", "young 1111", "owed 1111"]);
    assert_eq!(prune(&["--requisites-after", "99"]), (Some(0), Some(0)));
    let after = world.sql(STANDING);
    assert_eq!(after, before);
    world.tilld(&["db", "check"]).ends_with(0);
    world.tilld(&["explain", "old"]).ends_with(0);
    world.tilld(&["invoice", "show", "old"]).ends_with(0);

    // All of them: then nothing of it is left in the file, nor in the log.
    assert!(marks(&world) > 0);
    let heal = format!(
        "{OVERWRITE}; UPDATE delivery SET state = 'done', next_ms = NULL WHERE state <> 'done'; \
        UPDATE invoice SET outcome_ms = {FIRST_MS}, created_ms = {FIRST_MS}, newest_ns = 0 WHERE outcome <> 'open'; \
        UPDATE attempt SET ended_ms = {FIRST_MS}"
    );
    world.neighbour().tamper(&heal);
    let people = world.tilld(&["db", "prune"]).ends_with(0).stdout;
    assert!(
        people.contains("of 2 invoices emptied, after 180 days"),
        "{people}"
    );
    assert_eq!(marks(&world), 0);
}

#[test]
fn a_daemon_empties_by_itself_what_a_replay_does_not_need() {
    let mut world = world(Setup::new().quiet().set("retention.requisites_days", 30));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    age(&world, 31);
    world.start_serve();
    // Nor is it what fills a log that cannot be moved.
    let (reader, writer) = (world.neighbour(), world.neighbour());
    reader.keep_reading();
    writer.lengthen_log(4_500);
    // This machine's clock alone decides nothing: the service's, which its answers bear, must agree.
    world.tilld(&["invoice", "poll", "young"]).ends_with(0);
    wait_until(PATIENCE, "it to wait for the log", || {
        world
            .serve_log()
            .contains("emptied once the ledger's log is short")
    });
    assert_eq!(kept(&world), ["old 1111", "young 1111", "owed 1111"]);
    reader.let_go();
    let told = "old invoices were emptied: requisites of 1, raw documents of 1";
    wait_until(PATIENCE, "the walk", || world.serve_log().contains(told));
    assert_eq!(kept(&world), ["old 0000", "young 1111", "owed 1111"]);
    // What it was and what became of it is told all the same.
    world
        .tilld(&["delivery", "replay", "--order", "old"])
        .ends_with(0);
    wait_until(PATIENCE, "the replay", || {
        world.value("SELECT count(*) FROM attempts a JOIN events e USING (event_id) WHERE e.order_id = 'old' AND a.result = 'exit 0'") == "2"
    });
    // By hand, beside the daemon.
    let older = format!(
        "UPDATE invoice SET outcome_ms = {FIRST_MS}, created_ms = {FIRST_MS}, newest_ns = 0 WHERE order_id = 'young'; \
         UPDATE attempt SET ended_ms = {FIRST_MS} WHERE number = 1"
    );
    world.neighbour().tamper(&older);
    world.tilld(&["db", "prune"]).ends_with(0);
    // What the replay wrote is not old yet, and goes when it is.
    assert_eq!(kept(&world), ["old 0001", "young 0000", "owed 1111"]);
    age(&world, 31);
    world.tilld(&["db", "prune"]).ends_with(0);
    assert_eq!(kept(&world), ["old 0000", "young 0000", "owed 1111"]);
    // What is said of it later is heard as ever.
    let old = world.dictate(&world.issued("old").expect("it is there"), "paid");
    assert_eq!(world.tell_as_it_is(&old).status, 200);
    let told = world.tilld(&["explain", "old"]).ends_with(0).stdout;
    assert_eq!(told.matches("notification  paid").count(), 2, "{told}");
}

#[test]
fn only_the_owner_empties_and_nothing_is_made_for_it() {
    let world = Setup::new().quiet().logged_out().not_served().start();
    world.tilld(&["db", "prune"]).ends_with(3);
    assert!(!world.ledger().exists());
    world
        .tilld(&["db", "prune", "--raw-after", "x"])
        .ends_with(2);
}
