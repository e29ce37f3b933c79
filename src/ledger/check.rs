//! What a whole look over a ledger brings, and what is promised of its views. Whoever may read the ledger may look; nothing
//! is written, and a daemon may go on meanwhile.

use std::path::{Path, PathBuf};

use super::error::OpenError;
use super::mark::{self, Found, Restored};
use super::store::StoreError;
use super::{Counts, FILE_NAME, reading, sqlite};
use crate::fault;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The schema's version.
    pub schema: usize,
    /// What is in it, where that could be counted.
    pub counts: Option<Counts>,
    /// What is damaged, a sentence each. Empty: the ledger is sound.
    pub findings: Vec<String>,
    /// What is odd and no damage, a sentence each.
    pub notes: Vec<String>,
}

/// What readers of the ledger rely on.
#[derive(Debug)]
pub(crate) struct Contract {
    /// The schema's version.
    pub schema: usize,
    /// In the order of the alphabet.
    pub views: Vec<View>,
}

/// A view.
#[derive(Debug)]
pub(crate) struct View {
    /// Its name.
    pub name: String,
    /// Its columns in their order; only ever added to.
    pub columns: Vec<String>,
    /// The statement that makes it.
    pub sql: String,
}

/// Looks the ledger in this directory over.
pub(crate) fn check(state_dir: &Path) -> Result<(PathBuf, Looked), OpenError> {
    let path = state_dir.join(FILE_NAME);
    let _said = reading::say(state_dir);
    fault::point("check");
    // Read first: marks follow commits.
    let found = mark::load(&state_dir.join(super::restore::MARK));
    let (mut looked, now) = sqlite::check(&path)?;
    if looked.findings.is_empty() {
        looked.notes.extend(odd(&found, &now));
    }
    Ok((path, looked))
}

/// What the mark says of the ledger.
fn odd(found: &Found, now: &mark::Mark) -> Option<String> {
    let what = match (found, mark::judge(found, now, false)) {
        (Found::Nothing, _) => {
            "`ledger.mark` is not there: an older ledger put in place would not be noticed"
        }
        (Found::Damaged, _) => {
            "`ledger.mark` cannot be read: an older ledger put in place would not be noticed"
        }
        (Found::Mark(_), Some(Restored::Behind)) => {
            "it is older than the one that was here: what waits in it is held at the next start"
        }
        (Found::Mark(_), Some(Restored::Other | Restored::Backup)) => {
            "`ledger.mark` is of another ledger: what waits in this one is held at the next start"
        }
        (Found::Mark(_), None) => return None,
    };
    Some(what.to_owned())
}

/// What this tilld promises to readers.
pub(crate) fn contract() -> Result<Contract, StoreError> {
    sqlite::contract()
}
