//! The log of a real file, with reads in the way. What is at stake: the disk, when the log only grows.

use std::thread;

use super::cause::LASTING_AFTER;
use super::*;
use crate::ledger::log_held::HeldBy;
use crate::ledger::reading;
use crate::ledger::sqlite::{open, read};

const BUSY: Duration = Duration::from_secs(1);
const LIMITS: LogLimits = LogLimits {
    attention_bytes: KEPT_BYTES,
    bound_bytes: KEPT_BYTES * 3,
};

struct World {
    directory: tempfile::TempDir,
    connection: Connection,
    mover: Mover,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let mut connection = open::open_writer(&path, BUSY).expect("made");
        let mut mover = Mover::new((Checkpoint::AfterAnswers, LIMITS), &path, BUSY);
        mover.hook(&mut connection).expect("hooked");
        let room = "CREATE TABLE notes (note BLOB)";
        connection.execute_batch(room).expect("room");
        Self {
            directory,
            connection,
            mover,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("ledger.db")
    }

    /// One commit of so many pages.
    fn write(&self, pages: i32) {
        let note = "INSERT INTO notes VALUES (zeroblob(?1))";
        let written = self.connection.execute(note, [pages * 4_096]);
        written.expect("written");
    }

    fn tidy(&mut self) -> Option<Instant> {
        self.mover.tidy(&self.connection, false)
    }

    /// Tidies as the writer does with nothing else to do, until nothing is left.
    fn tidy_up(&mut self) {
        while let Some(at) = self.tidy() {
            thread::sleep(at.saturating_duration_since(Instant::now()));
        }
    }

    /// A read that stays open.
    fn reader(&self) -> Connection {
        let reader = open::open_reader(&self.path(), BUSY).expect("opened");
        let begin = "BEGIN; SELECT count(*) FROM notes";
        reader.execute_batch(begin).expect("a moment");
        reader
    }

    fn noted(&self) -> Option<String> {
        read::meta(&self.connection, HELD).expect("read")
    }
}

#[test]
fn a_log_that_nothing_holds_stays_short() {
    let mut world = World::new();
    for _ in 0..80 {
        world.write(100);
        assert_eq!(world.tidy(), None);
    }
    let takes = file_bytes(&world.path());
    assert!(takes < bytes(PAGES + 300), "{takes}");
}

/// However quickly commits follow each other: the log is begun anew again and again.
#[test]
fn a_log_that_is_written_without_a_pause_stays_short() {
    let mut world = World::new();
    let mut anew = 0;
    for _ in 0..600 {
        let before = world.mover.seen;
        world.write(50);
        world.tidy();
        anew += usize::from(world.mover.seen < before);
    }
    assert!(anew > 3, "{anew}");
    let takes = file_bytes(&world.path());
    assert!(takes < KEPT_BYTES, "{takes}");
}

#[test]
fn a_read_that_passes_only_puts_the_move_off() {
    let mut world = World::new();
    let reader = world.reader();
    world.write(PAGES);
    assert!(world.tidy().is_some(), "tried again, whatever comes");
    assert!(world.mover.held.is_none(), "and nothing is told");
    drop(reader);
    world.write(AGAIN);
    assert_eq!(world.tidy(), None);
    world.write(1);
    assert!(world.mover.pages.load(Ordering::Relaxed) < AGAIN);
}

