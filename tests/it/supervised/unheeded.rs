//! Settings beside a socket that systemd holds: it is served as it is, and whoever set another address is told so. What is at
//! stake: one who sets an address for the world, with TLS, hears nothing from there, and no word says why.

use std::net::TcpListener;

use rustix::process::Signal;

use super::logs;
use super::reload::rewrite;
use crate::harness::{Setup, World};

const COUNTS_FOR_NOTHING: &str = "counts for nothing: systemd listens on ";

/// The log's lines about it.
fn told(world: &World) -> Vec<String> {
    let log = world.serve_log();
    let lines = log.lines().filter(|line| line.contains(COUNTS_FOR_NOTHING));
    lines.map(str::to_owned).collect()
}

#[test]
fn another_address_than_the_one_handed_over_is_told_of() {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = socket.local_addr().expect("bound");
    let world = Setup::new()
        .quiet()
        .holding(socket, "notifications")
        .start();
    let listen = world.listen();
    logs(&world, &format!("tilld serves on {at}"));
    let told = told(&world);
    let [line] = told.as_slice() else {
        panic!("one line: {told:?}");
    };
    assert!(line.contains(" WARN "), "{line}");
    let file = world.dir().join("config.toml");
    let set = format!("`listener.listen`, set in `{}`, ", file.display());
    assert!(line.contains(&set), "{line}");
    let places = format!(
        "{COUNTS_FOR_NOTHING}{at} and hands that over, and tilld hears nothing on {listen}; hint: "
    );
    assert!(line.contains(&places), "{line}");

    // What is looked at before a start says the same, if it is handed the socket; else that there may be one.
    let checked = world.serve_ended(&["--check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let warned = format!("warning: `listener.listen`, set in `{}`", file.display());
    assert!(checked.stderr.contains(&warned), "{checked:?}");
    let listens_on = format!("listens on       {at}\n");
    assert!(checked.stdout.contains(&listens_on), "{checked:?}");
    let checked = world.tilld(&["serve", "--check"]).ends_with(0);
    let may_be = format!("{listen}, unless a socket unit listens elsewhere\n");
    assert!(checked.stdout.contains(&may_be), "{checked:?}");

    // A new start would change as little.
    let set = |address: &str| format!("listener.listen = \"{address}\"");
    rewrite(&world, &set(&listen.to_string()), &set("127.0.0.1:1"));
    world.signal_serve(Signal::HUP);
    logs(
        &world,
        "`listener.listen` changed too, and count for nothing, now and after a new start: systemd hands the socket over",
    );
    assert!(!world.serve_log().contains("count after a new start"));
}

#[test]
fn the_address_that_is_handed_over_is_no_news() {
    let world = Setup::new().quiet().holding_port("notifications").start();
    logs(&world, "tilld serves on ");
    assert_eq!(told(&world), Vec::<String>::new());
    let checked = world.serve_ended(&["--check"]);
    assert!(!checked.stderr.contains("warning"), "{checked:?}");
}
