//! `tilld status` through the real program: how things stand, what needs a person, and the exit code that says so. What is
//! at stake: a watch that runs it must hear of what nobody else will mention.

mod polling;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Ran, Setup, World, skip, wait_until};
use crate::shop::Shop;

/// What `tilld status --json` says, ended with this code.
#[track_caller]
fn status(world: &World, code: i32) -> Value {
    let ran = world.tilld(&["status", "--json"]).ends_with(code);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    ran.json()
}

#[track_caller]
fn at(told: &Value, pointer: &str) -> Value {
    let found = told.pointer(pointer);
    found
        .unwrap_or_else(|| panic!("no {pointer}: {told}"))
        .clone()
}

#[track_caller]
fn people(world: &World, code: i32, parts: &[&str]) -> String {
    let Ran { stdout, .. } = world.tilld(&["status"]).ends_with(code);
    for part in parts {
        assert!(stdout.contains(part), "`{part}` is missing in: {stdout}");
    }
    stdout
}

#[test]
fn a_quiet_shop_needs_nobody() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let paid = world.pay("A-1");
    world.settle();
    let wrong = world.notify(
        &paid.reference,
        &[("X-Notification-Token", "not-this-one")],
        &paid.object.to_string(),
    );
    assert_eq!(wrong.status, 401);
    wait_until(PATIENCE, "the refusal to be kept", || {
        world.value("SELECT count(*) FROM refusal") == "1"
    });
    wait_until(PATIENCE, "the place to be remembered", || {
        world.value("SELECT count(*) FROM meta WHERE key = 'presentation'") == "1"
    });
    let told = status(&world, 0);
    assert_eq!(at(&told, "/daemon_running"), true);
    let place = at(&told, "/presentation/last");
    let place = place.as_str().unwrap_or_default();
    assert!(
        place.eq_ignore_ascii_case("header:X-Notification-Token"),
        "{told}"
    );
    assert_eq!(at(&told, "/needs_person"), false);
    assert_eq!(at(&told, "/login/state"), "stored");
    assert_eq!(at(&told, "/login/source"), "file");
    assert_eq!(at(&told, "/last_notification/order_id"), "A-1");
    assert_eq!(at(&told, "/refusals_24h/count"), 1);
    assert_eq!(at(&told, "/refusals_24h/commonest_count"), 1);
    let reason = world.value("SELECT reason FROM refusal");
    assert_eq!(at(&told, "/refusals_24h/commonest_reason"), reason.as_str());
    let path = world.ledger();
    assert_eq!(at(&told, "/ledger/path"), path.display().to_string());
    assert!(at(&told, "/ledger/bytes").as_u64() > Some(4_096), "{told}");
    let shown = people(
        &world,
        0,
        &[
            "daemon         running",
            "token in ",
            ", order A-1, by header:",
            &format!("`presentations = [\"{place}\"]` under `[listener]` pins the place"),
            "1 in 24 h, most often ",
            "0 waiting, 0 running",
            "\nNothing needs a person.\n",
        ],
    );
    assert!(!shown.contains(&paid.token), "{shown}");

    assert_eq!(world.stop_serve(PATIENCE), 0);
    // Nobody hears anything then, and that is for a person.
    let told = status(&world, 16);
    assert_eq!(at(&told, "/daemon_running"), false);
    assert_eq!(at(&told, "/needs/0/reason"), "daemon");
    people(
        &world,
        16,
        &["not running: `tilld serve`", "`systemctl start tilld`"],
    );
}

