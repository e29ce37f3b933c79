//! The file beside the ledger that says how far the ledger was known to be, so that an older copy put in its place is
//! noticed. Relies on being written only after a commit is durable: a ledger behind it is another file than the one that
//! was served. Promises never to go back, and to cost no acknowledgement anything: it is written after the answers, at
//! most once a second, and without waiting for the disk, so a power cut may leave it a little behind the ledger, never
//! ahead.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::starts::Lying;
use crate::file_lock::FileLock;

/// Written at most this often: what a copy may miss without being noticed.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Tries for the lock at the end, when there is no next time: whoever has it writes a small file.
const LAST_TRIES: u32 = 50;
/// Between two of them.
const LAST_PAUSE: Duration = Duration::from_millis(5);
/// More than a mark takes, bytes: a larger file is none.
const LONGEST: u64 = 4_096;
/// Readable and writable by the owner, readable by the reader group, as the ledger.
const FILE_MODE: u32 = 0o640;

/// How far a ledger is. Two marks of one ledger and generation are compared number by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The ledger's own random id.
    pub ledger: String,
    /// How often it was restored.
    pub generation: i64,
    /// The number of its last event.
    pub event: i64,
    /// Counts every step of a delivery: claims, ends of attempts, and what people do to deliveries.
    pub step: i64,
    /// The number of the event its generation began with; `None` while it was never restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<i64>,
    /// Its files, as they lay while it was served; `None` where they did not end so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Lying>,
}

impl Mark {
    /// How many of its events a ledger lacks that is this far. Where a generation was begun since, its numbers behind the
    /// restore stand for other events.
    pub(super) fn missing_in(&self, now: &Self) -> i64 {
        let lacks = |shared: i64| self.event.saturating_sub(shared).max(0);
        if self.generation <= now.generation {
            return lacks(now.event);
        }
        match self.base {
            Some(base) => lacks(base.min(now.event)),
            // A tilld that did not note it wrote the mark.
            None => lacks(now.event).max(1),
        }
    }

    /// Of a ledger that cannot be asked.
    pub(super) const fn nowhere() -> Self {
        Self {
            ledger: String::new(),
            generation: 0,
            event: 0,
            step: 0,
            base: None,
            files: None,
        }
    }
}

/// What lies at the mark's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A mark.
    Mark(Mark),
    /// Nothing: the ledger is new, or was copied alone.
    Nothing,
    /// Something that cannot be read as one.
    Damaged,
}

/// Why an opened ledger may have missed what was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restored {
    /// It is a backup.
    Backup,
    /// It is behind its mark.
    Behind,
    /// The mark is of another ledger, so nobody knows how far this one was.
    Other,
}

impl Restored {
    /// For the log.
    pub(super) const fn told(self) -> &'static str {
        match self {
            Self::Backup => "it is a backup",
            Self::Behind => "it is older than the one that was here",
            Self::Other => "another ledger was here before",
        }
    }
}

/// Judges an opened ledger. `found` must have been read before `now` was: marks follow commits. Without a mark nothing
/// is known against the ledger.
pub(super) fn judge(found: &Found, now: &Mark, stamped: bool) -> Option<Restored> {
    match found {
        _ if stamped => Some(Restored::Backup),
        Found::Nothing | Found::Damaged => None,
        Found::Mark(mark) if mark.ledger != now.ledger => {
            // A new one has nothing that could have been run.
            (now.event > 0).then_some(Restored::Other)
        }
        Found::Mark(mark) => {
            let behind = mark.generation > now.generation
                || mark.generation == now.generation
                    && (mark.event > now.event || mark.step > now.step);
            behind.then_some(Restored::Behind)
        }
    }
}

/// The generation a restored ledger begins: none that was there before.
pub(super) fn next_generation(found: &Found, now: &Mark) -> i64 {
    let known = match found {
        Found::Mark(mark) if mark.ledger == now.ledger => mark.generation,
        Found::Mark(_) | Found::Nothing | Found::Damaged => 0,
    };
    known.max(now.generation).saturating_add(1)
}

