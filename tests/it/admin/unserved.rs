//! What comes to the public listener and is no request that can be read: no refusal tells of it, so figures and the log do. What
//! is at stake: a shop whose proxy sends such hears nothing, and would see nothing either.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{get, setup};
use crate::harness::{PATIENCE, World, wait_until};

/// What was counted under this reason.
fn count(world: &World, reason: &str) -> u64 {
    let figures = get(world, "/metrics").body;
    let name = format!("tilld_requests_unserved_total{{reason=\"{reason}\"}} ");
    let mut lines = figures.lines();
    let found = lines.find_map(|line| line.strip_prefix(&name)?.parse().ok());
    found.unwrap_or_else(|| panic!("no {reason} in {figures}"))
}

/// Sends it and waits until the connection is closed.
fn send(world: &World, bytes: &[u8]) {
    let mut stream = TcpStream::connect(world.listen()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.write_all(bytes).expect("sent");
    let mut answer = Vec::new();
    // A reset ends it as well.
    stream.read_to_end(&mut answer).unwrap_or_default();
}

/// It sends one request after the other and reads nothing: what it may leave unread is over after a second.
#[test]
fn a_sender_that_leaves_its_answers_unread_is_closed_counted_and_told() {
    let world = setup().quiet().set("listener.write_time_s", 1).start();
    let mut stream = TcpStream::connect(world.listen()).expect("connected");
    let look = "GET /pay/x HTTP/1.1\r\nHost: shop.example\r\n\r\n".repeat(1_000);
    // Until it is closed; the kernel keeps some thousand answers before that.
    while stream.write_all(look.as_bytes()).is_ok() {}
    wait_until(PATIENCE, "it is counted", || {
        count(&world, "answer_unread") == 1
    });
    let log = world.serve_log();
    assert!(log.contains("left its answers unread"), "{log}");
}

#[test]
fn what_is_no_request_is_counted_by_its_reason_and_told_now_and_then() {
    let world = setup()
        .quiet()
        .set("listener.header_time_s", 1)
        .set("listener.connections", 16)
        .start();
    let head = "POST /pay/x HTTP/1.1\r\nHost: shop.example\r\n";
    let outsized = format!("{head}X-A: {}\r\n\r\n", "a".repeat(64 * 1024));
    for (reason, requests) in [
        (
            "ambiguous",
            [
                "POST /pay/x HTTP/1.1\nHost: shop.example\n\n".to_owned(),
                format!("{head}Content-Length: 0\r\nContent-Length: 0\r\n\r\n"),
            ],
        ),
        (
            "malformed",
            [
                format!("{head}X-A: a\0b\r\n\r\n"),
                format!("{head}X-A: a\r\n b\r\n\r\n"),
            ],
        ),
        ("head_too_large", [outsized.clone(), outsized]),
        ("head_too_slow", [head.to_owned(), head.to_owned()]),
    ] {
        assert_eq!(count(&world, reason), 0, "{reason}");
        for request in requests {
            send(&world, request.as_bytes());
        }
        wait_until(PATIENCE, &format!("two {reason}"), || {
            count(&world, reason) == 2
        });
    }
    // Whoever is not done makes room; whoever has been answered is no loss.
    let slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(world.listen()).expect("connected");
            stream.write_all(b"POST ").expect("sent");
            stream
        })
        .collect();
    wait_until(PATIENCE, "some to make room", || {
        count(&world, "evicted") >= 1
    });
    drop(slow);
    let log = world.serve_log();
    let told = log
        .lines()
        .filter(|line| line.contains("brought no request that can be read"));
    assert_eq!(told.count(), 1, "{log}");
    assert_eq!(world.value("SELECT count(*) FROM refusal"), "0");
}
