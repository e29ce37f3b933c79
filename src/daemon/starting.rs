//! A start that takes its time: a big ledger that is brought to a newer schema must not run into the time systemd gives a
//! start (A43). A thread of its own asks for more, since the opening holds up the one it is on. Once somebody wishes tilld to stop
//! it asks no more: the same word would put off the end of a stop.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::signals::Signals;
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
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Starting {
    /// It begins; wishes to stop are heard from now on. Without anybody to ask there is nothing to do.
    pub(super) fn begin() -> io::Result<Self> {
        if !systemd::is_there() {
            return Ok(Self { thread: None });
        }
        systemd::tell(&[Word::Status("opening the ledger".to_owned())]);
        let mut signals = Signals::new()?;
        let (over, is_over) = oneshot::channel::<()>();
        let (told, is_told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("starting".into())
            .spawn(move || {
                // Made here: where this is begun from another runtime runs, in which none may be dropped.
                let runtime = match Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => return told.send(Err(error)).unwrap_or_default(),
                };
                told.send(Ok(())).unwrap_or_default();
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        _over = is_over => {}
                        name = signals.pressed() => systemd::tell(&[Word::Status(format!(
                            "{name} was heard: tilld stops when the ledger is open"
                        ))]),
                        () = ask_for_more() => {}
                    }
                });
            })?;
        is_told.recv().map_err(io::Error::other)??;
        Ok(Self {
            thread: Some((over, thread)),
        })
    }
}

/// Asks for more time as long as it may be asked for.
async fn ask_for_more() {
    let began = Instant::now();
    let mut wait = FIRST_AFTER;
    while began.elapsed() < LONGEST {
        sleep(wait).await;
        systemd::tell(&[
            Word::MoreTime(MORE),
            Word::Status(format!(
                "opening the ledger, for {} s already",
                began.elapsed().as_secs()
            )),
        ]);
        wait = EVERY;
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
