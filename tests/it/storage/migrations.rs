//! Ledgers of every schema there was, as they were written then, opened by this tilld; and one of a schema that is to come.
//! What is at stake: the orders of a shop that installs the next version.

use std::fs;
use std::path::Path;

use crate::harness::{PATIENCE, Setup, World, load_sql};

/// Where the ledgers lie as SQL: `ledger-N.sql` is one of schema N.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// Puts the ledger of the fixture in the place of what is there.
fn replace(world: &World, text: &str) {
    for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.mark"] {
        drop(fs::remove_file(world.state_dir().join(file)));
    }
    drop(fs::remove_file(world.dir().join("hooks/fulfil.log")));
    load_sql(&world.ledger(), text);
}

#[test]
fn every_schema_there_was_is_brought_up_to_date_with_all_that_is_in_it() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let current: u32 = world
        .value("PRAGMA user_version")
        .parse()
        .expect("a number");
    for schema in 1..=current {
        let text = fs::read_to_string(Path::new(FIXTURES).join(format!("ledger-{schema}.sql")));
        let text = text.unwrap_or_else(|error| panic!("schema {schema} has no fixture: {error}"));
        replace(&world, &text);
        assert_eq!(world.value("PRAGMA user_version"), schema.to_string());
        world.start_serve();
        assert_eq!(world.value("PRAGMA user_version"), current.to_string());
        let orders = "SELECT order_id || ' ' || status || ' ' || outcome || ' ' || amount_agreed FROM invoices \
                      ORDER BY order_id";
        assert_eq!(
            world.sql(orders).concat(),
            [
                "1041 paid paid 599.80",
                "1042 new open 10.00",
                "1043 canceled failed 7.50"
            ],
            "schema {schema}"
        );
        let events = "SELECT order_id || ' ' || kind FROM events ORDER BY seq";
        assert_eq!(
            world.sql(events).concat(),
            [
                "1041 opened",
                "1041 paid",
                "1042 opened",
                "1043 opened",
                "1043 failed"
            ],
            "schema {schema}"
        );
        // What was owed is done, once.
        world.settle();
        assert_eq!(world.hook_log("fulfil").len(), 1, "schema {schema}");
        world.tilld(&["db", "check"]).ends_with(0);
        assert_eq!(world.stop_serve(PATIENCE), 0);
    }
}

#[test]
fn a_schema_that_is_to_come_is_refused_untouched() {
    let world = Setup::new().quiet().not_served().start();
    world.create("A-1");
    let neighbour = world.neighbour();
    let now = world.value("PRAGMA user_version");
    neighbour.tamper("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    let before = fs::read(world.ledger()).expect("read");
    for command in [
        &["serve"] as &[&str],
        &["invoice", "list"],
        &["db", "check"],
        &["db", "prune"],
    ] {
        let ran = world.tilld(command).ends_with(11);
        assert!(ran.stderr.contains("has schema 99"), "{ran:?}");
        assert!(ran.stderr.contains("hint: run the newer tilld"), "{ran:?}");
    }
    assert_eq!(fs::read(world.ledger()).expect("read"), before);
    neighbour.tamper(&format!("PRAGMA user_version = {now}"));
}
