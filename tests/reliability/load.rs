//! The load: senders with a connection and an invoice each, who notify, read the answer and notify again. Each notification
//! is newer than all before it and has a status of its own, so that each makes an event that can be found again.
//!
//! An acknowledgement counts when all of the 200 was read. Who gets no answer connects anew and goes on with the next one.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::harness::{Issued, PATIENCE, World, head, wait_until};

/// A sender that got no answer for so long gives up, as the payment service does.
pub(crate) const SENDERS_PATIENCE: Duration = Duration::from_secs(15);
/// Between two tries to connect.
const AGAIN: Duration = Duration::from_millis(10);

/// An acknowledgement.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    /// When it was read, nanoseconds since 1970.
    pub(crate) at_ns: u128,
    /// The status that was acknowledged.
    pub(crate) status: String,
}

/// What all senders heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) acks: Vec<Ack>,
    /// Answers by their code, 200 left out.
    pub(crate) refused: BTreeMap<u16, usize>,
    /// 503 without a `Retry-After`.
    pub(crate) without_retry_after: usize,
    /// Answers that began and did not end.
    pub(crate) cut: usize,
    /// Requests without any answer: the daemon was gone.
    pub(crate) unanswered: usize,
    /// Requests without an answer in [`SENDERS_PATIENCE`].
    pub(crate) timed_out: usize,
    /// How long each whole answer took.
    pub(crate) times: Vec<Duration>,
}

impl Heard {
    /// Answers 503.
    pub(crate) fn unavailable(&self) -> usize {
        self.refused.get(&503).copied().unwrap_or_default()
    }

    /// The slowest answer.
    pub(crate) fn longest(&self) -> Duration {
        self.times.iter().max().copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.acks.extend(other.acks);
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        self.without_retry_after += other.without_retry_after;
        self.cut += other.cut;
        self.unanswered += other.unanswered;
        self.timed_out += other.timed_out;
        self.times.extend(other.times);
    }
}

/// What whoever acts during a load sees of it.
#[derive(Debug, Default)]
pub(crate) struct Live {
    ended: AtomicBool,
    acks: AtomicUsize,
    unavailable: AtomicUsize,
}

impl Live {
    /// Acknowledged so far.
    pub(crate) fn acks(&self) -> usize {
        self.acks.load(Ordering::Relaxed)
    }

    /// Answered 503 so far.
    pub(crate) fn unavailable(&self) -> usize {
        self.unavailable.load(Ordering::Relaxed)
    }

    /// Waits until something is acknowledged that is not yet.
    #[track_caller]
    pub(crate) fn one_more(&self) -> Duration {
        let (began, before) = (Instant::now(), self.acks());
        wait_until(PATIENCE, "another acknowledgement", || self.acks() > before);
        began.elapsed()
    }
}

/// Who sends.
#[derive(Debug)]
pub(crate) struct Load {
    listen: SocketAddr,
    senders: Vec<Sender>,
    /// Notifications on one connection at most.
    on_one: u64,
}

#[derive(Debug)]
struct Sender {
    name: usize,
    issued: Issued,
    /// The body, with places for what differs.
    body: String,
    number: u64,
}

/// Places in a body.
const STATUS: &str = "@STATUS@";
const AT: &str = "@AT@";

impl Load {
    /// Opens an invoice for each of `count` senders.
    #[track_caller]
    pub(crate) fn open(world: &World, count: usize) -> Self {
        let orders: Vec<String> = (0..count).map(|number| format!("L-{number}")).collect();
        let issued = world.create_all(&orders).into_iter();
        let senders = issued.enumerate().map(|(name, issued)| Sender {
            name,
            body: issued.saying(STATUS, AT),
            issued,
            number: 0,
        });
        Self {
            listen: world.listen(),
            senders: senders.collect(),
            on_one: u64::MAX,
        }
    }

    /// After so many notifications a sender makes another connection.
    pub(crate) fn on_one(mut self, notifications: u64) -> Self {
        self.on_one = notifications;
        self
    }

    /// All send without a pause while `act` does something else, and until it is done with it.
    pub(crate) fn during<T>(&mut self, act: impl FnOnce(&Live) -> T) -> (Heard, T) {
        self.paced(Duration::ZERO, act)
    }

