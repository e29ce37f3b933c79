//! R44, a flood of bodies: five hundred connections, one sort of body after the other, which come again when they are refused:
//! just under the limit and nested, just under it and flat, and small ones. Beside them an honest sender with an invoice of its
//! own, each time on a connection of its own.
//!
//! A daemon that ever had more than [`KILLED_KIB`] counts as killed: that is what a limit of that size does. Half a minute later
//! it is held against a twin that as many connections told of an invoice. The control is one whose bound on bodies was set out
//! of reach.

use std::io::{ErrorKind, Read as _, Write as _};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::{most_kib, percentile, resident_kib, seconds, serves};
use crate::harness::{Issued, PATIENCE, World, head};
use crate::load::once;
use crate::options::Options;
use crate::rows::quiet;
use crate::verdict::{Found, Verdict};

/// Connections, and how many one thread keeps.
const CONNECTIONS: usize = 500;
const OF_ONE: usize = 25;
/// Bytes of a body, as the settings allow them, and of a small one.
const BODY: usize = 1024 * 1024;
const SMALL: usize = 20 * 1024;
/// The time of each sort of body, short and long, seconds.
const FLOOD_S: (usize, usize) = (4, 60);
/// Memory with which a daemon counts as killed, KiB.
const KILLED_KIB: u64 = 64 * 1024;
/// How long after the flood the memory is looked at, and what it may be beyond the twin's, KiB.
const CALM: Duration = Duration::from_secs(30);
const LEFT_KIB: u64 = 8 * 1024;
/// The 99th percentile of the honest, and the pause after each.
const SOON: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// A bound that no flood reaches.
const OUT_OF_REACH: usize = 1024 * 1024 * 1024;

pub(crate) fn flooded(options: &Options) -> Verdict {
    let flood = options.effort.of(FLOOD_S.0, FLOOD_S.1);
    let flood = Duration::from_secs(flood.try_into().expect("small"));
    let short = Duration::from_secs(FLOOD_S.0.try_into().expect("small"));
    let control = flooded_for(short, Some(OUT_OF_REACH));
    Verdict::new(flooded_for(flood, None)).control("bodies without a bound", control)
}

fn flooded_for(each: Duration, bound: Option<usize>) -> Found {
    let mut setup = quiet();
    if let Some(bound) = bound {
        setup = setup.set("listener.bodies_limit_bytes", bound);
    }
    let mut world = setup.start();
    let pid = world.serve_pid();
    let tally = Tally::default();
    let (mut times, mut failed) = (Vec::new(), 0);
    let invoice = world.create("A-1");
    for sort in [Sent::nested(BODY), Sent::flat(BODY), Sent::nested(SMALL)] {
        let (more, lost) = pressed(&world, &sort, &tally, || {
            beside(&world, &invoice, times.len(), each)
        });
        times.extend(more);
        failed += lost;
    }
    let most = most_kib(pid);
    let killed = usize::from(!serves(&world) || most > KILLED_KIB);
    // Of one that would have been killed nothing is left to compare.
    let left = (killed == 0).then(|| left(&world, each));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let p99 = percentile(&times, 99);
    let [read, refused] = [&tally.read, &tally.refused].map(|count| count.load(Ordering::Relaxed));
    let n = format!(
        "{read} bodies read and {refused} refused, on {CONNECTIONS} connections; {} honest ones",
        times.len()
    );
    let mib = |kib: u64| kib / 1024;
    let kept = left.map_or_else(String::new, |[left, twin]| {
        format!(
            "; {} MiB half a minute later, {} MiB the twin",
            mib(left),
            mib(twin)
        )
    });
    let figure = format!(
        "killed {killed}, {} MiB at most{kept}; p99 {}; failures {failed}",
        mib(most),
        seconds(p99),
    );
    Found::new(n, figure)
        .bar(
            killed == 0,
            format!("{} MiB are more than it may have", mib(most)),
        )
        .bar(
            left.is_none_or(|[left, twin]| left <= twin + LEFT_KIB),
            "it keeps more than that beyond the twin".to_owned(),
        )
        .bar(p99 < SOON, format!("p99 {}", seconds(p99)))
        .bar(failed == 0, format!("{failed} honest ones were not heard"))
        .needs(read > 0, "the flood did not come")
}

