//! Events: those after a number, the next ones, and the stream of them. None is lost and none told twice.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Line, Stream, problem};
use crate::harness::{Issued, Setup, World};

/// How long a stop may take while clients follow: less than the drain, after which they would be cut off.
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// Events made while a follower comes and goes.
const MANY: usize = 120;

impl World {
    /// One event more: the service says another status of this invoice.
    #[track_caller]
    pub(super) fn another_event(&self, issued: &Issued, number: usize) {
        let at = issued.at_us(number + 1);
        let body = issued.saying(&format!("step-{number}"), &at);
        assert_eq!(self.tell(issued, &body).status, 200);
    }
}

fn seqs(answer: &Value) -> Vec<i64> {
    let events = answer
        .get("events")
        .and_then(Value::as_array)
        .expect("events");
    let seq = |event: &Value| event.get("seq").and_then(Value::as_i64).expect("a number");
    events.iter().map(seq).collect()
}

#[test]
fn events_are_given_after_a_number_and_waited_for() {
    let world = Setup::new().quiet().start();
    let get = |target: &str| {
        let answer = world.call("GET", target, "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    assert_eq!(
        get("/v1/events?after=0"),
        json!({ "events": [], "next_after": 0, "generation": 0 })
    );
    let first = world.create("A-1");
    world.create("A-2");
    world.another_event(&first, 1);
    let all = get("/v1/events?after=0");
    assert_eq!(seqs(&all), [1, 2, 3]);
    assert_eq!(all.get("next_after"), Some(&json!(3)));
    assert_eq!(seqs(&get("/v1/events?after=1&limit=1")), [2]);
    assert_eq!(seqs(&get("/v1/events?after=0&order_id=A-1")), [1, 3]);
    // Without a number: what comes from now on.
    assert_eq!(
        get("/v1/events"),
        json!({ "events": [], "next_after": 3, "generation": 0 })
    );

    let target = "/v1/events?after=3&wait=300&order_id=A-1";
    let mut waits = Line::ask(&world.control_socket(), "GET", target, &[], "");
    world.round_trips();
    world.create("A-3");
    world.another_event(&first, 2);
    let told = waits.answer().expect("an answer").json();
    assert_eq!(seqs(&told), [5]);
    assert_eq!(told.get("next_after"), Some(&json!(5)));
    assert_eq!(told.pointer("/events/0/status"), Some(&json!("step-2")));

    for query in [
        "after=-1",
        "after=x",
        "limit=0",
        "limit=1001",
        "wait=301",
        "colour=red",
        "generation=0",
        "after=0&generation=x",
    ] {
        problem(
            &world.call("GET", &format!("/v1/events?{query}"), ""),
            400,
            "usage",
        );
    }
}

#[test]
fn a_stream_tells_what_was_and_what_comes() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    world.create("A-2");
    let socket = world.control_socket();
    let mut all = Stream::follow(&socket, "/v1/events?after=0", &[]);
    let mut one = Stream::follow(&socket, "/v1/events?after=0&order_id=A-1", &[]);
    let mut new = Stream::follow(&socket, "/v1/events", &[]);
    world.another_event(&issued, 1);
    let paid = world.dictate(&issued, "paid");
    let body = paid.with(&json!({ "updatedAt": paid.at(1) })).to_string();
    assert_eq!(world.tell(&paid, &body).status, 200);
    let read = |stream: &mut Stream, count: usize| -> Vec<(i64, String)> {
        let told = (0..count).map(|_| stream.next().expect("an event"));
        told.map(|told| {
            assert_eq!(told.data.get("seq"), Some(&json!(told.id)));
            assert_eq!(told.data.get("kind"), Some(&json!(told.event)));
            (told.id, told.event)
        })
        .collect()
    };
    let named = |events: &[(i64, &str)]| -> Vec<(i64, String)> {
        events
            .iter()
            .map(|(id, event)| (*id, (*event).to_owned()))
            .collect()
    };
    let wanted = [(1, "opened"), (2, "opened"), (3, "status"), (4, "paid")];
    assert_eq!(read(&mut all, 4), named(&wanted));
    assert_eq!(
        read(&mut one, 3),
        named(&[(1, "opened"), (3, "status"), (4, "paid")])
    );
    assert_eq!(read(&mut new, 2), named(&[(3, "status"), (4, "paid")]));

    let resumed = [("Last-Event-ID", "0.3")];
    let mut resumed = Stream::follow(&socket, "/v1/events?after=0", &resumed);
    assert_eq!(read(&mut resumed, 1), named(&[(4, "paid")]));
    let garbled = Stream::try_follow(&socket, "/v1/events", &[("Last-Event-ID", "x")]);
    assert_eq!(garbled.err().expect("refused").status, 400);
}

