//! Whose turn it is: one invoice's hooks one after another in the order of its events, whichever hooks they are, and a
//! burst of payments waits in the outbox and never in an answer to the service (A40).

use std::fs;

use super::{WAIT, go};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Notes begin and end in a file that all hooks share, and holds the first order where it is told to.
const TAKES_TURNS: &str = r#"
    all=${1%/*}/turns me="$TILLD_ORDER_ID $TILLD_STATUS"
    echo "$me begins" >> "$all"
    while [ "$me" = "A-1 waiting" ] && [ ! -e "$1.go" ]; do sleep 0.02; done
    echo "$me ends" >> "$all"
"#;

fn turns(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.dir().join("hooks/turns")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_long_hook_of_an_earlier_status_holds_back_the_payment_of_its_own_invoice_alone() {
    let world = Setup::new()
        .quiet()
        .hook("waits", &["status:waiting"], TAKES_TURNS)
        .hook("fulfil", &["paid"], TAKES_TURNS)
        .start();
    let slow = world.create("A-1");
    let waiting = world.dictate(&slow, "waiting");
    assert_eq!(world.tell_as_it_is(&waiting).status, 200);
    wait_until(PATIENCE, "the long hook", || turns(&world).len() == 1);
    // The payment is heard and answered at once, and its hook owed; it does not run.
    let paid = world.dictate(&waiting, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    assert_eq!(world.invoice("A-1", "outcome"), "paid");
    world.pay("A-2");
    wait_until(PATIENCE, "the other order", || {
        turns(&world).contains(&"A-2 paid ends".to_owned())
    });
    let states = "SELECT hook || ' ' || state || ' ' || attempts FROM deliveries \
                  WHERE order_id = 'A-1' ORDER BY hook";
    assert_eq!(
        world.sql(states).concat(),
        ["fulfil waiting 0", "waits running 1"]
    );
    fs::write(go(&world, "waits"), "").expect("written");
    world.settle();
    let mine: Vec<String> = turns(&world)
        .into_iter()
        .filter(|line| line.starts_with("A-1"))
        .collect();
    let wanted = [
        "A-1 waiting begins",
        "A-1 waiting ends",
        "A-1 paid begins",
        "A-1 paid ends",
    ];
    assert_eq!(mine, wanted);
}

/// Orders of the burst, and runs at once.
const ORDERS: usize = 40;
const AT_ONCE: usize = 4;

#[test]
fn a_burst_of_payments_waits_in_the_outbox() {
    let script = format!("echo begins >> \"$1\"; {WAIT}; echo ends >> \"$1\"");
    let world = Setup::new()
        .quiet()
        .sandbox(&["--pool=1000"])
        .set("outbox.concurrency", AT_ONCE)
        .set("outbox.slow_concurrency", 0)
        .hook("fulfil", &["paid"], &script)
        .start();
    let orders: Vec<String> = (0..ORDERS).map(|number| format!("A-{number}")).collect();
    // Not one answer waits for a hook: all are told while none of them can end.
    for issued in world.create_all(&orders) {
        let paid = world.dictate(&issued, "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    }
    let heard = "SELECT count(*) FROM invoices WHERE outcome = 'paid'";
    assert_eq!(world.value(heard), ORDERS.to_string());
    wait_until(PATIENCE, "all places to be taken", || {
        world.hook_log("fulfil").len() >= AT_ONCE
    });
    assert_eq!(world.hook_log("fulfil"), ["begins"; AT_ONCE]);
    fs::write(go(&world, "fulfil"), "").expect("written");
    world.settle();
    let (mut now, mut most) = (0, 0);
    for line in world.hook_log("fulfil") {
        if line == "begins" {
            now += 1;
        } else {
            now -= 1;
        }
        most = most.max(now);
    }
    assert_eq!((now, most), (0, AT_ONCE));
    let runs = "SELECT count(*), count(DISTINCT order_id) FROM deliveries WHERE state = 'done' AND attempts = 1";
    let all = ORDERS.to_string();
    assert_eq!(world.sql(runs), [[all.clone(), all]]);
}