/// The memory of this daemon after a while, and that of a twin which as many connections told of an invoice, KiB.
fn left(world: &World, each: Duration) -> [u64; 2] {
    let mut twin = quiet().start();
    let invoice = twin.create("A-1");
    let tally = Tally::default();
    pressed(&twin, &Sent::honest(&invoice), &tally, || {
        thread::sleep(each);
    });
    assert!(tally.read.load(Ordering::Relaxed) > 0, "nobody told it");
    thread::sleep(CALM);
    let both = [world, &twin].map(|world| resident_kib(world.serve_pid()));
    assert_eq!(twin.stop_serve(PATIENCE), 0);
    both
}

/// Has all connections send this while something else goes on.
fn pressed<T>(world: &World, sent: &Sent, tally: &Tally, beside: impl FnOnce() -> T) -> T {
    tally.ended.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS / OF_ONE {
            scope.spawn(|| press(world.listen(), sent, tally));
        }
        let ended = beside();
        tally.ended.store(true, Ordering::Relaxed);
        ended
    })
}

/// What became of the flood.
#[derive(Default)]
struct Tally {
    ended: AtomicBool,
    /// Bodies that were read whole.
    read: AtomicUsize,
    /// Bodies for which there was no room.
    refused: AtomicUsize,
}

/// An honest sender that has sent so many before, until the time is over.
fn beside(
    world: &World,
    invoice: &Issued,
    before: usize,
    each: Duration,
) -> (Vec<Duration>, usize) {
    let target = World::target(&invoice.reference);
    let headers = [("X-Notification-Token", invoice.token.as_str())];
    let (mut times, mut failed, until) = (Vec::new(), 0, Instant::now() + each);
    while Instant::now() < until {
        let number = before + times.len();
        let body = invoice.saying(&format!("h-{number}"), &invoice.at_us(number + 1));
        let request = head("shop.example", "POST", &target, &headers, Some(body.len())) + &body;
        let began = Instant::now();
        let answered = once(world.listen(), &request);
        times.push(began.elapsed());
        failed += usize::from(answered != Some(200));
        thread::sleep(PAUSE);
    }
    (times, failed)
}

/// A request that is sent again and again.
struct Sent {
    head: String,
    body: String,
}

impl Sent {
    /// An invoice object of this size, full of the smallest things that nest.
    fn nested(bytes: usize) -> Self {
        Self::full(
            r#"{"id":"i","status":"new","a":["#,
            r#"{"a":{}},"#,
            "1]}",
            bytes,
        )
    }

    /// One with as many names as there is room for.
    fn flat(bytes: usize) -> Self {
        Self::full(
            r#"{"id":"i","status":"new","#,
            r#""":1,"#,
            r#""b":1}"#,
            bytes,
        )
    }

    fn full(begin: &str, piece: &str, end: &str, bytes: usize) -> Self {
        let room = bytes - begin.len() - end.len();
        let mut body = begin.to_owned() + &piece.repeat(room / piece.len()) + end;
        body.extend(iter::repeat_n(' ', bytes - body.len()));
        let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
        let head = head("shop.example", "POST", &target, &[], Some(bytes));
        Self { head, body }
    }

    /// What the service says of an invoice.
    fn honest(invoice: &Issued) -> Self {
        let body = invoice.saying("waiting", &invoice.at_us(1));
        let target = World::target(&invoice.reference);
        let headers = [("X-Notification-Token", invoice.token.as_str())];
        let head = head("shop.example", "POST", &target, &headers, Some(body.len()));
        Self { head, body }
    }
}

/// Keeps connections with all of a body but its last byte, then sends that one; again and again.
fn press(address: SocketAddr, sent: &Sent, tally: &Tally) {
    let (last, most) = sent.body.as_bytes().split_last().expect("not empty");
    while !tally.ended.load(Ordering::Relaxed) {
        let wires: Vec<TcpStream> = (0..OF_ONE)
            .filter_map(|_| {
                let mut wire = TcpStream::connect_timeout(&address, SOON).ok()?;
                wire.set_write_timeout(Some(SOON)).ok()?;
                wire.set_read_timeout(Some(SOON)).ok()?;
                // One that is refused may be closed before all is sent; its answer is there all the same.
                drop(
                    wire.write_all(sent.head.as_bytes())
                        .and_then(|()| wire.write_all(most)),
                );
                Some(wire)
            })
            .collect();
        for mut wire in wires {
            drop(wire.write_all(&[*last]));
            let mut answer = [0; 64];
            match wire.read(&mut answer) {
                Ok(count @ 1..) => {
                    let told = String::from_utf8_lossy(answer.get(..count).unwrap_or_default());
                    let which = if told.contains(" 503 ") {
                        &tally.refused
                    } else {
                        &tally.read
                    };
                    which.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    tally.refused.fetch_add(1, Ordering::Relaxed);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}
