//! `tilld db restore`: a copy is put in the ledger's place whole or not at all. Relies on the real program.
//! What is at stake: the last good ledger, replaced by a copy that is none.

use std::fs;

use super::{back_up, backups};
use crate::harness::{PATIENCE, Setup};

#[test]
fn a_sound_copy_is_put_back_and_what_was_there_is_kept() {
    let mut world = Setup::new().quiet().start();
    world.create("A-1");
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    world.create("A-2");
    let line = ["db", "restore", &file.to_string_lossy()];
    let served = world.tilld(&line).ends_with(11);
    assert!(
        served.stderr.contains("hint: stop `tilld serve` first"),
        "{served:?}"
    );
    world.kill9_serve();

    let before = fs::read(world.ledger()).expect("read");
    let torn = backups(&world).join("torn.db");
    let mut bytes = fs::read(&file).expect("read");
    bytes.truncate(bytes.len() / 2);
    fs::write(&torn, bytes).expect("written");
    let absent = backups(&world).join("none.db");
    for (copy, code) in [(&torn, 11), (&absent, 1)] {
        let refused = world.tilld(&["db", "restore", &copy.to_string_lossy()]);
        assert_eq!(refused.code, code, "{refused:?}");
        assert!(fs::read(world.ledger()).expect("read") == before);
    }
    let left = fs::read_dir(world.state_dir()).expect("read");
    let mut names = left.map(|entry| entry.expect("an entry").file_name());
    assert!(
        !names.any(|name| name.to_string_lossy().contains("restored")),
        "a draft was left"
    );

    let told = world
        .tilld(&[&line[..], &["--json"]].concat())
        .ends_with(0)
        .json();
    assert_eq!(
        told.get("last_event"),
        Some(&serde_json::json!(1)),
        "{told}"
    );
    let kept = told.get("replaced").and_then(serde_json::Value::as_array);
    assert_eq!(kept.map(Vec::len), Some(3), "{told}");
    assert_eq!(world.value("SELECT order_id FROM invoices"), "A-1");
    world.start_serve();
    assert!(world.serve_log().contains("the ledger was restored"));
    assert_eq!(world.stop_serve(PATIENCE), 0);

    // What was kept is put back the same way, with its WAL.
    let kept = kept
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_str);
    let database = kept
        .into_iter()
        .find(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    world
        .tilld(&["db", "restore", database.expect("one")])
        .ends_with(0);
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "2");
}
