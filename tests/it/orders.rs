//! The same notifications in a thousand orders, against one running daemon. What is at stake: the network delivers in any
//! order, twice, and side by side, and neither what the shop reads nor what its scripts are told may depend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Write as _, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::harness::dice::{self, Dice};
use crate::harness::{Issued, Setup, Wire, World, head, wait_until};

/// Invoices, and so orders, unless `TILLD_ORDERS` says otherwise.
const ORDERS: usize = 1_000;
/// Connections the notifications come by, each kept for all it carries.
const CONNECTIONS: usize = 6;
/// Commands that open invoices at once; more gain nothing on two cores.
const OPENERS: usize = 4;
/// How many notifications of each invoice are sent a second time, and some of these a third.
const MORE: usize = 2;
/// What is told of each invoice besides its opening: in the end it is paid. `waiting` is stale unless it comes early, and
/// `settling`, which no list sorts, was written in the same millisecond as `paid`, so only a poll can tell.
const CLAIMS: [(&str, i64); 4] = [("waiting", 1), ("processing", 60), TRUTH, ("settling", 120)];
/// What the service itself says when it is polled, and how many milliseconds after the opening.
const TRUTH: (&str, i64) = ("paid", 120);
/// Until all doubts are asked about, at 100 questions a second, and all scripts have run.
const BOUND: Duration = Duration::from_mins(3);

/// A02, A03, A04: whatever the order, the repetition and the company, each invoice ends in the same state, no status is an
/// event twice, the payment is one event, and every delivery is run once. `TILLD_SEED` repeats a run, as far as
/// connections that race can be repeated.
#[test]
fn a_thousand_orders_of_the_same_notifications_end_the_same() {
    let (orders, seed) = (dice::count("TILLD_ORDERS", ORDERS), dice::seed());
    // A test's output may have no reader.
    drop(writeln!(
        stderr(),
        "TILLD_SEED={seed} TILLD_ORDERS={orders}"
    ));
    let told = [
        "paid",
        "status:waiting",
        "status:processing",
        "status:settling",
    ];
    let world = Setup::new()
        .plain()
        .quiet()
        .sandbox(&[&format!("--pool={orders}")])
        .set("log_level", "\"info\"")
        .set("poller.concurrency", 16)
        .noting_hook("told", &told)
        .start();
    let invoices = open(&world, orders);
    let hands = deal(&invoices, &mut Dice::new(seed));
    thread::scope(|scope| {
        for hand in &hands {
            scope.spawn(|| tell_in_turn(&world, hand));
        }
    });
    let open = "SELECT (SELECT count(*) FROM invoices WHERE doubt) \
                + (SELECT count(*) FROM deliveries WHERE state <> 'done')";
    wait_until(
        BOUND,
        "every doubt to be asked about and every script to have run",
        || world.value(open) == "0",
    );
    look(&world, orders);
}

/// Opens so many invoices with the real command, and lets the service know each as paid without telling.
fn open(world: &World, orders: usize) -> Vec<Issued> {
    let next = AtomicUsize::new(0);
    let each = |act: &(dyn Fn(usize) + Sync)| {
        next.store(0, Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..OPENERS {
                scope.spawn(|| {
                    while let Some(at) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < orders)
                    {
                        act(at);
                    }
                });
            }
        });
    };
    each(&|at| {
        let ran = world.try_create(&format!("A-{at}"));
        assert_eq!(ran.code, 0, "{ran:?}");
    });
    let invoices = world.all_issued();
    assert_eq!(invoices.len(), orders);
    let (status, ms) = TRUTH;
    each(&|at| {
        let invoice = invoices.get(at).expect("as many as orders");
        let fields = json!({ "status": status, "updatedAt": invoice.at(ms) });
        world.dictate_fields(invoice, &fields);
    });
    invoices
}

/// A notification of one invoice, as text.
type Told<'a> = (&'a Issued, String);

/// Every claim of every invoice, some more than once, shuffled and dealt to the connections.
fn deal<'a>(invoices: &'a [Issued], dice: &mut Dice) -> Vec<Vec<Told<'a>>> {
    let mut all = Vec::new();
    for invoice in invoices {
        let opening = invoice.object.to_string();
        let claims = CLAIMS.map(|(status, ms)| invoice.saying(status, &invoice.at(ms)));
        let mut own: Vec<_> = claims.into_iter().chain([opening]).collect();
        for _ in 0..MORE {
            let again = own.get(dice.below(own.len())).cloned();
            own.extend(again);
        }
        all.extend(own.into_iter().map(|body| (invoice, body)));
    }
    for last in (1..all.len()).rev() {
        all.swap(last, dice.below(last + 1));
    }
    let each = all.len().div_ceil(CONNECTIONS).max(1);
    all.chunks(each).map(<[_]>::to_vec).collect()
}

fn tell_in_turn(world: &World, hand: &[Told<'_>]) {
    let mut wire = Wire::open(world.listen());
    for (invoice, body) in hand {
        let target = World::target(&invoice.reference);
        let headers = [("X-Notification-Token", invoice.token.as_str())];
        let head = head("shop.example", "POST", &target, &headers, Some(body.len()));
        wire.send(&(head + body));
        let answer = wire.answer().expect("the connection is kept");
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
    }
}

fn look(world: &World, orders: usize) {
    let count = orders.to_string();
    let orders = count.as_str();
    let states = "SELECT status, outcome, doubt, attention, amount_reported, count(*) FROM invoices \
                  GROUP BY 1, 2, 3, 4, 5";
    assert_eq!(
        world.sql(states),
        [["paid", "paid", "0", "", "599.80", orders]]
    );
    let twice = "SELECT order_id, status, count(*) FROM events GROUP BY 1, 2 HAVING count(*) > 1";
    assert_eq!(
        world.sql(twice),
        Vec::<Vec<String>>::new(),
        "one event a status"
    );
    let paid = "SELECT count(*), count(DISTINCT order_id) FROM events WHERE kind = 'paid'";
    assert_eq!(world.sql(paid), [[orders, orders]]);

    let mut runs = BTreeMap::new();
    for line in world.hook_log("told") {
        *runs.entry(line).or_insert(0) += 1;
    }
    let owed = "SELECT event_id || ' ' || kind || ' ' || order_id || ' 1' FROM events \
                WHERE kind IN ('status', 'paid')";
    let owed: BTreeSet<String> = world.sql(owed).concat().into_iter().collect();
    assert!(runs.values().all(|times| *times == 1), "run twice");
    assert!(runs.keys().eq(&owed), "each event is one run");
}
