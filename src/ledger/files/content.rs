//! What the database file holds without its WAL, and whether a checkpoint made it so or another hand. Relies on what the WAL's
//! index says of checkpoints: nothing else of SQLite writes to the database.
//! Promises to call nothing overwritten that a checkpoint of any program may have written. Pure, but for the WAL's head.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::Stat;

use super::Part;
use crate::ledger::mark::Mark;

/// The part of a WAL in front of its pages, as far as it is read, bytes.
const LOG_HEAD_BYTES: usize = 24;

/// What the kernel counts a file's room in, bytes.
const BLOCK_BYTES: i64 = 512;
/// A page of a ledger, bytes. SQLite never writes the one that begins here: its locks lie there.
const PAGE_BYTES: i64 = 4_096;
const LOCKED_AT: i64 = 1 << 30;

/// What a write to the database changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ledger) struct Stamp {
    bytes: i64,
    written_s: i64,
    written_ns: u64,
    /// The disk holds less of it than it is long.
    lacks: bool,
}

impl Stamp {
    pub(super) fn of(about: &Stat) -> Self {
        Self {
            bytes: about.st_size,
            written_s: about.st_mtime,
            written_ns: about.st_mtime_nsec,
            lacks: lacks(about.st_size, about.st_blocks),
        }
    }

    /// How long it is, and whether the disk holds all of that.
    pub(in crate::ledger) const fn extent(self) -> (i64, bool) {
        (self.bytes, !self.lacks)
    }
}

/// True when a file of this length has a hole, by the blocks that it takes on the disk.
pub(in crate::ledger) const fn lacks(bytes: i64, blocks: i64) -> bool {
    let unwritten = if bytes > LOCKED_AT { PAGE_BYTES } else { 0 };
    blocks.saturating_mul(BLOCK_BYTES) < bytes - unwritten
}

/// What tells a WAL from the one before it: the number of its checkpoints and its two salts.
pub(in crate::ledger) type LogHead = [u32; 3];

/// Reads it. No lock lies on the WAL, so it may be opened; zeros where there is none.
pub(in crate::ledger) fn log_head(ledger: &Path) -> LogHead {
    let mut head = [0; LOG_HEAD_BYTES];
    let read = fs::File::open(Part::Log.of(ledger)).and_then(|mut log| log.read_exact(&mut head));
    let word = |at: usize| {
        let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    };
    read.map_or([0; 3], |()| [word(12), word(16), word(20)])
}

/// Which WAL it is. An empty one has no head: it is known by the time it was emptied.
pub(in crate::ledger) fn log_identity(ledger: &Path) -> LogHead {
    let head = log_head(ledger);
    if head != [0; 3] {
        return head;
    }
    fs::metadata(Part::Log.of(ledger)).map_or(head, |about| {
        let low = |value: i64| u32::try_from(value & i64::from(u32::MAX)).unwrap_or_default();
        [0, low(about.mtime()), low(about.mtime_nsec())]
    })
}

/// Pages in the WAL, and how many of them checkpoints have moved into the database, as its index says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ledger) struct Progress {
    /// Which WAL it is: each one that is begun has another.
    pub(in crate::ledger) log: LogHead,
    pub(in crate::ledger) frames: i64,
    pub(in crate::ledger) moved: i64,
}

impl Progress {
    /// Nothing of the WAL is missing from the database, so the file alone is one moment of the ledger.
    pub(in crate::ledger) const fn is_whole(self) -> bool {
        self.moved >= self.frames
    }
}

/// The database file without its WAL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Alone {
    /// How far it is.
    At(Mark),
    /// It is a backup that was not opened yet, or no ledger.
    Foreign,
    /// It is damaged, or between two moments.
    Torn,
    /// It could not be looked at now.
    Unknown,
}

/// How the database was seen last.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Known {
    stamp: Stamp,
    progress: Progress,
    /// The file alone was one moment of the ledger then.
    whole: bool,
    /// How far it was when it last was one.
    at: Option<Mark>,
    /// This process wrote to it since it was read.
    unread: bool,
    /// It took less room than it is long.
    lacked: bool,
}

impl Known {
    /// Of a ledger that was just opened.
    pub(super) fn new(stamp: Stamp, progress: Progress, alone: Alone) -> Self {
        // After a crash a checkpoint may have been cut off, of which the index knows nothing.
        let whole = progress.frames <= 0;
        let at = match alone {
            Alone::At(mark) if whole => Some(mark),
            Alone::At(_) | Alone::Foreign | Alone::Torn | Alone::Unknown => None,
        };
        Self {
            stamp,
            progress,
            whole,
            at,
            unread: false,
            lacked: stamp.lacks,
        }
    }

    pub(super) fn differs(&self, stamp: Stamp) -> bool {
        self.stamp != stamp
    }

    /// True when it was written to since it was read.
    pub(super) fn is_to_be_read(&self, stamp: Stamp) -> bool {
        self.unread || self.differs(stamp)
    }

