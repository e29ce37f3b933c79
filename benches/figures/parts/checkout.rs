//! A rush at the checkout: creates through the control socket beside a bare client that posts the same to the same service, with
//! as many callers as tilld has places; and a thousand creates over 200 connections. An answer that opens nothing fails it.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Part, slices};
use crate::load::Latency;
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::daemon::Home;
use crate::subjects::service::Service;

/// The part.
pub(crate) const PART: Part = Part {
    name: "checkout",
    what: "what tilld adds to a create, and a thousand creates over 200 connections",
    run,
};

/// How long the service takes for a create.
const SERVICE_TAKES: Duration = Duration::from_millis(50);
/// Creates that tilld sends at once.
const PLACES: u32 = 64;
/// Creates of each caller in a round.
const EACH: u32 = 40;
/// The rush: so many creates, over so many connections.
const RUSH: (u32, u32) = (1_000, 200);

fn run(options: &Options, report: &mut Report) {
    let rounds = match options.effort {
        Effort::Smoke => 1,
        Effort::Quick => 3,
        Effort::Full => 8,
    };
    let service = Service::start(SERVICE_TAKES);
    let directory = options.directory.join("checkout");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("an earlier run's");
    }
    let home = Home::make(&directory, "");
    // Makes the state directory.
    home.stock(1);
    let logged_in = service.log_in(&home);
    let daemon = home.start(&options.daemon);
    let socket = home.state().join("control.sock");
    let gate = slices::gate(options);
    // Orders have names of their own, whatever round and part they are of.
    let order = AtomicU32::new(0);
    let order = || order.fetch_add(1, Ordering::Relaxed);
    let through = |number: u32, of: u32| {
        spread(number, of);
        Caller::new(UnixStream::connect(&socket).expect("it listens"))
    };
    for round in 0..rounds {
        let mut arms = ["bare", "tilld"];
        arms.rotate_left(round % 2);
        let (mut bare, mut tilld) = (0.0, 0.0);
        for arm in arms {
            let slice = gate.slice(|| {
                if arm == "bare" {
                    // As tilld does it: each post has a connection of its own.
                    let begin = |number| spread(number, PLACES);
                    calls((PLACES, EACH), begin, |()| post(&service, order()))
                } else {
                    let once = |caller: &mut Caller<UnixStream>| caller.call(&wish(order()));
                    calls((PLACES, EACH), |number| through(number, PLACES), once)
                }
            });
            let latency = slice.value;
            for (kind, share) in [("p50", 0.5), ("p99", 0.99)] {
                let took = millis(latency.at(share));
                let key = format!("checkout.{arm}.{kind}");
                let what = format!("{kind} of a create, 64 callers, {arm}");
                report.add(&key, &what, "ms", took);
                if slice.disturbed {
                    report.disturbed(&key);
                }
                if kind == "p99" {
                    *(if arm == "bare" { &mut bare } else { &mut tilld }) = took;
                }
            }
        }
        let what = "what tilld adds to the p99 of a create, 64 callers";
        report.add("checkout.added", what, "ms", tilld - bare);
        let (creates, connections) = RUSH;
        let slice = gate.slice(|| {
            let began = Instant::now();
            let once = |caller: &mut Caller<UnixStream>| caller.call(&wish(order()));
            let each = (connections, creates / connections);
            calls(each, |number| through(number, connections), once);
            millis(began.elapsed())
        });
        let what = "a thousand creates over 200 connections";
        report.add("checkout.rush", what, "ms", slice.value);
        if slice.disturbed {
            report.disturbed("checkout.rush");
        }
    }
    report.bar("checkout.added", Bar::AtMost(10.0));
    report.bar("checkout.rush", Bar::AtMost(1_000.0));
    let what = "p99 of a create through tilld ÷ of a bare client";
    report.ratio(what, "checkout.tilld.p99", "checkout.bare.p99", None);
    daemon.stop();
    drop(logged_in);
}

/// Customers do not come in step: callers begin one after the other while the service is at the first create.
fn spread(number: u32, of: u32) {
    thread::sleep(SERVICE_TAKES * number / of);
}

/// Each of so many callers makes so many calls, one after the other: how long they took.
fn calls<C>(
    (callers, each): (u32, u32),
    begin: impl Fn(u32) -> C + Sync,
    once: impl Fn(&mut C) + Sync,
) -> Latency {
    let mut latency = Latency::default();
    let took = thread::scope(|scope| {
        let one = |number: u32| {
            let (begin, once) = (&begin, &once);
            scope.spawn(move || {
                let mut caller = begin(number);
                let call = |_call| {
                    let began = Instant::now();
                    once(&mut caller);
                    began.elapsed()
                };
                (0..each).map(call).collect::<Vec<Duration>>()
            })
        };
        let all: Vec<_> = (0..callers).map(one).collect();
        let all = all
            .into_iter()
            .map(|caller| caller.join().expect("no panic"));
        all.flatten().collect::<Vec<Duration>>()
    });
    for one in took {
        latency.add(one);
    }
    latency
}

/// What a shop posts to the control socket.
fn wish(order: u32) -> String {
    let body = format!(
        r#"{{"order_id":"order-{order}","amount":"1500.00","currency":"RUB","method":"SBP"}}"#
    );
    let length = body.len();
    format!("POST /v1/invoices HTTP/1.1\r\nHost: tilld\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// What a bare client posts to the service: the same order, in the contract's words.
fn post(service: &Service, order: u32) {
    let body = format!(
        r#"{{"internalId":"bare-{order}","amount":1500.00,"currency":"RUB","startDeal":true,"paymentMethod":"SBP","notificationUrl":"http://127.0.0.1:1/n/r","notificationToken":"t"}}"#
    );
    let length = body.len();
    let request = format!(
        "POST /api/v1/invoices HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\nAuthorization: Bearer shop:token\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let stream = TcpStream::connect(service.address()).expect("it listens");
    Caller::new(stream).call(&request);
}

/// One connection.
struct Caller<S>(BufReader<S>);

impl<S: Read + Write> Caller<S> {
    fn new(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    /// Sends a request that opens an invoice, and reads its answer to the end. Another answer fails the bench.
    fn call(&mut self, request: &str) {
        let sent = self.0.get_mut().write_all(request.as_bytes());
        sent.expect("the other side reads");
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let at = head.len();
            let read = self.0.read_line(&mut head).expect("an answer");
            assert!(read > 0, "an answer: {head}");
            let line = head.get(at..).unwrap_or_default().to_ascii_lowercase();
            if let Some(said) = line.strip_prefix("content-length:") {
                length = said.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("the whole answer");
        let body = String::from_utf8_lossy(&body);
        assert!(head.starts_with("HTTP/1.1 201 "), "{head}{body}");
    }
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}
