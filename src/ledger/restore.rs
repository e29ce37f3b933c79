//! Opens a ledger that may be a restored copy: notices it, has it caught up in one transaction, and keeps the mark from
//! then on. Relies on `mark` for what is known, on `apply/restored` for what follows; promises that a second opening of
//! the same file, by whomever and after whatever end, changes nothing.

use std::path::Path;

use super::apply::{self, Restore};
use super::fact::{BACKUP, GENERATION_BEGAN, RESTORED};
use super::lineage::Began;
use super::mark::{self, Found, Keeper, Mark};
use super::sqlite::SqliteStore;
use super::store::{Store as _, StoreError};

/// The mark's file in the state directory.
pub(super) const MARK: &str = "ledger.mark";

/// What an opening found.
#[derive(Debug)]
pub(super) struct Opened {
    /// The last restore, now or before.
    pub restore: Restore,
    /// Deliveries this opening held, when it was the first after a restore.
    pub held: Option<usize>,
}

/// Judges the ledger in `state_dir` by the mark beside it, catches it up if it was restored, and has the store keep the
/// mark. `secrets` is the directory only the owner may enter.
pub(super) fn settle(
    store: &mut SqliteStore,
    state_dir: &Path,
    secrets: &Path,
    now_ms: i64,
) -> Result<Opened, StoreError> {
    let path = state_dir.join(MARK);
    // Before the ledger is asked how far it is: another process may be writing both, the ledger first.
    let found = mark::load(&path);
    let before = store.position()?;
    let held = if stands(store, &found, &before)? {
        None
    } else {
        catch_up(store, &found, now_ms)?
    };
    tell_mark(&path, &found, &before);
    let mut keeper = Keeper::new(path, secrets.to_owned());
    keeper.begin(&store.position()?);
    store.keep_mark(keeper);
    Ok(Opened {
        restore: store.fact(&RESTORED)?.unwrap_or_default(),
        held,
    })
}

/// How many events the ledger had that was here, if there was one with any.
pub(super) fn known_events(state_dir: &Path) -> Option<i64> {
    match mark::load(&state_dir.join(MARK)) {
        Found::Mark(mark) if mark.event > 0 => Some(mark.event),
        Found::Mark(_) | Found::Nothing | Found::Damaged => None,
    }
}

/// True when nothing says that the ledger is a copy.
fn stands(store: &mut SqliteStore, found: &Found, now: &Mark) -> Result<bool, StoreError> {
    Ok(mark::judge(found, now, is_stamped(store)?).is_none())
}

fn is_stamped(store: &mut SqliteStore) -> Result<bool, StoreError> {
    Ok(store.fact(&BACKUP)?.flatten().is_some())
}

/// Judged again with the lock: two processes may have come to the same copy.
fn catch_up(
    store: &mut SqliteStore,
    found: &Found,
    now_ms: i64,
) -> Result<Option<usize>, StoreError> {
    store.begin()?;
    let caught_up = catch_up_within(store, found, now_ms).and_then(|held| {
        store.commit()?;
        Ok(held)
    });
    if caught_up.is_err() {
        store.rollback();
    }
    caught_up
}

fn catch_up_within(
    store: &mut SqliteStore,
    found: &Found,
    now_ms: i64,
) -> Result<Option<usize>, StoreError> {
    let now = store.position()?;
    let Some(why) = mark::judge(found, &now, is_stamped(store)?) else {
        return Ok(None);
    };
    let generation = mark::next_generation(found, &now);
    let held = apply::catch_up(store, generation, now_ms)?;
    let began = Began {
        from: now.generation,
        event: now.event,
    };
    store.set_fact(&GENERATION_BEGAN, &began)?;
    tracing::warn!(
        held,
        generation,
        event.seq = now.event,
        "the ledger was restored ({}): it ends with event {}; of what waited in it {held} are held, and so is what \
         its invoices are found to have become; hint: `tilld delivery list --state held` shows them",
        why.told(),
        now.event
    );
    Ok(Some(held))
}

/// Says what is odd about the mark, where that matters.
fn tell_mark(path: &Path, found: &Found, now: &Mark) {
    let path = path.display();
    match found {
        Found::Damaged => tracing::warn!(
            "`{path}` cannot be read and is written anew: had an older ledger been put in place, it would not be noticed"
        ),
        Found::Nothing if now.event > 0 => tracing::info!(
            "`{path}` is not there and is made: had an older ledger been put in place, it would not be noticed"
        ),
        Found::Mark(mark) if mark.ledger != now.ledger => {
            tracing::warn!("`{path}` is of another ledger and is written anew");
        }
        Found::Mark(_) | Found::Nothing => {}
    }
}
