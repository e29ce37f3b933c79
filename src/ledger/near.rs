//! Connections for short look-ups on the asker's own thread. A look-up of one row takes a few microseconds; a blocking
//! thread and back takes ten times that, and caps what a small machine can hear in a second.
//!
//! Relies on the questions being look-ups by key. Promises that a thread that asks here never waits: not for a connection,
//! whose turn is a task's to wait for, not for a lock of the file, which is told as an error at once, and never for the
//! writer, since the log is read beside it. What it may wait for is the disk, when a page is in nobody's memory. That is why
//! there is one connection less than the runtime has threads: a disk that is slow, or that never answers, holds all threads
//! but one, and the last one goes on accepting, timing out and stopping, with everything that is asked sent to blocking
//! threads. A runtime of one thread has none to spare, and all its questions go there.
//!
//! Nothing is kept of what was found. An invoice heard of a moment ago would be found sooner than a ref that never was, and
//! an unknown ref must cost what a wrong token costs.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::sqlite::ReadStore;
use super::store::StoreError;

/// How long such a connection waits for a lock. Only a recovery after a crash holds one, and it is waited for elsewhere.
const BUSY: Duration = Duration::ZERO;

/// How long a task waits for its turn. A connection is held for microseconds, or for some milliseconds when its holder's
/// thread has to let others run; beyond that the disk is slow, and it is better asked on a blocking thread.
const TURN_WITHIN: Duration = Duration::from_millis(20);

/// The connections of one reader; opened by the first who find them missing, on a blocking thread.
#[derive(Default)]
pub(super) struct Near(OnceLock<Places>);

struct Places {
    all: Box<[Place]>,
    /// As many turns as connections.
    turns: Semaphore,
}

/// One connection, held for one question and never across an `.await`.
type Place = Mutex<Option<ReadStore>>;

impl Near {
    /// Asks here; `None` when it is to be asked on a blocking thread, since there is no connection, none became free in
    /// time, or it could not answer.
    pub(super) async fn ask<T>(
        &self,
        question: impl Fn(&ReadStore) -> Result<T, StoreError>,
    ) -> Option<T> {
        let places = self.places();
        if places.all.is_empty() {
            return None;
        }
        let turn = match places.turns.try_acquire() {
            Ok(turn) => turn,
            Err(_taken) => timeout(TURN_WITHIN, places.turns.acquire())
                .await
                .ok()?
                .ok()?,
        };
        // One that is to be opened anew keeps nobody from the others.
        let mut open = places.all.iter().filter_map(free);
        let open = open.find(|place| place.is_some());
        let answered = open.and_then(|mut place| {
            let answered = question(place.as_ref()?);
            if answered.is_err() {
                // Told by whoever asks again.
                *place = None;
            }
            answered.ok()
        });
        drop(turn);
        answered
    }

    /// Opens what is missing. For a blocking thread.
    pub(super) fn furnish(&self, path: &Path) {
        for place in &self.places().all {
            if let Some(mut place) = free(place)
                && place.is_none()
            {
                // What is wrong with the file is told by whoever asks next.
                *place = ReadStore::open_without_waiting(path, BUSY).ok();
            }
        }
    }

    fn places(&self) -> &Places {
        self.0.get_or_init(|| {
            let threads = Handle::try_current().map_or(1, |own| own.metrics().num_workers());
            let all: Box<[Place]> = (1..threads).map(|_| Mutex::new(None)).collect();
            let turns = Semaphore::new(all.len());
            Places { all, turns }
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
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn a_look_up_stays_on_its_thread_while_a_connection_is_free() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader();
        let own = thread::current().id();
        assert_ne!(thread_of(&reader).await, own, "nothing is open yet");
        assert_eq!(thread_of(&reader).await, own);
        let places = reader.near().places();
        let [one, other] = &*places.all else {
            panic!("{} connections for three threads", places.all.len());
        };
        let turn = || places.turns.try_acquire().expect("a turn");
        let held = (turn(), one.lock().expect("free"));
        assert_eq!(thread_of(&reader).await, own, "the other one is free");
        let both = (held, turn(), other.lock().expect("free"));
        assert_ne!(thread_of(&reader).await, own, "none became free");
        drop(both);
        assert_eq!(thread_of(&reader).await, own);
    }

    /// A rush that finds every connection taken waits for its turn, and fills no blocking threads.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_turn_that_comes_in_time_is_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader();
        let own = thread::current().id();
        thread_of(&reader).await;
        let turn = reader.near().places().turns.try_acquire().expect("a turn");
        let mut asked = pin!(thread_of(&reader));
        let first = poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await;
        assert!(first.is_pending(), "it waits");
        drop(turn);
        assert_eq!(asked.await, own);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_connection_that_failed_is_opened_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader();
        let own = thread::current().id();
        thread_of(&reader).await;
        let failed: Option<()> = reader.near().ask(|_store| Err(StoreError::Moved)).await;
        assert!(failed.is_none());
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
