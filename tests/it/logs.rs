//! The log from outside: where it goes, and that nobody waits for whoever reads it. What is at stake: a full pipe behind the
//! daemon must not stop the shop's payments, and one that was full must not look as if nothing had happened.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Issued, PATIENCE, Setup, Wire, World, head, wait_until};

/// `O_NONBLOCK` of Linux.
const NO_WAIT: i32 = 0o4000;
/// Connections that send at once.
const SENDERS: usize = 16;

/// Sends so many of this request on each of [`SENDERS`] connections; every answer has this status.
fn send(world: &World, request: &str, each: usize, status: u16) {
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                let mut wire = Wire::open(world.listen());
                for _ in 0..each {
                    wire.send(request);
                    assert_eq!(wire.answer().expect("an answer").status, status);
                }
            });
        }
    });
}

fn notification(issued: &Issued, token: &str) -> String {
    let body = issued.object.to_string();
    let target = World::target(&issued.reference);
    let headers = [
        ("X-Notification-Token", token),
        ("Content-Type", "application/json"),
    ];
    head("shop.example", "POST", &target, &headers, Some(body.len())) + &body
}

/// What can be read at once.
fn rest(pipe: &mut File) -> String {
    let mut bytes = Vec::new();
    // It ends by saying that there is nothing more for now.
    drop(pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn fifo(at: &Path) -> File {
    let made = Command::new("mkfifo").arg(at).status();
    assert!(made.expect("mkfifo").success(), "made");
    let mut options = File::options();
    // Both ends: neither then waits for the other to be opened.
    options.read(true).write(true).custom_flags(NO_WAIT);
    options.open(at).expect("a pipe")
}

#[test]
fn nobody_waits_for_a_log_that_is_not_read_and_what_was_dropped_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("log");
    let mut pipe = fifo(&at);
    let at = at.to_str().expect("text");
    let mut world = Setup::new()
        .quiet()
        .under(&["/bin/sh", "-c", "exec \"$@\" 2>\"$0\"", at])
        .start();
    let paid = world.create("A-1").as_if("paid");
    send(
        &world,
        &notification(&paid, &paid.token),
        2_000 / SENDERS,
        200,
    );
    // More lines than the queue has room for.
    send(
        &world,
        &notification(&paid, "another"),
        4_800 / SENDERS,
        401,
    );
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind = 'paid'"),
        "1"
    );

    let mut log = String::new();
    wait_until(PATIENCE, "the log to say what was dropped", || {
        log.push_str(&rest(&mut pipe));
        log.contains("lines of the log were dropped here")
    });
    let told = log.lines().find(|line| line.contains("were dropped here"));
    assert!(
        told.is_some_and(|line| line.contains(" ERROR ")),
        "{told:?}"
    );
    let told = told.and_then(|line| line.split_once("log.dropped=")?.1.parse::<u32>().ok());
    assert!(told.is_some_and(|dropped| dropped > 0), "{told:?}");
    assert!(log.contains("order A-1: paid"), "what came first is there");
    // Every line is whole.
    let begun = log.lines().filter(|line| !line.starts_with("20"));
    assert_eq!(begun.count(), 0);

    // Nor does the end wait for long.
    send(&world, &notification(&paid, "another"), 960 / SENDERS, 401);
    let began = Instant::now();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn all_that_was_logged_is_out_when_the_daemon_has_ended() {
    let mut world = Setup::new().quiet().set("log_format", "\"json\"").start();
    let file = world.log_dir();
    world.pay("A-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let entries = std::fs::read_dir(file).expect("logs");
    let mut texts = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_it = path.to_string_lossy().contains("/serve-");
        (is_it && path.extension()? == "err").then(|| std::fs::read_to_string(path).ok())?
    });
    let text = texts.next().expect("a log");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let said = |line: &Value| line.pointer("/fields/message").cloned();
    assert_eq!(
        lines.last().and_then(said),
        Some("tilld has stopped".into())
    );
    let paid = lines
        .iter()
        .filter(|line| line.pointer("/fields/event.kind") == Some(&"paid".into()));
    assert_eq!(paid.count(), 1, "one line for an event");
}

/// What systemd does: it names the stream it made stderr, and hears at a socket.
#[test]
fn under_systemd_events_go_to_the_journal_with_their_fields() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("journal");
    let journal = UnixDatagram::bind(&at).expect("a socket");
    journal.set_nonblocking(true).expect("an option");
    let under = "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) TILLD_JOURNAL=$0 exec \"$@\"";
    let world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        .under(&["/bin/sh", "-c", under, at.to_str().expect("text")])
        .start();
    world.pay("A-1");
    let mut events: Vec<String> = Vec::new();
    let mut space = vec![0; 64 * 1024];
    wait_until(PATIENCE, "the payment to be in the journal", || {
        while let Ok(read) = journal.recv(&mut space) {
            let event = space.get(..read).unwrap_or_default();
            events.push(String::from_utf8(event.to_vec()).expect("text"));
        }
        let paid = events
            .iter()
            .find(|event| event.contains("TILLD_EVENT_KIND=paid\n"));
        paid.is_some_and(|event| {
            let has = |field: &str| event.lines().any(|line| line == field);
            has("PRIORITY=6")
                && has("SYSLOG_IDENTIFIER=tilld")
                && has("TILLD_ORDER_ID=A-1")
                && has("MESSAGE=order A-1: paid")
        })
    });
    assert_eq!(world.serve_log(), "", "nothing is said twice");
}
