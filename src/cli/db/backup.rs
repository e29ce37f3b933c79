//! `tilld db backup`: a copy of the ledger in one file. Whoever may read the ledger may make one; nothing is written but
//! the file. An interrupted command leaves none.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{Output, print_json, talk};
use crate::clock::wall_ms;
use crate::ledger::{Backup, BackupError, Counts, Draft};

/// What `--help` says below the flags.
pub(super) const ENDS: &str = "A file that is there already is not touched. The backup holds no secret in readable form, and \
  not the key either that opens its notify tokens: keep the directory `secret/` apart. docs/backup.md \
  says how it is put back.";

/// Flags of `db backup`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file to make
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs `db backup`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    // As every reader says what is wrong with the ledger, before anything is made.
    drop(ledger::open_reader(&context)?);
    let state_dir = context.state_dir()?;
    let signals = |error| Failure::new(Exit::Error, error).context("could not wait for signals");
    let mut terminate = signal(SignalKind::terminate()).map_err(signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signals)?;
    let draft = Arc::new(Draft::make(&args.file)?);
    let filling = Arc::clone(&draft);
    let filled = tokio::task::spawn_blocking(move || filling.fill(&state_dir, wall_ms()));
    let counts = tokio::select! {
        filled = filled => filled.map_err(|error| Failure::new(Exit::Error, error))??,
        _ = terminate.recv() => return Err(stopped(&draft)),
        _ = interrupt.recv() => return Err(stopped(&draft)),
    };
    let backup = draft.place(counts)?;
    print(context.output, &backup)?;
    Ok(Exit::Ok)
}

/// The thread that fills it may still be at work: what it writes has no name any more.
fn stopped(draft: &Draft) -> Failure {
    draft.discard();
    let failure = Failure::new(Exit::Error, "stopped before the backup was complete");
    failure.hint("no file was left; run the command again")
}

fn print(output: Output, backup: &Backup) -> Result<(), Failure> {
    let Counts {
        last_event,
        events,
        invoices,
        deliveries,
        attempts,
    } = backup.counts;
    let path = backup.path.to_string_lossy();
    if output.json() {
        return print_json(&json!({
            "path": path,
            "bytes": backup.bytes,
            "last_event": last_event,
            "events": events,
            "invoices": invoices,
            "deliveries": deliveries,
            "attempts": attempts,
        }));
    }
    output.pairs(&[
        ("backup", path.into_owned()),
        ("size", format!("{} bytes", backup.bytes)),
        ("last event", last_event.to_string()),
        (
            "holds",
            format!(
                "{invoices} invoices, {events} events, {deliveries} deliveries, {attempts} attempts"
            ),
        ),
    ])?;
    talk("keep `secret/` of the state directory too: its `ledger-key` opens the notify tokens");
    Ok(())
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let (exit, hint) = match error {
            BackupError::Ledger(error) => return error.into(),
            BackupError::Taken { .. } => (
                Exit::Error,
                "a backup never replaces a file: name another, or move that one away",
            ),
            BackupError::Place { .. } => (
                Exit::Error,
                "the directory must be there and be writable for this user, with room for the ledger",
            ),
            BackupError::Room { .. } => (
                Exit::Error,
                "name a place on another disk, or make room; no file was left",
            ),
            BackupError::Write { .. } => (
                Exit::Error,
                "look at the room on the disk of the backup; no file was left",
            ),
            BackupError::Unsound { .. } => (
                Exit::Ledger,
                "the ledger or a disk is damaged: keep the backups you have; no file was left",
            ),
        };
        Self::new(exit, error).hint(hint)
    }
}
