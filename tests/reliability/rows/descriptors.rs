//! R08, no file descriptors left: a crowd that takes all of them and stays for a while; and a kernel that has none to give to
//! whoever is accepted, for want of them in the whole machine, while the daemon has its own.
//!
//! The control is a listener that asks again at once when a connection could not be accepted: this program itself, as
//! another process.

use std::env;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::{Scheduled, seconds, serves};
use crate::harness::{PATIENCE, Process, World, head, next_name, wait_for};
use crate::load::{Ack, Live, Load, once};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::traced::Tracer;
use crate::verdict::{Found, Verdict};

/// Makes this program the control.
pub(crate) const SPIN: &str = "__spin";

/// Descriptors a process may have, and connections that want one.
const DESCRIPTORS: &str = "--nofile=64";
const CROWD: usize = 200;
/// How long the crowd stays, short and long, seconds.
const STAY_S: (usize, usize) = (5, 60);
/// Processor time it takes meanwhile, percent of what it could have.
const BUSY: u128 = 20;
/// Accepts that fail while there is no crowd, short and long.
const REFUSED: (usize, usize) = (8, 40);
/// It asks again so often at most, a second.
const ASKS_PER_S: u128 = 20;
/// Connections that wait for one meanwhile, at most.
const WAITING: usize = 8;
/// Between the first of them and the last, at most, and the time all of them are waited for.
const REFUSED_FOR: Duration = Duration::from_secs(30);
/// From the crowd's end to the first 200.
const SOON: Duration = Duration::from_secs(1);

/// A listener without patience, until it is killed.
pub(crate) fn spin(port: &str) -> ! {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("a free port");
    let mut kept = Vec::new();
    loop {
        kept.extend(listener.accept().ok());
    }
}

pub(crate) fn none_left(options: &Options) -> Verdict {
    let stay = options.effort.of(STAY_S.0, STAY_S.1);
    let stay = Duration::from_secs(stay.try_into().expect("small"));
    let refused = options.effort.of(REFUSED.0, REFUSED.1);
    Verdict::new(of_daemon(stay, refused)).control("accepts again at once", of_spinner(refused))
}

/// What a crowd does to a process.
struct Crowded {
    refused: usize,
    busy: u128,
}

/// What becomes of accepts that the kernel refuses.
struct Refused {
    count: usize,
    /// How often it asked again, a second.
    asks_per_s: u128,
}

