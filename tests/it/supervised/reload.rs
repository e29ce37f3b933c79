//! The settings read again (SIGHUP): what can change does at once, what cannot is named, and a mistake changes nothing.

use std::fs;
use std::fs::File;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Systemd, logs};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// The config with `old` put in the place of `new`.
#[track_caller]
pub(super) fn rewrite(world: &World, old: &str, new: &str) {
    let file = world.dir().join("config.toml");
    let text = fs::read_to_string(&file).expect("readable");
    assert!(text.contains(old), "{old}: {text}");
    fs::write(&file, text.replace(old, new)).expect("written");
}

/// Reloads, and waits until systemd has heard that it is done. Gives the last it heard.
#[track_caller]
fn reload(world: &World, systemd: &Systemd) -> String {
    world.signal_serve(Signal::HUP);
    let reloading = systemd.hears("RELOADING=1");
    let since = reloading.lines().find_map(|line| {
        let usec: u64 = line.strip_prefix("MONOTONIC_USEC=")?.parse().ok()?;
        Some(usec)
    });
    assert!(since.is_some(), "{reloading}");
    systemd.hears("READY=1")
}

#[test]
fn what_can_change_does_and_what_cannot_is_named() {
    let systemd = Systemd::without_a_path();
    let world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        .noting_hook("fulfil", &["paid"])
        .noting_hook("mail", &["failed"])
        .under(&["env", &systemd.variable])
        .start();
    systemd.hears("READY=1");
    world.pay("A-1");
    world.settle();
    assert!(!world.serve_log().contains("DEBUG"));

    // The hook `mail` gives way to another, which wants to know of payments as well.
    rewrite(&world, "on = [\"failed\"]", "on = [\"failed\", \"paid\"]");
    rewrite(&world, "name = \"mail\"", "name = \"ship\"");
    rewrite(&world, "log_level = \"info\"", "log_level = \"debug\"");
    rewrite(&world, "poller.cadence_s = 1", "poller.cadence_s = 2");
    let done = reload(&world, &systemd);
    assert!(done.contains("STATUS=serves on "), "{done}");
    logs(
        &world,
        "the settings were read again: `log_level`, `hook` changed",
    );
    logs(
        &world,
        "`poller.cadence_s` changed too, and count after a new start",
    );
    world.pay("A-2");
    world.settle();
    let hooks =
        world.sql("SELECT hook || ' ' || order_id || ' ' || state FROM deliveries ORDER BY 1");
    assert_eq!(
        hooks.concat(),
        ["fulfil A-1 done", "fulfil A-2 done", "ship A-2 done"]
    );
    logs(&world, "DEBUG");
    let status = world.call("GET", "/v1/status", "");
    assert_eq!(status.status, 200, "{status:?}");

    // The same once more is no news.
    reload(&world, &systemd);
    logs(
        &world,
        "the settings were read again: nothing is different by it",
    );
}

#[test]
fn settings_with_a_mistake_change_nothing() {
    let systemd = Systemd::without_a_path();
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .under(&["env", &systemd.variable])
        .start();
    systemd.hears("READY=1");
    for (old, new, why) in [
        ("outbox.grace_s = 1", "outbox.grase_s = 1", "outbox.grase_s"),
        ("outbox.grace_s = 1", "outbox.grace_s = 0", "outbox.grace_s"),
        ("/bin/sh", "/bin/no-such-shell", "hook `fulfil` cannot run"),
    ] {
        rewrite(&world, old, new);
        let done = reload(&world, &systemd);
        assert!(
            done.contains("the settings on disk are not in use: "),
            "{done}"
        );
        assert!(done.contains(why), "{done}");
        logs(
            &world,
            "the settings could not be read again, and those that were there stay: ",
        );
        rewrite(&world, new, old);
    }
    world.pay("A-1");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

/// A run that began goes on by the settings it began with, and its hook has no more runs than places.
#[test]
fn a_hook_that_runs_goes_on_while_its_settings_change() {
    let systemd = Systemd::without_a_path();
    let waits = "echo \"$TILLD_ORDER_ID\" >> \"$1\"; while [ ! -e \"$1.go\" ]; do sleep 0.02; done";
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], waits)
        .at_once(1)
        .set("outbox.slow_concurrency", 0)
        .under(&["env", &systemd.variable])
        .start();
    systemd.hears("READY=1");
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    rewrite(&world, "timeout_s = 30", "timeout_s = 20");
    rewrite(&world, "outbox.drain_s = 1", "outbox.drain_s = 2");
    reload(&world, &systemd);
    logs(&world, "`hook`, `outbox.drain_s` changed");
    world.pay("A-2");
    assert_eq!(world.hook_log("fulfil"), ["A-1"]);
    let running = "SELECT order_id FROM deliveries WHERE state = 'running'";
    assert_eq!(world.sql(running).concat(), ["A-1"]);
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["A-1", "A-2"]);
    let attempts = world.sql("SELECT result FROM attempts");
    assert_eq!(attempts.concat(), ["exit 0", "exit 0"]);
}

