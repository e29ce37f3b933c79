//! One invoice whose script always fails and one whose script hangs, among many: the others are done as if the two did not
//! exist.

use std::fs;
use std::io::{Write as _, stderr};
use std::thread;
use std::time::Duration;

use crate::harness::dice;
use crate::harness::{Issued, PATIENCE, Setup, Wire, World, head, wait_until};

/// Invoices, unless `TILLD_INVOICES` says otherwise.
const INVOICES: usize = 60;
/// Connections the notifications come by.
const CONNECTIONS: usize = 4;
/// Until all scripts have run, for a thousand invoices too.
const BOUND: Duration = Duration::from_mins(5);

/// Hangs for one order until somebody writes into a pipe, fails for another, and notes all else. `read` costs no processor
/// while it waits.
const SCRIPT: &str = "case $TILLD_ORDER_ID in\n\
    hangs) mkfifo \"$1.go\"; read -r go < \"$1.go\" ;;\n\
    fails) exit 1 ;;\n\
    esac\n\
    echo \"$TILLD_ORDER_ID\" >> \"$1\"";

/// The long form, with its command in `CONTRIBUTING.md`, plays them with the two and without them, and prints how long
/// after its event the last run of an order had ended.
#[test]
fn two_troublemakers_hold_up_nobody() {
    let invoices = dice::wanted("TILLD_INVOICES");
    let with = play(invoices.unwrap_or(INVOICES), ["hangs", "fails"]);
    if invoices.is_some() {
        let without = play(invoices.unwrap_or(INVOICES), ["calm", "quiet"]);
        for (which, delays) in [("with", &with), ("without", &without)] {
            let at = |index: usize| delays.get(index).copied().unwrap_or_default();
            // A test's output may have no reader.
            drop(writeln!(
                stderr(),
                "{which:>7} the two: {} orders, from event to end of its run: median {} ms, worst {} ms",
                delays.len(),
                at(delays.len() / 2),
                at(delays.len() - 1),
            ));
        }
    }
}

/// Has so many invoices paid, those of these two orders first. The delays of all others, sorted.
fn play(invoices: usize, two: [&str; 2]) -> Vec<i64> {
    let mut world = Setup::new()
        .quiet()
        .sandbox(&[&format!("--pool={invoices}")])
        .set("log_level", "\"info\"")
        .set("outbox.concurrency", 4)
        // As it is by default: the one that fails is not given up while the others are waited for.
        .set("outbox.schedule_s", "[0, 5, 30, 120, 600, 3600]")
        .hook("fulfil", &["paid"], SCRIPT)
        .within_s(3_600)
        .start();
    let others = (0..invoices - two.len()).map(|number| format!("A-{number}"));
    let orders: Vec<String> = two.map(str::to_owned).into_iter().chain(others).collect();
    let (first, rest): (Vec<Issued>, Vec<Issued>) = world
        .create_all(&orders)
        .into_iter()
        .partition(|issued| two.contains(&issued.order.as_str()));
    tell(&world, &first);
    // All of them have begun, or ended, before anybody else comes.
    wait_until(PATIENCE, "the first two to begin", || {
        world.value("SELECT count(*) FROM deliveries WHERE attempts = 0") == "0"
    });
    let share = rest.len().div_ceil(CONNECTIONS);
    thread::scope(|scope| {
        for part in rest.chunks(share) {
            scope.spawn(|| tell(&world, part));
        }
    });
    let done = "SELECT count(*) FROM deliveries d JOIN events e ON e.event_id = d.event_id \
                WHERE d.state = 'done' AND e.order_id LIKE 'A-%'";
    wait_until(BOUND, "all others to be done", || {
        world.value(done) == rest.len().to_string()
    });
    if two == ["hangs", "fails"] {
        look(&mut world, &rest);
    }
    let delays = "SELECT a.ended_ms - e.at_ms FROM attempts a JOIN events e ON e.event_id = a.event_id \
                  WHERE a.result = 'exit 0' AND e.order_id LIKE 'A-%' ORDER BY 1";
    let delays = world.sql(delays).concat();
    delays
        .iter()
        .map(|text| text.parse().expect("milliseconds"))
        .collect()
}

/// The one still hangs, the other still waits, and each of the rest ran once. Ends both.
fn look(world: &mut World, rest: &[Issued]) {
    let state = "SELECT e.order_id, d.state FROM deliveries d JOIN events e ON e.event_id = d.event_id \
                 WHERE e.order_id NOT LIKE 'A-%' ORDER BY 1";
    let wanted = [["fails", "waiting"], ["hangs", "running"]];
    // The one that fails may be at it this moment.
    wait_until(PATIENCE, "the failing one to wait again", || {
        world.sql(state) == wanted
    });
    let mut ran = world.hook_log("fulfil");
    let mut orders: Vec<&str> = rest.iter().map(|issued| issued.order.as_str()).collect();
    ran.sort_unstable();
    orders.sort_unstable();
    assert_eq!(ran, orders, "each was run once");
    let failed = "SELECT DISTINCT a.result FROM attempts a JOIN events e ON e.event_id = a.event_id \
                  WHERE e.order_id = 'fails'";
    assert_eq!(world.sql(failed), [["exit 1"]]);
    fs::write(world.dir().join("hooks/fulfil.log.go"), "go\n").expect("it reads");
    wait_until(PATIENCE, "the hanging one to end", || {
        world.hook_log("fulfil").contains(&"hangs".to_owned())
    });
}

/// Notifications that these were paid, on one connection.
fn tell(world: &World, invoices: &[Issued]) {
    let mut wire = Wire::open(world.listen());
    for issued in invoices {
        let body = issued.saying("paid", &issued.at(1));
        let target = World::target(&issued.reference);
        let headers = [("X-Notification-Token", issued.token.as_str())];
        wire.send(&(head("shop.example", "POST", &target, &headers, Some(body.len())) + &body));
        let answer = wire.answer().expect("the connection is kept");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}