    /// [`Load::during`], each sender with this pause after an answer.
    pub(crate) fn paced<T>(&mut self, pause: Duration, act: impl FnOnce(&Live) -> T) -> (Heard, T) {
        let (live, heard) = (Live::default(), Mutex::new(Heard::default()));
        let (live, heard_by_all) = (&live, &heard);
        let (listen, on_one) = (self.listen, self.on_one);
        let done = thread::scope(|scope| {
            // However `act` ends, the senders do too.
            let _end = EndsWith(&live.ended);
            for sender in &mut self.senders {
                scope.spawn(move || {
                    let heard = sender.send((listen, on_one), live, pause);
                    heard_by_all.lock().expect("nobody panics").add(heard);
                });
            }
            act(live)
        });
        (heard.into_inner().expect("nobody panics"), done)
    }
}

struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sender {
    fn send(&mut self, (listen, on_one): (SocketAddr, u64), live: &Live, pause: Duration) -> Heard {
        let mut heard = Heard::default();
        let mut wire: Option<TcpStream> = None;
        while !live.ended.load(Ordering::Relaxed) {
            let Some(mut stream) = wire.take().or_else(|| connect(listen)) else {
                thread::sleep(AGAIN);
                continue;
            };
            self.number += 1;
            let status = format!("s{}-{}", self.name, self.number);
            let request = self.request(&status);
            let began = Instant::now();
            let answer = match stream.write_all(request.as_bytes()) {
                Ok(()) => read(&mut stream),
                Err(_gone) => Answer::None,
            };
            match answer {
                Answer::Whole(code, text) => {
                    heard.times.push(began.elapsed());
                    if code == 200 {
                        let at_ns = since_1970();
                        heard.acks.push(Ack { at_ns, status });
                        live.acks.fetch_add(1, Ordering::Relaxed);
                    } else {
                        *heard.refused.entry(code).or_default() += 1;
                    }
                    let text = text.to_ascii_lowercase();
                    if code == 503 {
                        live.unavailable.fetch_add(1, Ordering::Relaxed);
                        heard.without_retry_after += usize::from(!text.contains("retry-after: "));
                    }
                    if !text.contains("connection: close") && !self.number.is_multiple_of(on_one) {
                        wire = Some(stream);
                    }
                }
                Answer::Cut => heard.cut += 1,
                Answer::Late => heard.timed_out += 1,
                Answer::None => heard.unanswered += 1,
            }
            if !pause.is_zero() {
                thread::sleep(pause);
            }
        }
        heard
    }

    fn request(&self, status: &str) -> String {
        let number = usize::try_from(self.number).expect("small");
        let at = self.issued.at_us(number + 1);
        let body = self.body.replace(STATUS, status).replace(AT, &at);
        let target = World::target(&self.issued.reference);
        let headers = [
            ("Content-Type", "application/json"),
            ("X-Notification-Token", self.issued.token.as_str()),
        ];
        head("shop.example", "POST", &target, &headers, Some(body.len())) + &body
    }
}

/// Nanoseconds since 1970 by the machine's clock, as the recorder has them.
pub(crate) fn since_1970() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_nanos()
}

fn connect(listen: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&listen, SENDERS_PATIENCE).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(SENDERS_PATIENCE)).ok()?;
    Some(stream)
}

/// One request on a connection of its own; the code of its answer, if a whole one came.
pub(crate) fn once(listen: SocketAddr, request: &str) -> Option<u16> {
    let mut stream = connect(listen)?;
    stream.write_all(request.as_bytes()).ok()?;
    match read(&mut stream) {
        Answer::Whole(code, _) => Some(code),
        Answer::Cut | Answer::Late | Answer::None => None,
    }
}

enum Answer {
    /// Its code and all of its text.
    Whole(u16, String),
    Cut,
    Late,
    None,
}

fn read(stream: &mut TcpStream) -> Answer {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) if bytes.is_empty() => return Answer::None,
            Ok(0) => return Answer::Cut,
            Ok(count) => bytes.extend(part.iter().take(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Answer::Late;
            }
            Err(_reset) if bytes.is_empty() => return Answer::None,
            Err(_reset) => return Answer::Cut,
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let lower = head.to_ascii_lowercase();
        let length = lower.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
            return Answer::Whole(code.unwrap_or_default(), text.into_owned());
        }
    }
}