#[test]
fn what_a_read_holds_is_told_put_off_and_made_up_for() {
    let mut world = World::new();
    let reader = world.reader();
    let mut tries = Vec::new();
    for _ in 0..30 {
        world.write(200);
        tries.extend(world.tidy());
    }
    assert!(file_bytes(&world.path()) > KEPT_BYTES);
    assert!(world.mover.held.is_some());
    let noted = world.noted().expect("noted");
    assert!(noted.ends_with(" reader"), "{noted}");
    while world.mover.aside.is_some() {
        world.tidy();
    }
    // After a batch nothing is tried: the next try stands where it stood. (Far off, so that it does not come meanwhile.)
    let planned = world.mover.retry_at.expect("a try to come");
    let next = Some(planned + PAUSE_LONGEST * 100);
    world.mover.retry_at = next;
    for _ in 0..5 {
        world.write(1);
        assert_eq!(world.tidy(), next);
        assert_eq!(world.mover.retry_at, next);
    }
    world.mover.retry_at = Some(planned);

    drop(reader);
    world.tidy_up();
    assert!(file_bytes(&world.path()) <= KEPT_BYTES);
    assert!(world.mover.held.is_none() && !world.mover.long);
    let noted = world.noted().expect("noted");
    assert!(noted.parse::<i64>().is_err(), "{noted}");
    world.write(1);
    assert!(world.mover.pages.load(Ordering::Relaxed) < 10);
}

#[test]
fn pauses_grow_while_a_read_holds_it() {
    let mut world = World::new();
    let _reader = world.reader();
    world.write(INSIST_AT);
    let mut last = Duration::ZERO;
    for _ in 0..3 {
        let now = Instant::now();
        world.mover.retry_at = Some(now);
        let pause = world.tidy().expect("a try to come") - now;
        assert!(pause > last, "{pause:?} after {last:?}");
        last = pause;
    }
    assert!(last >= PAUSE_FIRST * 2);
}

#[test]
fn a_log_that_is_moved_by_others_is_looked_at_from_the_start() {
    let mut world = World::new();
    let reader = world.reader();
    for _ in 0..30 {
        world.write(200);
        world.tidy();
    }
    drop(reader);
    let other = open::reopen_writer(&world.path(), BUSY).expect("opened");
    let moved = other.wal_checkpoint_v2(Some("main"), CheckpointMode::PASSIVE);
    moved.expect("moved");
    world.write(1);
    world.tidy_up();
    assert!(file_bytes(&world.path()) <= KEPT_BYTES);
    assert_eq!(world.mover.next_at, PAGES);
}

#[test]
fn the_writer_goes_on_while_a_long_log_is_moved() {
    let mut world = World::new();
    let reader = world.reader();
    world.write(20_000);
    drop(reader);
    assert!(world.tidy().is_some());
    assert!(world.mover.aside.is_some(), "moved by another thread");
    world.write(1);
    world.tidy_up();
    assert!(file_bytes(&world.path()) <= KEPT_BYTES);
    // Cut in steps: the commit that begins the log anew waits for one of them.
    let limit: i64 = world
        .connection
        .pragma_query_value(None, "journal_size_limit", |row| row.get(0))
        .expect("a limit");
    assert_eq!(u64::try_from(limit), Ok(KEPT_BYTES));
}

/// A read without an end is told though nobody writes much.
#[test]
fn a_short_log_that_is_held_for_long_is_told_too() {
    let mut world = World::new();
    let reader = world.reader();
    world.write(PAGES);
    world.tidy();
    assert!(world.mover.held.is_none());
    let since = world.mover.since.expect("it was tried");
    let ago = since
        .checked_sub(LASTING_AFTER)
        .expect("the machine runs for longer");
    (world.mover.since, world.mover.retry_at) = (Some(ago), Some(Instant::now()));
    world.tidy();
    assert!(
        world
            .noted()
            .is_some_and(|noted| noted.ends_with(" reader"))
    );
    assert!(world.mover.health().now().log_held.is_some());
    // A daemon that is started anew finds it, and takes it back when it is over.
    let mut next = Mover::new((Checkpoint::AfterAnswers, LIMITS), &world.path(), BUSY);
    next.hook(&mut world.connection).expect("hooked");
    assert!(next.held.is_some() && next.retry_at.is_some());
    world.mover = next;
    drop(reader);
    world.write(1);
    world.tidy_up();
    assert!(
        world
            .noted()
            .is_some_and(|since| since.parse::<i64>().is_err())
    );
    assert_eq!(world.mover.health().now().log_held, None);
}

