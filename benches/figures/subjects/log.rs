//! The log of a bare connection, moved as the daemon moves its own while nothing stands in the way: a thread with a
//! connection of its own moves the long part while the writer goes on, and the writer moves the few pages that came
//! meanwhile, so that its next commit begins the log anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;

/// Pages in the log from which it is moved.
const PAGES: i32 = 1_000;
/// After a move as a whole it is moved again after so many more pages, if no commit began it anew.
const AGAIN: i32 = 250;
/// What the thread left the writer moves, unless it is more than this: then the thread does again.
const REST: i32 = 1_000;
/// With more pages than this the thread is waited for.
const LONG: i32 = 3_000;

/// Pages in the log, and those of them that are in the file.
type Brought = (i32, i32);

/// The log.
pub(super) struct Log {
    /// Pages in it after the last commit, as SQLite says.
    pages: Arc<AtomicI32>,
    /// As many there were at the last look.
    seen: i32,
    /// Pages from which it is moved next.
    next_at: i32,
    under_way: bool,
    /// Each is one move. `None` once the thread is to end.
    moves: Option<Sender<()>>,
    brought: Receiver<Brought>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// That of `writer`, with a connection for the thread. Both are settled.
    pub(super) fn of(writer: &mut Connection, aside: Connection) -> Self {
        let pages = Arc::new(AtomicI32::new(0));
        let told = Arc::clone(&pages);
        let hooked = writer.wal_hook(Some(move |_: &mut Wal, now| {
            told.store(now, Ordering::Relaxed);
            Ok(())
        }));
        hooked.expect("a hook");
        let (moves, wishes) = channel();
        let (tell, brought) = channel();
        let thread =
            thread::spawn(
                move || {
                    while wishes.recv().is_ok() && tell.send(passive(&aside)).is_ok() {}
                },
            );
        Self {
            pages,
            seen: 0,
            next_at: PAGES,
            under_way: false,
            moves: Some(moves),
            brought,
            thread: Some(thread),
        }
    }

    /// What the writer does behind each commit.
    pub(super) fn tidy(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.next_at = PAGES;
        }
        self.seen = pages;
        if self.under_way {
            let Some((_log, moved)) = self.ended(pages > LONG) else {
                return;
            };
            // One that was begun anew meanwhile has fewer pages than were moved.
            if pages - moved.min(pages) > REST && pages <= LONG {
                self.begin();
                return;
            }
            let (log, moved) = passive(writer);
            assert_eq!(log, moved, "nobody stands in the way");
            self.next_at = pages.saturating_add(AGAIN).max(PAGES);
        } else if pages >= self.next_at {
            self.begin();
        }
    }

    fn begin(&mut self) {
        let moves = self.moves.as_ref().expect("it has not ended");
        moves.send(()).expect("it waits for a move");
        self.under_way = true;
    }

    /// What the move brought, when it has ended; `wait`: or when it ends.
    fn ended(&mut self, wait: bool) -> Option<Brought> {
        let brought = match self.brought.try_recv() {
            Err(TryRecvError::Empty) if !wait => return None,
            Err(TryRecvError::Empty) => self.brought.recv().expect("a move ends"),
            brought => brought.expect("a move ends"),
        };
        self.under_way = false;
        Some(brought)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.moves = None;
        if let Some(thread) = self.thread.take() {
            // Where it panicked, the writer has said so.
            drop(thread.join());
        }
    }
}

fn passive(connection: &Connection) -> Brought {
    let moved = connection.wal_checkpoint_v2(Some("main"), CheckpointMode::PASSIVE);
    moved.expect("a log")
}
