//! Opens a ledger that may be a restored copy: notices it, has it caught up in one transaction, and keeps the mark from
//! then on. Relies on `mark` for what is known, on `apply/restored` for what follows; promises that a second opening of
//! the same file, by whomever and after whatever end, changes nothing.

use std::path::Path;

use super::apply::{self, Restore};
use super::error::OpenError;
use super::fact::{BACKUP, GENERATION_BEGAN, LOST, RESTORED};
use super::lineage::Began;
use super::mark::{self, Found, Keeper, Mark, Restored};
use super::sqlite::SqliteStore;
use super::starts::{self, Lost};
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

/// Where a ledger lies.
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) state_dir: &'a Path,
    /// The directory only the owner may enter.
    pub(super) secrets: &'a Path,
    /// It was made by this opening.
    pub(super) is_new: bool,
}

/// Judges a ledger by the mark beside it, catches it up if it was restored, and has the store keep the mark.
pub(super) fn settle(
    store: &mut SqliteStore,
    place: &Place<'_>,
    now_ms: i64,
) -> Result<Opened, OpenError> {
    let failed = |source| OpenError::File {
        path: place.path.to_owned(),
        source,
    };
    let path = place.state_dir.join(MARK);
    // Before the ledger is asked how far it is: another process may be writing both, the ledger first.
    let found = mark::load(&path);
    let before = store.position().map_err(failed)?;
    let judged = mark::judge(&found, &before, is_stamped(store).map_err(failed)?);
    if judged == Some(Restored::Behind) {
        starts::check_in_full(place.path, "it is behind its mark")?;
    }
    let held = match judged {
        None => None,
        Some(_) => catch_up(store, &found, now_ms).map_err(failed)?,
    };
    tell_mark(&path, &found, &before);
    if let Some(lost) = lost(&found, &before, place, now_ms) {
        tell_lost(store, &lost).map_err(failed)?;
    }
    let mut keeper = Keeper::new(path, place.secrets.to_owned());
    let now = store.lying().map_err(failed)?;
    starts::remember(&now);
    keeper.begin(&now);
    store.keep_mark(keeper);
    Ok(Opened {
        restore: store.fact(&RESTORED).map_err(failed)?.unwrap_or_default(),
        held,
    })
}

/// What was lost, by what the mark or the runtime directory knows.
fn lost(found: &Found, now: &Mark, place: &Place<'_>, at_ms: i64) -> Option<Lost> {
    let marked = match found {
        Found::Mark(mark) => Some(mark.clone()),
        Found::Nothing | Found::Damaged => None,
    };
    let known = marked.or_else(|| place.is_new.then(starts::remembered).flatten())?;
    let is_new = known.ledger != now.ledger && now.event == 0;
    let missing = if is_new {
        known.event
    } else {
        known.missing_in(now)
    };
    // The mark may be a second behind, so a ledger without a known event may have had some.
    let is_lost = is_new || known.ledger == now.ledger && missing > 0;
    is_lost.then_some(Lost {
        missing,
        is_new,
        at_ms,
        before: starts::replaced(place.path, known.files.as_ref()),
    })
}

fn tell_lost(store: &mut SqliteStore, lost: &Lost) -> Result<(), StoreError> {
    store.begin()?;
    let noted = store
        .set_fact(&LOST, &Some(lost.clone()))
        .and_then(|()| store.commit());
    if noted.is_err() {
        store.rollback();
    }
    noted?;
    let missing = lost.missing;
    if lost.is_new {
        let before = lost.known_before();
        tracing::warn!(
            missing,
            "a new ledger was made where {before} was known; hint: {}, or `tilld ack --all --reason ledger_new`",
            lost.hint()
        );
    } else {
        tracing::warn!(
            missing,
            "the ledger lacks at least {missing} events that were acknowledged; hint: {}, or \
             `tilld ack --all --reason ledger_behind`",
            lost.hint()
        );
    }
    Ok(())
}

/// How many events the ledger had that was here, if there was one with any.
pub(super) fn known_events(state_dir: &Path) -> Option<i64> {
    match mark::load(&state_dir.join(MARK)) {
        Found::Mark(mark) if mark.event > 0 => Some(mark.event),
        Found::Mark(_) | Found::Nothing | Found::Damaged => None,
    }
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
    store.number_deliveries_anew(generation)?;
    let becomes = "what its invoices are found to have become";
    let is_held = match held {
        0 => format!("{becomes} is held"),
        _ => format!("of what waited in it {held} are held, and so is {becomes}"),
    };
    tracing::warn!(
        held,
        generation,
        event.seq = now.event,
        "the ledger was restored ({}): it ends with event {}; {is_held}; hint: `tilld delivery list --state held` shows them",
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
