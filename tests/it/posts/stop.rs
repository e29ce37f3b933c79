//! Posts under way when tilld stops or is killed: none is lost, and none is called failed for it.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::endpoint::{Endpoint, Say, says};
use super::results;
use crate::harness::{PATIENCE, Setup, wait_until};
use crate::pauses::stand_still;

#[test]
fn a_post_under_way_may_finish_while_tilld_stops() {
    let endpoint = Endpoint::start(&[Say::Held]);
    let mut world = Setup::new()
        .quiet()
        .set("outbox.drain_s", 30)
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the post", || endpoint.asked().len() == 1);
    let serve = i32::try_from(world.serve_pid())
        .ok()
        .and_then(Pid::from_raw);
    kill_process(serve.expect("a process id"), Signal::TERM).expect("it lives");
    wait_until(PATIENCE, "the wish to be heard", || {
        world
            .serve_log()
            .contains("waiting up to 30s for running hooks")
    });
    endpoint.go_on();
    assert_eq!(world.serve_ends(PATIENCE), 0);
    assert_eq!(results(&world, "shop"), ["http 200"]);
}

/// The answer came while tilld stood still beyond the hook's time.
#[test]
fn an_answer_that_waits_to_be_read_is_not_late() {
    let endpoint = Endpoint::start(&[Say::Held]);
    let world = Setup::new()
        .quiet()
        .post_hook("shop", &["paid"], &endpoint.url())
        .within_s(3)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the post", || endpoint.asked().len() == 1);
    stand_still(&world, Duration::from_secs(4), || endpoint.go_on());
    world.settle();
    assert_eq!(results(&world, "shop"), ["http 200"]);
}

#[test]
fn a_post_that_outlasts_the_stop_is_interrupted_and_comes_again() {
    let endpoint = Endpoint::start(&[Say::Held, says(200)]);
    let mut world = Setup::new()
        .quiet()
        .set("outbox.drain_s", 0)
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the post", || endpoint.asked().len() == 1);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert_eq!(results(&world, "shop"), ["interrupted"]);
    let waits = "SELECT state || attempts FROM deliveries";
    assert_eq!(world.value(waits), "waiting1");
    world.start_serve();
    world.settle();
    assert_eq!(results(&world, "shop"), ["interrupted", "http 200"]);
    endpoint.go_on();
}

#[test]
fn a_post_of_a_killed_daemon_is_waited_for_by_nobody_and_comes_again() {
    let endpoint = Endpoint::start(&[Say::Held, says(200)]);
    let mut world = Setup::new()
        .quiet()
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the post", || endpoint.asked().len() == 1);
    world.kill9_serve();
    // The shop still works at the first one; a hook may take 30 s, and nobody waits as long.
    world.start_serve();
    world.settle();
    assert_eq!(results(&world, "shop"), ["interrupted", "http 200"]);
    let ids: Vec<String> = endpoint
        .asked()
        .iter()
        .map(|asked| asked.header("webhook-id").to_owned())
        .collect();
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    assert_eq!(ids, [event.clone(), event], "one event, one id");
    endpoint.go_on();
}
