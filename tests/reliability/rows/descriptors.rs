//! R08, no file descriptors left: a crowd that takes all of them and stays for a while.
//!
//! The control is a listener that asks again at once when a connection could not be accepted: this program itself, as
//! another process.

use std::env;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::figures::{Scheduled, seconds, serves};
use crate::harness::{PATIENCE, Process, wait_for};
use crate::load::{Ack, Load};
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
    Verdict::new(of_daemon(stay)).control("accepts again at once", of_spinner())
}

/// What a crowd does to a process.
struct Crowded {
    refused: usize,
    busy: u128,
}

fn crowd(pid: u32, address: SocketAddr, stay: Duration, logs: &Path) -> Crowded {
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        // What the kernel has no room for is part of the crowd.
        crowd.extend(TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok());
    }
    // Looked at while strace is not there: it would be the work that is measured.
    let before = Scheduled::of(pid);
    thread::sleep(stay);
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

fn of_daemon(stay: Duration) -> Found {
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
    let (heard, after) = load.during(crate::load::Live::one_more);
    acks.extend(heard.acks);
    let lives_on = serves(&world);
    let lost = stored::lost(&world.ledger(), &acks);
    judged(&crowded, after, lost, stay)
        .bar(lives_on, "the daemon ended")
        .needs(!acks.is_empty(), "nothing was acknowledged")
}

fn of_spinner() -> Found {
    let dir = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr();
    let address = port.expect("bound");
    let mut command = Command::new("/usr/bin/prlimit");
    command
        .arg(DESCRIPTORS)
        .arg(env::current_exe().expect("a program"));
    command.args([SPIN.to_owned(), address.port().to_string()]);
    let spinner = Process::spawn(&mut command, dir.path(), "spin");
    wait_for(PATIENCE, "the control to listen", || {
        TcpStream::connect(address).ok()
    });
    let stay = Duration::from_secs(2);
    let crowded = crowd(spinner.pid(), address, stay, dir.path());
    judged(&crowded, Duration::ZERO, 0, stay)
}

fn judged(crowded: &Crowded, after: Duration, lost: usize, stay: Duration) -> Found {
    let Crowded { refused, busy } = *crowded;
    let n = format!(
        "{CROWD} connections for {} s, 64 descriptors",
        stay.as_secs()
    );
    let figure = format!(
        "processor {busy} %; first 200 afterwards {}; lost {lost}",
        seconds(after)
    );
    Found::new(n, figure)
        .bar(busy <= BUSY, format!("{busy} % of a processor"))
        .bar(after <= SOON, "not answered in time")
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .needs(refused > 0, "no accept failed for want of a descriptor")
}
