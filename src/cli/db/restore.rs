//! `tilld db restore`: puts a backup, or a copy that was kept, in the ledger's place. Relies on no daemon serving, which its
//! lock keeps so while the files change.
//! Promises that a copy that is not sound changes nothing, and that what was there before is kept under another name.

use std::path::PathBuf;

use serde_json::json;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{print_json, talk};
use super::super::owner;
use crate::clock::wall_ms;
use crate::ledger::{self, RestoreError, Swapped};

/// What `--help` says below the flags.
pub(super) const ENDS: &str = "The copy is verified first. The files that were there are kept beside it, with `.replaced-` and the time in \
  their names. `ledger.mark` stays: by it the next start notices what the copy lacks.
Exit codes: 0 put back, 1 the copy cannot be read or written, 11 the copy is no sound ledger or a daemon serves";

/// Flags of `db restore`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The backup, or the copy that a daemon kept
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs `db restore`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let state_dir = context.state_dir()?;
    owner::check(&state_dir)?;
    let put = move || ledger::put_back(&state_dir, &args.file, wall_ms());
    let swapped = tokio::task::spawn_blocking(put)
        .await
        .map_err(|error| Failure::new(Exit::Error, error))??;
    let Swapped {
        path,
        events,
        replaced,
    } = swapped;
    let shown = |path: &PathBuf| path.to_string_lossy().into_owned();
    let kept: Vec<String> = replaced.iter().map(shown).collect();
    if context.output.json() {
        print_json(&json!({ "path": shown(&path), "last_event": events, "replaced": kept }))?;
        return Ok(Exit::Ok);
    }
    context.output.pairs(&[
        ("ledger", shown(&path)),
        ("last event", events.to_string()),
        ("kept aside", kept.join(", ")),
    ])?;
    talk(
        "start `tilld serve`; what may have run before is held, `tilld delivery list --state held` shows it",
    );
    Ok(Exit::Ok)
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        let (exit, hint) = match error {
            RestoreError::Copy(error) => return error.into(),
            RestoreError::Served(error) => {
                return Self::new(Exit::Ledger, error).hint("stop `tilld serve` first");
            }
            RestoreError::Unsound { .. } => {
                (Exit::Ledger, "take an older backup; nothing was changed")
            }
            RestoreError::Read { .. } => (
                Exit::Error,
                "this user must be able to read the copy, and the state directory's disk needs room for it; nothing was changed",
            ),
            RestoreError::Place { .. } => (
                Exit::Error,
                "look at the disk of the state directory; what was there has kept its name, or has `.replaced-` in it",
            ),
        };
        Self::new(exit, error).hint(hint)
    }
}