/// A backup of a big ledger reads for minutes and is nobody's trouble; what it makes of the log is told all the same.
#[test]
fn a_command_of_tilld_may_read_for_long_and_another_program_may_not() {
    let mut world = World::new();
    let _reader = world.reader();
    let said = reading::say(world.directory.path());
    assert!(said.is_some());
    world.write(PAGES);
    world.tidy();
    let since = world.mover.since.expect("it was tried");
    let lasts = |world: &mut World, time: Duration| {
        let ago = since
            .checked_sub(time)
            .expect("the machine runs for longer");
        (world.mover.since, world.mover.cause.own) = (Some(ago), None);
        world.tidy();
        world.mover.health().now().log_held.map(|held| held.by)
    };
    assert_eq!(lasts(&mut world, LASTING_AFTER * 10), None);
    // Some other program reads, and the command has ended.
    drop(said);
    assert_eq!(lasts(&mut world, LASTING_AFTER), None, "it was just over");
    world.mover.cause.own_seen = None;
    assert_eq!(lasts(&mut world, LASTING_AFTER), Some(HeldBy::Reader));
    // It is told once, and called what it is at any time.
    let _said = reading::say(world.directory.path());
    assert_eq!(lasts(&mut world, LASTING_AFTER), Some(HeldBy::OwnCommand));
    let noted = world.noted().and_then(|fact| LogHeld::from_fact(&fact));
    assert_eq!(noted.map(|held| held.by), Some(HeldBy::OwnCommand));
}

#[test]
fn a_command_of_tilld_that_makes_the_log_long_is_named() {
    let mut world = World::new();
    let _reader = world.reader();
    let _said = reading::say(world.directory.path());
    for _ in 0..30 {
        world.write(200);
        world.tidy();
    }
    assert!(file_bytes(&world.path()) > KEPT_BYTES);
    let held = world.mover.health().now().log_held;
    assert_eq!(held.map(|held| held.by), Some(HeldBy::OwnCommand));
}

#[test]
fn nothing_new_is_taken_beyond_the_bound_until_the_log_is_moved() {
    let mut world = World::new();
    let reader = world.reader();
    let mut commits = 0;
    while !world.mover.is_full() {
        commits += 1;
        assert!(commits < 100, "{} bytes", file_bytes(&world.path()));
        world.write(200);
        world.tidy();
    }
    assert!(file_bytes(&world.path()) > LIMITS.bound_bytes);
    assert!(world.mover.health().now().log_full);
    // It stays so while nobody writes.
    world.tidy();
    assert!(world.mover.is_full());
    drop(reader);
    world.tidy_up();
    assert!(!world.mover.is_full());
    assert!(!world.mover.health().now().log_full);
    assert!(file_bytes(&world.path()) <= KEPT_BYTES);
}

#[test]
fn an_idle_log_is_cut_back_to_nothing_and_sooner_after_texts_were_emptied() {
    let mut world = World::new();
    let mut idle = Idle::new(&world.path());
    world.write(600);
    world.tidy();
    let now = Instant::now();
    idle.tidy(&world.connection, &mut world.mover, false);
    let due = idle.tidy(&world.connection, &mut world.mover, false);
    assert!(due.is_some_and(|due| due > now + Duration::from_secs(20)));
    assert!(file_bytes(&world.path()) > 0);
    idle.scrub();
    world.write(1);
    let reader = world.reader();
    idle.tidy(&world.connection, &mut world.mover, false);
    let due = idle.tidy(&world.connection, &mut world.mover, false);
    let due = due.expect("something to do");
    assert!(due < now + Duration::from_secs(10));
    thread::sleep(due.saturating_duration_since(Instant::now()));
    // A read is in the way: tried again.
    let again = idle.tidy(&world.connection, &mut world.mover, false);
    assert!(again.is_some_and(|again| again > due));
    drop(reader);
    idle.tidy(&world.connection, &mut world.mover, true);
    assert_eq!(file_bytes(&world.path()), 0);
    world.write(1);
    assert!(world.mover.pages() < 10);
}
