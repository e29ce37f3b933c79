//! A follower that does not read: it delays nobody, and is cut off.

use super::client::Stream;
use crate::harness::{PATIENCE, Setup, wait_until};

/// More than the kernel, hyper and the queue of one follower take together, at half a kilobyte each.
const EVENTS: usize = 700;

#[test]
fn a_follower_that_does_not_read_delays_nobody_and_is_cut_off() {
    let world = Setup::new().quiet().set("control.followers", 2).start();
    let issued = world.create("A-1");
    let socket = world.control_socket();
    let mut slow = Stream::follow(&socket, "/v1/events?after=1", &[]);
    let mut fast = Stream::follow(&socket, "/v1/events?after=1", &[]);
    for number in 1..=EVENTS {
        world.another_event(&issued, number);
        let told = fast.next().expect("the other is told");
        assert_eq!(
            told.data.get("status"),
            Some(&format!("step-{number}").into())
        );
    }
    wait_until(PATIENCE, "the place of the one that does not read", || {
        Stream::try_follow(&socket, "/v1/events", &[]).is_ok()
    });
    // By this bound and no other: ten seconds are not over, and no page was waiting.
    let log = world.serve_log();
    let why = "did not read was cut off: as many pieces wait for it as may";
    assert_eq!(log.matches(why).count(), 1, "{log}");
    assert_eq!(log.matches("was cut off").count(), 1, "{log}");
    // What it has is whole as far as it goes, so that it may go on after the last of it.
    let mut last = 1;
    while let Some(told) = slow.next() {
        assert_eq!(told.id, last + 1);
        last = told.id;
    }
    let all = i64::try_from(EVENTS).expect("a number") + 1;
    assert!(1 < last && last < all, "it was told up to {last}");
    let from = last.to_string();
    let mut again = Stream::follow(&socket, "/v1/events", &[("Last-Event-ID", &from)]);
    assert_eq!(again.next().expect("an event").id, last + 1);
}