/// Lets `count` accepts fail while connections wait. Comes back after the last of them.
fn refuse(pid: u32, address: SocketAddr, count: usize, logs: &Path) -> Refused {
    let fault = format!("error=EMFILE:when=1..{count}");
    let tracer = Tracer::attach(pid, logs, "refusals", "accept4", &fault);
    let (mut waiting, began) = (Vec::new(), Instant::now());
    while tracer.injected() < count && began.elapsed() < REFUSED_FOR {
        // A few: whoever finds the backlog full tries again after a second only.
        if waiting.len() < WAITING {
            waiting.extend(connected(address));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let calls = tracer.calls();
    let at_us: Vec<u128> = calls
        .iter()
        .filter(|call| call.contains("(INJECTED)"))
        .filter_map(|call| at_us(call))
        .collect();
    let between = at_us.last().zip(at_us.first());
    let took_us = between.map_or(0, |(last, first)| last.saturating_sub(*first));
    let asks = u128::try_from(at_us.len().saturating_sub(1)).expect("few");
    Refused {
        count: at_us.len(),
        asks_per_s: asks * 1_000_000 / took_us.max(1),
    }
}

/// When a call of a trace was made, microseconds since 1970.
fn at_us(call: &str) -> Option<u128> {
    let (seconds, micros) = call.split_whitespace().nth(1)?.split_once('.')?;
    Some(seconds.parse::<u128>().ok()? * 1_000_000 + micros.parse::<u128>().ok()?)
}

/// One of a crowd, which waits for nothing.
fn connected(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

/// The other side has closed it.
fn is_closed(stream: &TcpStream) -> bool {
    !matches!(stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn crowd(pid: u32, address: SocketAddr, stay: Duration, logs: &Path) -> Crowded {
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        // What the kernel has no room for is part of the crowd.
        crowd.extend(connected(address));
    }
    // Looked at while strace is not there: it would be the work that is measured.
    let (before, began) = (Scheduled::of(pid), Instant::now());
    while began.elapsed() < stay {
        // Those that were let in and said nothing are sent away by and by; others come in their place.
        crowd.retain(|stream| !is_closed(stream));
        while crowd.len() < CROWD {
            let Some(stream) = connected(address) else {
                break;
            };
            crowd.push(stream);
        }
        thread::sleep(Duration::from_millis(100));
    }
    let busy = Scheduled::of(pid).busy_since(&before);
    let tracer = Tracer::attach(pid, logs, "accepts", "accept4,accept", "");
    // Long enough for one that asks again each second.
    thread::sleep(Duration::from_secs(2));
    let calls = tracer.calls();
    let looked = calls.iter().filter(|call| call.contains("EMFILE")).count();
    drop(crowd);
    Crowded {
        refused: looked,
        busy,
    }
}

fn of_daemon(stay: Duration, count: usize) -> Found {
    let mut world = quiet().not_served().start();
    world.under = vec!["/usr/bin/prlimit".to_owned(), DESCRIPTORS.to_owned()];
    world.start_serve();
    let mut load = Load::open(&world, 4);
    let pid = world.serve_pid();
    let (heard, ()) = load.during(|live| {
        live.one_more();
        thread::sleep(Duration::from_millis(300));
    });
    let mut acks: Vec<Ack> = heard.acks;
    let crowded = crowd(pid, world.listen(), stay, &world.log_dir());
    let (heard, after) = load.during(Live::one_more);
    acks.extend(heard.acks);
    let (heard, (refused, newcomer)) = load.during(|live| {
        live.one_more();
        let refused = refuse(pid, world.listen(), count, &world.log_dir());
        // Those that are there already are answered all the while.
        live.one_more();
        let began = Instant::now();
        let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
        let look = head("shop.example", "GET", &target, &[], None);
        let code = once(world.listen(), &look);
        (refused, code.map(|_any| began.elapsed()))
    });
    acks.extend(heard.acks);
    let lives_on = serves(&world);
    let lost = stored::lost(&world.ledger(), &acks);
    let after = after.max(newcomer.unwrap_or(Duration::MAX / 4));
    judged(&crowded, &refused, after, (lost, stay))
        .bar(lives_on, "the daemon ended")
        .needs(!acks.is_empty(), "nothing was acknowledged")
}

fn of_spinner(count: usize) -> Found {
    let dir = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr();
    let address = port.expect("bound");
    let spinner = spun(address, dir.path());
    let stay = Duration::from_secs(2);
    let crowded = crowd(spinner.pid(), address, stay, dir.path());
    // The crowd has taken all it has.
    drop(spinner);
    let spinner = spun(address, dir.path());
    let refused = refuse(spinner.pid(), address, count, dir.path());
    judged(&crowded, &refused, Duration::ZERO, (0, stay))
}

/// Starts the control.
fn spun(address: SocketAddr, logs: &Path) -> Process {
    let mut command = Command::new("/usr/bin/prlimit");
    command
        .arg(DESCRIPTORS)
        .arg(env::current_exe().expect("a program"));
    command.args([SPIN.to_owned(), address.port().to_string()]);
    let spinner = Process::spawn(&mut command, logs, &next_name());
    wait_for(PATIENCE, "the control to listen", || {
        TcpStream::connect(address).ok()
    });
    spinner
}

fn judged(
    crowded: &Crowded,
    failing: &Refused,
    after: Duration,
    (lost, stay): (usize, Duration),
) -> Found {
    let Crowded { refused, busy } = *crowded;
    let Refused { count, asks_per_s } = *failing;
    let n = format!(
        "{CROWD} connections for {} s, 64 descriptors; {count} accepts that failed",
        stay.as_secs()
    );
    let figure = format!(
        "processor {busy} %; asked {asks_per_s} times a second; first 200 afterwards {}; lost {lost}",
        seconds(after)
    );
    Found::new(n, figure)
        .bar(busy <= BUSY, format!("{busy} % of a processor"))
        .bar(
            asks_per_s <= ASKS_PER_S,
            format!("asked {asks_per_s} times a second"),
        )
        .bar(after <= SOON, "not answered in time")
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .needs(refused > 0, "no accept failed for want of a descriptor")
        .needs(count > 1, "no accept was made to fail")
}
