//! R44, a flood of bodies: five hundred connections, each with one just under the limit, all of them nested, which come again
//! when they are refused. Beside them an honest sender with an invoice of its own, each time on a connection of its own.
//!
//! A daemon that ever had more than [`KILLED_KIB`] counts as killed: that is what a limit of that size does. The control is one
//! whose bound on bodies was set out of reach.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::{most_kib, percentile, seconds, serves};
use crate::harness::{PATIENCE, World, head};
use crate::load::once;
use crate::options::Options;
use crate::rows::quiet;
use crate::verdict::{Found, Verdict};

/// Connections, and how many one thread keeps.
const CONNECTIONS: usize = 500;
const OF_ONE: usize = 25;
/// Bytes of a body, as the settings allow them.
const BODY: usize = 1024 * 1024;
/// The flood's time, short and long, seconds.
const FLOOD_S: (usize, usize) = (6, 120);
/// Memory with which a daemon counts as killed, KiB.
const KILLED_KIB: u64 = 64 * 1024;
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

fn flooded_for(flood: Duration, bound: Option<usize>) -> Found {
    let mut setup = quiet();
    if let Some(bound) = bound {
        setup = setup.set("listener.bodies_limit_bytes", bound);
    }
    let mut world = setup.start();
    let pid = world.serve_pid();
    let tally = Tally::default();
    let (times, failed) = thread::scope(|scope| {
        for _ in 0..CONNECTIONS / OF_ONE {
            scope.spawn(|| press(world.listen(), &tally));
        }
        let honest = beside(&world, flood);
        tally.ended.store(true, Ordering::Relaxed);
        honest
    });
    let most = most_kib(pid);
    let killed = usize::from(!serves(&world) || most > KILLED_KIB);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let p99 = percentile(&times, 99);
    let [read, refused] = [&tally.read, &tally.refused].map(|count| count.load(Ordering::Relaxed));
    let n = format!(
        "{read} bodies read and {refused} refused, on {CONNECTIONS} connections; {} honest ones",
        times.len()
    );
    let figure = format!(
        "killed {killed}, {} MiB at most; p99 {}; failures {failed}",
        most / 1024,
        seconds(p99),
    );
    Found::new(n, figure)
        .bar(
            killed == 0,
            format!("{} MiB are more than it may have", most / 1024),
        )
        .bar(p99 < SOON, format!("p99 {}", seconds(p99)))
        .bar(failed == 0, format!("{failed} honest ones were not heard"))
        .needs(read > 0, "the flood did not come")
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

/// An honest sender, until the time is over.
fn beside(world: &World, flood: Duration) -> (Vec<Duration>, usize) {
    let invoice = world.create("A-1");
    let target = World::target(&invoice.reference);
    let headers = [("X-Notification-Token", invoice.token.as_str())];
    let (mut times, mut failed, until) = (Vec::new(), 0, Instant::now() + flood);
    while Instant::now() < until {
        let number = times.len();
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

/// An invoice object of this size, full of the smallest things that nest.
fn body() -> Arc<[u8]> {
    let (begin, piece, end) = (r#"{"id":"i","status":"new","a":["#, r#"{"a":{}},"#, "1]}");
    let room = BODY - begin.len() - end.len();
    let mut body = begin.to_owned() + &piece.repeat(room / piece.len()) + end;
    body.extend(std::iter::repeat_n(' ', BODY - body.len()));
    body.into_bytes().into()
}

/// Keeps connections with all of a body but its last byte, then sends that one; again and again.
fn press(address: SocketAddr, tally: &Tally) {
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let head = head("shop.example", "POST", &target, &[], Some(BODY));
    let body = body();
    let (last, most) = body.split_last().expect("not empty");
    while !tally.ended.load(Ordering::Relaxed) {
        let wires: Vec<TcpStream> = (0..OF_ONE)
            .filter_map(|_| {
                let mut wire = TcpStream::connect_timeout(&address, SOON).ok()?;
                wire.set_write_timeout(Some(SOON)).ok()?;
                wire.set_read_timeout(Some(SOON)).ok()?;
                // One that is refused may be closed before all is sent; its answer is there all the same.
                drop(
                    wire.write_all(head.as_bytes())
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
