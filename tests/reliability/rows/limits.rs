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
use crate::traced::Tracer;
use crate::verdict::{Found, Verdict};

/// Bytes of a body at most, as the settings have it.
const BODY: usize = 1024 * 1024;
/// Bytes read after an answer: 64 KiB are thrown away so that the sender can read it, and hyper reads one buffer more.
const READ: usize = 96 * 1024;
/// Memory that grows meanwhile.
const GROWN_KIB: u64 = 2 * 1024;
/// Rounds of all of them; the first brings what is needed once.
const ROUNDS: usize = 5;
/// An answer comes by then.
const SOON: Duration = Duration::from_secs(5);
/// Bytes sent at once, and in all to a side that does not hang up.
const PART: usize = 16 * 1024;
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
    let many: Vec<String> = (0..200)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    let many = many.concat();
    // Of an invoice nobody knows, as any other is.
    let path = post("Content-Length: 30\r\n") + r#"{"id":"inv-1","status":"paid"}"#;
    let path = path.replace(target, &(target.to_owned() + &"a".repeat(9 * 1024)));
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
}

pub(crate) fn passed() -> Verdict {
    let world = quiet().start();
    let invoice = world.create("A-1");
    let target = World::target(&invoice.reference);
    let pid = world.serve_pid();
    let found = offered(world.listen(), &target, ROUNDS, || resident_kib(pid));
    let requests = all(&target);
    let read = requests
        .iter()
        .map(|beyond| (read_after(&world, beyond), beyond.name));
    let (most, which) = read.max().unwrap_or_default();
    let mut found = found.bar(
        most <= READ,
        format!("{which}: {most} bytes read after the answer"),
    );
    let read = format!("; {} KiB read after an answer ({which})", most / 1024);
    found.figure.push_str(&read);
    let own = std::process::id();
    let control = offered(bare_hyper(), &target, 1, || resident_kib(own));
    Verdict::new(found).control("bare hyper", control)
}

fn offered(address: SocketAddr, target: &str, rounds: usize, memory: impl Fn() -> u64) -> Found {
    let (mut wrong, mut slowest, mut before) = (Vec::new(), Duration::ZERO, 0);
    let requests = all(target);
    for round in 0..rounds {
        for beyond in &requests {
            let Answered { code, took } = offer(address, beyond);
            if !code.is_some_and(|code| beyond.codes.contains(&code)) {
                wrong.push(format!("{}: {code:?}", beyond.name));
            }
            slowest = slowest.max(took);
        }
        if round == 0 {
            before = memory();
        }
    }
    let grown = memory().saturating_sub(before);
    let n = format!("{rounds} × {} requests", requests.len());
    let figure = format!(
        "{} answered otherwise; slowest {}; memory grew {grown} KiB",
        wrong.len(),
        seconds(slowest),
    );
    wrong.dedup();
    Found::new(n, figure)
        .bar(wrong.is_empty(), wrong.join(", "))
        .bar(slowest <= SOON, "an answer was late")
        .bar(grown <= GROWN_KIB, format!("memory grew by {grown} KiB"))
}

/// What the daemon itself reads of a request after its answer: what is sent also lies in the kernel.
fn read_after(world: &World, beyond: &Beyond) -> usize {
    let (pid, logs) = (world.serve_pid(), world.log_dir());
    let calls = "recvfrom,sendto,sendmsg,write,writev";
    let tracer = Tracer::attach(pid, &logs, "reads", calls, "");
    offer(world.listen(), beyond);
    let calls = tracer.calls();
    let answered = calls.iter().position(|call| call.contains("HTTP/1.1 4"));
    let answered = answered.unwrap_or_else(|| panic!("{}: not answered", beyond.name));
    let after = calls
        .iter()
        .skip(answered)
        .filter(|call| call.contains("recvfrom"));
    let read = after.filter_map(|call| {
        let (_, count) = call.rsplit_once(" = ")?;
        count.trim().parse::<usize>().ok()
    });
    read.sum()
}

/// Sends until it is answered, and what is taken beyond that.
fn offer(address: SocketAddr, beyond: &Beyond) -> Answered {
    let mut wire = TcpStream::connect(address).expect("it listens");
    let began = Instant::now();
    let mut answer = Vec::new();
    // It may be refused before all of its head is sent.
    drop(wire.write_all(beyond.head.as_bytes()));
    wire.set_nonblocking(true).expect("an option");
    let (mut part, mut took, mut sent) = ([0; 4096], None, 0);
    let mut left = beyond.rest.as_slice();
    while began.elapsed() < SOON {
        match wire.read(&mut part) {
            Ok(count @ 1..) => {
                answer.extend(part.iter().take(count));
                took = took.or_else(|| Some(began.elapsed()));
            }
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_reset) => break,
        }
        if took.is_some() && (beyond.rest.is_empty() || sent > ENDLESS) {
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
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_closed) => {
                // What was answered before lies there still.
                drop(
                    wire.read(&mut part)
                        .map(|count| answer.extend(part.iter().take(count))),
                );
                break;
            }
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let code = text.get(9..12).and_then(|code| code.parse().ok());
    Answered {
        code,
        took: took.unwrap_or(began.elapsed()),
    }
}
