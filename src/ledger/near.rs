//! A connection for short look-ups on the asker's own thread. A look-up of one row takes a few microseconds; a blocking
//! thread and back takes ten times that, and caps what a small machine can hear in a second.
//!
//! Relies on the questions being look-ups by key, and on the asker having a thread that nobody else has turns in, such as the
//! parts of the daemon have. Promises that a thread that asks here never waits for another one: not for the connection, not
//! for a lock of the file, which is told as an error at once, and never for the writer, since the log is read beside it.
//! What it may wait for is the disk, when a page is in nobody's memory: a disk that never answers holds this part alone, whose
//! work cannot be done without it, and not the stop. One that was slow is asked on blocking threads for a while, where one
//! look-up does not wait for another.
//!
//! Nothing is kept of what was found. An invoice heard of a moment ago would be found sooner than a ref that never was, and
//! an unknown ref must cost what a wrong token costs.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use tokio::time::Instant;

use super::sqlite::ReadStore;
use super::store::StoreError;

/// How long such a connection waits for a lock. Only a recovery after a crash holds one, and it is waited for elsewhere.
const BUSY: Duration = Duration::ZERO;
/// What takes longer has waited for the disk.
const SLOW_FROM: Duration = Duration::from_millis(20);
/// How long a disk that was slow is asked on blocking threads.
const ASIDE_FOR: Duration = Duration::from_secs(1);

/// One connection, held for one question and never across an `.await`.
#[derive(Default)]
pub(super) struct Near(Mutex<Place>);

#[derive(Default)]
struct Place {
    /// `None` before it is opened, and after it could not answer.
    open: Option<ReadStore>,
    /// Until when it is not asked.
    aside_until: Option<Instant>,
}

impl Near {
    /// Asks here; `None` when it is to be asked on a blocking thread, since the connection is not there or in use, the disk
    /// was slow lately, or it could not answer.
    pub(super) fn ask<T>(
        &self,
        question: impl Fn(&ReadStore) -> Result<T, StoreError>,
    ) -> Option<T> {
        let mut place = self.free()?;
        let began = Instant::now();
        if place.aside_until.is_some_and(|until| began < until) {
            return None;
        }
        let answered = question(place.open.as_ref()?);
        place.note(began.elapsed());
        if answered.is_err() {
            // Told by whoever asks again.
            place.open = None;
        }
        answered.ok()
    }

    /// Opens the connection if it is missing. For a blocking thread.
    pub(super) fn furnish(&self, path: &Path) {
        if let Some(mut place) = self.free()
            && place.open.is_none()
        {
            // What is wrong with the file is told by whoever asks next.
            place.open = ReadStore::open_without_waiting(path, BUSY).ok();
        }
    }

    /// The place, if nobody holds it. One whose holder panicked is emptied.
    fn free(&self) -> Option<MutexGuard<'_, Place>> {
        match self.0.try_lock() {
            Ok(free) => Some(free),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(left)) => {
                self.0.clear_poison();
                let mut left = left.into_inner();
                *left = Place::default();
                Some(left)
            }
        }
    }
}

impl Place {
    /// Takes note of what an answer took.
    fn note(&mut self, took: Duration) {
        self.aside_until = (took >= SLOW_FROM).then(|| Instant::now() + ASIDE_FOR);
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

    #[tokio::test]
    async fn a_look_up_stays_on_the_thread_it_has_a_connection_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let everybodys = open(&directory).reader();
        let own = thread::current().id();
        for _ in 0..2 {
            assert_ne!(thread_of(&everybodys).await, own, "it has none");
        }
        let reader = everybodys.for_a_thread();
        assert_ne!(thread_of(&reader).await, own, "nothing is open yet");
        assert_eq!(thread_of(&reader).await, own);
        let near = reader.near().expect("one");
        let meanwhile = near.ask(|_store| Ok(near.ask(|_store| Ok(()))));
        assert_eq!(meanwhile, Some(None), "it was in use");
        assert_eq!(thread_of(&reader).await, own);
        assert_ne!(thread_of(&everybodys.for_a_thread()).await, own, "another");
    }

    #[tokio::test]
    async fn a_connection_that_failed_is_opened_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader().for_a_thread();
        let own = thread::current().id();
        reader.furnish().await;
        assert_eq!(thread_of(&reader).await, own);
        let near = reader.near().expect("one");
        assert!(
            near.ask(|_store| Err::<(), _>(StoreError::LogFull))
                .is_none()
        );
        assert_ne!(thread_of(&reader).await, own);
        assert_eq!(thread_of(&reader).await, own);
    }

    #[tokio::test]
    async fn a_slow_answer_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader().for_a_thread();
        reader.furnish().await;
        let slow = |_: &ReadStore| {
            thread::sleep(SLOW_FROM);
            Ok(())
        };
        let near = reader.near().expect("one");
        assert_eq!(near.ask(slow), Some(()));
        assert_ne!(thread_of(&reader).await, thread::current().id());
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_was_slow_is_asked_elsewhere_for_a_while() {
        let directory = tempfile::tempdir().expect("a directory");
        let reader = open(&directory).reader().for_a_thread();
        let own = thread::current().id();
        reader.furnish().await;
        let note = |took| {
            let near = reader.near().expect("one");
            near.0.lock().expect("free").note(took);
        };
        note(SLOW_FROM / 2);
        assert_eq!(thread_of(&reader).await, own, "that was not slow");
        note(SLOW_FROM);
        assert_ne!(thread_of(&reader).await, own);
        tokio::time::advance(ASIDE_FOR).await;
        assert_eq!(thread_of(&reader).await, own, "it may be quick again");
    }
}
