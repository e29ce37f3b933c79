//! A rush of orders: creates wait for no poll and are not refused, each lane of the service is left alone by its own wish, and
//! polls are as fast as the service's answers allow.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::control::client::{Line, problem, wish};
use crate::harness::{Heard, PATIENCE, Service, Setup, World, wait_until};

/// Creates under way at once, at most.
const PLACES: usize = 64;

/// How many creates are at the service, and how many were at once.
#[derive(Default)]
struct Crowd {
    now: usize,
    most: usize,
}

/// The service's answer to a create.
fn opened(heard: &Heard) -> String {
    let asked: Value = serde_json::from_str(&heard.body).expect("JSON");
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let order = field("internalId");
    json!({
        "id": format!("inv-{}", order.as_str().unwrap_or_default()),
        "internalId": order,
        "direction": "in",
        "status": "new",
        "paymentMethod": field("paymentMethod"),
        "merchantName": "Shop",
        "amount": field("amount").to_string(),
        "currency": field("currency"),
        "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z",
    })
    .to_string()
}

/// A world with this service, logged in there.
fn logged_in(setup: Setup, service: &Service) -> World {
    let mut world = setup.quiet().service(&service.url()).not_served().start();
    world.tilld(&["login"]).ends_with(0);
    world.start_serve();
    world
}

fn create(world: &World, order: &str) -> u16 {
    world.wish(order).status
}

/// Opens so many orders, each over a connection of its own, and gives what they were answered.
fn rush(world: &World, orders: usize) -> Vec<u16> {
    thread::scope(|scope| {
        let opening: Vec<_> = (0..orders)
            .map(|number| scope.spawn(move || create(world, &format!("A-{number}"))))
            .collect();
        let ended = opening.into_iter().map(|one| one.join().expect("no panic"));
        ended.collect()
    })
}

/// The service answers none before as many are there as may be. A pace of polls, or fewer places, would end in time-outs.
#[test]
fn creates_fill_their_places_whatever_the_pace_of_polls_and_more_wait_for_one() {
    let crowd = Arc::new((Mutex::new(Crowd::default()), Condvar::new()));
    let seen = Arc::clone(&crowd);
    let service = Service::start_concurrent(move |heard| {
        let (crowd, changed) = &*seen;
        let mut there = crowd.lock().expect("no panic there");
        there.now += 1;
        there.most = there.most.max(there.now);
        changed.notify_all();
        let (mut there, _late) = changed
            .wait_timeout_while(there, PATIENCE, |there| there.most < PLACES)
            .expect("no panic there");
        there.now -= 1;
        (201, opened(heard))
    });
    let slow = Setup::new()
        .set("poller.requests_per_second", 1)
        .set("poller.concurrency", 1);
    let world = logged_in(slow, &service);
    let answers = rush(&world, 200);
    assert!(answers.iter().all(|status| *status == 201), "{answers:?}");
    let most = crowd.0.lock().expect("no panic there").most;
    assert_eq!(most, PLACES, "and never more");
}

/// A request that left at a stop might be cut off, and the order would hang.
#[test]
fn what_waits_for_its_turn_at_a_stop_is_not_sent() {
    let held = Arc::new((Mutex::new(Crowd::default()), Condvar::new()));
    let seen = Arc::clone(&held);
    let service = Service::start_concurrent(move |heard| {
        let (crowd, changed) = &*seen;
        let mut there = crowd.lock().expect("no panic there");
        there.now += 1;
        changed.notify_all();
        drop(changed.wait_while(there, |there| there.most == 0));
        (201, opened(heard))
    });
    let mut world = logged_in(Setup::new(), &service);
    let socket = world.control_socket();
    let ask = |order: &str| {
        let body = wish(order, &json!("599.80"));
        Line::ask(&socket, "POST", "/v1/invoices", &[], &body)
    };
    let mut sent: Vec<Line> = (0..PLACES)
        .map(|number| ask(&format!("A-{number}")))
        .collect();
    let (crowd, changed) = &*held;
    let there = crowd.lock().expect("no panic there");
    let (there, late) = changed
        .wait_timeout_while(there, PATIENCE, |there| there.now < PLACES)
        .expect("no panic there");
    assert!(!late.timed_out(), "{}", there.now);
    drop(there);
    let mut waits = ask("B-1");
    world.round_trips();
    world.ask_to_stop();
    let refused = waits.answer().expect("an answer");
    problem(&refused, 503, "unreachable");
    crowd.lock().expect("no panic there").most = PLACES;
    changed.notify_all();
    for line in &mut sent {
        assert_eq!(line.answer().expect("an answer").status, 201);
    }
    assert_eq!(world.serve_ends(PATIENCE), 0);
    assert_eq!(crowd.lock().expect("no panic there").now, PLACES);
}

