//! One run: sockets that never block, one epoll, one thread.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use super::connection::{Connection, Whole};
use super::latency::Latency;
use super::{Answer, Heard, Pace, Plan, Sender, Tally};

/// Events taken at once.
const EVENTS: usize = 256;
/// How late a wait may end, nanoseconds: the kernel's 50 µs would be a good part of what is measured.
const SLACK: NonZeroU64 = NonZeroU64::new(1_000).expect("not zero");
/// How long what is under way at the end is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries to connect to whoever does not listen.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// A place for a connection.
struct Place {
    /// `None`: it was lost.
    connection: Option<Connection>,
    busy: Option<Busy>,
}

/// A request under way.
#[derive(Clone, Copy)]
struct Busy {
    invoice: usize,
    intended: Duration,
}

/// How long so many even distances are.
fn distances(number: u32, per_second: f64) -> Duration {
    Duration::from_secs_f64(f64::from(number) / per_second)
}

/// A run under way.
pub(super) struct Drive<'a> {
    sender: &'a mut Sender,
    address: SocketAddr,
    plan: &'a Plan,
    epoll: OwnedFd,
    places: Vec<Place>,
    /// Places without a request that are connected, the one that waits longest first.
    free: VecDeque<usize>,
    /// Places that are not connected.
    lost: VecDeque<usize>,
    lost_tried: Duration,
    began: Instant,
    /// Requests of an open loop that were meant to be sent by now, and were or never will be.
    number: u32,
    /// Of a falling pace: whether it has fallen.
    fell: bool,
    measured: Tally,
    whole: Tally,
    latency: Latency,
}

impl<'a> Drive<'a> {
    pub(super) fn begin(sender: &'a mut Sender, address: SocketAddr, plan: &'a Plan) -> Self {
        set_current_timer_slack(Some(SLACK)).expect("a thread may");
        let mut drive = Self {
            sender,
            address,
            plan,
            epoll: epoll::create(CreateFlags::CLOEXEC).expect("an epoll"),
            places: Vec::new(),
            free: VecDeque::new(),
            lost: VecDeque::new(),
            lost_tried: Duration::ZERO,
            began: Instant::now(),
            number: 0,
            fell: false,
            measured: Tally::default(),
            whole: Tally::default(),
            latency: Latency::default(),
        };
        for place in 0..plan.connections {
            drive.places.push(Place {
                connection: None,
                busy: None,
            });
            drive.connect(place).expect("it listens");
        }
        drive.began = Instant::now();
        drive
    }