#[test]
fn no_event_is_lost_or_doubled_by_a_follower_that_comes_back_again_and_again() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let socket = world.control_socket();
    let mut heard = Vec::new();
    let mut steady = Stream::follow(&socket, "/v1/events?after=0", &[]);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..MANY {
                world.another_event(&issued, number);
            }
        });
        // It repeats its first address, as browsers do: only the header says how far it was.
        let mut last = "0.0".to_owned();
        while heard.len() < MANY {
            let from = [("Last-Event-ID", last.as_str())];
            let mut stream = Stream::follow(&socket, "/v1/events?after=0", &from);
            for _ in 0..(1 + heard.len() % 7).min(MANY - heard.len()) {
                let told = stream.next().expect("an event");
                heard.push(told.id);
                last = told.position;
            }
        }
    });
    let wanted: Vec<i64> = (1..).take(MANY).collect();
    assert_eq!(heard, wanted);
    let steadily: Vec<i64> = (0..MANY)
        .map(|_| steady.next().expect("an event").id)
        .collect();
    assert_eq!(steadily, wanted);
    assert_eq!(heard.into_iter().collect::<BTreeSet<_>>().len(), MANY);
}

/// A command of a person commits in a process of its own, which rings no bell of the daemon's.
#[test]
fn what_another_process_commits_is_told_too() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let fields = json!({ "status": "paid", "amount": "590.00" });
    let paid = world.dictate_fields(&issued, &fields);
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    crate::harness::wait_until(crate::harness::PATIENCE, "the poll", || {
        world.invoice("A-1", "outcome || ' ' || attention") == "mismatch mismatch"
    });
    let mut follows = Stream::follow(&world.control_socket(), "/v1/events", &[]);
    world
        .tilld(&["invoice", "accept-amount", "A-1", "--amount", "590"])
        .ends_with(0);
    let told: Vec<String> = (0..2)
        .map(|_| follows.next().expect("an event").event)
        .collect();
    assert_eq!(told, ["operator", "paid"]);
}

#[test]
fn a_stop_ends_streams_and_waits_at_once() {
    let mut world = Setup::new().quiet().start();
    world.create("A-1");
    let socket = world.control_socket();
    let streams: Vec<Stream> = (0..20)
        .map(|_| Stream::follow(&socket, "/v1/events?after=0", &[]))
        .collect();
    let ask = |target: &str| Line::ask(&socket, "GET", target, &[], "");
    let mut polls: Vec<Line> = (0..5).map(|_| ask("/v1/events?wait=300")).collect();
    let mut waits: Vec<Line> = (0..5)
        .map(|_| ask("/v1/orders/A-1/wait?timeout=300"))
        .collect();
    world.round_trips();
    assert_eq!(world.stop_serve(STOPS_WITHIN), 0);
    for stream in streams {
        assert!(stream.ends(), "it was cut");
    }
    for line in &mut polls {
        let answer = line.answer().expect("an answer");
        assert_eq!(
            answer.json(),
            json!({ "events": [], "next_after": 1, "generation": 0 })
        );
    }
    for line in &mut waits {
        assert_eq!(line.answer().expect("an answer").status, 202);
    }
}

#[test]
fn more_followers_than_may_are_told_to_come_again() {
    let world = Setup::new().quiet().set("control.followers", 2).start();
    let socket = world.control_socket();
    let first = Stream::follow(&socket, "/v1/events", &[]);
    let _second = Stream::follow(&socket, "/v1/events", &[]);
    let refused = Stream::try_follow(&socket, "/v1/events", &[])
        .err()
        .expect("no place");
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    problem(&world.call("GET", "/v1/events?wait=300", ""), 429, "error");
    // Others are served.
    assert_eq!(world.call("GET", "/v1/events?after=0", "").status, 200);
    assert_eq!(world.wish("A-1").status, 201);
    drop(first);
    crate::harness::wait_until(crate::harness::PATIENCE, "a place", || {
        Stream::try_follow(&socket, "/v1/events", &[]).is_ok()
    });
}