#[test]
fn what_needs_a_person_is_named_with_what_helps() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook("fails", &["paid"], "exit 1")
        .start();
    world.pay("A-1");
    world.settle();
    let told = status(&world, 16);
    assert_eq!(at(&told, "/deliveries/abandoned/count"), 1);
    assert_eq!(at(&told, "/attention"), json!([]));
    people(
        &world,
        16,
        &[
            "\nabandoned  1 delivery, order A-1\n",
            "`tilld delivery list --state abandoned`",
            "`tilld delivery retry EVENT`",
        ],
    );

    let odd = world.create("A-2");
    let odd = world.dictate(&odd, "PAID \u{202e}x");
    assert_eq!(world.tell_as_it_is(&odd).status, 200);
    let less = world.create("A-3");
    let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    wait_until(PATIENCE, "the mismatch", || {
        world.invoice("A-3", "outcome") == "mismatch"
    });
    let told = status(&world, 16);
    let reasons = at(&told, "/attention");
    let reasons = reasons.as_array().expect("a list");
    let short: Vec<Value> = reasons
        .iter()
        .map(|reason| {
            json!([
                at(reason, "/reason"),
                at(reason, "/count"),
                at(reason, "/orders")
            ])
        })
        .collect();
    let wanted = [
        json!(["mismatch", 1, ["A-3"]]),
        json!(["unsorted_status", 1, ["A-2"]]),
    ];
    assert_eq!(short, wanted);
    assert_eq!(at(&told, "/unsorted/0/events"), 1);
    let needs = at(&told, "/needs");
    let words: Vec<Value> = needs
        .as_array()
        .expect("a list")
        .iter()
        .map(|need| at(need, "/reason"))
        .collect();
    // One thing is there once, under one word, which is told once.
    assert_eq!(words, ["abandoned", "mismatch", "unsorted_status"]);
    assert_eq!(at(&told, "/needs/0/orders"), json!(["A-1"]));
    assert_eq!(at(&told, "/needs/1/told"), "1 invoice, order A-3");
    assert_eq!(at(&told, "/needs/2/orders"), json!(["A-2"]));
    let line = at(&told, "/unsorted/0/line");
    let line = line.as_str().expect("text");
    let shown = people(
        &world,
        16,
        &[
            "mismatch: 1 invoice, order A-3",
            "settle it with the customer",
            "unsorted_status: 1 invoice, order A-2",
            "1 event with the status PAID \\u202ex, which stands on no list:",
            "paid = [\"paid\", \"PAID \\u202ex\"]  # or failed, reversed, open, under [statuses]",
        ],
    );
    assert!(!shown.contains('\u{202e}'), "{shown}");

    // The line is one the config takes, and the name is no news any more once the daemon serves by it.
    let file = world.dir().join("config.toml");
    let config = fs::read_to_string(&file).expect("readable");
    let (list, _) = line.split_once("  #").expect("a comment");
    let sorted: Vec<String> = config
        .lines()
        .map(|had| {
            if had.starts_with("statuses.paid") {
                format!("statuses.{list}")
            } else {
                had.to_owned()
            }
        })
        .collect();
    fs::write(&file, sorted.join("\n")).expect("written");
    assert_ne!(at(&status(&world, 16), "/unsorted"), json!([]));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.start_serve();
    assert_eq!(at(&status(&world, 16), "/unsorted"), json!([]));
}

#[test]
fn invoices_that_are_late_are_counted_while_nobody_serves() {
    let mut world = Setup::new().start();
    world.create("A-1");
    world.create("A-2");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    wait_until(PATIENCE, "both to be due", || {
        at(&status(&world, 16), "/due/count") == 2
    });
    let late = |told: &Value| at(told, "/due/oldest_late_ms").as_i64();
    let first = late(&status(&world, 16));
    assert!(first.is_some_and(|late| late >= 0), "{first:?}");
    wait_until(PATIENCE, "it to be later", || {
        late(&status(&world, 16)) > first
    });
    let told = status(&world, 16);
    assert_eq!(at(&told, "/due/young/count"), 2);
    assert_eq!(
        at(&told, "/due/young/oldest_late_ms").as_i64(),
        late(&told),
        "both are young"
    );
    let order = at(&told, "/due/oldest_order_id");
    assert!(order == "A-1" || order == "A-2", "{order}");
    let age = at(&told, "/due/oldest_age_ms").as_i64();
    assert!(age > late(&told), "it was opened before it was due: {told}");
    assert_eq!(at(&told, "/due/old/oldest_late_ms"), Value::Null);
    assert_eq!(at(&told, "/polling/found_within_ms"), Value::Null);
    people(
        &world,
        16,
        &[
            "2 young invoices to be asked about, the oldest for ",
            " (order A-",
            "a lost notification of an invoice younger than 30 min is not found while no daemon runs",
        ],
    );
}

