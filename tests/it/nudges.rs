//! Notifications that cannot be authenticated: each is a reason to ask, and no number of them is more than that. What is at
//! stake: a payment is found although its notification came in a way we do not know, and strangers who know an address
//! cost neither the service nor the merchant anything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Answer, Issued, PATIENCE, Setup, Wire, World, head, wait_for, wait_until};

#[test]
fn a_notification_that_cannot_be_read_makes_one_poll_and_leaves_one() {
    let world = Setup::new()
        .quiet()
        .set("listener.presentations", "[\"header:X-Elsewhere\"]")
        .noting_hook("fulfil", &["paid"])
        .start();
    let invoice = world.create("A-1");
    let asked = world.requests("fetch");
    world.happens(&invoice, &json!({ "status": "paid" }));
    let paid = Instant::now();
    wait_until(PATIENCE, "the payment to be found", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    // The plan alone would ask in a day.
    assert!(paid.elapsed() < Duration::from_secs(10));
    assert_eq!(world.invoice("A-1", "found_by"), "poll");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);

    world.happens(&invoice, &json!({ "status": "refunded" }));
    let due = "SELECT due_ms - (SELECT min(at_ms) FROM refusal) FROM poll WHERE due_ms NOT NULL";
    let after_ms = wait_for(PATIENCE, "a poll to be planned", || {
        world.sql(due).concat().pop()
    });
    let after_ms: u32 = after_ms.parse().expect("a number");
    // The first refusal is written, and counts, up to a second after it came.
    assert!((60_000..63_000).contains(&after_ms), "{after_ms}");
    assert_eq!(world.requests("fetch"), asked + 1);
    assert_eq!(
        world.value("SELECT DISTINCT reason FROM refusal"),
        "token_missing"
    );
}

/// Senders at once in the flood.
const SENDERS: usize = 4;
/// Forged notifications of each, while all else goes on.
const EACH: usize = 2_000;
/// Forged notifications while nothing can be written: more of both kinds than are gathered meanwhile.
const AT_A_LOCK: usize = 4_200;
/// Invoices whose refs the forger knows.
const KNOWN: usize = 6;
/// Refusals that are kept.
const KEPT: usize = 100;
/// Requests to the service per second.
const CAP: u64 = 2;

#[test]
fn a_flood_of_forgeries_costs_next_to_nothing() {
    let world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        .set("ledger.refusal_rows", KEPT)
        .set("poller.requests_per_second", CAP)
        .start();
    let known: Vec<Issued> = (0..KNOWN)
        .map(|number| world.create(&format!("A-{number}")))
        .collect();
    let other = world.create("B-1");
    let (asked, began) = (world.requests("fetch"), Instant::now());
    let requests = forged(&known);
    let (listen, over) = (world.listen(), AtomicBool::new(false));
    let told = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| scope.spawn(|| send(&mut Wire::open(listen), &requests, EACH)))
            .collect();
        let honest = scope.spawn(|| {
            let mut told = 0_u32;
            while !over.load(Ordering::Relaxed) || told == 0 {
                told += 1;
                tell_in_time(&world, &other, told);
            }
            told
        });
        let first = senders
            .into_iter()
            .map(|sender| sender.join().expect("served"));
        let first: Vec<Answer> = first.collect();
        over.store(true, Ordering::Relaxed);
        assert!(first.windows(2).all(|pair| pair.first() == pair.last()));
        honest.join().expect("served")
    });

    // Whatever is beyond what is gathered is counted.
    let neighbour = world.neighbour();
    neighbour.hold();
    send(&mut Wire::open(listen), &requests, AT_A_LOCK);
    neighbour.let_go();
    let all = SENDERS * EACH + AT_A_LOCK;
    wait_until(PATIENCE, "every refusal to be written or counted", || {
        let written = world.value("SELECT coalesce(max(id), 0) FROM refusal");
        let written: usize = written.parse().expect("a number");
        written + counted(&world.serve_log()) == all
    });
    assert!(counted(&world.serve_log()) > 0);

    // As many for known invoices, and as many others.
    let rings = "SELECT count(*) AS kept FROM refusal GROUP BY invoice IS NULL";
    let most = world.value(&format!("SELECT max(kept) FROM ({rings})"));
    assert_eq!(most, KEPT.to_string());
    let events = "SELECT order_id, count(*) FROM events WHERE kind <> 'opened' GROUP BY order_id";
    assert_eq!(world.sql(events), [["B-1", told.to_string().as_str()]]);
    let polled = || world.requests("fetch") - asked;
    wait_until(PATIENCE, "the service to be asked", || polled() > 0);
    let polls = polled();
    assert!(
        (1..=CAP * (began.elapsed().as_secs() + 1) + 5).contains(&polls),
        "{polls}"
    );
    // And not more than one at once and one a minute for each invoice.
    let most = 2 + began.elapsed().as_secs() / 60;
    assert!(
        polls <= most * u64::try_from(KNOWN).expect("few"),
        "{polls}"
    );
}

/// Requests without the right token: for known refs, for unknown ones, and on the bare path for known and unknown ids.
fn forged(known: &[Issued]) -> Vec<String> {
    let forge = |target: &str, body: &str| {
        let wrong = [("X-Notification-Token", "guessed-guessed-guessed-guessed")];
        head("shop.example", "POST", target, &wrong, Some(body.len())) + body
    };
    let strange = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let each = |invoice: &Issued| {
        let body = invoice.saying("paid", &invoice.at(120));
        let nobodys = body.replace(&invoice.id, "inv-of-nobody");
        [
            forge(&World::target(&invoice.reference), &body),
            forge(&strange, &body),
            forge(&World::target(""), &body),
            forge(&World::target(""), &nobodys),
        ]
    };
    known.iter().flat_map(each).collect()
}

/// Sends so many requests over one connection; every one is refused alike. Gives the answer.
fn send(wire: &mut Wire, requests: &[String], times: usize) -> Answer {
    let mut first = None;
    for request in requests.iter().cycle().take(times) {
        wire.send(request);
        let answer = wire.answer().expect("an answer").without_date();
        let first = first.get_or_insert_with(|| answer.clone());
        assert_eq!(answer, *first);
        assert_eq!(answer.status, 401);
    }
    first.expect("at least one")
}

/// An authentic notification that is answered within the patience of any sender.
fn tell_in_time(world: &World, invoice: &Issued, number: u32) {
    let sent = Instant::now();
    let at = invoice.at(i64::from(number) + 1);
    let body = invoice.saying(&format!("step-{number}"), &at);
    assert_eq!(world.tell(invoice, &body).status, 200);
    assert!(
        sent.elapsed() < Duration::from_secs(5),
        "{:?}",
        sent.elapsed()
    );
}

/// How many refusals the daemon says it did not record.
fn counted(log: &str) -> usize {
    let told = "more requests were refused than are recorded: ";
    let counts = log
        .split(told)
        .skip(1)
        .filter_map(|rest| rest.split(' ').next());
    counts.filter_map(|count| count.parse::<usize>().ok()).sum()
}
