//! The ledger as a file that lasts for years: looked over, kept short, and honest about a disk that fails (A24 to A28).

mod accidents;
mod check;
mod disk;
mod failing;
mod files;
mod inodes;
mod log;
mod migrations;
mod mounted;
mod old_sqlite;
mod prune;
mod readers;
mod starts;
mod unreadable;

use serde_json::Value;

use crate::harness::World;

/// The words of what needs a person.
fn attention(world: &World) -> Vec<String> {
    let told = world.tilld(&["status", "--json"]).json();
    let reasons = told.get("attention").and_then(Value::as_array).cloned();
    let word = |reason: &Value| {
        reason
            .get("reason")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    reasons
        .unwrap_or_default()
        .iter()
        .filter_map(word)
        .collect()
}
