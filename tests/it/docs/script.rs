//! The script contract: variables, the document, the selectors, and the example script under repetition.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tilld::hook::Selector;
use tilld::hook::abandonment::STDERR_TAIL;
use tilld::hook::payload::VARIABLES;

use super::{block, column, docs, table};
use crate::harness::{Setup, load_sql, skip, sql};

#[test]
fn the_variables_are_those_a_script_gets() {
    assert_eq!(column(&table(&docs(), "variable"), 0), VARIABLES);
}

#[test]
fn every_selector_it_names_is_one() {
    for word in column(&table(&docs(), "`on`"), 0) {
        let read = Selector::parse(&word).map(|selector| selector.to_string());
        assert_eq!(read, Ok(word));
    }
}

/// The pointers of every field, however deep.
fn fields(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Value::Object(names) = value {
        for (name, value) in names {
            let at = format!("{at}/{name}");
            fields(value, &at, found);
            found.insert(at);
        }
    }
}

#[test]
fn the_document_has_the_fields_a_script_is_given() {
    let world = Setup::new()
        .hook("fulfil", &["paid"], "cat > \"$1\"")
        .start();
    let issued = world.create("1042");
    let paid = world.dictate(&issued, "paid");
    let answer = world.tell(&issued, &paid.object.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    world.settle();
    let given: Value = serde_json::from_str(&world.hook_log("fulfil").concat()).expect("JSON");
    let shown: Value = serde_json::from_str(&block(&docs(), "document")).expect("JSON");
    let (mut known, mut told) = (BTreeSet::new(), BTreeSet::new());
    fields(&given, "", &mut known);
    fields(&shown, "", &mut told);
    assert_eq!(told, known);
}

#[test]
fn what_was_given_up_is_told_with_the_fields_it_shows() {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook(
            "fulfil",
            &["paid"],
            "head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1",
        )
        .on_abandoned("cat > \"$1\"")
        .start();
    world.pay("1042");
    world.settle();
    let given: Value =
        serde_json::from_str(&world.hook_log("on_abandoned").concat()).expect("JSON");
    let docs = docs();
    let fragment = block(&docs, "abandoned");
    let shown: Value = serde_json::from_str(&format!("{{{fragment}}}")).expect("JSON");
    let (mut known, mut told) = (BTreeSet::new(), BTreeSet::new());
    let below = |value: &Value| value.get("abandoned").cloned().unwrap_or_default();
    fields(&below(&given), "", &mut known);
    fields(&below(&shown), "", &mut told);
    assert_eq!(told, known);
    let stderr = given.pointer("/abandoned/stderr").and_then(Value::as_str);
    assert_eq!(stderr.map(str::len), Some(STDERR_TAIL));
    assert!(docs.contains(&format!("at most {STDERR_TAIL} bytes as text")));
}

/// One run of an example script in a shop of its own, with the programs of this path.
fn run_script(name: &str, dir: &Path, path: &Path) -> Output {
    let script = dir.join("fulfil");
    fs::write(&script, block(&docs(), name)).expect("written");
    let mut command = Command::new("/bin/sh");
    command.arg(&script).stdin(Stdio::null()).env_clear();
    command.env("PATH", path).env("HOME", dir.join("home"));
    command.env("TILLD_OUTCOME", "paid");
    command.env("TILLD_EVENT_ID", "e-1");
    command.env("TILLD_ORDER_ID", "1042");
    command.output().expect("sh runs")
}

/// Whatever is missing or breaks, a script does not end with 0, and lists nothing; afterwards it lists the order, once.
#[test]
fn the_example_scripts_crash_closed() {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        skip!("sqlite3 is not installed");
    }
    for (name, book) in [("fulfil", "shop.db"), ("first-script", "to-ship.db")] {
        let dir = tempfile::tempdir().expect("a directory");
        let (home, bin) = (dir.path().join("home"), dir.path().join("bin"));
        for made in [&home, &bin] {
            fs::create_dir(made).expect("a directory");
        }
        let with = |program: &str| {
            let places =
                ["/usr/bin", "/bin", "/usr/local/bin"].map(|place| Path::new(place).join(program));
            let found = places.into_iter().find(|place| place.exists());
            symlink(found.expect("it is installed"), bin.join(program)).expect("a link");
        };
        let listed = || -> Vec<Vec<String>> {
            let book = home.join(book);
            let query = "SELECT count(*) FROM sqlite_master WHERE name = 'to_ship'";
            if !book.is_file() || sql(&book, query) == [["0"]] {
                return Vec::new();
            }
            sql(&book, "SELECT order_id FROM to_ship")
        };
        let fails = |why: &str| {
            let ran = run_script(name, dir.path(), &bin);
            assert!(!ran.status.success(), "{name}, {why}: {ran:?}");
            assert_eq!(listed(), Vec::<Vec<String>>::new(), "{name}, {why}");
        };
        fails("no program is there");
        with("sqlite3");
        fails("`sed` is not there");
        with("sed");
        fs::rename(&home, dir.path().join("away")).expect("moved");
        fails("the database is gone");
        fs::create_dir_all(home.join(book)).expect("a directory");
        fails("the database is something else");
        fs::remove_dir_all(&home).expect("removed");
        fs::rename(dir.path().join("away"), &home).expect("moved back");
        let columns = if name == "fulfil" {
            "order_id, event_id"
        } else {
            "order_id"
        };
        load_sql(
            &home.join(book),
            &format!(
                "CREATE TABLE to_ship ({columns}); CREATE TRIGGER broken BEFORE INSERT ON to_ship \
                 BEGIN SELECT RAISE(ABORT, 'in the middle'); END"
            ),
        );
        fails("the work breaks off");
        load_sql(&home.join(book), "DROP TABLE to_ship");
        for _ in 0..2 {
            let ran = run_script(name, dir.path(), &bin);
            assert!(ran.status.success(), "{name}: {ran:?}");
            assert_eq!(listed(), [["1042"]], "{name}");
        }
    }
}

#[test]
fn the_example_scripts_list_an_order_once_however_often_it_runs() {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        skip!("sqlite3 is not installed");
    }
    for (name, book, columns) in [
        ("fulfil", "shop.db", "event_id, order_id"),
        ("first-script", "to-ship.db", "order_id"),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let script = dir.path().join("fulfil");
        fs::write(&script, block(&docs(), name)).expect("written");
        let mut said = String::new();
        for (event, order) in [
            ("e-1", "it's"),
            ("e-1", "it's"),
            ("e-2", "1043"),
            ("e-3", "1043"),
        ] {
            // By way of the shell: a file written just now may still be open in a child about to start another program.
            let mut command = Command::new("/bin/sh");
            command.arg(&script).stdin(Stdio::null());
            command.env("HOME", dir.path());
            command.env("TILLD_OUTCOME", "paid");
            command.env("TILLD_EVENT_ID", event);
            command.env("TILLD_ORDER_ID", order);
            let output = command.output().expect("sh runs");
            assert!(output.status.success(), "{output:?}");
            said.push_str(&String::from_utf8_lossy(&output.stdout));
        }
        assert_eq!(said, "handed over it's\nhanded over 1043\n", "{name}");
        let listed = sql(
            &dir.path().join(book),
            &format!("SELECT {columns} FROM to_ship ORDER BY order_id DESC"),
        );
        let wanted = [vec!["e-1", "it's"], vec!["e-2", "1043"]];
        let shown = columns.split(", ").count();
        let wanted = wanted.map(|row| row.into_iter().rev().take(shown).rev().collect::<Vec<_>>());
        assert_eq!(listed, wanted, "{name}");
    }
}
