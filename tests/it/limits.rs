//! Clients that are slow, silent, or never leave (A18). What is at stake: they must not keep an honest sender from being
//! heard, nor the daemon from stopping.

use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, Setup, Wire, World, head, wait_until};

#[test]
fn an_honest_sender_is_heard_among_six_hundred_that_are_not() {
    const CONNECTIONS: usize = 200;
    const SILENT: usize = 300;
    const SLOW: usize = 50;
    // Enough to be all that is left when the honest one comes.
    const HALVES: usize = CONNECTIONS + 50;
    let world = Setup::new()
        .quiet()
        .set("listener.connections", CONNECTIONS)
        .set("listener.header_time_s", 3)
        .set("listener.body_time_s", 3)
        .start();
    let invoice = world.dictate(&world.create("A-1"), "paid");
    let open = || Wire::open(world.listen());
    let target = World::target(&invoice.reference);
    let begin = head("shop.example", "POST", &target, &[], Some(100));

    let mut silent: Vec<Wire> = (0..SILENT).map(|_| open()).collect();
    let mut slow: Vec<Wire> = (0..SLOW).map(|_| open()).collect();
    for wire in &mut slow {
        wire.try_send("POST /n/");
    }
    let mut halves: Vec<Wire> = (0..HALVES).map(|_| open()).collect();
    for wire in &mut halves {
        wire.try_send(&begin);
        wire.try_send("{");
    }
    let began = Instant::now();
    let answer = world.tell_as_it_is(&invoice);
    let took = began.elapsed();
    assert_eq!(answer.status, 200);
    assert!(took < Duration::from_secs(1), "{took:?}");

    // A byte now and then does not buy more time.
    wait_until(PATIENCE, "the slow ones to be closed", || {
        slow.retain_mut(|wire| wire.try_send("a"));
        slow.is_empty()
    });
    for wire in silent.iter_mut().chain(&mut halves) {
        assert!(wire.is_closed_in_time());
    }
}

#[test]
fn half_a_body_is_answered_and_closed() {
    let world = Setup::new().quiet().set("listener.body_time_s", 1).start();
    let invoice = world.create("A-1");
    let target = World::target(&invoice.reference);
    let mut wire = Wire::open(world.listen());
    wire.send(&head("shop.example", "POST", &target, &[], Some(100)));
    wire.send("{\"id\":");
    let answer = wire.answer().expect("an answer");
    assert_eq!(answer.status_line, "HTTP/1.1 408 Request Timeout");
    assert!(wire.is_closed_in_time());
    let slow =
        "SELECT count(*) FROM refusal WHERE reason = 'body_too_slow' AND invoice IS NOT NULL";
    wait_until(PATIENCE, "the refusal to be written", || {
        world.value(slow) == "1"
    });
}

#[test]
fn a_connection_that_stays_does_not_hold_up_the_stop() {
    // With these, only closing it at once is quick.
    let mut world = Setup::new()
        .quiet()
        .set("listener.drain_s", 120)
        .set("listener.idle_time_s", 300)
        .start();
    let mut wire = Wire::open(world.listen());
    wire.send(&head(
        "shop.example",
        "GET",
        &World::target("AAAAAAAAAAAAAAAAAAAAAA"),
        &[],
        None,
    ));
    assert_eq!(wire.answer().expect("an answer").status, 200);
    assert_eq!(world.stop_serve(Duration::from_secs(10)), 0);
    assert!(wire.is_closed_in_time());
}
