//! A move with a look before it: SQLite moves what the WAL's index says, and goes by no checksum of a page when it does.
//! Relies on `ledger/files` for the look. Promises that a page which was written over as a whole is not moved into the database.

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::{ASIDE, Checkpoint, Mover, bytes};
use crate::fault;
use crate::ledger::files::{Closely, Log, Look, Part};

/// What a move brought: pages in the WAL and those of them that are in the database, or the file that was written over.
pub(super) type Tries = Result<rusqlite::Result<(i32, i32)>, Part>;

/// Looks, and moves what is sound.
pub(super) fn look_and_move(connection: &Connection, log: &Log, mode: CheckpointMode) -> Tries {
    if let Look::Wrong(part) = log.look(Closely::Heads) {
        return Err(part);
    }
    fault::point("checkpoint");
    Ok(connection.wal_checkpoint_v2(Some("main"), mode))
}

impl Mover {
    /// Looks by the same.
    pub(in super::super) fn looking_by(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// Looks at the pages that would be moved.
    pub(in super::super) fn look(&self) -> Look {
        self.log.look(Closely::Content)
    }

    /// The file of which a page was written over, if a look before a move found one.
    pub(in super::super) const fn wrong(&self) -> Option<Part> {
        self.wrong
    }

    /// What the WAL takes at least, bytes, unless it was begun anew since the last commit of this connection.
    pub(in super::super) fn log_bytes(&self) -> i64 {
        i64::try_from(bytes(self.pages())).unwrap_or(i64::MAX)
    }

    /// True when the WAL may be cut back at the end: a daemon ends, and what is left to be moved is short.
    pub(super) fn ends_short(&self) -> bool {
        let left = self.pages().saturating_sub(self.moved);
        self.when == Checkpoint::AfterAnswers && left <= ASIDE && self.wrong.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt as _;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::super::super::open;
    use super::super::FRAME_BYTES;
    use super::*;
    use crate::ledger::files::is_torn;

    const BUSY: Duration = Duration::from_secs(1);
    const HEAD_BYTES: u64 = 32;

    struct World {
        directory: tempfile::TempDir,
        connection: Connection,
        log: Log,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("ledger.db");
            let connection = open::open_writer(&path, BUSY).expect("made");
            let notes = "CREATE TABLE notes (note BLOB)";
            connection.execute_batch(notes).expect("room");
            Self {
                log: Log::new(&path),
                directory,
                connection,
            }
        }

        fn path(&self, end: &str) -> PathBuf {
            self.directory.path().join(format!("ledger.db{end}"))
        }

        /// One commit of so many pages and a few.
        fn write(&self, pages: i32) {
            let note = "INSERT INTO notes VALUES (randomblob(?1))";
            let written = self.connection.execute(note, [pages * 4_096]);
            written.expect("written");
        }

        fn frames(&self) -> u64 {
            let bytes = self.path("-wal").metadata().expect("there").len();
            (bytes - HEAD_BYTES) / FRAME_BYTES
        }

        /// What is found while these bytes of a file are others.
        fn garbled(&self, end: &str, at: u64, bytes: usize, closely: Closely) -> Look {
            self.while_garbled(end, at, bytes, || self.log.look(closely))
        }

        fn while_garbled<T>(&self, end: &str, at: u64, bytes: usize, look: impl Fn() -> T) -> T {
            let mut file = OpenOptions::new();
            let file = file.read(true).write(true).open(self.path(end));
            let file = file.expect("opened");
            let mut before = vec![0; bytes];
            file.read_exact_at(&mut before, at).expect("read");
            let garbage: Vec<u8> = before.iter().map(|byte| byte ^ 0x5a).collect();
            file.write_all_at(&garbage, at).expect("written over");
            let found = look();
            file.write_all_at(&before, at).expect("put back");
            found
        }
    }

    #[test]
    fn whatever_is_written_over_in_a_page_of_the_log_is_found() {
        let world = World::new();
        for pages in [1, 3, 9] {
            world.write(pages);
        }
        let frames = world.frames();
        for frame in 0..frames {
            // The number, the length, the salts, the sums, and the content at both its ends.
            for at in [0, 4, 8, 15, 16, 23, 24, 4_119] {
                let at = HEAD_BYTES + frame * FRAME_BYTES + at;
                let found = world.garbled("-wal", at, 1, Closely::Content);
                assert_eq!(found, Look::Wrong(Part::Log), "frame {frame} at {at}");
            }
        }
        assert_eq!(world.log.look(Closely::Content), Look::Sound);
    }

    /// Before a move too, where not all of the content is looked at.
    #[test]
    fn a_page_that_is_written_over_is_found_wherever_it_lies() {
        let world = World::new();
        for _ in 0..10 {
            world.write(60);
        }
        let pages = world.path("-wal").metadata().expect("there").len() / 4_096;
        assert!(pages > 600);
        for page in 0..pages {
            // Where only a page's number is another, it may be the index that is wrong.
            let found = world.garbled("-wal", page * 4_096, 4_096, Closely::Heads);
            assert!(matches!(found, Look::Wrong(_)), "page {page}: {found:?}");
        }
        assert_eq!(world.log.look(Closely::Heads), Look::Sound);
    }

    #[test]
    fn a_log_is_torn_where_commits_follow_a_page_that_was_written_over() {
        let world = World::new();
        let torn = || is_torn(&world.path("")).expect("read");
        world.write(3);
        world.write(3);
        assert!(!torn());
        let at = HEAD_BYTES + FRAME_BYTES + 30;
        assert!(world.while_garbled("-wal", at, 1, torn));
        // What a rollback left behind was no commit.
        let before = world.frames();
        let more = "BEGIN; INSERT INTO notes VALUES (randomblob(4096000)); ROLLBACK";
        world.connection.execute_batch(more).expect("rolled back");
        assert!(world.frames() > before + 100);
        assert!(!torn());
        world.write(3);
        assert!(!torn());
    }

    #[test]
    fn whatever_is_written_over_in_the_index_of_a_long_log_is_found() {
        let world = World::new();
        // More than its first block.
        for _ in 0..45 {
            world.write(100);
        }
        assert!(world.frames() > 4_100);
        // The content of the newest, and the head of each.
        let at = |frame: u64| HEAD_BYTES + frame * FRAME_BYTES + 1_000;
        let content = |frame| world.garbled("-wal", at(frame), 8, Closely::Content);
        assert_eq!(content(world.frames() - 1), Look::Wrong(Part::Log));
        assert_eq!(content(world.frames() - 4_000), Look::Wrong(Part::Log));
        assert_eq!(content(world.frames() - 4_001), Look::Sound);
        for at in (136..16_384).step_by(512) {
            let found = world.garbled("-shm", at, 4, Closely::Heads);
            assert_eq!(found, Look::Wrong(Part::Index), "{at}");
        }
        let found = world.garbled("-shm", 16_384, 16_384, Closely::Heads);
        assert_eq!(found, Look::Wrong(Part::Index));
        // How many there are, in one copy of the head and in the number of those that were moved.
        let head = |at| world.garbled("-shm", at, 4, Closely::Heads);
        assert_eq!(head(16), Look::Unsure);
        assert_eq!(head(96), Look::Wrong(Part::Index));
        assert_eq!(world.log.look(Closely::Content), Look::Sound);
    }

    #[test]
    fn a_log_is_sound_however_far_it_was_moved_and_begun_anew() {
        let world = World::new();
        let moves = |mode| {
            let moved = look_and_move(&world.connection, &world.log, mode);
            moved.expect("sound").expect("moved")
        };
        for pages in [1, 4_200, 9, 4_300, 2] {
            world.write(pages);
            let reader = open::open_reader(&world.path(""), BUSY).expect("opened");
            let begin = "BEGIN; SELECT count(*) FROM notes";
            reader.execute_batch(begin).expect("a moment");
            world.write(pages);
            let (log, moved) = moves(CheckpointMode::PASSIVE);
            assert!(moved < log, "a read stands in the way");
            assert_eq!(world.log.look(Closely::Content), Look::Sound);
            drop(reader);
            world.write(1);
            let (log, moved) = moves(CheckpointMode::PASSIVE);
            assert_eq!(log, moved);
        }
        moves(CheckpointMode::TRUNCATE);
        assert_eq!(world.log.look(Closely::Content), Look::Sound);
    }

    #[test]
    fn a_page_that_was_written_over_is_not_moved() {
        let world = World::new();
        world.write(9);
        let before = std::fs::read(world.path("")).expect("read");
        let log = OpenOptions::new().write(true).open(world.path("-wal"));
        let garbage = log.expect("opened").write_all_at(&[7; 4_096], 4_096);
        garbage.expect("written over");
        let tried = look_and_move(&world.connection, &world.log, CheckpointMode::TRUNCATE);
        assert_eq!(tried.expect_err("refused"), Part::Log);
        assert!(std::fs::read(world.path("")).expect("read") == before);
    }
}