#[test]
fn a_cap_on_all_requests_spaces_creates_too() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let service = Service::start_concurrent(move |heard| {
        seen.lock().expect("no panic there").push(Instant::now());
        (201, opened(heard))
    });
    let world = logged_in(Setup::new().set("service.requests_per_second", 5), &service);
    assert!(rush(&world, 8).iter().all(|status| *status == 201));
    let sent = sent.lock().expect("no panic there");
    let took = sent
        .last()
        .zip(sent.first())
        .map(|(last, first)| *last - *first);
    assert!(took >= Some(Duration::from_millis(1_350)), "{took:?}");
}

/// The next answers of one kind are these.
fn answers(world: &World, endpoint: &str, status: u16, body: &str, more: &Value) {
    let mut fault = json!({ "endpoint": endpoint, "status": status, "body": body });
    let fields = more.as_object().expect("fields").clone();
    fault.as_object_mut().expect("fields").extend(fields);
    world.faults(&json!({ "lose": true, "api_status": fault }));
}

fn polling(world: &World, field: &str) -> Value {
    let status = world.call("GET", "/v1/status", "").json();
    status
        .pointer(&format!("/polling/{field}"))
        .cloned()
        .unwrap_or_default()
}

/// What stands before the service wishes nothing in its name: a proxy's page would stop checkout for an hour.
#[test]
fn a_wish_holds_the_requests_it_was_answered_to_and_only_the_services_own_does() {
    let mut world = Setup::new().quiet().start();
    let hour = json!({ "retry_after_s": 3_600 });
    for (number, foreign) in ["<html>busy</html>", "busy", "{}", ""]
        .into_iter()
        .enumerate()
    {
        let order = format!("A-{number}");
        answers(&world, "create", 429, foreign, &hour);
        assert_eq!(create(&world, &order), 503, "{foreign}");
        assert_eq!(create(&world, &order), 201, "{foreign}");
        answers(&world, "fetch", 429, foreign, &hour);
        let poll = ["invoice", "poll", &order];
        world.tilld(&poll).ends_with(8);
        world.tilld(&poll).ends_with(0);
    }
    let own = json!({ "error": "slow down" }).to_string();
    let poll = ["invoice", "poll", "A-0"];
    answers(&world, "fetch", 429, &own, &hour);
    world.tilld(&poll).ends_with(8);
    let refused = world.tilld(&poll).ends_with(8);
    assert!(
        refused.stderr.contains("wants to be left alone"),
        "{refused:?}"
    );
    wait_until(PATIENCE, "the wish in `status`", || {
        polling(&world, "left_alone_until").is_string()
    });
    assert_eq!(create(&world, "B-1"), 201, "polls alone are held");

    answers(&world, "create", 429, &own, &hour);
    assert_eq!(create(&world, "B-2"), 503);
    let sent = world.requests("create");
    assert_eq!(create(&world, "B-2"), 503);
    assert_eq!(world.requests("create"), sent, "not sent");
    wait_until(PATIENCE, "the wish in `status`", || {
        polling(&world, "creates_left_alone_until").is_string()
    });
    // A restart is no way around either of them.
    world.kill9_serve();
    world.start_serve();
    assert_eq!(create(&world, "B-2"), 503);
    assert_eq!(world.requests("create"), sent, "not sent");
    world.tilld(&poll).ends_with(8);
}

#[test]
fn polls_become_slower_at_once_when_answers_are_not_good_and_faster_again_while_they_are() {
    let world = Setup::new().set("poller.requests_per_second", 5).start();
    let orders: Vec<String> = (0..20).map(|number| format!("A-{number}")).collect();
    world.control("POST", "/pool", &json!({ "free": orders.len() }));
    world.create_all(&orders);
    let much = "{\"error\":\"too much\"}";
    answers(&world, "fetch", 500, much, &json!({ "times": true }));
    let now = || {
        polling(&world, "requests_per_second_now")
            .as_u64()
            .unwrap_or_default()
    };
    wait_until(PATIENCE, "the slowest pace", || now() == 1);
    assert_eq!(polling(&world, "outage_since"), Value::Null, "it answers");
    let status = world.tilld(&["status"]).stdout;
    let line = "at most 5 polls per second, 4 at once; at present 1\n";
    assert!(status.contains(line), "{status}");
    world.faults(&json!({ "reset": true, "lose": true }));
    wait_until(PATIENCE, "the ceiling", || now() == 5);
}
