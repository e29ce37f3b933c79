//! How a delivery is shown: one JSON object and one form for people. Fields of the JSON object are only ever added.

use std::str;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use super::super::failure::Failure;
use super::super::output::{Output, escape_lines, print_json};
use crate::hook::process::Ending;
use crate::invoice::moment::Moment;
use crate::ledger::{AttemptRow, DeliveryRow, DeliveryState};

/// One delivery in the words of `--json`. Times are UTC with milliseconds.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    /// What `delivery list --before` takes.
    number: i64,
    event_id: &'a str,
    seq: i64,
    order_id: &'a str,
    kind: &'static str,
    hook: &'a str,
    state: &'static str,
    attempts: u32,
    next_at: Option<String>,
    /// When the event was recorded.
    at: String,
    /// It was done once, and a person wanted it run again.
    replay: bool,
    /// Only while it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_why: Option<&'a str>,
    /// Only when a person gave it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned_by: Option<&'a str>,
    /// Only while it waits for an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_seq: Option<i64>,
    /// Only where attempts are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_attempts: Option<Vec<ShownAttempt<'a>>>,
}

#[derive(Debug, Serialize)]
struct ShownAttempt<'a> {
    number: u32,
    started_at: String,
    ended_at: String,
    result: &'a str,
    stdout: Written<'a>,
    stderr: Written<'a>,
}

/// What a program wrote: text when it is UTF-8, else base64, and which of the two it is.
#[derive(Debug, Serialize)]
#[serde(tag = "encoding", content = "data", rename_all = "lowercase")]
pub(in crate::cli) enum Written<'a> {
    /// UTF-8, as it was written.
    Text(&'a str),
    /// Any bytes, in standard base64 with padding.
    Base64(String),
}

impl<'a> Written<'a> {
    /// Looks which of the two it is.
    pub(in crate::cli) fn new(bytes: &'a [u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(_other_bytes) => Self::Base64(STANDARD.encode(bytes)),
        }
    }
}

fn json<'a>(row: &'a DeliveryRow, attempts: Option<&'a [AttemptRow]>) -> Shown<'a> {
    let shown = |attempt: &'a AttemptRow| ShownAttempt {
        number: attempt.number,
        started_at: time(attempt.started_ms),
        ended_at: time(attempt.ended_ms),
        result: &attempt.result,
        stdout: Written::new(&attempt.stdout),
        stderr: Written::new(&attempt.stderr),
    };
    Shown {
        number: row.key.0,
        event_id: &row.event_id,
        seq: row.seq,
        order_id: &row.order_id,
        kind: row.kind.as_str(),
        hook: &row.hook,
        state: row.state.as_str(),
        attempts: row.attempts,
        next_at: next_ms(row).map(time),
        at: time(row.at_ms),
        replay: row.replay,
        held_why: row.held_why.as_deref(),
        abandoned_by: row.abandoned_by.as_deref(),
        behind_seq: row.behind,
        ended_attempts: attempts.map(|attempts| attempts.iter().map(shown).collect()),
    }
}

/// Prints many deliveries: a table, with headings where it begins, or JSON lines. People get the event's number, which every
/// command takes: beside its id a line would not fit a terminal.
pub(super) fn print_page(
    output: Output,
    rows: &[DeliveryRow],
    begins: bool,
) -> Result<(), Failure> {
    if output.json() {
        return rows.iter().try_for_each(|row| print_json(&json(row, None)));
    }
    let cells: Vec<[String; 8]> = rows
        .iter()
        .map(|row| {
            [
                row.seq.to_string(),
                time(row.at_ms),
                row.order_id.clone(),
                row.kind.to_string(),
                row.hook.clone(),
                brief(row),
                row.attempts.to_string(),
                next(row).unwrap_or_else(|| "-".to_owned()),
            ]
        })
        .collect();
    let headings = [
        "EVENT", "AT", "ORDER", "KIND", "HOOK", "STATE", "ATTEMPTS", "NEXT",
    ];
    output.table(begins.then_some(headings), &cells)
}

/// Prints one delivery with the attempts that have ended, oldest first.
pub(super) fn print(
    output: Output,
    row: &DeliveryRow,
    attempts: &[AttemptRow],
) -> Result<(), Failure> {
    if output.json() {
        return print_json(&json(row, Some(attempts)));
    }
    let mut pairs = vec![
        ("hook", row.hook.clone()),
        ("event", format!("{}, number {}", row.event_id, row.seq)),
        ("kind", row.kind.to_string()),
        ("at", time(row.at_ms)),
        ("order", row.order_id.clone()),
        ("state", stands(row)),
        ("attempts", row.attempts.to_string()),
    ];
    if row.replay {
        pairs.push((
            "replay",
            "yes: it was done once, and a person wanted it run again".to_owned(),
        ));
    }
    if let Some(next) = next(row) {
        pairs.push(("next", next));
    }
    if let Some(why) = &row.held_why {
        pairs.push(("held for", held_for(why)));
        // With the hook: the event may be held for others, where something else was done.
        let it = format!("{} --hook {}", row.seq, row.hook);
        pairs.push(("", format!("`tilld delivery release {it}` runs it,")));
        pairs.push(("", format!("`tilld delivery abandon {it}` gives it up")));
    }
    output.pairs(&pairs)?;
    for attempt in attempts {
        output.line(&format!("\nAttempt {}", attempt.number))?;
        output.pairs(&[
            ("  started", time(attempt.started_ms)),
            ("  ended", time(attempt.ended_ms)),
            ("  result", attempt.result.clone()),
        ])?;
        if Ending::is_answer(&attempt.result) {
            print_body(output, &attempt.stdout)?;
        } else {
            print_written(output, &attempt.stdout, &attempt.stderr)?;
        }
    }
    Ok(())
}

