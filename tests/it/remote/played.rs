//! A daemon that is played, for what a real one does seldom: it says what the scenario says, one thing after the other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup};

/// What it does with a request.
enum Say {
    /// Answers with this status and body.
    Answer(u16, String),
    /// Goes away without an answer.
    Leave,
    /// Goes away within the answer.
    Tear,
}

/// A daemon that is played, and the requests it took.
struct Played {
    socket: String,
    heard: Arc<Mutex<Vec<String>>>,
    _place: tempfile::TempDir,
}

impl Played {
    /// One that says these things; afterwards it holds every answer back.
    fn start(says: Vec<Say>) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let socket = place.path().join("control.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        drop(thread::spawn(move || {
            let (mut says, mut held) = (says.into_iter(), Vec::new());
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client");
                // Whether somebody listens is tried without a request.
                let Some(target) = request(&stream) else {
                    continue;
                };
                kept.lock().expect("no panic there").push(target);
                match says.next() {
                    Some(Say::Answer(status, body)) => answer(&mut stream, status, &body, 0),
                    Some(Say::Tear) => answer(&mut stream, 200, "{\"events\":[", 9),
                    Some(Say::Leave) => drop(stream),
                    None => held.push(stream),
                }
            }
        }));
        Self {
            socket: socket.display().to_string(),
            heard,
            _place: place,
        }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic there").clone()
    }
}

/// The target of a request, if one comes.
fn request(stream: &UnixStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    first.split(' ').nth(1).map(str::to_owned)
}

fn answer(stream: &mut UnixStream, status: u16, body: &str, lacking: usize) {
    let length = body.len() + lacking;
    let text = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
    // A client that left is its own trouble.
    drop(stream.write_all(text.as_bytes()));
}

fn problem(status: u16, code: u8, detail: &str) -> Say {
    let body = json!({ "code": code, "detail": detail, "hint": "see to it" });
    Say::Answer(status, body.to_string())
}

fn events(seqs: &[i64]) -> Say {
    let events: Vec<Value> = seqs.iter().map(|seq| event(*seq)).collect();
    let body = json!({ "events": events, "next_after": seqs.last() });
    Say::Answer(200, body.to_string())
}

fn event(seq: i64) -> Value {
    json!({
        "seq": seq, "event_id": format!("e{seq}"), "order_id": "1", "kind": "paid", "status": "paid",
        "previous_status": null, "order_outcome": "paid", "outcome": "paid", "previous_outcome": "open", "amount_reported": null,
        "currency_reported": null, "rewound": false, "source": "poll", "at": "2026-01-01T00:00:00.000Z",
    })
}

/// The numbers of events told as JSON; how it ended is told without one.
pub(super) fn told(stdout: &str) -> Vec<i64> {
    let value = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let seq = |line: &str| value(line).get("seq").and_then(Value::as_i64);
    stdout.lines().filter_map(seq).collect()
}

/// `?after=` of each request.
fn afters(heard: &[String]) -> Vec<Option<&str>> {
    let after = |target: &'_ str| target.starts_with("after=");
    let afters = heard
        .iter()
        .map(|target| target.split(['?', '&']).find(|part| after(part)));
    afters.collect()
}

#[test]
fn a_follower_lives_through_what_passes_and_goes_on_where_it_was() {
    let world = Setup::new().not_served().start();
    let played = Played::start(vec![
        Say::Answer(200, json!({ "events": [], "next_after": 4 }).to_string()),
        events(&[5, 6]),
        problem(503, 11, "the ledger could not be read"),
        Say::Leave,
        events(&[7]),
        Say::Tear,
        problem(429, 1, "as many follow as may"),
        Say::Answer(503, "busy\n".to_owned()),
        events(&[8]),
        Say::Answer(200, "hello".to_owned()),
    ]);
    let args = ["--socket", &played.socket, "event", "follow", "--json"];
    let mut follows = world.start_tilld(&args);
    assert_eq!(follows.wait(PATIENCE), 1, "{}", follows.stderr());
    assert_eq!(told(&follows.stdout()), [5, 6, 7, 8]);
    let wanted = [
        None,
        Some("after=4"),
        Some("after=6"),
        Some("after=6"),
        Some("after=6"),
        Some("after=7"),
        Some("after=7"),
        Some("after=7"),
        Some("after=7"),
        Some("after=8"),
    ];
    assert_eq!(afters(&played.heard()), wanted);
    let talk = follows.stderr();
    let lines: Vec<&str> = talk.lines().collect();
    let [unread, back, torn, again, error, _hint] = lines.as_slice() else {
        panic!("one line when it is lost, and one when it is back: {talk}");
    };
    assert_eq!(*unread, "the ledger could not be read; trying again");
    let away = format!(
        "the daemon on `{}` went away before it answered; trying again",
        played.socket
    );
    assert_eq!(*torn, away);
    for line in [back, again] {
        assert_eq!(*line, "the daemon answers again");
    }
    assert!(error.contains("cannot be understood"), "{talk}");
}

#[test]
fn a_follower_ends_with_an_answer_that_asking_again_does_not_mend() {
    let world = Setup::new().not_served().start();
    for (say, code) in [
        (problem(500, 15, "wrong mode"), 15),
        (problem(400, 2, "`after` is no number"), 2),
        (Say::Answer(500, "panic\n".to_owned()), 1),
    ] {
        let played = Played::start(vec![say]);
        let args = ["--socket", &played.socket, "event", "follow", "--after=1"];
        let ran = world.tilld(&args).ends_with(code);
        assert_eq!(played.heard().len(), 1, "{ran:?}");
        assert!(!ran.stderr.contains("trying again"), "{ran:?}");
    }
}

#[test]
fn a_wait_lives_through_what_passes_and_no_longer_than_it_may() {
    let world = Setup::new().not_served().start();
    let unread = || problem(503, 11, "the ledger could not be read");
    let played = Played::start(vec![unread(), Say::Leave, problem(404, 3, "nothing")]);
    let args = ["--socket", &played.socket, "invoice", "wait", "1"];
    let ran = world.tilld(&args).ends_with(3);
    assert_eq!(
        ran.stderr,
        "the ledger could not be read; trying again\nerror: nothing\nhint: see to it\n"
    );
    assert_eq!(played.heard().len(), 3);

    let played = Played::start((0..10).map(|_| unread()).collect());
    let args = [
        "--socket",
        &played.socket,
        "invoice",
        "wait",
        "1",
        "--timeout=2s",
    ];
    let mut waits = world.start_tilld(&args);
    assert_eq!(
        waits.wait(Duration::from_secs(20)),
        11,
        "{}",
        waits.stderr()
    );
    let heard = played.heard();
    assert_eq!(
        heard.len(),
        3,
        "at once, after a second and at the end: {heard:?}"
    );
    assert!(heard.last().is_some_and(|last| last.ends_with("timeout=0")));
}