/// A32: nobody but a person can say what became of it.
#[test]
fn a_create_whose_answer_was_lost_is_named_with_the_line_that_settles_it() {
    let world = Setup::new().quiet().start();
    world.faults(&json!({ "lose": true, "drop_create_answer": 1 }));
    world.open("A-1", "599.80", &[]).ends_with(9);
    let told = status(&world, 16);
    assert_eq!(at(&told, "/attention/0/reason"), "outcome_unknown");
    assert_eq!(at(&told, "/attention/0/orders"), json!(["A-1"]));
    people(
        &world,
        16,
        &[
            "outcome_unknown: 1 invoice, order A-1",
            "give its id to `tilld invoice adopt ORDER --id ID`",
        ],
    );
    let lost = world.issued("A-1").expect("the service made it");
    let adopt = ["invoice", "adopt", "A-1", "--id", &lost.id];
    world.tilld(&adopt).ends_with(0);
    assert_eq!(at(&status(&world, 0), "/attention"), json!([]));
}

/// An account without rights, and its group.
const NOBODY: u32 = 65_534;

#[test]
fn the_reader_group_sees_all_but_the_login() {
    if !geteuid().is_root() {
        skip!("only root can become somebody else");
    }
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    let state_dir = shop.state_dir();
    let home = state_dir.parent().expect("a directory above");
    fs::set_permissions(home, Permissions::from_mode(0o755)).expect("ours");
    chown(&state_dir, None, Some(NOBODY)).expect("ours");
    for entry in fs::read_dir(&state_dir).expect("a directory") {
        chown(entry.expect("an entry").path(), None, Some(NOBODY)).expect("ours");
    }
    for args in [["status", "--json"], ["explain", "1042"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
        command.env_clear().uid(NOBODY + 1).gid(NOBODY);
        command.arg("--state-dir").arg(&state_dir).args(args);
        let Ok(output) = command.output() else {
            skip!("others may not run this binary");
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let (code, part) = match args {
            // No daemon runs here.
            ["status", _] => (16, r#""login":{"state":"hidden"}"#),
            _ => (0, "Order 1042, "),
        };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn without_a_ledger_there_is_nothing_to_show_and_none_is_made() {
    let shop = Shop::new("");
    for args in [
        ["status", "--json"].as_slice(),
        &["status"],
        &["explain", "1042"],
    ] {
        let said = shop.tilld(args, 3);
        said.told(&["error: there is no ledger at `", "hint: "]);
    }
    assert!(!shop.state_dir().exists());
    shop.refused_invoice("1042");
    let told = shop.tilld(&["status", "--json"], 16).lines();
    let told = told.first().expect("a line");
    assert_eq!(at(told, "/login/source"), "environment");
    assert_eq!(at(told, "/last_notification"), Value::Null);
}

#[test]
fn more_were_refused_than_there_are_rows() {
    let world = Setup::new().quiet().set("ledger.refusal_rows", 100).start();
    let issued = world.create("A-1");
    let body = issued.object.to_string();
    for _ in 0..120 {
        let wrong = [("X-Notification-Token", "not-this-one")];
        assert_eq!(world.notify(&issued.reference, &wrong, &body).status, 401);
    }
    wait_until(PATIENCE, "the oldest to make room", || {
        world.value("SELECT count(*) || min(id) FROM refusal") == "10021"
    });
    let told = status(&world, 0);
    assert_eq!(at(&told, "/refusals_24h/count"), 100);
    assert_eq!(at(&told, "/refusals_24h/more"), true);
    people(
        &world,
        0,
        &["more than 100 in 24 h, most often token_wrong (100)"],
    );
}
