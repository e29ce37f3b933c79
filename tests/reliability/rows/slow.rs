//! R21, senders that are slow on purpose: heads and bodies that never end, answers nobody reads. They come again when they
//! are closed. Beside them an honest sender, each time on a connection of its own.
//!
//! The control is a listener with as many places, which waits for whoever came first.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::{percentile, seconds};
use crate::harness::{World, head};
use crate::load::once;
use crate::options::Options;
use crate::rows::quiet;
use crate::verdict::{Found, Verdict};

/// Places of the listener, and slow senders of each kind.
const PLACES: usize = 200;
const EACH: usize = 100;
/// How long, short and long, seconds; and the pause after each honest one.
const ATTACK_S: (usize, usize) = (15, 600);
const PAUSE: Duration = Duration::from_millis(200);
/// Answers that nobody reads, for each connection.
const UNREAD: usize = 50;
/// A slow sender sends a byte so often.
const DRIP: Duration = Duration::from_millis(100);
/// The 99th percentile of the honest.
const SOON: Duration = Duration::from_secs(1);

/// A kind of slowness: what is sent first, and what then, again and again.
struct Kind {
    first: String,
    then: &'static str,
}

fn kinds() -> [Kind; 3] {
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let look = head("shop.example", "GET", &target, &[], None);
    [
        Kind {
            first: format!("POST {target} HTTP/1.1\r\nHost: shop.example\r\nX-A: "),
            then: "a",
        },
        Kind {
            first: head("shop.example", "POST", &target, &[], Some(1_000)) + "{",
            then: " ",
        },
        Kind {
            first: look.repeat(UNREAD),
            then: "",
        },
    ]
}

pub(crate) fn beside_an_honest_one(options: &Options) -> Verdict {
    let attack = options.effort.of(ATTACK_S.0, ATTACK_S.1);
    let attack = Duration::from_secs(attack.try_into().expect("small"));
    let world = quiet().set("listener.connections", PLACES).start();
    let invoice = world.create("A-1");
    let status = |number: usize| invoice.saying(&format!("h-{number}"), &invoice.at_us(number + 1));
    let target = World::target(&invoice.reference);
    let headers = [("X-Notification-Token", invoice.token.as_str())];
    let honest = |number: usize| {
        let body = status(number % 3600);
        head("shop.example", "POST", &target, &headers, Some(body.len())) + &body
    };
    let found = attacked(world.listen(), attack, honest);
    let control = Patient::start();
    let honest = |_number: usize| head("x", "POST", "/n", &[], Some(1)) + "x";
    let patient = attacked(control.address, Duration::from_secs(8), honest);
    Verdict::new(found).control("waits for whoever came first", patient)
}

fn attacked(address: SocketAddr, attack: Duration, honest: impl Fn(usize) -> String) -> Found {
    let (ended, opened) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (times, failed) = thread::scope(|scope| {
        for kind in kinds() {
            let (ended, opened) = (&ended, &opened);
            scope.spawn(move || press(address, &kind, ended, opened));
        }
        // Until all of them are there.
        let until = Instant::now() + Duration::from_secs(3);
        while opened.load(Ordering::Relaxed) < 3 * EACH && Instant::now() < until {
            thread::sleep(DRIP);
        }
        let (mut times, mut failed, until) = (Vec::new(), 0, Instant::now() + attack);
        while Instant::now() < until {
            let began = Instant::now();
            let answered = once(address, &honest(times.len()));
            times.push(began.elapsed());
            failed += usize::from(answered != Some(200));
            thread::sleep(PAUSE);
        }
        ended.store(true, Ordering::Relaxed);
        (times, failed)
    });
    let p99 = percentile(&times, 99);
    let opened = opened.load(Ordering::Relaxed);
    let n = format!(
        "{} honest ones in {} s beside {} slow connections, {opened} in all",
        times.len(),
        attack.as_secs(),
        3 * EACH
    );
    Found::new(n, format!("p99 {}; failures {failed}", seconds(p99)))
        .bar(p99 <= SOON, format!("p99 {}", seconds(p99)))
        .bar(failed == 0, format!("{failed} honest ones were not heard"))
        .needs(opened > PLACES, "the slow ones did not come")
}

/// Keeps [`EACH`] slow connections of a kind, until it is told to end.
fn press(address: SocketAddr, kind: &Kind, ended: &AtomicBool, opened: &AtomicUsize) {
    let mut wires: Vec<TcpStream> = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        wires.retain_mut(|wire| {
            let is_open = match wire.write(kind.then.as_bytes()) {
                Ok(_) => true,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            // One that reads nothing learns of its end from the other side's reset alone.
            is_open && wire.take_error().is_ok_and(|error| error.is_none())
        });
        while wires.len() < EACH && !ended.load(Ordering::Relaxed) {
            let Ok(mut wire) = TcpStream::connect_timeout(&address, DRIP) else {
                break;
            };
            if wire.set_nonblocking(true).is_err() {
                break;
            }
            // What does not fit is not needed.
            drop(wire.write(kind.first.as_bytes()));
            opened.fetch_add(1, Ordering::Relaxed);
            wires.push(wire);
        }
        thread::sleep(DRIP);
    }
}

/// The control: so many places, and a request has ten seconds.
struct Patient {
    address: SocketAddr,
}

impl Patient {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let taken = Arc::new(AtomicUsize::new(0));
        // It ends with the process; nobody is left who would ask it.
        thread::spawn(move || {
            for wire in listener.incoming().flatten() {
                while taken.load(Ordering::Relaxed) >= PLACES {
                    thread::sleep(Duration::from_millis(5));
                }
                taken.fetch_add(1, Ordering::Relaxed);
                let taken = Arc::clone(&taken);
                thread::spawn(move || {
                    serve(wire);
                    taken.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self { address }
    }
}

/// One request, answered 200 whatever it is.
fn serve(mut wire: TcpStream) {
    let until = Instant::now() + Duration::from_secs(10);
    let (mut bytes, mut part) = (Vec::new(), [0; 1024]);
    if wire.set_read_timeout(Some(Duration::from_secs(1))).is_err() {
        return;
    }
    while Instant::now() < until && !bytes.ends_with(b"\r\n\r\nx") {
        match wire.read(&mut part) {
            Ok(0) => return,
            Ok(count) => bytes.extend(part.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_gone) => return,
        }
    }
    // It may be gone.
    drop(wire.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
}
