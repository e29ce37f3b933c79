//! What 200 promises (A16, A17): the event outlives the process, the sender's patience, and other programs that hold the
//! ledger. What is at stake: a sender that was answered 200 never comes again.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Issued, PATIENCE, Setup, Wire, World, head, request, skip, wait_until};

#[test]
fn what_was_answered_200_outlives_a_kill() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    for round in 0..3_usize {
        let invoice = world.dictate(&world.create(&format!("A-{round}")), "paid");
        let answer = world.tell_as_it_is(&invoice);
        world.kill9_serve();
        assert_eq!(answer.status, 200);
        let paid = format!(
            "SELECT count(*) FROM events WHERE kind = 'paid' AND order_id = '{}'",
            invoice.order
        );
        assert_eq!(world.value(&paid), "1");
        world.start_serve();
        world.settle();
        // The kill may have come between the script's end and its being recorded: at least once, the same event.
        let runs = world.hook_log("fulfil");
        let own: Vec<_> = runs
            .iter()
            .filter(|line| line.contains(&invoice.order))
            .collect();
        assert!(!own.is_empty(), "{runs:?}");
        let event = own.first().and_then(|line| line.split(' ').next());
        assert!(
            own.iter().all(|line| line.split(' ').next() == event),
            "{runs:?}"
        );
    }
}

#[test]
fn the_disk_has_it_before_the_sender_is_told() {
    if !Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        skip!("strace is not there or may not trace");
    }
    let traces = tempfile::tempdir().expect("a directory");
    let trace = traces.path().join("trace");
    let calls = "trace=openat,read,recvfrom,fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg";
    let file = trace.to_str().expect("UTF-8").to_owned();
    // `-D`: tilld is the child, strace a grandchild, so that signals and exit code are tilld's own.
    let strace = [
        "strace", "-D", "-f", "-y", "-s", "64", "-o", &file, "-e", calls,
    ];
    let mut world = Setup::new().quiet().under(&strace).start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let read = || fs::read_to_string(&trace).unwrap_or_default();
    wait_until(PATIENCE, "the trace to be whole", || {
        read().contains("+++ exited with 0 +++")
    });
    let trace = read();

    let lines: Vec<&str> = trace.lines().collect();
    let first = |what: &str, fits: &dyn Fn(&str) -> bool| {
        let found = lines.iter().position(|line| fits(line));
        found.unwrap_or_else(|| panic!("no {what} in the trace:\n{trace}"))
    };
    let asked = first("request", &|line| line.contains("\"POST /n/"));
    let told = first("answer", &|line| line.contains("HTTP/1.1 200 OK"));
    let wal: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| (asked..told).contains(at) && line.contains("ledger.db-wal"))
        .map(|(at, line)| (at, *line))
        .collect();
    let from = |after: usize, word: &str| {
        let mut those = wal.iter().filter(|(at, _)| *at >= after);
        those
            .find(|(_, line)| line.contains(word))
            .map(|(at, _)| *at)
    };
    // The first commit after the request is its own. Another one may follow it before the answer is on its way, and is
    // nobody's promise yet.
    let written = from(asked, "pwrite64(").expect("the WAL is written in between");
    let synced =
        from(written, "sync(").unwrap_or_else(|| panic!("the WAL is not synced:\n{trace}"));
    // Not only begun: a call that waits is shown in two parts.
    let begun = lines.get(synced).copied().unwrap_or_default();
    let thread = begun.split(' ').next().unwrap_or_default();
    if begun.contains("<unfinished") {
        let resumed = lines
            .iter()
            .skip(synced)
            .position(|line| line.starts_with(thread) && line.contains("sync resumed>"));
        assert!(resumed.is_some_and(|more| synced + more < told), "{trace}");
    }
}

