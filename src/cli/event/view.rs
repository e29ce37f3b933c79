//! Events for people and for programs. Promises that what strangers wrote reaches no terminal unescaped.

use super::super::failure::Failure;
use super::super::output::{Output, escape, print_json};
use crate::answer::event::Shown;
use crate::answer::invoice::status;

/// What stands above the columns.
const HEADINGS: [&str; 6] = ["SEQ", "TIME", "ORDER", "KIND", "STATUS", "OUTCOME"];

/// Prints many: a table, or JSON lines.
pub(super) fn print_many(output: Output, events: &[Shown<'_>]) -> Result<(), Failure> {
    if output.json() {
        return events.iter().try_for_each(print_json);
    }
    let rows: Vec<[String; 6]> = events.iter().map(cells).collect();
    output.table(Some(HEADINGS), &rows)
}

/// Prints one, when others may follow at any time.
pub(super) fn print(output: Output, event: &Shown<'_>) -> Result<(), Failure> {
    if output.json() {
        return print_json(event);
    }
    output.line(&escape(&cells(event).join("  ")))
}

fn cells(event: &Shown<'_>) -> [String; 6] {
    [
        event.seq.to_string(),
        event.at.clone(),
        event.order_id.to_string(),
        event.kind.to_string(),
        status(event.status.as_deref()),
        event.outcome.to_string(),
    ]
}
