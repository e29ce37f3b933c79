//! `tilld db check` and `tilld db schema`. What is at stake: a damage that nobody notices until the last good backup is gone.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World};

/// A paid order with its script run.
fn paid() -> World {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let paid = world.dictate(&world.create("A-1"), "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    world.settle();
    world
}

#[test]
fn a_sound_ledger_is_said_to_be_sound_while_it_is_served_and_after() {
    let mut world = paid();
    let look = |world: &World| {
        let told = world.tilld(&["db", "check", "--json"]).ends_with(0).json();
        assert_eq!(told.get("findings"), Some(&json!([])), "{told}");
        assert_eq!(told.get("notes"), Some(&json!([])), "{told}");
        assert_eq!(told.get("events"), Some(&json!(2)), "{told}");
    };
    look(&world);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    look(&world);
    std::fs::remove_file(world.state_dir().join("ledger.mark")).expect("removed");
    let told = world.tilld(&["db", "check"]).ends_with(0).stdout;
    assert!(told.contains("`ledger.mark` is not there"), "{told}");
    assert!(told.contains("every page and reference was read"), "{told}");
}

/// Each of these would lose an order its delivery, or a reader its answer, without a word.
#[test]
fn what_does_not_belong_together_is_told_with_11() {
    let mut world = paid();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    for (harm, told, heal) in [
        (
            "UPDATE delivery SET invoice = 77",
            "deliveries stand at another invoice",
            "UPDATE delivery SET invoice = 1",
        ),
        (
            "UPDATE event SET seq = 9 WHERE seq = 2; UPDATE delivery SET event = 9",
            "events are missing: their numbers have gaps",
            "UPDATE event SET seq = 2 WHERE seq = 9; UPDATE delivery SET event = 2",
        ),
        (
            "UPDATE delivery SET state = 'waiting', next_ms = NULL",
            "wait for no time",
            "UPDATE delivery SET state = 'done'",
        ),
        (
            "UPDATE delivery SET state = 'odd'",
            "the state `odd` in `delivery` is no word of tilld",
            "UPDATE delivery SET state = 'done'",
        ),
        (
            "PRAGMA ignore_check_constraints = ON; UPDATE event SET kind = x'00' WHERE seq = 1",
            "values in `kind` of `event` that are not of type text: 1",
            "UPDATE event SET kind = 'opened' WHERE seq = 1; PRAGMA ignore_check_constraints = OFF",
        ),
        (
            "ALTER TABLE refusal ADD COLUMN mine TEXT",
            "table refusal is not as this tilld makes it",
            "ALTER TABLE refusal DROP COLUMN mine",
        ),
        (
            "CREATE TEMP TABLE kept AS SELECT * FROM secret; DELETE FROM secret",
            "no sealed notify token",
            "",
        ),
    ] {
        let neighbour = world.neighbour();
        neighbour.tamper("PRAGMA foreign_keys = OFF");
        neighbour.tamper(harm);
        let ran = world.tilld(&["db", "check"]).ends_with(11);
        assert!(ran.stdout.contains(told), "{told}: {ran:?}");
        assert!(ran.stderr.contains("is damaged: "), "{ran:?}");
        assert!(ran.stderr.contains("hint: stop `tilld serve`"), "{ran:?}");
        neighbour.tamper(heal);
        if heal.is_empty() {
            neighbour.tamper("INSERT INTO secret SELECT * FROM kept");
        }
    }
    world.tilld(&["db", "check"]).ends_with(0);
}

#[test]
fn a_page_that_was_overwritten_is_found_and_nothing_is_written() {
    let mut world = paid();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    // What is still in the log would be read from there.
    world.neighbour().tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    let root = world.value("SELECT rootpage FROM sqlite_schema WHERE name = 'event_invoice'");
    let root: u64 = root.parse().expect("a number");
    let file = OpenOptions::new().write(true).open(world.ledger());
    let file = file.expect("the ledger");
    // The page of an index: type and cells.
    let page = (root - 1) * 4096;
    let mut kept = [0; 64];
    let whole = std::fs::File::open(world.ledger()).expect("the ledger");
    whole.read_exact_at(&mut kept, page).expect("read");
    file.write_all_at(&[0xff; 64], page).expect("written");
    let harmed = std::fs::read(world.ledger()).expect("read");
    let ran = world.tilld(&["db", "check", "--json"]).ends_with(11);
    assert!(ran.stdout.contains("\"sound\":false"), "{ran:?}");
    assert_eq!(std::fs::read(world.ledger()).expect("read"), harmed);
    // Else the look after the test would find it too.
    file.write_all_at(&kept, page).expect("written");
    world.tilld(&["db", "check"]).ends_with(0);
}

#[test]
fn the_contract_is_told_without_a_ledger_and_is_what_the_ledger_has() {
    let world = Setup::new().quiet().logged_out().not_served().start();
    let told = world.tilld(&["db", "schema", "--json"]).ends_with(0).json();
    assert!(!world.ledger().exists(), "nothing is made");
    let views = told.get("views").and_then(Value::as_array).expect("a list");
    let text = world.tilld(&["db", "schema"]).ends_with(0).stdout;
    let served = paid();
    let known = served.sql("SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY name");
    let shown: Vec<Vec<String>> = views
        .iter()
        .map(|view| {
            let part = |name: &str| view.get(name).and_then(Value::as_str).unwrap_or_default();
            vec![part("name").to_owned(), part("sql").to_owned()]
        })
        .collect();
    assert_eq!(shown, known);
    for row in &known {
        assert!(row.iter().all(|part| text.contains(part)), "{row:?}");
    }
    let columns = views.iter().find_map(|view| {
        (view.get("name") == Some(&json!("requisites"))).then(|| view.get("columns"))
    });
    let first = columns.flatten().and_then(|columns| columns.get(0));
    assert_eq!(first, Some(&json!("order_id")));
    let version = served.value("PRAGMA user_version");
    assert_eq!(told.get("schema").map(Value::to_string), Some(version));
}

/// A list of findings that is cut says so: the end of it is not the end of the damage.
#[test]
fn more_damage_than_is_listed_is_said() {
    let mut world = paid();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let neighbour = world.neighbour();
    neighbour.tamper(
        "CREATE INDEX shop_notes_note ON shop_notes (note); \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) \
         INSERT INTO shop_notes (note) SELECT i FROM n; PRAGMA wal_checkpoint(TRUNCATE)",
    );
    drop(neighbour);
    let root = world.value("SELECT rootpage FROM sqlite_schema WHERE name = 'shop_notes_note'");
    let root: u64 = root.parse().expect("a number");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(world.ledger());
    let (file, page) = (file.expect("the ledger"), (root - 1) * 4096);
    let mut kept = [0; 8];
    file.read_exact_at(&mut kept, page).expect("read");
    // The page of an index without entries: each row that it lacks is a finding.
    let empty = [0x0a, 0, 0, 0, 0, 0x10, 0, 0];
    file.write_all_at(&empty, page).expect("written");
    let told = world.tilld(&["db", "check", "--json"]).ends_with(11).json();
    let list = told.get("findings").and_then(Value::as_array);
    let findings: Vec<&str> = list
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let lacking = findings
        .iter()
        .filter(|found| found.contains("shop_notes_note"));
    assert_eq!(lacking.count(), 20, "{told}");
    let cut = "more is damaged than these 20 findings about pages say";
    assert!(findings.contains(&cut), "{told}");
    let people = world.tilld(&["db", "check"]).ends_with(11).stdout;
    assert!(people.contains(cut), "{people}");
    // Else the look after the test would find it too.
    file.write_all_at(&kept, page).expect("written");
    world.tilld(&["db", "check"]).ends_with(0);
}
