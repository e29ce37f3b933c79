//! What is logged, on its way to whoever reads it: bounded, and never waited for.
//!
//! Whoever has something to say copies it into a buffer and goes on; a thread of its own takes the buffer as a whole and writes
//! it. When nobody reads, the buffer fills and what comes then is dropped, counted, and told of once there is room. tracing's own
//! appender does the same with a queue of lines, a block of memory and a wake each, and brings a time library with it.

use std::io::{self, Write};
use std::mem::{swap, take};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::stdio::stderr;

/// Bytes that wait to be written: some five thousand lines, which is a quarter of a second of all that can be notified.
const BOUND: usize = 1024 * 1024;
/// What a buffer keeps when it is empty.
const KEPT: usize = 16 * 1024;
/// How long stderr is left alone when it takes nothing and does not wait either.
const PAUSE: Duration = Duration::from_millis(20);

/// Pieces one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each piece ends.
    ends: Vec<usize>,
}

impl Batch {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(KEPT);
        self.ends.shrink_to(KEPT / 64);
    }

    /// All of them as one.
    fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// Each by itself.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().filter_map(move |end| {
            let piece = self.bytes.get(begin..*end);
            begin = *end;
            piece
        })
    }

    fn len(&self) -> usize {
        self.ends.len()
    }
}

/// Where it goes.
pub(super) trait Sink: Send + 'static {
    /// Writes all of it, however long that takes. Gives how many pieces nobody took.
    fn put(&mut self, batch: &Batch) -> usize;
}

/// Lines on stderr.
#[derive(Debug, Default)]
pub(super) struct Stderr {
    /// It took the beginning of a line and not its end.
    broke_off: bool,
}

impl Sink for Stderr {
    /// Past the lock that other writers of stderr take: one that is held while nobody reads would keep them too.
    fn put(&mut self, batch: &Batch) -> usize {
        if self.broke_off && written(b"\n") == 0 {
            return batch.len();
        }
        let taken = written(batch.whole());
        let lost = batch.ends.iter().filter(|end| **end > taken).count();
        self.broke_off = taken > 0 && !batch.ends.contains(&taken);
        lost
    }
}

/// How many of these bytes stderr took before it failed: because nobody is there any more, or the disk of its file is full.
fn written(bytes: &[u8]) -> usize {
    let mut taken = 0;
    while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
        match rustix::io::write(stderr(), rest) {
            Ok(more) => taken += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => thread::sleep(PAUSE),
            Err(_) => break,
        }
    }
    taken
}

/// The queue. Shared by all that log and the thread that writes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Held for a copy.
    state: Mutex<State>,
    /// There is something to write.
    some: Condvar,
    /// All is written.
    none: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Batch,
    /// Pieces that found no room, and were not told of.
    dropped: usize,
    /// The thread has nothing to do and must be woken.
    sleeps: bool,
    /// A batch is being written.
    writes: bool,
}

impl Queue {
    /// Takes one piece, or drops it.
    pub(super) fn push(&self, piece: &[u8]) {
        let mut state = self.lock();
        if state.waiting.bytes.len() + piece.len() > BOUND {
            state.dropped += 1;
            return;
        }
        state.waiting.push(piece);
        let sleeps = take(&mut state.sleeps);
        drop(state);
        if sleeps {
            self.some.notify_one();
        }
    }

