//! R23, requests beyond the limits: each is answered as it should be, at once, and what comes after the answer is not taken.
//!
//! The control is a bare hyper server, which waits for all of the ten gigabytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::figures::{resident_kib, seconds};
use crate::harness::World;
use crate::rows::framing::bare_hyper;
use crate::rows::quiet;
use crate::verdict::{Found, Verdict};

/// Bytes of a body at most, as the settings have it.
const BODY: usize = 1024 * 1024;
/// Bytes taken after the answer, and memory that grows meanwhile.
const TAKEN: usize = 64 * 1024;
const GROWN_KIB: u64 = 2 * 1024;
/// Rounds of all of them; the first brings what is needed once.
const ROUNDS: usize = 5;
/// An answer comes by then.
const SOON: Duration = Duration::from_secs(5);
/// Bytes sent at once, and as many as are offered after the answer.
const PART: usize = 16 * 1024;
const OFFERED: usize = 4 * 1024 * 1024;
/// As many are sent in all to a side that does not answer.
const ENDLESS: usize = 32 * 1024 * 1024;

/// A request beyond a limit.
struct Beyond {
    name: &'static str,
    head: String,
    /// What follows it, again and again.
    rest: Vec<u8>,
    codes: &'static [u16],
}

fn all(target: &str) -> Vec<Beyond> {
    let post = |more: &str| format!("POST {target} HTTP/1.1\r\nHost: shop.example\r\n{more}\r\n");
    let letters = || vec![b'a'; PART];
    let one = |name, head, rest, codes| Beyond {
        name,
        head,
        rest,
        codes,
    };
    let chunk = [b"4000\r\n".to_vec(), letters(), b"\r\n".to_vec()].concat();
    let long = format!("X-B: {}\r\nContent-Length: 0\r\n", "b".repeat(64 * 1024));
    let many: String = (0..200)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    let path =
        post("Content-Length: 0\r\n").replace(target, &(target.to_owned() + &"a".repeat(9 * 1024)));
    let zipped = "Content-Encoding: gzip\r\nContent-Length: 4\r\n";
    vec![
        one(
            "body limit + 1",
            post(&format!("Content-Length: {}\r\n", BODY + 1)),
            letters(),
            &[413],
        ),
        one(
            "10 GB declared",
            post("Content-Length: 10000000000\r\n"),
            letters(),
            &[413],
        ),
        one(
            "chunks without end",
            post("Transfer-Encoding: chunked\r\n"),
            chunk,
            &[413],
        ),
        one("64 KiB of header", post(&long), Vec::new(), &[431]),
        one(
            "200 headers",
            post(&format!("{many}Content-Length: 0\r\n")),
            Vec::new(),
            &[431],
        ),
        one("9 KiB of path", path, Vec::new(), &[401, 404, 414]),
        one(
            "a compressed body",
            post(zipped) + "zzzz",
            Vec::new(),
            &[415],
        ),
    ]
}

/// How one was answered.
struct Answered {
    code: Option<u16>,
    took: Duration,
    /// Bytes that were taken after the answer.
    taken: usize,
}

pub(crate) fn passed() -> Verdict {
    let world = quiet().start();
    let invoice = world.create("A-1");
    let target = World::target(&invoice.reference);
    let pid = world.serve_pid();
    let found = offered(world.listen(), &target, ROUNDS, || resident_kib(pid));
    let own = std::process::id();
    let control = offered(bare_hyper(), &target, 1, || resident_kib(own));
    Verdict::new(found).control("bare hyper", control)
}

fn offered(address: SocketAddr, target: &str, rounds: usize, memory: impl Fn() -> u64) -> Found {
    let (mut wrong, mut slowest, mut most, mut before) = (Vec::new(), Duration::ZERO, 0, 0);
    let requests = all(target);
    for round in 0..rounds {
        for beyond in &requests {
            let answered = offer(address, beyond);
            let code = answered.code;
            if !code.is_some_and(|code| beyond.codes.contains(&code)) && round == 0 {
                wrong.push(format!("{}: {code:?}", beyond.name));
            }
            slowest = slowest.max(answered.took);
            most = most.max(answered.taken);
        }
        if round == 0 {
            before = memory();
        }
    }
    let grown = memory().saturating_sub(before);
    let figure = format!(
        "{} answered otherwise; slowest {}; {} KiB taken after an answer; memory grew {grown} KiB",
        wrong.len(),
        seconds(slowest),
        most / 1024
    );
    Found::new(format!("{rounds} × {} requests", requests.len()), figure)
        .bar(wrong.is_empty(), wrong.join(", "))
        .bar(slowest <= SOON, "an answer was late")
        .bar(
            most <= TAKEN,
            format!("{most} bytes were taken after an answer"),
        )
        .bar(grown <= GROWN_KIB, format!("memory grew by {grown} KiB"))
}

/// Sends until it is answered, and what is taken beyond that.
fn offer(address: SocketAddr, beyond: &Beyond) -> Answered {
    let mut wire = TcpStream::connect(address).expect("it listens");
    let began = Instant::now();
    let mut answer = Vec::new();
    // It may be refused before all of its head is sent.
    drop(wire.write_all(beyond.head.as_bytes()));
    wire.set_nonblocking(true).expect("an option");
    let (mut part, mut took, mut taken, mut sent) = ([0; 4096], None, 0, 0);
    let mut left = beyond.rest.as_slice();
    while began.elapsed() < SOON && taken < OFFERED {
        match wire.read(&mut part) {
            Ok(count @ 1..) => {
                answer.extend(part.iter().take(count));
                took = took.or_else(|| Some(began.elapsed()));
            }
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_reset) => break,
        }
        if beyond.rest.is_empty() && took.is_some() {
            break;
        }
        if sent > ENDLESS || beyond.rest.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        match wire.write(left) {
            Ok(count) => {
                left = left.get(count..).unwrap_or_default();
                if left.is_empty() {
                    left = &beyond.rest;
                }
                sent += count;
                taken += if took.is_some() { count } else { 0 };
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_closed) => break,
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let code = text.get(9..12).and_then(|code| code.parse().ok());
    Answered {
        code,
        took: took.unwrap_or(began.elapsed()),
        taken,
    }
}
