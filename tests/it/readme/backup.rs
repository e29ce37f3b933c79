//! The lines that put a backup back, run as they stand.

use std::fs;
use std::process::{Command, Stdio};

use super::{block, readme};
use crate::harness::{PATIENCE, Setup, World};

/// What the lines name, and what stands for it here.
const STATE: &str = "/var/lib/tilld";
const BACKUPS: &str = "/var/backups/tilld";

/// The line that makes the backup.
fn backup_line(readme: &str) -> String {
    let mut lines = readme.lines();
    let line = lines
        .find(|line| line.starts_with("sudo -u tilld tilld --state-dir /var/lib/tilld db backup "));
    line.expect("a line that makes one").to_owned()
}

fn run_line(world: &World, line: &str) {
    let state = world.state_dir();
    let line = line
        .replace("sudo -u tilld ", "")
        .replace(STATE, &state.to_string_lossy())
        .replace(BACKUPS, &world.dir().join("backups").to_string_lossy());
    let mut command = Command::new("/bin/sh");
    let ran = command
        .args(["-ec", &line])
        .stdin(Stdio::null())
        .status()
        .expect("a shell");
    assert!(ran.success(), "{line}");
}

#[test]
fn the_lines_that_restore_a_backup_do_and_what_is_lost_is_refused() {
    let readme = readme();
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    world.pay("A-1");
    world.settle();
    let waiting = world.create("A-2");
    fs::create_dir(world.dir().join("backups")).expect("a directory");
    let line =
        backup_line(&readme).replace(BACKUPS, &world.dir().join("backups").to_string_lossy());
    let args: Vec<&str> = line.split(' ').skip_while(|word| *word != "db").collect();
    world.tilld(&args).ends_with(0);
    let lost = world.create("A-3");
    let paid = world.dictate(&waiting, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    world.settle();

    for line in block(&readme, "restore").lines() {
        match line {
            "sudo systemctl stop tilld" => assert_eq!(world.stop_serve(PATIENCE), 0),
            "sudo systemctl start tilld" => world.start_serve(),
            line => run_line(&world, line),
        }
    }
    assert!(world.serve_log().contains("the ledger was restored"));
    assert_eq!(
        world.sql("SELECT order_id FROM invoices").concat(),
        ["A-1", "A-2"]
    );
    assert_eq!(world.tell_as_it_is(&lost).status, 401);
    world.tilld(&["invoice", "poll", "A-2"]).ends_with(0);
    let held = "SELECT order_id || ' ' || held_why FROM deliveries WHERE state = 'held'";
    assert_eq!(world.sql(held).concat(), ["A-2 restored"]);
    assert_eq!(world.hook_log("fulfil").len(), 2);

    // The lines that release it.
    let release = "tilld delivery release --order 1042";
    assert!(readme.contains(release));
    world
        .tilld(&["delivery", "release", "--order", "A-2"])
        .ends_with(0);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 3);

    // Without its key it does not start, and is not touched.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let key = world.state_dir().join("secret/ledger-key");
    let aside = world.dir().join("ledger-key");
    fs::rename(&key, &aside).expect("moved away");
    world.tilld(&["serve"]).ends_with(15);
    fs::rename(&aside, &key).expect("moved back");
    world.start_serve();
}