    /// Nothing was written to it up to here.
    pub(super) const fn note(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// The last event that is known to be in it.
    pub(super) fn event(&self) -> i64 {
        self.at.as_ref().map_or(0, |at| at.event)
    }

    /// Holes count against what it had when all of the WAL was in it: until then they are pages that are not moved yet.
    const fn see_holes(&mut self, stamp: Stamp, whole: bool) {
        if whole {
            self.lacked = stamp.lacks;
        }
    }

    /// This process wrote to it: all of the WAL, which was so far `at_least`, or a part.
    pub(super) fn wrote(
        &mut self,
        stamp: Stamp,
        progress: Progress,
        (whole, at_least): (bool, Option<Mark>),
    ) {
        (self.stamp, self.progress, self.whole) = (stamp, progress, whole);
        self.see_holes(stamp, whole);
        // Since a thread moved all, commits may have come on top.
        if let Some(least) = at_least.filter(|_| whole && progress.is_whole())
            && self.at.as_ref().is_none_or(|at| is_behind(at, &least))
        {
            self.at = Some(least);
        }
        self.unread = true;
    }

    /// True when some of it was cut off since it was seen: it is shorter, or has a hole that was not there although all of the
    /// WAL is in it. SQLite writes every page, and a page that was cut off is a hole once a later one is written.
    pub(super) const fn is_cut(&self, stamp: Stamp, whole: bool) -> bool {
        stamp.bytes < self.stamp.bytes || whole && stamp.lacks && !self.lacked
    }

    /// How long it is, and whether the disk holds all of that.
    pub(super) const fn extent(&self) -> (i64, bool) {
        self.stamp.extent()
    }
}

/// What is known after a look; `None` when no checkpoint makes the one into the other, so that only another hand did.
pub(in crate::ledger) fn judge(
    known: &Known,
    stamp: Stamp,
    progress: Progress,
    alone: &Alone,
) -> Option<Known> {
    let unmoved = progress.log == known.progress.log && progress.moved == known.progress.moved;
    let untouched = unmoved && progress.frames >= known.progress.frames && stamp != known.stamp;
    // What this process wrote is all there is in the file until something of the WAL is moved once more.
    let as_written = known.unread && (unmoved || progress.moved == 0);
    let whole = if untouched || as_written {
        known.whole
    } else {
        progress.is_whole()
    };
    let before = known.at.as_ref();
    let sound = match alone {
        Alone::Foreign => false,
        _ if untouched && stamp.bytes < known.stamp.bytes => false,
        Alone::At(now) if untouched && whole && !known.unread => before.is_none_or(|at| at == now),
        Alone::At(now) if whole => before.is_none_or(|at| !is_behind(now, at)),
        Alone::Torn => !whole,
        Alone::At(_) | Alone::Unknown => true,
    };
    let at = match alone {
        Alone::At(now) if whole => Some(now.clone()),
        _ => known.at.clone(),
    };
    let mut seen = Known {
        stamp,
        progress,
        whole,
        at,
        unread: false,
        lacked: known.lacked,
    };
    seen.see_holes(stamp, progress.is_whole());
    sound.then_some(seen)
}

/// True when a ledger is not the one that was there, or less of it.
fn is_behind(now: &Mark, before: &Mark) -> bool {
    before.ledger != now.ledger
        || before.generation > now.generation
        || before.event > now.event
        || before.step > now.step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_log_that_was_written_and_emptied_is_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = dir.path().join("ledger.db");
        let log = fs::File::create(Part::Log.of(&ledger)).expect("made");
        let emptied = |s| {
            let at = std::time::UNIX_EPOCH + std::time::Duration::new(s, 7);
            log.set_modified(at).expect("ours");
            log_identity(&ledger)
        };
        assert_eq!(emptied(1), emptied(1));
        assert_ne!(emptied(1), emptied(2));
    }

    #[test]
    fn what_was_moved_is_in_the_database_and_what_came_since_is_not() {
        let mark = |event| Mark {
            ledger: "a".to_owned(),
            event,
            ..Mark::nowhere()
        };
        for (frames, whole, wanted) in [(20, true, 9), (25, true, 5), (20, false, 5)] {
            let progress = Progress {
                frames,
                moved: 20,
                ..Progress::default()
            };
            let at = Alone::At(mark(5));
            let mut known = Known::new(Stamp::default(), Progress::default(), at);
            known.wrote(Stamp::default(), progress, (whole, Some(mark(9))));
            assert_eq!(known.event(), wanted, "{frames} {whole}");
        }
    }