/// A slip in a hook's name, and its mending: what runs is in its place all the while.
#[test]
fn a_hook_that_was_gone_for_a_reload_has_no_more_runs_than_places() {
    let systemd = Systemd::without_a_path();
    let waits = "echo \"$TILLD_ORDER_ID\" >> \"$1\"; while [ ! -e \"$1.go\" ]; do sleep 0.02; done";
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], waits)
        .at_once(1)
        .noting_hook("mail", &["paid"])
        .set("outbox.slow_concurrency", 0)
        .under(&["env", &systemd.variable])
        .start();
    systemd.hears("READY=1");
    world.pay("A-1");
    wait_until(PATIENCE, "the hook", || world.hook_log("fulfil").len() == 1);
    rewrite(&world, "name = \"fulfil\"", "name = \"fullfil\"");
    reload(&world, &systemd);
    rewrite(&world, "name = \"fullfil\"", "name = \"fulfil\"");
    reload(&world, &systemd);
    world.pay("A-2");
    // Of one order one runs at a time: this one now since the first has no place.
    wait_until(PATIENCE, "the other hook", || {
        world.hook_log("mail").len() == 1
    });
    let running = "SELECT order_id FROM deliveries WHERE state = 'running' AND hook = 'fulfil'";
    assert_eq!(world.sql(running).concat(), ["A-1"]);
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["A-1", "A-2"]);
}

/// What began under the old times may need them still.
#[test]
fn a_stop_may_take_as_long_as_what_began_before_a_reload() {
    let systemd = Systemd::without_a_path();
    let mut world = Setup::new()
        .quiet()
        .set("outbox.drain_s", 70)
        .set("outbox.grace_s", 80)
        .noting_hook("fulfil", &["paid"])
        .under(&["env", &systemd.variable])
        .start();
    systemd.hears("READY=1");
    rewrite(&world, "outbox.drain_s = 70", "outbox.drain_s = 1");
    rewrite(&world, "outbox.grace_s = 80", "outbox.grace_s = 1");
    reload(&world, &systemd);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let stops = systemd.hears("STOPPING=1");
    let within = stops.lines().find_map(|line| {
        let time = line.strip_prefix("STATUS=stops, within ")?;
        time.strip_suffix(" s")?.parse::<u64>().ok()
    });
    assert!(within.is_some_and(|within| within >= 150), "{stops}");
}

/// In a terminal it is the word that the terminal goes away.
#[test]
fn a_terminal_that_goes_away_stops_it_in_order() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("ours");
    unlockpt(&master).expect("ours");
    let path = ptsname(&master, Vec::new()).expect("its name");
    let path = path.to_str().expect("a path");
    let _other_end = File::options().read(true).write(true).open(path);
    let enters = r#"exec "$@" < "$0""#;
    let mut world = Setup::new()
        .quiet()
        .under(&["/bin/sh", "-c", enters, path])
        .start();
    world.signal_serve(Signal::HUP);
    assert_eq!(world.serve_ends(PATIENCE), 0);
    world.start_serve();
}
