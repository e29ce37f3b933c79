//! A ledger that was put back from a copy gives its numbers a second time. At stake: a shop that goes on after the last number it
//! saw, hears nothing of what happens from then on, and is told that all is well.

use std::fs;

use serde_json::{Value, json};

use super::client::{Line, Stream, problem, text};
use crate::harness::{Answer, PATIENCE, Setup, World, wait_until};

/// A ledger with 16 events that was put back to 13 of them; the orders of the lost ones are `L-…`.
struct Restored(World);

impl Restored {
    fn start() -> Self {
        let mut world = Setup::new().quiet().sandbox(&["--pool=100"]).start();
        for at in 1..=13 {
            world.create(&format!("A-{at}"));
        }
        let copy = world.dir().join("copy.db");
        world
            .tilld(&["db", "backup", &copy.to_string_lossy()])
            .ends_with(0);
        for at in 14..=16 {
            world.create(&format!("L-{at}"));
        }
        assert_eq!(world.value("SELECT max(seq) FROM events"), "16");
        put_back(&mut world, &copy);
        Self(world)
    }
}

fn put_back(world: &mut World, copy: &std::path::Path) {
    assert_eq!(world.stop_serve(PATIENCE), 0);
    replace(world, copy);
    world.start_serve();
}

fn replace(world: &World, copy: &std::path::Path) {
    for log in ["db-wal", "db-shm"] {
        drop(fs::remove_file(world.ledger().with_extension(log)));
    }
    let new = world.ledger().with_extension("new");
    fs::copy(copy, &new).expect("a copy");
    fs::rename(new, world.ledger()).expect("it is put back");
}

fn orders(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let events = json.get("events").and_then(Value::as_array).cloned();
    let events = events.expect("events");
    let order = |event: &Value| {
        event
            .get("order_id")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    events.iter().filter_map(order).collect()
}

/// It says where to go on, and that is right: what comes behind it is all that was not seen.
#[track_caller]
fn goes_on(world: &World, refused: &Answer, after: i64, generation: i64) -> Vec<String> {
    problem(refused, 410, "ledger");
    assert_eq!(text(refused, "/type"), "urn:tilld:problem:restored");
    let json = refused.json();
    assert_eq!(json.get("after"), Some(&json!(after)), "{json}");
    assert_eq!(json.get("generation"), Some(&json!(generation)), "{json}");
    let target = format!("/v1/events?after={after}&generation={generation}");
    let answer = world.call("GET", &target, "");
    assert_eq!(answer.status, 200, "{answer:?}");
    orders(&answer)
}

#[test]
fn a_number_of_a_ledger_that_was_lost_is_refused_with_the_one_to_go_on_after() {
    let Restored(world) = Restored::start();
    world.create("N-14");
    world.create("N-15");
    let socket = world.control_socket();
    let get = |target: &str| world.call("GET", target, "");
    let new = ["N-14", "N-15"];
    // By the number alone, and by a long poll.
    assert_eq!(goes_on(&world, &get("/v1/events?after=16"), 13, 1), new);
    assert_eq!(
        goes_on(&world, &get("/v1/events?after=16&wait=300"), 13, 1),
        new
    );
    let refused = |id: &str| {
        let mut line = Line::ask(
            &socket,
            "GET",
            "/v1/events?after=0",
            &[("Accept", "text/event-stream"), ("Last-Event-ID", id)],
            "",
        );
        line.answer().expect("an answer")
    };
    assert_eq!(goes_on(&world, &refused("16"), 13, 1), new);
    assert_eq!(goes_on(&world, &refused("0.16"), 13, 1), new);
    // The numbers have come past it: the generation shows it all the same.
    for at in 16..=20 {
        world.create(&format!("N-{at}"));
    }
    let all = goes_on(&world, &refused("0.16"), 13, 1);
    assert_eq!(all.len(), 7, "{all:?}");
    let all = goes_on(&world, &get("/v1/events?after=16&generation=0"), 13, 1);
    assert_eq!(all.len(), 7, "{all:?}");
    // Who lay behind the copy goes on there, and is told nothing twice.
    let all = goes_on(&world, &refused("0.12"), 12, 1);
    assert_eq!(all.first().map(String::as_str), Some("A-13"));
    assert_eq!(all.len(), 8, "{all:?}");
    let mut follows = Stream::follow(&socket, "/v1/events", &[("Last-Event-ID", "1.13")]);
    let told = follows.next().expect("an event");
    assert_eq!((told.position.as_str(), told.id), ("1.14", 14));
}

#[test]
fn a_number_that_was_never_given_is_refused() {
    let world = Setup::new().quiet().start();
    world.create("A-1");
    let refused = world.call("GET", "/v1/events?after=99999", "");
    assert_eq!(goes_on(&world, &refused, 0, 0), ["A-1"]);
    for way in [&["--socket"][..], &[]] {
        let socket = world.control_socket().to_string_lossy().into_owned();
        let mut args: Vec<&str> = way.to_vec();
        if !args.is_empty() {
            args.push(&socket);
        }
        args.extend(["event", "follow", "--after=99999"]);
        let ran = world.tilld(&args).ends_with(11);
        assert!(ran.stderr.contains("go on after 0"), "{ran:?}");
    }
}

#[test]
fn a_running_follower_goes_on_in_the_restored_ledger_and_says_so() {
    let mut world = Setup::new().quiet().start();
    world.create("A-1");
    let copy = world.dir().join("copy.db");
    world
        .tilld(&["db", "backup", &copy.to_string_lossy()])
        .ends_with(0);
    let socket = world.control_socket().to_string_lossy().into_owned();
    let args = [
        "--socket",
        &socket,
        "event",
        "follow",
        "--after=0",
        "--json",
    ];
    let follows = world.start_tilld(&args);
    world.create("L-2");
    let hears = |order: &str| {
        wait_until(PATIENCE, order, || follows.stdout().contains(order));
    };
    hears("L-2");
    put_back(&mut world, &copy);
    world.create("N-2");
    hears("N-2");
    let orders: Vec<String> = { follows.stdout() }
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).expect("JSON");
            event
                .get("order_id")
                .and_then(Value::as_str)
                .expect("it")
                .to_owned()
        })
        .collect();
    assert_eq!(orders, ["A-1", "L-2", "N-2"]);
    let said =
        "the ledger was restored from a copy: going on after its event 1; some may come again\n";
    assert_eq!(
        follows.stderr().matches(said).count(),
        1,
        "{}",
        follows.stderr()
    );
}

/// Without a daemon the file that is open here is the old one for ever.
#[test]
fn a_follower_without_a_daemon_ends_when_another_ledger_is_put_in_place() {
    let mut world = Setup::new().quiet().start();
    world.create("A-1");
    let copy = world.dir().join("copy.db");
    world
        .tilld(&["db", "backup", &copy.to_string_lossy()])
        .ends_with(0);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let mut follows = world.start_tilld(&["event", "follow", "--after=0", "--json"]);
    wait_until(PATIENCE, "the event", || follows.stdout().contains("A-1"));
    replace(&world, &copy);
    assert_eq!(follows.wait(PATIENCE), 11, "{}", follows.stderr());
    assert!(
        follows
            .stderr()
            .contains("another ledger was put in the place")
    );
}