/// What is to be written over `found`; `None` when it stands already, or another ledger's may not be lost.
fn onward(found: &Found, now: &Mark, take_over: bool) -> Option<Mark> {
    let next = match found {
        Found::Nothing | Found::Damaged => now.clone(),
        Found::Mark(mark) if mark.ledger != now.ledger => {
            return take_over.then(|| now.clone());
        }
        Found::Mark(mark) if mark.generation > now.generation => return None,
        Found::Mark(mark) if mark.generation < now.generation => now.clone(),
        Found::Mark(mark) => Mark {
            event: mark.event.max(now.event),
            step: mark.step.max(now.step),
            ..now.clone()
        },
    };
    (*found != Found::Mark(next.clone())).then_some(next)
}

/// Reads what lies at the mark's place. What cannot be read is damaged: it says nothing.
pub(super) fn load(path: &Path) -> Found {
    let read = fs::metadata(path).and_then(|about| {
        if about.is_file() && about.len() <= LONGEST {
            fs::read(path)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    });
    match read {
        Ok(bytes) => serde_json::from_slice(&bytes).map_or(Found::Damaged, Found::Mark),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Nothing,
        Err(_) => Found::Damaged,
    }
}

/// Writes the mark while its ledger is open.
#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    /// A directory only the owner may open: its lock is the order among processes.
    lock: PathBuf,
    /// There were commits since it was written.
    changed: bool,
    /// Not before this.
    next: Instant,
    /// Another ledger's mark is written over: not after the first time, when somebody else may have put it there.
    take_over: bool,
    /// The last trouble was logged.
    told: bool,
}

impl Keeper {
    /// Keeps the mark at `path`; processes take turns by a lock on the directory `lock`.
    pub(super) fn new(path: PathBuf, lock: PathBuf) -> Self {
        Self {
            path,
            lock,
            changed: false,
            next: Instant::now(),
            take_over: true,
            told: false,
        }
    }

    /// There was a commit.
    pub(super) const fn touch(&mut self) {
        self.changed = true;
    }

    /// It could not be learnt how far the ledger is.
    pub(super) fn put_off(&mut self) {
        self.next = Instant::now() + WRITE_EVERY;
    }

    /// When it is to be written, if it is; at once when it is the `last` chance.
    pub(super) fn due(&self, last: bool) -> Option<Instant> {
        let at = if last { Instant::now() } else { self.next };
        self.changed.then_some(at)
    }

    /// Writes how far the ledger is now. Trouble is logged once and tried again later: the mark is a precaution, and no
    /// reason to stop.
    pub(super) fn keep(&mut self, now: &Mark, last: bool) {
        let mut tries = if last { LAST_TRIES } else { 1 };
        let written = loop {
            tries -= 1;
            match self.write(now) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries > 0 => {
                    thread::sleep(LAST_PAUSE);
                }
                ended => break ended,
            }
        };
        self.next = Instant::now() + WRITE_EVERY;
        match written {
            Ok(()) => (self.changed, self.told) = (false, false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if !self.told => {
                self.told = true;
                tracing::warn!(
                    reason = %error,
                    "`{}` could not be written: an older ledger put in place may not be noticed",
                    self.path.display()
                );
            }
            Err(_) => {}
        }
    }

    /// Writes the mark at the opening, over another ledger's too. On disk before anything is run.
    pub(super) fn begin(&mut self, now: &Mark) {
        if let Err(error) = self.write(now) {
            tracing::debug!(reason = %error, "the ledger's mark is written later");
            self.changed = true;
        }
    }