#[test]
fn storing_outlives_the_senders_patience() {
    let world = Setup::new()
        .quiet()
        .set("ledger.busy_budget_ms", 30_000)
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    let neighbour = world.neighbour();
    neighbour.hold();
    let mut wire = Wire::open(world.listen());
    send(&mut wire, &invoice);
    let heard = "carried its token in";
    wait_until(PATIENCE, "the notification to be read", || {
        world.serve_log().contains(heard)
    });
    wire.hang_up();
    // What comes after the end of that connection has been dealt with, so has the end.
    for _ in 0..3 {
        let look = request(
            world.listen(),
            "GET",
            &World::target(&invoice.reference),
            &[],
            "",
        );
        assert_eq!(look.status, 200);
    }
    assert_eq!(world.value("SELECT outcome FROM invoices"), "open");
    neighbour.let_go();
    // Nobody has come again yet.
    wait_until(PATIENCE, "the payment to be stored", || {
        world.value("SELECT outcome FROM invoices") == "paid"
    });
    assert_eq!(world.tell_as_it_is(&invoice).status, 200);
    world.settle();
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind <> 'opened'"),
        "1"
    );
    assert_eq!(world.hook_log("fulfil").len(), 1);
    // No transaction of it is left open.
    neighbour.write();
}

fn send(wire: &mut Wire, invoice: &Issued) {
    let body = invoice.object.to_string();
    let headers = [("X-Notification-Token", invoice.token.as_str())];
    let target = World::target(&invoice.reference);
    wire.send(&head(
        "shop.example",
        "POST",
        &target,
        &headers,
        Some(body.len()),
    ));
    wire.send(&body);
}

#[test]
fn while_another_program_holds_the_ledger_the_sender_is_asked_to_come_again() {
    const BUDGET: Duration = Duration::from_secs(1);
    // Beyond the budget: a machine that does other things, and a batch that was under way already.
    const BOUND: Duration = Duration::from_secs(4);
    let world = Setup::new()
        .quiet()
        .set("ledger.busy_budget_ms", BUDGET.as_millis())
        .noting_hook("fulfil", &["paid"])
        .start();
    let told = world.dictate(&world.create("A-1"), "paid");
    let untold = world.dictate(&world.create("A-2"), "paid");
    let neighbour = world.neighbour();
    neighbour.hold();
    for _ in 0..4 {
        let began = Instant::now();
        let answer = world.tell_as_it_is(&told);
        assert_eq!(answer.status_line, "HTTP/1.1 503 Service Unavailable");
        assert!(
            answer
                .header("retry-after")
                .is_some_and(|value| value.parse::<u32>().is_ok()),
            "{answer:?}"
        );
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    }
    // Refused, and not even that can be written now: it must still lead to a poll later.
    assert_eq!(
        world
            .notify(&untold.reference, &[], &untold.object.to_string())
            .status,
        401
    );
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind <> 'opened'"),
        "0"
    );
    neighbour.let_go();
    // Nothing is started anew and nobody comes again.
    wait_until(PATIENCE, "the payments to be found", || {
        world.value("SELECT count(*) FROM invoices WHERE outcome = 'paid'") == "2"
    });
    assert_eq!(world.tell_as_it_is(&told).status, 200);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
}

/// SQLite's locks belong to a process and are gone when it closes any descriptor of the file. A daemon that opened its
/// ledger by other means beside SQLite would lose them, and the next program to close the file would take itself for the
/// last one and throw the log away, with all that was acknowledged since.
#[test]
fn a_program_that_opens_and_closes_the_ledger_takes_nothing_away() {
    let mut world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let (ledger, log) = ("state/ledger.db", "state/ledger.db-wal");
    let inode = |file: &str| {
        fs::metadata(world.dir().join(file))
            .expect("it is there")
            .ino()
    };
    let locks = fs::read_to_string("/proc/locks").expect("Linux");
    let own = format!(" {} ", world.serve_pid());
    let file = format!(":{} ", inode(ledger));
    let held = |line: &&str| line.contains(&own) && line.contains(&file);
    assert!(
        locks.lines().any(|line| held(&line)),
        "the daemon holds its lock:\n{locks}"
    );
    let before = inode(log);
    let neighbour = world.neighbour();
    neighbour.write();
    drop(neighbour);
    assert_eq!(
        inode(log),
        before,
        "the daemon's log is still the one at its place"
    );
    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell(&paid, &paid.object.to_string()).status, 200);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert_eq!(world.value("SELECT outcome FROM invoices"), "paid");
}
