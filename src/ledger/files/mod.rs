//! The three files of a ledger: which ones are open, what lies at their paths now, and what is done when that differs.
//! Relies on looking by path and never opening one: SQLite's locks go with the first descriptor that is closed.
//! Promises a decision for each accident, as one table ([`rescue`]).

mod content;
mod log;

use std::ffi::{CString, OsString};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Stat, stat};

use super::mark::Mark;
use super::starts::Lying;
pub(super) use content::{Alone, LogHead, Progress, Stamp, lacks, log_head, log_identity};
use content::{Known, judge};
pub(super) use log::{Closely, Log, Look, is_torn};

/// The descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

/// The pages of the WAL are looked at for readers this often at most: it takes a millisecond or two.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The database.
    Database,
    /// SQLite's write-ahead log, the WAL.
    Log,
    /// The WAL's index in shared memory.
    Index,
}

impl Part {
    const ALL: [Self; 3] = [Self::Database, Self::Log, Self::Index];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Database => "",
            Self::Log => "-wal",
            Self::Index => "-shm",
        }
    }

    /// Where it lies beside this database.
    pub(super) fn of(self, ledger: &Path) -> PathBuf {
        let mut name: OsString = ledger.as_os_str().to_owned();
        name.push(self.suffix());
        PathBuf::from(name)
    }
}

/// What happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Nothing lies at its path: it was removed or renamed.
    Removed,
    /// Another file lies there.
    Replaced,
    /// It has another content than was written.
    Overwritten,
}

/// An accident: the ledger is not what was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which file.
    pub part: Part,
    /// What happened to it.
    pub how: How,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Removed => "removed",
            How::Replaced => "replaced",
            How::Overwritten => "overwritten",
        };
        write!(f, "`{}{}` was {how}", super::FILE_NAME, self.part.suffix())
    }
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The file that is open.
    Ours,
    /// Nothing, or a new file without content: no other process has written there.
    Free,
    /// Another file with content.
    Another,
}

/// What is done with the WAL that is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rescue {
    /// Nothing: database and WAL lie where the next start finds them.
    Leave,
    /// It is moved into the open database.
    Move,
    /// It is moved into the open database, which is copied if it has no name any more.
    MoveAndKeep,
    /// Both are copied to a new file, and changed in nothing.
    Keep,
}

/// The table of accidents, which docs/design.md has in words. The index never matters: the next start makes it from the WAL.
pub(super) const fn rescue(database: Place, overwritten: bool, log: Place) -> Rescue {
    match (database, overwritten, log) {
        // What was written over is no part of the WAL: together they would be a mix.
        (Place::Ours, true, _) | (Place::Ours, false, Place::Ours) => Rescue::Leave,
        (Place::Ours, false, Place::Free) => Rescue::Move,
        // Another process may go by the other WAL, and moves it into the same database.
        (_, _, Place::Another) => Rescue::Keep,
        (Place::Free | Place::Another, _, Place::Ours | Place::Free) => Rescue::MoveAndKeep,
    }
}

/// A file as the kernel counts it: device and number.
type Id = (u64, u64);

const fn id(about: &Stat) -> Id {
    (about.st_dev, about.st_ino)
}

/// How the files were seen last.
#[derive(Debug)]
struct Seen {
    known: Known,
    /// This process writes to the database now.
    moving: bool,
    lost: bool,
    /// When the pages of the WAL were looked at for a reader, and the file of which one was written over.
    looked: Option<Instant>,
    wrong: Option<Part>,
}

/// Watches the files of one open ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Watch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    paths: [CString; 3],
    open: [Id; 3],
    log: Log,
    seen: Mutex<Seen>,
}