/// Prints what a program wrote, for people; silence is not mentioned.
pub(in crate::cli) fn print_written(
    output: Output,
    stdout: &[u8],
    stderr: &[u8],
) -> Result<(), Failure> {
    print_named(output, "stdout", stdout)?;
    print_named(output, "stderr", stderr)
}

/// Prints the body of an answer, for people; an empty one is not mentioned.
pub(in crate::cli) fn print_body(output: Output, body: &[u8]) -> Result<(), Failure> {
    print_named(output, "body", body)
}

fn print_named(output: Output, name: &str, written: &[u8]) -> Result<(), Failure> {
    if written.is_empty() {
        return Ok(());
    }
    let lines = escape_lines(written, "    ");
    output.line(&format!("  {name}:\n{}", lines.trim_end_matches('\n')))
}

/// Why a delivery is held, with what that means.
pub(in crate::cli) fn held_for(why: &str) -> String {
    match why {
        "restored" => format!("{why}: it may have run before the ledger was put back"),
        "newly_sorted" => format!("{why}: its status was put on a list, or taken off, later"),
        other => other.to_owned(),
    }
}

/// The state in a table, with what a person would have to look up else.
fn brief(row: &DeliveryRow) -> String {
    match &row.held_why {
        Some(why) => format!("{}: {why}", row.state.as_str()),
        None => stands(row),
    }
}

/// The state, with who brought it about where that was a person.
fn stands(row: &DeliveryRow) -> String {
    let state = row.state.as_str();
    match &row.abandoned_by {
        Some(by) => format!("{state} by {by}"),
        None => state.to_owned(),
    }
}

/// When it runs next. What is done, given up or under way has no next time, whatever was stored before.
fn next_ms(row: &DeliveryRow) -> Option<i64> {
    match row.state {
        DeliveryState::Waiting => row.next_ms,
        DeliveryState::Held
        | DeliveryState::Running
        | DeliveryState::Done
        | DeliveryState::Abandoned => None,
    }
}

/// When it runs next, for people: behind an earlier one, its own time says nothing.
fn next(row: &DeliveryRow) -> Option<String> {
    match row.behind {
        Some(seq) => Some(format!("after event {seq}")),
        None => next_ms(row).map(time),
    }
}

fn time(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::event::EventKind;
    use crate::ledger::DeliveryKey;

    #[test]
    fn the_json_object_is_what_scripts_rely_on() {
        let row = DeliveryRow {
            key: DeliveryKey(1),
            seq: 7,
            event_id: "0199-e".to_owned(),
            order_id: "1042".to_owned(),
            kind: EventKind::Paid,
            hook: "fulfil".to_owned(),
            state: DeliveryState::Waiting,
            at_ms: 1_795_860_120_000,
            attempts: 1,
            replay: false,
            next_ms: Some(1_795_860_720_000),
            held_why: None,
            abandoned_by: None,
            acknowledged: false,
            behind: None,
        };
        let attempt = AttemptRow {
            number: 1,
            started_ms: 1_795_860_120_004,
            ended_ms: 1_795_860_120_104,
            result: "exit 1".to_owned(),
            stdout: b"one\ntwo\n".to_vec(),
            stderr: vec![0xff],
        };
        let listed = concat!(
            r#"{"number":1,"event_id":"0199-e","seq":7,"order_id":"1042","kind":"paid","hook":"fulfil","state":"waiting","#,
            r#""attempts":1,"next_at":"2026-11-28T10:12:00.000Z","at":"2026-11-28T10:02:00.000Z","replay":false}"#,
        );
        let text = |shown: &Shown<'_>| serde_json::to_string(shown).expect("plain data");
        assert_eq!(text(&json(&row, None)), listed);
        let attempts = concat!(
            r#","ended_attempts":[{"number":1,"started_at":"2026-11-28T10:02:00.004Z","#,
            r#""ended_at":"2026-11-28T10:02:00.104Z","result":"exit 1","#,
            r#""stdout":{"encoding":"text","data":"one\ntwo\n"},"#,
            r#""stderr":{"encoding":"base64","data":"/w=="}}]}"#,
        );
        let whole = format!("{}{attempts}", listed.trim_end_matches('}'));
        assert_eq!(text(&json(&row, Some(&[attempt]))), whole);
        let done = DeliveryRow {
            state: DeliveryState::Done,
            ..row
        };
        assert_eq!(json(&done, None).next_at, None);
        let behind = DeliveryRow {
            behind: Some(4),
            ..done
        };
        assert_eq!(next(&behind).as_deref(), Some("after event 4"));
        assert_eq!(json(&behind, None).behind_seq, Some(4));
        let held = DeliveryRow {
            state: DeliveryState::Held,
            held_why: Some("restored".to_owned()),
            ..behind
        };
        assert_eq!(brief(&held), "held: restored");
        let abandoned = DeliveryRow {
            state: DeliveryState::Abandoned,
            held_why: None,
            abandoned_by: Some("operator".to_owned()),
            ..held
        };
        assert_eq!(brief(&abandoned), "abandoned by operator");
    }
}