    pub(super) fn run_out(mut self, show: &mut dyn FnMut(&Answer)) -> Heard {
        let end = self.plan.warm + self.plan.run;
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = self.began.elapsed();
            if now >= end {
                break;
            }
            self.fall(now);
            self.connect_lost(now);
            self.send_due(now);
            let until = self.next_due().unwrap_or(end).min(end);
            self.hear(&mut events, until, show);
        }
        self.note_unsent(end);
        while self.places.iter().any(|place| place.busy.is_some()) {
            if self.began.elapsed() >= end + PATIENCE {
                (0..self.places.len()).for_each(|place| self.lose(place));
                break;
            }
            self.hear(&mut events, end + PATIENCE, show);
        }
        let Tally {
            sent,
            acknowledged,
            refused,
            failed: _,
        } = self.measured;
        Heard {
            sent,
            acknowledged,
            refused,
            elapsed: self.plan.run,
            latency: self.latency,
            whole: self.whole,
        }
    }

    fn connect(&mut self, place: usize) -> io::Result<()> {
        let connection = Connection::open(self.address)?;
        let data = EventData::new_u64(place as u64);
        epoll::add(&self.epoll, &connection, data, EventFlags::IN)?;
        let at = self.places.get_mut(place).expect("a place");
        at.connection = Some(connection);
        self.free.push_back(place);
        Ok(())
    }

    fn connect_lost(&mut self, now: Duration) {
        if self.lost.is_empty() || now < self.lost_tried + TRY_AGAIN {
            return;
        }
        while let Some(place) = self.lost.pop_front() {
            if self.connect(place).is_err() {
                self.lost.push_front(place);
                self.lost_tried = now;
                return;
            }
        }
    }

    /// When the next request of an open loop is meant to be sent.
    fn intended(&self) -> Option<Duration> {
        match self.plan.pace {
            Pace::Closed => None,
            Pace::Falling { until, then, .. } if self.fell => {
                Some(until + distances(self.number, then))
            }
            Pace::Open { per_second } | Pace::Falling { per_second, .. } => {
                Some(distances(self.number, per_second))
            }
        }
    }

    /// The rate falls when its time has come.
    fn fall(&mut self, now: Duration) {
        if let Pace::Falling { until, .. } = self.plan.pace
            && !self.fell
            && now >= until
        {
            self.note_unsent(until);
            self.number = 0;
            self.fell = true;
        }
    }

    /// When there will be something to send, if it is only a matter of time.
    fn next_due(&self) -> Option<Duration> {
        let again = (!self.lost.is_empty()).then(|| self.lost_tried + TRY_AGAIN);
        let can = !self.free.is_empty() && !self.sender.free.is_empty();
        let due = self.intended().filter(|_| can);
        let falls = match self.plan.pace {
            Pace::Falling { until, .. } if !self.fell => Some(until),
            _ => None,
        };
        [again, due, falls].into_iter().flatten().min()
    }

    /// Sends all that is due, as far as connections and invoices are free.
    fn send_due(&mut self, mut now: Duration) {
        loop {
            let intended = self.intended();
            if intended.is_some_and(|at| at > now) {
                return;
            }
            if self.free.is_empty() || self.sender.free.is_empty() {
                return;
            }
            let place = self.free.pop_front().expect("looked");
            let invoice = self.sender.free.pop_front().expect("looked");
            now = self.began.elapsed();
            self.number += 1;
            self.send(
                place,
                Busy {
                    invoice,
                    intended: intended.unwrap_or(now),
                },
            );
        }
    }

    fn send(&mut self, place: usize, busy: Busy) {
        self.whole.sent += 1;
        self.measured.sent += u64::from(busy.intended >= self.plan.warm);
        let request = self.sender.requests.get(busy.invoice).expect("an invoice");
        let at = self.places.get_mut(place).expect("a place");
        at.busy = Some(busy);
        let connection = at.connection.as_mut().expect("it was free");
        match connection.begin(request.bytes()) {
            Ok(true) => {}
            Ok(false) => self.watch(place, EventFlags::IN | EventFlags::OUT),
            Err(_lost) => self.lose(place),
        }
    }

    fn watch(&self, place: usize, what: EventFlags) {
        let at = self.places.get(place).expect("a place");
        if let Some(connection) = &at.connection {
            let data = EventData::new_u64(place as u64);
            epoll::modify(&self.epoll, connection, data, what).expect("it was added");
        }
    }

    /// Waits for answers, not beyond this time, and takes what is there.
    fn hear(&mut self, events: &mut Vec<Event>, until: Duration, show: &mut dyn FnMut(&Answer)) {
        let wait = until.saturating_sub(self.began.elapsed());
        let wait = Timespec::try_from(wait).expect("short");
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("epoll: {error}"),
        }
        for event in events.drain(..) {
            let (flags, data) = (event.flags, event.data);
            let place = usize::try_from(data.u64()).expect("a place");
            if flags.contains(EventFlags::OUT) {
                self.go_on(place);
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.take(place, show);
            }
        }
    }

    fn go_on(&mut self, place: usize) {
        let at = self.places.get_mut(place).expect("a place");
        let (Some(connection), Some(busy)) = (at.connection.as_mut(), at.busy) else {
            return;
        };
        let request = self.sender.requests.get(busy.invoice).expect("an invoice");
        match connection.go_on(request.bytes()) {
            Ok(true) => self.watch(place, EventFlags::IN),
            Ok(false) => {}
            Err(_lost) => self.lose(place),
        }
    }

    fn take(&mut self, place: usize, show: &mut dyn FnMut(&Answer)) {
        let at = self.places.get_mut(place).expect("a place");
        let Some(connection) = at.connection.as_mut() else {
            return;
        };
        match connection.hear() {
            Ok(None) => {}
            Ok(Some(Whole { status, closes })) => {
                let Some(busy) = at.busy.take() else {
                    return self.lose(place);
                };
                self.answered(busy, status, show);
                if closes {
                    self.lose(place);
                } else {
                    self.free.push_back(place);
                }
            }
            Err(_lost) => self.lose(place),
        }
    }

    fn answered(&mut self, busy: Busy, status: u16, show: &mut dyn FnMut(&Answer)) {
        let came = self.began.elapsed();
        let answer = Answer {
            intended: busy.intended,
            came,
            status,
        };
        show(&answer);
        self.sender.free.push_back(busy.invoice);
        let counts = u64::from(self.is_measured(came));
        if status != 200 {
            self.whole.refused += 1;
            self.measured.refused += counts;
            return;
        }
        self.whole.acknowledged += 1;
        self.measured.acknowledged += counts;
        if busy.intended >= self.plan.warm {
            self.latency.add(came.saturating_sub(busy.intended));
        }
        let request = self.sender.requests.get_mut(busy.invoice);
        request.expect("an invoice").next();
    }

    fn is_measured(&self, at: Duration) -> bool {
        (self.plan.warm..self.plan.warm + self.plan.run).contains(&at)
    }

    /// This connection is gone, and with it the answer that was waited for.
    fn lose(&mut self, place: usize) {
        let at = self.places.get_mut(place).expect("a place");
        if at.connection.take().is_none() {
            return;
        }
        if at.busy.take().is_some() {
            self.whole.failed += 1;
        } else {
            self.free.retain(|free| *free != place);
        }
        self.lost.push_back(place);
    }

    /// What should have been sent by the end and was not, for want of a free connection, has waited as long as that.
    fn note_unsent(&mut self, end: Duration) {
        while let Some(intended) = self.intended().filter(|at| *at < end) {
            if intended >= self.plan.warm {
                self.latency.add(end.saturating_sub(intended));
            }
            self.number += 1;
        }
    }
}