    #[test]
    fn a_database_that_lost_some_of_itself_is_cut() {
        let stamp = |bytes, lacks| Stamp {
            bytes,
            lacks,
            ..Stamp::default()
        };
        for (before, now, whole, cut) in [
            (stamp(8, false), stamp(8, false), true, false),
            (stamp(8, false), stamp(9, false), true, false),
            (stamp(8, false), stamp(7, false), false, true),
            (stamp(8, false), stamp(9, true), true, true),
            // Pages that are not moved yet are holes as well.
            (stamp(8, false), stamp(9, true), false, false),
            // A file system that takes less room for it says nothing.
            (stamp(8, true), stamp(9, true), true, false),
            (stamp(8, true), stamp(9, false), true, false),
        ] {
            let known = Known::new(before, Progress::default(), Alone::Unknown);
            assert_eq!(known.is_cut(now, whole), cut, "{before:?} {now:?} {whole}");
        }
        // What was a hole for a while, while a part was moved, is none that was there before.
        let mut known = Known::new(stamp(8, false), Progress::default(), Alone::Unknown);
        known.wrote(stamp(9, true), Progress::default(), (false, None));
        assert!(known.is_cut(stamp(9, true), true));
        for (bytes, blocks, hole) in [
            (8_192, 16, false),
            (8_192, 24, false),
            (8_192, 8, true),
            ((1 << 30) + 8_192, (1 << 21) + 8, false),
            ((1 << 30) + 8_192, 1 << 21, true),
        ] {
            assert_eq!(lacks(bytes, blocks), hole, "{bytes} {blocks}");
        }
    }

    /// One that a commit makes by itself, while a read keeps the end of the WAL from being moved.
    #[test]
    fn a_part_that_was_moved_since_the_last_note_is_between_two_moments() {
        let log = |number| [number, 1, 1];
        let moved = |log, moved| Progress {
            log,
            frames: 1_006,
            moved,
        };
        let mut known = Known::new(Stamp::default(), Progress::default(), Alone::Unknown);
        known.wrote(Stamp::default(), moved(log(16), 1_006), (true, None));
        let stamp = Stamp {
            bytes: 1,
            ..Stamp::default()
        };
        for (progress, sound) in [
            (moved(log(17), 998), true),
            (moved(log(17), 1_006), false),
            (moved(log(17), 0), false),
            (moved(log(16), 1_006), false),
        ] {
            let judged = judge(&known, stamp, progress, &Alone::Torn);
            assert_eq!(judged.is_some(), sound, "{progress:?}");
        }
    }

    #[test]
    fn a_database_that_no_checkpoint_made_is_overwritten() {
        let mark = |ledger: &str, generation, event, step| Mark {
            ledger: ledger.to_owned(),
            generation,
            event,
            step,
            base: None,
            files: None,
        };
        let at = |event| Alone::At(mark("a", 1, event, 5));
        let stamp = |bytes, written_s| Stamp {
            bytes,
            written_s,
            written_ns: 0,
            lacks: false,
        };
        let log = [1, 2, 3];
        let progress = |frames, moved| Progress { log, frames, moved };
        let known = |whole, unread| Known {
            stamp: stamp(9, 1),
            progress: progress(20, 10),
            whole,
            at: Some(mark("a", 1, 5, 5)),
            unread,
            lacked: false,
        };
        let none = progress(25, 10);
        let all = progress(30, 30);
        let part = progress(30, 20);
        for (known, now, progress, alone, sound) in [
            // Nobody moved anything: the content must be what it was.
            (known(true, false), stamp(9, 2), none, at(5), true),
            (known(true, false), stamp(9, 2), none, at(6), false),
            (known(true, false), stamp(9, 2), none, at(4), false),
            (known(true, false), stamp(9, 2), none, Alone::Torn, false),
            (known(false, false), stamp(9, 2), none, Alone::Torn, true),
            (known(false, false), stamp(8, 2), none, Alone::Torn, false),
            // Another program moved all, or a part.
            (known(true, false), stamp(9, 2), all, at(6), true),
            (known(true, false), stamp(9, 2), all, at(4), false),
            (known(true, false), stamp(9, 2), all, Alone::Torn, false),
            (known(true, false), stamp(9, 2), part, at(4), true),
            (known(true, false), stamp(9, 2), part, Alone::Torn, true),
            // This process did.
            (known(true, true), stamp(9, 1), none, at(6), true),
            (known(true, true), stamp(9, 1), none, at(4), false),
            (known(true, true), stamp(9, 1), none, Alone::Torn, false),
            (known(false, true), stamp(9, 1), none, Alone::Torn, true),
            // Moved and begun anew meanwhile.
            (
                known(true, false),
                stamp(9, 2),
                Progress {
                    log: [2; 3],
                    ..none
                },
                at(6),
                true,
            ),
            (known(true, false), stamp(9, 2), all, Alone::Foreign, false),
            (
                known(false, false),
                stamp(9, 2),
                part,
                Alone::Foreign,
                false,
            ),
            (known(true, false), stamp(9, 2), all, Alone::Unknown, true),
        ] {
            let judged = judge(&known, now, progress, &alone);
            assert_eq!(judged.is_some(), sound, "{known:?} {progress:?} {alone:?}");
        }
        let other = Alone::At(mark("b", 9, 9, 9));
        assert!(judge(&known(true, true), stamp(9, 1), all, &other).is_none());
    }
}