    /// Waits until all is written, but no longer than this.
    pub(super) fn flush(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let mut state = self.lock();
        while state.writes || state.waiting.len() > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.none.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes what comes, for ever. `tell` is to log how many pieces were dropped.
    fn write(&self, sink: &mut impl Sink, tell: impl Fn(usize)) {
        let mut batch = Batch::default();
        // Pieces that are to be told of; and those a line tells of that waits to be written.
        let (mut owed, mut telling) = (0, 0);
        // Nothing is said to one who takes nothing: it would be lost too, and told of, for ever.
        let mut takes = true;
        loop {
            let mut state = self.lock();
            while state.waiting.len() == 0 {
                state.writes = false;
                self.none.notify_all();
                state.sleeps = true;
                state = self
                    .some
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.sleeps = false;
            state.writes = true;
            swap(&mut state.waiting, &mut batch);
            owed += take(&mut state.dropped);
            drop(state);
            // At once, while there is room for it: behind what waited, and before what comes.
            let told_before = take(&mut telling);
            if takes && owed > 0 {
                telling = take(&mut owed);
                tell(telling);
            }
            let lost = sink.put(&batch).min(batch.len());
            takes = lost < batch.len();
            if lost > 0 {
                owed += lost;
                // The line that told of some stands first: it is lost with all of them, and is no loss of its own.
                if !takes && told_before > 0 {
                    owed += told_before - 1;
                }
            }
            batch.clear();
            if takes && owed > 0 && telling == 0 {
                telling = take(&mut owed);
                tell(telling);
            }
        }
    }

    /// A panic while it is held leaves at most half a line.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that writes. It ends with the process.
pub(super) fn start(queue: &Arc<Queue>, mut sink: impl Sink) -> io::Result<()> {
    let queue = Arc::clone(queue);
    let thread = thread::Builder::new().name("log".to_owned());
    thread
        .spawn(move || queue.write(&mut sink, tell_dropped))
        .map(drop)
}

/// At the highest level, so that none hides it.
fn tell_dropped(count: usize) {
    tracing::error!(
        log.dropped = count,
        "{count} lines of the log were dropped here: nobody read it in time"
    );
}

/// One line's way into the queue. Relies on being written to once for each.
pub(super) struct Line(pub(super) Arc<Queue>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A sink that is let go on by the test, batch by batch.
    struct Slow {
        told: Sender<Vec<Vec<u8>>>,
        go: Receiver<()>,
    }

    impl Sink for Slow {
        fn put(&mut self, batch: &Batch) -> usize {
            let pieces = batch.pieces().map(<[u8]>::to_vec).collect();
            drop(self.told.send(pieces));
            self.go.recv().map_or(batch.len(), |()| 0)
        }
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_nobody_waits() {
        let queue = Arc::new(Queue::default());
        let ((told, heard), (let_go, go)) = (channel(), channel());
        start(&queue, Slow { told, go }).expect("a thread");
        queue.push(b"first\n");
        let first = heard.recv_timeout(PATIENCE).expect("it is written");
        assert_eq!(first, [b"first\n"]);

        // It is being written, and all this waits behind it.
        let piece = vec![b'x'; BOUND / 4];
        for _ in 0..6 {
            queue.push(&piece);
        }
        assert_eq!(queue.lock().dropped, 2);
        let began = Instant::now();
        queue.flush(Duration::from_millis(50));
        assert!(began.elapsed() < PATIENCE);
        let_go.send(()).expect("it waits");
        let batch = heard.recv_timeout(PATIENCE).expect("it goes on");
        assert_eq!(batch.len(), 4);
        let_go.send(()).expect("it waits");
        queue.flush(PATIENCE);
        let state = queue.lock();
        assert!(!state.writes && state.sleeps);
        assert_eq!(state.dropped, 0, "told of by whoever logs");
        assert!(state.waiting.bytes.capacity() <= KEPT);
    }

    /// A sink that says what it is given, and is told for each batch whether it takes it.
    struct Failing {
        told: Sender<String>,
        takes: Receiver<bool>,
    }

    impl Sink for Failing {
        fn put(&mut self, batch: &Batch) -> usize {
            let text = String::from_utf8_lossy(batch.whole()).into_owned();
            drop(self.told.send(text));
            let takes = self.takes.recv().unwrap_or(false);
            if takes { 0 } else { batch.len() }
        }
    }

    #[test]
    fn one_that_takes_nothing_is_told_of_it_when_it_takes_again_and_makes_no_work_before() {
        let queue = Arc::new(Queue::default());
        let ((told, heard), (answer, takes)) = (channel(), channel());
        let (writes, tells) = (Arc::clone(&queue), Arc::clone(&queue));
        thread::spawn(move || {
            writes.write(&mut Failing { told, takes }, |count| {
                tells.push(format!("{count} dropped\n").as_bytes());
            });
        });
        let given = |expected: &str, takes: bool| {
            let text = heard.recv_timeout(PATIENCE).expect("it is written");
            assert_eq!(text, expected);
            answer.send(takes).expect("it waits");
        };
        for _ in 0..3 {
            queue.push(b"lost\n");
            given("lost\n", false);
            // It sleeps then: what was lost makes nothing new to write.
            queue.flush(PATIENCE);
            assert!(queue.lock().sleeps);
        }
        queue.push(b"taken\n");
        given("taken\n", true);
        // The line that tells is lost itself: what it told of is owed still, and it is no loss of its own.
        given("3 dropped\n", false);
        queue.flush(PATIENCE);
        queue.push(b"taken\n");
        given("taken\n", true);
        given("3 dropped\n", true);
        queue.flush(PATIENCE);
        assert!(heard.try_recv().is_err(), "it was told once");
    }
}