    fn write(&mut self, now: &Mark) -> io::Result<()> {
        let file = File::open(&self.lock)?;
        let _held = FileLock::take(file, FlockOperation::NonBlockingLockExclusive)?;
        let Some(next) = onward(&load(&self.path), now, self.take_over) else {
            self.take_over = false;
            return Ok(());
        };
        let draft = self.path.with_added_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(FILE_MODE)
            .open(&draft)?;
        file.write_all(&serde_json::to_vec(&next)?)?;
        if self.take_over {
            file.sync_all()?;
        }
        fs::rename(&draft, &self.path)?;
        self.take_over = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(ledger: &str, generation: i64, event: i64, step: i64) -> Mark {
        Mark {
            ledger: ledger.to_owned(),
            generation,
            event,
            step,
            base: None,
            files: None,
        }
    }

    #[test]
    fn a_ledger_is_behind_when_any_of_its_numbers_is() {
        let now = mark("a", 2, 10, 20);
        for (found, wanted) in [
            (mark("a", 2, 10, 20), None),
            (mark("a", 2, 9, 19), None),
            (mark("a", 2, 11, 20), Some(Restored::Behind)),
            (mark("a", 2, 10, 21), Some(Restored::Behind)),
            (mark("a", 3, 1, 1), Some(Restored::Behind)),
            // Killed between the commit that caught up and the mark.
            (mark("a", 1, 99, 99), None),
            (mark("b", 0, 0, 0), Some(Restored::Other)),
        ] {
            assert_eq!(
                judge(&Found::Mark(found.clone()), &now, false),
                wanted,
                "{found:?}"
            );
            let stamped = judge(&Found::Mark(found), &now, true);
            assert_eq!(stamped, Some(Restored::Backup));
        }
        for nothing in [Found::Nothing, Found::Damaged] {
            assert_eq!(judge(&nothing, &now, false), None);
        }
        let new = mark("a", 0, 0, 0);
        assert_eq!(judge(&Found::Mark(mark("b", 5, 9, 9)), &new, false), None);
    }

    #[test]
    fn what_is_missing_is_counted_from_where_two_generations_part() {
        for (event, base, now, missing) in [
            (12, Some(10), mark("a", 1, 14, 0), 2),
            (12, Some(10), mark("a", 1, 4, 0), 8),
            (10, Some(10), mark("a", 1, 14, 0), 0),
            (12, None, mark("a", 1, 14, 0), 1),
            (12, None, mark("a", 1, 4, 0), 8),
            (12, Some(10), mark("a", 2, 11, 0), 1),
            (12, Some(10), mark("a", 2, 14, 0), 0),
        ] {
            let known = Mark {
                base,
                ..mark("a", 2, event, 0)
            };
            assert_eq!(known.missing_in(&now), missing, "{known:?} {now:?}");
        }
    }

    #[test]
    fn a_restored_ledger_begins_a_generation_that_never_was() {
        let now = mark("a", 2, 0, 0);
        let next = |found: Mark| next_generation(&Found::Mark(found), &now);
        assert_eq!(next(mark("a", 7, 0, 0)), 8);
        assert_eq!(next(mark("a", 1, 0, 0)), 3);
        assert_eq!(next(mark("b", 7, 0, 0)), 3);
        assert_eq!(next_generation(&Found::Nothing, &now), 3);
    }

    #[test]
    fn it_never_goes_back_and_another_ledgers_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ledger.mark");
        let mut keeper = Keeper::new(path.clone(), dir.path().to_owned());
        keeper.begin(&mark("a", 0, 0, 0));
        let mut keep = |now: &Mark| {
            keeper.keep(now, true);
            load(&path)
        };
        assert_eq!(keep(&mark("a", 1, 5, 5)), Found::Mark(mark("a", 1, 5, 5)));
        assert_eq!(keep(&mark("a", 1, 4, 9)), Found::Mark(mark("a", 1, 5, 9)));
        assert_eq!(keep(&mark("a", 0, 9, 9)), Found::Mark(mark("a", 1, 5, 9)));
        assert_eq!(keep(&mark("a", 2, 1, 1)), Found::Mark(mark("a", 2, 1, 1)));
        assert_eq!(keep(&mark("b", 9, 9, 9)), Found::Mark(mark("a", 2, 1, 1)));
        Keeper::new(path.clone(), dir.path().to_owned()).begin(&mark("b", 0, 0, 0));
        assert_eq!(load(&path), Found::Mark(mark("b", 0, 0, 0)));
        for text in ["", "{}", "\0\0\0\0"] {
            fs::write(&path, text).expect("written");
            assert_eq!(load(&path), Found::Damaged, "{text:?}");
        }
        assert_eq!(keep_anew(&path), Found::Mark(mark("b", 0, 1, 1)));
    }

    /// What was damaged is written over.
    fn keep_anew(path: &Path) -> Found {
        let dir = path.parent().expect("a directory");
        Keeper::new(path.to_owned(), dir.to_owned()).keep(&mark("b", 0, 1, 1), true);
        load(path)
    }
}
