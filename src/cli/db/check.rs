//! `tilld db check`: looks the whole ledger over, while `serve` runs or not. Whoever may read the ledger may do it.

use serde_json::json;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::print_json;
use crate::ledger::{self as books, Counts};

/// What `--help` says below the flags.
pub(super) const ENDS: &str = "Reads every page, every reference, the schema and what belongs together, and writes nothing. \
  Exit codes: 0 the ledger is sound, 11 it is damaged: each finding is a line.";

/// Flags of `db check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `db check`.
pub(super) async fn run(_args: Args, context: Context) -> Result<Exit, Failure> {
    // As every reader says what is wrong with the way to the ledger.
    drop(ledger::open_reader(&context)?);
    let state_dir = context.state_dir()?;
    let looked = tokio::task::spawn_blocking(move || books::check(&state_dir)).await;
    let (path, looked) = looked.map_err(|error| Failure::new(Exit::Error, error))??;
    let path = path.to_string_lossy();
    if context.output.json() {
        let counts = looked.counts.as_ref();
        print_json(&json!({
            "path": path,
            "sound": looked.findings.is_empty(),
            "schema": looked.schema,
            "events": counts.map(|counts| counts.events),
            "invoices": counts.map(|counts| counts.invoices),
            "deliveries": counts.map(|counts| counts.deliveries),
            "attempts": counts.map(|counts| counts.attempts),
            "findings": looked.findings,
            "notes": looked.notes,
        }))?;
    } else {
        let mut pairs = vec![
            ("ledger", path.to_string()),
            ("schema", looked.schema.to_string()),
        ];
        pairs.extend(
            looked
                .counts
                .as_ref()
                .map(|counts| ("holds", holds(counts))),
        );
        let findings = looked.findings.iter();
        pairs.extend(findings.map(|found| ("damaged", found.clone())));
        pairs.extend(looked.notes.iter().map(|note| ("note", note.clone())));
        if looked.findings.is_empty() {
            pairs.push(("sound", "every page and reference was read".to_owned()));
        }
        context.output.pairs(&pairs)?;
    }
    match looked.findings.first() {
        None => Ok(Exit::Ok),
        Some(first) => {
            let more = match looked.findings.len() {
                1 => String::new(),
                count => format!(", and {} more", count - 1),
            };
            let told = format!("ledger `{path}` is damaged: {first}{more}");
            Err(Failure::new(Exit::Ledger, told).hint(
                "stop `tilld serve`, keep the damaged files, and put the newest backup back: docs/backup.md says how",
            ))
        }
    }
}

fn holds(counts: &Counts) -> String {
    let Counts {
        last_event: _,
        events,
        invoices,
        deliveries,
        attempts,
    } = counts;
    format!("{invoices} invoices, {events} events, {deliveries} deliveries, {attempts} attempts")
}
