//! Readers with an old SQLite, as PHP and Python of an older system bring it: the views answer them as they answer the newest.
//! What is at stake: a shop whose only reader calls the ledger malformed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::{Setup, World, load_sql, skip};

/// What `tests/old-sqlite` holds.
const VERSION: &str = "3.33.0";

/// Print the rows of a query as JSON, every value as text and nothing for null.
const PHP: &str = "$l = new PDO('sqlite:' . $argv[1], null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => \
  PDO::SQLITE_OPEN_READONLY, PDO::ATTR_TIMEOUT => 10, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]); \
  $rows = $l->query($argv[2])->fetchAll(PDO::FETCH_NUM); \
  echo json_encode(array_map(fn ($row) => array_map('strval', $row), $rows), JSON_THROW_ON_ERROR);";
const PYTHON: &str = "import json, sqlite3, sys; \
  l = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True, timeout=10); \
  print(json.dumps([['' if v is None else str(v) for v in row] for row in l.execute(sys.argv[2])]))";
const READERS: [&[&str]; 2] = [
    &["php", "-r", PHP, "--"],
    &["/usr/bin/python3", "-c", PYTHON],
];

/// Where `.ci/run` puts the library.
fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/old-sqlite/lib")
}

/// Asks with the old library in the place of the machine's.
fn ask(reader: &[&str], file: &Path, query: &str) -> Output {
    let (program, args) = reader.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(args).arg(file).arg(query);
    let output = command.env("LD_LIBRARY_PATH", library()).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Rows, every value as text.
#[track_caller]
fn rows(reader: &[&str], file: &Path, query: &str) -> Vec<Vec<String>> {
    let output = ask(reader, file, query);
    assert!(output.status.success(), "{query}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// What stands in the way of asking at all.
fn missing() -> Option<String> {
    if !library().join("libsqlite3.so.0").exists() {
        return Some(format!("{} holds no SQLite {VERSION}", library().display()));
    }
    let has_none = |reader: &&[&str]| {
        let found = ask(reader, Path::new(":memory:"), "SELECT sqlite_version()");
        !String::from_utf8_lossy(&found.stdout).contains(VERSION)
    };
    let reader = READERS.into_iter().find(has_none)?;
    let name = reader.first().expect("a program");
    Some(format!("{name} does not run with SQLite {VERSION}"))
}

/// An order that was paid and delivered, and one that waits for its payment.
fn filled() -> World {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    world.pay("A-1");
    world.create("A-2");
    world.settle();
    world
}

#[test]
fn every_column_of_every_view_is_read_by_an_old_sqlite_while_the_daemon_runs() {
    if let Some(why) = missing() {
        skip!("{why}");
    }
    let world = filled();
    let views = "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name";
    let views = world.sql(views).concat();
    assert_eq!(views.len(), 6, "{views:?}");
    for view in views {
        let columns = format!("SELECT name FROM pragma_table_info('{view}')");
        let columns = world.sql(&columns).concat();
        let order: Vec<String> = (1..=columns.len()).map(|at| at.to_string()).collect();
        let (columns, order) = (columns.join(", "), order.join(", "));
        let query = format!("SELECT {columns} FROM {view} ORDER BY {order}");
        let newest = world.sql(&query);
        assert!(!newest.is_empty(), "{view} is empty");
        for reader in READERS {
            assert_eq!(rows(reader, &world.ledger(), &query), newest, "{view}");
        }
    }
}

/// What the test above is for: this is how a table that is too new is met.
#[test]
fn an_old_sqlite_calls_a_file_with_a_strict_table_malformed() {
    if let Some(why) = missing() {
        skip!("{why}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("strict.db");
    let strict = "CREATE TABLE note (text TEXT) STRICT; CREATE VIEW notes AS SELECT text FROM note";
    load_sql(&file, strict);
    for reader in READERS {
        let output = ask(reader, &file, "SELECT text FROM notes");
        let told = [output.stdout.as_slice(), &output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert!(!output.status.success(), "{told}");
        assert!(told.contains("malformed database schema"), "{told}");
    }
}
