//! Connections for short look-ups on the asker's own thread. A look-up of one row takes a few microseconds; a blocking
//! thread and back takes ten times that, and caps what a small machine can hear in a second.
//!
//! Relies on the questions being look-ups by key. Promises that asking here never waits: not for a connection, which is
//! taken or told to be taken, not for a lock of the file, which is told as an error at once, and never for the writer, since
//! the log is read beside it. What it may wait for is the disk, when a page is in nobody's memory. That is why there is one
//! connection less than the runtime has threads: a disk that is slow, or that never answers, holds all threads but one, and
//! the last one goes on accepting, timing out and stopping, with everything that is asked sent to blocking threads. A
//! runtime of one thread has none to spare, and all its questions go there.
//!
//! Nothing is kept of what was found. An invoice heard of a moment ago would be found sooner than a ref that never was, and
//! an unknown ref must cost what a wrong token costs.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use tokio::runtime::Handle;

use super::sqlite::ReadStore;
use super::store::StoreError;

/// How long such a connection waits for a lock. Only a recovery after a crash holds one, and it is waited for elsewhere.
const BUSY: Duration = Duration::ZERO;

/// The connections of one reader; opened by the first who find them missing, on a blocking thread.
#[derive(Default)]
pub(super) struct Near(OnceLock<Box<[Place]>>);

/// One connection, held for one question and never across an `.await`.
type Place = Mutex<Option<ReadStore>>;

/// What came of a question.
pub(super) enum Asked<T> {
    /// It is answered.
    Answered(T),
    /// Every connection is with somebody; in a moment one is free.
    Taken,
    /// There is no connection, or it could not answer: it is to be asked on a blocking thread.
    Elsewhere,
}

impl Near {
    /// Asks at once or not at all.
    pub(super) fn ask<T>(
        &self,
        question: impl Fn(&ReadStore) -> Result<T, StoreError>,
    ) -> Asked<T> {
        let mut taken = false;
        for place in self.places() {
            let Some(mut place) = free(place) else {
                taken = true;
                continue;
            };
            let Some(store) = place.as_ref() else {
                return Asked::Elsewhere;
            };
            let answered = question(store);
            return match answered {
                Ok(answer) => Asked::Answered(answer),
                Err(_told_by_whoever_asks_again) => {
                    *place = None;
                    Asked::Elsewhere
                }
            };
        }
        if taken {
            Asked::Taken
        } else {
            Asked::Elsewhere
        }
    }

    /// Opens what is missing. For a blocking thread.
    pub(super) fn furnish(&self, path: &Path) {
        for place in self.places() {
            if let Some(mut place) = free(place)
                && place.is_none()
            {
                // What is wrong with the file is told by whoever asks next.
                *place = ReadStore::open_without_waiting(path, BUSY).ok();
            }
        }
    }

    fn places(&self) -> &[Place] {
        self.0.get_or_init(|| {
            let threads = Handle::try_current().map_or(1, |own| own.metrics().num_workers());
            (1..threads).map(|_| Mutex::new(None)).collect()
        })
    }
}

/// The place, if nobody holds it. One whose holder panicked is emptied.
fn free(place: &Place) -> Option<MutexGuard<'_, Option<ReadStore>>> {
    match place.try_lock() {
        Ok(free) => Some(free),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Poisoned(left)) => {
            place.clear_poison();
            let mut left = left.into_inner();
            *left = None;
            Some(left)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use super::super::tests::open;
    use super::super::{ReadError, Reader};
    use super::*;

    /// Where a look-up runs.
    async fn thread_of(reader: &Reader) -> ThreadId {
        let asked: Result<ThreadId, ReadError> =
            reader.glance(|_store| Ok(thread::current().id())).await;
        asked.expect("answered")
    }

    #[expect(
        clippy::await_holding_lock,
        reason = "the locks are held as a disk that never answers would hold them"
    )]
    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn a_look_up_stays_on_its_thread_while_a_connection_is_free() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader();
        let own = thread::current().id();
        assert_ne!(thread_of(&reader).await, own, "nothing is open yet");
        assert_eq!(thread_of(&reader).await, own);
        let places = reader.near().places();
        let [one, other] = places else {
            panic!("{} connections for three threads", places.len());
        };
        let held = (one.lock().expect("free"), thread_of(&reader).await);
        assert_eq!(held.1, own, "the other one is free");
        let both = (held, other.lock().expect("free"));
        assert_ne!(thread_of(&reader).await, own, "none is free");
        drop(both);
        assert_eq!(thread_of(&reader).await, own);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_connection_that_failed_is_opened_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader();
        let own = thread::current().id();
        thread_of(&reader).await;
        let failed: Asked<()> = reader.near().ask(|_store| Err(StoreError::Moved));
        assert!(matches!(failed, Asked::Elsewhere));
        assert_ne!(thread_of(&reader).await, own);
        assert_eq!(thread_of(&reader).await, own);
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_has_none_to_spare() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader();
        for _ in 0..2 {
            assert_ne!(thread_of(&reader).await, thread::current().id());
        }
    }
}
