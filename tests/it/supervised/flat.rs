//! Nothing grows with the notifications that were heard: no memory and no descriptor.

use std::fs;
use std::io::{Write as _, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::sockets;
use crate::harness::{Issued, PATIENCE, Setup, Wire, World, dice, head, wait_until};

/// Notifications, unless `TILLD_NOTIFICATIONS` says otherwise.
const NOTIFICATIONS: usize = 1_500;
/// The memory of the second tenth is compared with that of the last: in the first the pages that are kept fill up.
const TENTHS: usize = 10;
/// What the process may have grown between those, bytes. Of a few notifications it is as much as its buffers and the history
/// that is kept may still take.
const GROWTH: u64 = 2 * 1024 * 1024;
const GROWTH_OF_FEW: u64 = 16 * 1024 * 1024;
/// With fewer notifications not even the kept history is full.
const MANY: usize = 500_000;
/// After so many on one connection the sender makes another.
const ON_ONE: usize = 100;
const SENDERS: usize = 4;
const INVOICES: usize = 8;
/// Descriptors of readers of the ledger that may be opened when several ask at once, and are kept: two each.
const READERS: usize = 8;

/// Memory that no file stands behind, bytes.
fn memory(world: &World) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", world.serve_pid())).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.expect("a number") * 1024
}

/// What is open, in order, by the name the kernel gives it.
fn descriptors(world: &World) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{}/fd", world.serve_pid())).expect("it runs");
    let links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let mut names: Vec<String> = links.map(|link| link.display().to_string()).collect();
    names.sort();
    names
}

/// A moment of this day that is later for each number.
fn moment(number: usize) -> String {
    let (seconds, millis) = (number / 1_000, number % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("2026-11-27T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// Sends all up to `until`, each with news of one of the invoices.
fn sends(world: &World, issued: &[Issued], next: &AtomicUsize, until: usize) {
    loop {
        let mut wire = Wire::open(world.listen());
        for _ in 0..ON_ONE {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= until {
                return;
            }
            let one = issued.get(number % issued.len()).expect("one of them");
            let body = one.saying("waiting", &moment(number));
            let headers = [
                ("Content-Type", "application/json"),
                ("X-Notification-Token", one.token.as_str()),
            ];
            let target = World::target(&one.reference);
            let length = Some(body.len());
            wire.send(&(head("shop.example", "POST", &target, &headers, length) + &body));
            let answer = wire.answer().expect("an answer");
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
}

#[test]
fn memory_and_descriptors_are_flat_over_many_notifications() {
    let count = dice::count("TILLD_NOTIFICATIONS", NOTIFICATIONS);
    let mut world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        // They are kept within the second tenth.
        .set("ledger.history_rows", (count / TENTHS).clamp(200, 100_000))
        .start();
    let orders: Vec<String> = (1..=INVOICES).map(|number| format!("A-{number}")).collect();
    let issued = world.create_all(&orders);
    // What is opened once, for the first request of its kind, stays open.
    let (next, quiet) = (AtomicUsize::new(0), sockets(world.serve_pid()));
    sends(&world, &issued, &next, INVOICES);
    let gone = || sockets(world.serve_pid()) <= quiet;
    wait_until(PATIENCE, "the connection to be gone", gone);
    let before = descriptors(&world);
    let mut held = Vec::new();
    for tenth in 1..=TENTHS {
        let began = Instant::now();
        // Each takes one number that is nobody's to send.
        next.store(count * (tenth - 1) / TENTHS, Ordering::Relaxed);
        let until = count * tenth / TENTHS;
        thread::scope(|scope| {
            for _ in 0..SENDERS {
                scope.spawn(|| sends(&world, &issued, &next, until));
            }
        });
        let (memory, took) = (memory(&world), began.elapsed());
        held.push(memory);
        let line = format!(
            "{until:>9} notifications: {:>6} KiB, {:>3} descriptors, the last {} in {:.1} s\n",
            memory / 1024,
            descriptors(&world).len(),
            count / TENTHS,
            took.as_secs_f64()
        );
        // A test's output may have no reader.
        drop(stdout().write_all(line.as_bytes()));
    }
    wait_until(PATIENCE, "the connections to be gone", gone);
    let after = descriptors(&world);
    let of_ledger = |names: &[String]| {
        let is_its = |name: &&String| name.contains("/ledger.db");
        names.iter().filter(is_its).count()
    };
    let (own, own_before) = (of_ledger(&after), of_ledger(&before));
    assert!(own <= own_before + READERS, "{before:#?} {after:#?}");
    assert!(
        after.len() - own <= before.len() - own_before,
        "{before:#?} {after:#?}"
    );
    let (second, last) = (held.get(1).expect("ten"), held.last().expect("ten"));
    let most = if count < MANY { GROWTH_OF_FEW } else { GROWTH };
    assert!(last.saturating_sub(*second) <= most, "{held:?}");
    assert_eq!(world.stop_serve(PATIENCE), 0);
}
