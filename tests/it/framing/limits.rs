//! Each limit of the public listener, seen to fire: in time, and in bytes (A18, R21, R23).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::statuses;
use crate::harness::{PATIENCE, Setup, Wire, World, head};

/// A refused sender may go on for as long as it notices: what the kernel keeps on both sides of a loopback connection, which
/// is megabytes, and never more.
const MOST_SENT: usize = 16 << 20;
/// What memory may grow by meanwhile.
const MOST_GROWN_KIB: u64 = 2 * 1024;

/// Anonymous memory of a process, KiB.
fn anonymous_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let digits = line.and_then(|line| line.trim().strip_suffix(" kB"));
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

/// What the daemon of this world has logged, ended or not.
fn log_of_serve(world: &World) -> String {
    let entries = fs::read_dir(world.log_dir()).expect("logs");
    let files = entries.map(|entry| entry.expect("a log").path());
    let is_it = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("serve-") && name.ends_with(".err")
    };
    let texts = files.filter(is_it).map(fs::read_to_string);
    texts.map(|text| text.expect("a log")).collect()
}

/// Sends a head, then the same bytes again and again until nobody takes them. Gives the first answer's status and what was sent.
fn flood(world: &World, head: &str, again: &[u8]) -> (Vec<u16>, usize) {
    let stream = TcpStream::connect_timeout(&world.listen(), PATIENCE).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    stream.set_write_timeout(Some(PATIENCE)).expect("an option");
    let mut sending = stream.try_clone().expect("a descriptor");
    let (head, again) = (head.to_owned(), again.to_vec());
    let sender = thread::spawn(move || {
        let mut sent = 0;
        if sending.write_all(head.as_bytes()).is_ok() {
            while sent < 2 * MOST_SENT && sending.write_all(&again).is_ok() {
                sent += again.len();
            }
        }
        sent
    });
    let mut answer = [0; 512];
    let read = (&stream).read(&mut answer).expect("an answer");
    let answers = statuses(answer.get(..read).unwrap_or_default());
    (answers, sender.join().expect("it sends"))
}

#[test]
fn what_is_too_large_is_refused_at_once_and_the_rest_is_not_read() {
    let world = Setup::new().quiet().start();
    let known = world.create("A-1");
    let target = World::target(&known.reference);
    let post = |headers: &[(&str, &str)]| head("shop.example", "POST", &target, headers, None);
    let cut = |head: String| head.trim_end().to_owned() + "\r\n";
    let block = vec![b'x'; 64 * 1024];
    let chunk = [b"10000\r\n".as_slice(), &block, b"\r\n"].concat();
    let pid = world.serve_pid();
    // The first costs what all later ones use again.
    let cases: [(&str, String, &[u8], u16); 7] = [
        (
            "a body of a byte too many",
            post(&[("Content-Length", "1048577")]),
            &block,
            413,
        ),
        (
            "10 GB declared",
            post(&[("Content-Length", "10000000000")]),
            &block,
            413,
        ),
        (
            "chunks without end",
            post(&[("Transfer-Encoding", "chunked")]),
            &chunk,
            413,
        ),
        (
            "a header without end",
            cut(post(&[("X-Long", "x")])) + "X-B: ",
            &block,
            431,
        ),
        ("headers without end", cut(post(&[])), b"X-Many: x\r\n", 431),
        (
            "a compressed body",
            post(&[("Content-Encoding", "gzip"), ("Content-Length", "1000000")]),
            &block,
            415,
        ),
        (
            "another path",
            head("shop.example", "POST", "/other", &[], Some(10_000_000)),
            &block,
            404,
        ),
    ];
    let mut before = None;
    for (what, head, again, wanted) in cases {
        let began = Instant::now();
        let (answers, sent) = flood(&world, &head, again);
        assert_eq!(answers, [wanted], "{what}");
        assert!(sent < MOST_SENT, "{what}: {sent}");
        assert!(began.elapsed() < Duration::from_secs(5), "{what}");
        before.get_or_insert_with(|| anonymous_kib(pid));
    }
    let grown = anonymous_kib(pid).saturating_sub(before.expect("it was looked at"));
    assert!(grown <= MOST_GROWN_KIB, "{grown} KiB");
}

/// At the same time, so that it takes as long as the longest.
#[test]
fn each_limit_in_time_is_seen_to_fire() {
    let mut world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        .set("listener.header_time_s", 1)
        .set("listener.body_time_s", 1)
        .set("listener.write_time_s", 1)
        .set("listener.idle_time_s", 1)
        .start();
    let known = world.create("A-1");
    let target = World::target(&known.reference);
    let open = || Wire::open(world.listen());
    let look = head("shop.example", "GET", &target, &[], None);

    let mut silent = open();
    let mut slow = open();
    slow.send("POST /n/");
    let mut half = open();
    half.send(&head("shop.example", "POST", &target, &[], Some(100)));
    half.send("{");
    let mut idle = open();
    idle.send(&look);
    assert_eq!(idle.answer().expect("an answer").status, 200);
    // It asks, and reads nothing: sooner or later an answer finds no room any more.
    let mut deaf = open();
    let many = look.repeat(2_000);
    let deadline = Instant::now() + PATIENCE;
    while deaf.try_send(&many) {
        assert!(Instant::now() < deadline, "it is served for ever");
    }

    assert_eq!(half.answer().expect("an answer").status, 408);
    for wire in [&mut silent, &mut slow, &mut half, &mut idle] {
        assert!(wire.is_closed_in_time());
    }
    assert_eq!(world.tell_as_it_is(&known).status, 200);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let told = log_of_serve(&world);
    let line = told
        .lines()
        .find(|line| line.contains("the listener has stopped"));
    let line = line.expect("it says what it did");
    for counted in ["slow_heads: 2", "idle: 1", "slow_readers: 1"] {
        assert!(line.contains(counted), "{counted}: {line}");
    }
}
