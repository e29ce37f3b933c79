//! A start that takes its time: a big ledger that is brought to a newer schema must not run into the time systemd gives a
//! start (A43). A thread of its own asks for more, since the opening holds up the one it is on.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::systemd::{self, Word};

/// An ordinary start is over sooner.
const FIRST_AFTER: Duration = Duration::from_secs(1);
/// Between two wishes for more time.
const EVERY: Duration = Duration::from_secs(10);
/// How much is wished for each time: three times as long as until the next wish.
const MORE: Duration = Duration::from_secs(30);
/// A start that goes on for longer is left to systemd's patience: something stands still.
const LONGEST: Duration = Duration::from_hours(1);

/// A start that goes on. Dropped, it is over.
pub(super) struct Starting {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Starting {
    /// It begins. Without anybody to ask there is nothing to do.
    pub(super) fn begin() -> io::Result<Self> {
        if !systemd::is_there() {
            return Ok(Self { thread: None });
        }
        systemd::tell(&[Word::Status("opening the ledger".to_owned())]);
        let (over, is_over) = channel::<()>();
        let thread = Builder::new().name("starting".into()).spawn(move || {
            let began = Instant::now();
            let mut wait = FIRST_AFTER;
            while began.elapsed() < LONGEST {
                match is_over.recv_timeout(wait) {
                    Err(RecvTimeoutError::Timeout) => systemd::tell(&[
                        Word::MoreTime(MORE),
                        Word::Status(format!(
                            "opening the ledger, for {} s already",
                            began.elapsed().as_secs()
                        )),
                    ]),
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
                wait = EVERY;
            }
        })?;
        Ok(Self {
            thread: Some((over, thread)),
        })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.thread.take() {
            drop(over);
            // A panic there has ended the process.
            thread.join().unwrap_or_default();
        }
    }
}