impl Watch {
    /// Of a ledger whose files are all open.
    pub(super) fn new(ledger: &Path, progress: Progress, alone: Alone) -> Result<Self, Moved> {
        let paths = Part::ALL.map(|part| {
            let bytes = part.of(ledger).into_os_string().into_vec();
            // SQLite opened this path, so it has no zero byte.
            CString::new(bytes).unwrap_or_default()
        });
        let mut open = [Id::default(); 3];
        let mut stamp = Stamp::default();
        for ((path, part), open) in paths.iter().zip(Part::ALL).zip(&mut open) {
            let about = look(path, part)?;
            *open = id(&about);
            if part == Part::Database {
                stamp = Stamp::of(&about);
            }
        }
        let seen = Mutex::new(Seen {
            known: Known::new(stamp, progress, alone),
            moving: false,
            lost: false,
            looked: None,
            wrong: None,
        });
        let log = Log::new(ledger);
        Ok(Self(Arc::new(Inner {
            paths,
            open,
            log,
            seen,
        })))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Nothing that holds it can leave it half changed.
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the pages of the WAL.
    pub(super) fn log(&self) -> Log {
        self.0.log.clone()
    }

    /// Looks whether each file is the one that is open. Gives the stamps of the database and the WAL.
    pub(super) fn look(&self) -> Result<(Stamp, Stamp), Moved> {
        if let Some(part) = self.seen().wrong {
            let how = How::Overwritten;
            return Err(Moved { part, how });
        }
        let (mut stamp, mut log) = (Stamp::default(), Stamp::default());
        for ((path, part), open) in self.0.paths.iter().zip(Part::ALL).zip(self.0.open) {
            let about = look(path, part)?;
            if id(&about) != open {
                let how = How::Replaced;
                return Err(Moved { part, how });
            }
            match part {
                Part::Database => stamp = Stamp::of(&about),
                Part::Log => log = Stamp::of(&about),
                Part::Index => {}
            }
        }
        Ok((stamp, log))
    }

    /// True while nothing has happened to the files since the writer saw them. What an index that was written over does not
    /// find is there all the same.
    pub(super) fn stands(&self) -> bool {
        if self.is_to_be_looked_at()
            && let Look::Wrong(part) = self.0.log.look(Closely::Content)
        {
            self.seen().wrong = Some(part);
        }
        let looked = self.look();
        let seen = self.seen();
        !seen.lost && looked.is_ok_and(|(stamp, _)| seen.moving || !seen.known.differs(stamp))
    }

    /// True now and then: strangers make many requests that find nothing.
    fn is_to_be_looked_at(&self) -> bool {
        let now = Instant::now();
        let looked = &mut self.seen().looked;
        let is_due = looked.is_none_or(|at| now.duration_since(at) > LOOK_EVERY);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }

    /// True when another hand wrote to the database.
    pub(super) fn differs(&self, stamp: Stamp) -> bool {
        let seen = self.seen();
        !seen.moving && seen.known.differs(stamp)
    }

    /// True when the database was written to since it was read.
    pub(super) fn is_to_be_read(&self, stamp: Stamp) -> bool {
        let seen = self.seen();
        seen.known.is_to_be_read(stamp)
    }

    /// This process begins to write to the database, or has ended that.
    pub(super) fn moving(&self, begins: bool) {
        self.seen().moving = begins;
    }

    /// Whether it writes now.
    pub(super) fn is_moving(&self) -> bool {
        self.seen().moving
    }

    /// Takes what was read of the database; false when another hand wrote there.
    pub(super) fn accept(&self, stamp: Stamp, progress: Progress, now: &Alone) -> bool {
        let mut seen = self.seen();
        let judged = judge(&seen.known, stamp, progress, now);
        let sound = judged.is_some();
        if let Some(known) = judged {
            seen.known = known;
        }
        sound
    }

    /// Nothing was written to the database up to here.
    pub(super) fn note(&self, progress: Progress) {
        self.seen().known.note(progress);
    }

    /// Takes a change of the database that this process made: all of the WAL, which was so far at least, or a part. What stands
    /// in it is read at the next look.
    pub(super) fn accept_own(&self, stamp: Stamp, progress: Progress, moved: (bool, Option<Mark>)) {
        self.seen().known.wrote(stamp, progress, moved);
    }

    /// True when some of the database was cut off since it was seen, though it may have its length again.
    /// `whole`: all of the WAL is in it.
    pub(super) fn is_cut(&self, stamp: Stamp, whole: bool) -> bool {
        self.seen().known.is_cut(stamp, whole)
    }

    /// It is over with this ledger.
    pub(super) fn lose(&self) {
        self.seen().lost = true;
    }

    /// What lies at the paths of the database and the WAL.
    pub(super) fn places(&self) -> (Place, Place) {
        let place = |at: usize| {
            let known = self.0.paths.get(at).zip(self.0.open.get(at));
            let looked = known.map(|(path, open)| (stat(path.as_c_str()), *open));
            match looked {
                Some((Ok(about), open)) if id(&about) == open => Place::Ours,
                Some((Ok(about), _)) if about.st_size > 0 => Place::Another,
                _ => Place::Free,
            }
        };
        (place(0), place(1))
    }

    /// Where the open database lies now; `None` when it has no name any more.
    pub(super) fn elsewhere(&self) -> Option<PathBuf> {
        let [open, ..] = self.0.open;
        let descriptors = fs::read_dir(DESCRIPTORS).ok()?;
        descriptors.flatten().find_map(|descriptor| {
            let about = stat(descriptor.path()).ok()?;
            let has_name = id(&about) == open && about.st_nlink > 0;
            has_name.then(|| fs::read_link(descriptor.path()).ok())?
        })
    }

    /// What the mark remembers of the files: no devices, which may change with a start of the machine.
    pub(super) fn lying(&self, ledger: &Path) -> Option<Lying> {
        let [database, log, _] = self.0.open;
        let seen = self.seen();
        let (bytes, whole) = seen.known.extent();
        (!seen.lost).then(|| Lying {
            database: database.1,
            bytes,
            whole,
            log: log.1,
            head: log_head(ledger),
            alone: seen.known.event(),
        })
    }
}

fn look(path: &CString, part: Part) -> Result<Stat, Moved> {
    stat(path.as_c_str()).map_err(|_gone| Moved {
        part,
        how: How::Removed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_accident_has_one_answer() {
        use Place::{Another, Free, Ours};
        for (database, overwritten, log, wanted) in [
            (Ours, false, Ours, Rescue::Leave),
            (Ours, false, Free, Rescue::Move),
            (Ours, false, Another, Rescue::Keep),
            (Ours, true, Ours, Rescue::Leave),
            (Ours, true, Free, Rescue::Leave),
            (Free, false, Ours, Rescue::MoveAndKeep),
            (Free, false, Free, Rescue::MoveAndKeep),
            (Free, false, Another, Rescue::Keep),
            (Another, false, Ours, Rescue::MoveAndKeep),
            (Another, false, Free, Rescue::MoveAndKeep),
            (Another, false, Another, Rescue::Keep),
        ] {
            let found = rescue(database, overwritten, log);
            assert_eq!(found, wanted, "{database:?} {overwritten} {log:?}");
        }
    }
}
