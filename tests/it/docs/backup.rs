//! The lines that put a backup back, run as they stand.

use std::collections::BTreeSet;
use std::fs;

use super::{block, docs};
use crate::harness::{PATIENCE, Setup, wait_until};

/// What the lines name, and what stands for it here.
const BACKUPS: &str = "/var/backups/tilld";

/// The line that makes the backup.
fn backup_line(docs: &str) -> String {
    let mut lines = docs.lines();
    let line = lines
        .find(|line| line.starts_with("sudo -u tilld tilld --state-dir /var/lib/tilld db backup "));
    line.expect("a line that makes one").to_owned()
}

#[test]
fn the_lines_that_restore_a_backup_do_and_what_is_lost_is_refused() {
    let docs = docs();
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    world.pay("A-1");
    world.settle();
    let paid_later = [world.create("A-2"), world.create("A-4")];
    fs::create_dir(world.dir().join("backups")).expect("a directory");
    let line = backup_line(&docs).replace(BACKUPS, &world.dir().join("backups").to_string_lossy());
    let args: Vec<&str> = line.split(' ').skip_while(|word| *word != "db").collect();
    world.tilld(&args).ends_with(0);
    let lost = world.create("A-3");
    for waiting in paid_later {
        let paid = world.dictate(&waiting, "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    }
    world.settle();

    for line in block(&docs, "restore").lines() {
        match line {
            "sudo systemctl stop tilld" => assert_eq!(world.stop_serve(PATIENCE), 0),
            "sudo systemctl start tilld" => world.start_serve(),
            line if line.contains(" db restore ") => {
                let line = line.replace(BACKUPS, &world.dir().join("backups").to_string_lossy());
                let args: Vec<&str> = line.split(' ').skip_while(|word| *word != "db").collect();
                world.tilld(&args).ends_with(0);
            }
            line => panic!("{line}"),
        }
    }
    assert!(world.serve_log().contains("the ledger was restored"));
    assert_eq!(
        world.sql("SELECT order_id FROM invoices").concat(),
        ["A-1", "A-2", "A-4"]
    );
    assert_eq!(world.tell_as_it_is(&lost).status, 401);
    wait_until(PATIENCE, "the refusal", || {
        let refused = world.tilld(&["refusal", "list"]).ends_with(0);
        refused.stdout.contains("ref_unknown")
    });
    for order in ["A-2", "A-4"] {
        world.tilld(&["invoice", "poll", order]).ends_with(0);
    }
    let held =
        "SELECT order_id || ' ' || held_why FROM deliveries WHERE state = 'held' ORDER BY order_id";
    assert_eq!(world.sql(held).concat(), ["A-2 restored", "A-4 restored"]);
    assert_eq!(world.hook_log("fulfil").len(), 3);

    // The lines that release it, and give it up.
    for (act, order, readers) in [("release", "A-2", "1042"), ("abandon", "A-4", "1041")] {
        let line = format!("tilld delivery {act} --order {readers}");
        assert!(docs.contains(&line), "{line}");
        world
            .tilld(&["delivery", act, "--order", order])
            .ends_with(0);
    }
    world.settle();
    let ran = world.hook_log("fulfil");
    // Found again, it is an event of its own.
    let ids = |order: &str| -> BTreeSet<String> {
        let of_order = format!(" paid {order} 1");
        let of_it = ran.iter().filter_map(|line| line.strip_suffix(&of_order));
        of_it.map(str::to_owned).collect()
    };
    assert_eq!((ids("A-2").len(), ids("A-4").len()), (2, 1), "{ran:?}");
    assert_eq!(ran.len(), 4, "{ran:?}");
    let status = world.tilld(&["status"]);
    assert!(
        status.stdout.contains("nothing is held for it"),
        "{status:?}"
    );

    // Without its key it does not start, and is not touched.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let key = world.state_dir().join("secret/ledger-key");
    let aside = world.dir().join("ledger-key");
    fs::rename(&key, &aside).expect("moved away");
    world.tilld(&["serve"]).ends_with(15);
    fs::rename(&aside, &key).expect("moved back");
    world.start_serve();
}
