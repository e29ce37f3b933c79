//! A timeline for people: a heading, then one row for each fact and, below a run, the first lines it wrote.

use super::super::delivery::{Written, held_for};
use super::super::failure::Failure;
use super::super::invoice::sentences;
use super::super::output::{Output, escape};
use super::fact::{Fact, Line};
use crate::answer::invoice::status;
use crate::hook::process::Ending;
use crate::invoice::observation::Source;
use crate::invoice::opening::Opening;
use crate::invoice::transition::{Decision, Why};
use crate::ledger::{InvoiceRow, Story, StoryOutput};
use crate::telemetry::word;

/// Lines of each stream that are shown without `--full`.
const OUTPUT_LINES: usize = 3;

/// Prints one invoice.
pub(super) fn print(
    output: Output,
    story: &Story,
    lines: &[Line<'_>],
    wish: StoryOutput,
) -> Result<(), Failure> {
    output.line(&heading(&story.invoice))?;
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let at = line.at.clone().unwrap_or_default();
        let (what, details) = told(&line.fact);
        rows.push([at, what, details]);
        if let Fact::Attempt {
            result,
            stdout,
            stderr,
            output_cut,
            ..
        } = &line.fact
        {
            let name = match result {
                Some(result) if Ending::is_answer(result) => "body",
                Some(_) | None => "stdout",
            };
            rows.extend(written(name, stdout.as_ref(), wish));
            rows.extend(written("stderr", stderr.as_ref(), wish));
            if *output_cut {
                let more = "more was kept than is looked at here; `--full` shows all";
                rows.push([String::new(), String::new(), format!("  {more}")]);
            }
        }
    }
    for sentence in sentences(&story.invoice) {
        rows.push([String::new(), "attention".to_owned(), sentence]);
    }
    output.table(Some(["TIME", "WHAT", "DETAILS"]), &rows)
}

fn heading(row: &InvoiceRow) -> String {
    let id = row.invoice_id.as_deref().unwrap_or("without an id");
    let status = status(row.status.as_deref());
    let superseded = row.superseded.as_ref().map_or_else(String::new, |by| {
        let other = by.invoice_id.as_deref().unwrap_or(&by.r#ref);
        format!(", superseded by {}, {}", escape(other), by.outcome)
    });
    format!(
        "Order {}, invoice {}: outcome {}, status {}{superseded}",
        escape(&row.order_id),
        escape(id),
        row.outcome,
        escape(&status)
    )
}

/// What it is, and the rest. Not escaped: cells of a table are.
fn told(fact: &Fact<'_>) -> (String, String) {
    match fact {
        Fact::Dropped { of, count } => {
            let told = match count {
                Some(1) => format!("1 older line of the {of} was dropped"),
                Some(count) => format!("{count} older lines of the {of} were dropped"),
                None => format!("older {of} are not shown: there are too many"),
            };
            ("dropped".to_owned(), told)
        }
        Fact::Create {
            amount,
            currency,
            method,
            mode,
            opening,
            opening_note,
        } => {
            if *opening == Opening::Tracked.as_str() {
                // Nothing was sent from here, and how it is paid is told by the service's first answer.
                let told = format!("{amount} {currency}; opened by the shop's own code");
                return ("track".to_owned(), told);
            }
            let note = opening_note.map_or_else(String::new, |note| format!(": {note}"));
            let told = format!("{amount} {currency} by {method}, {mode}; {opening}{note}");
            ("create".to_owned(), told)
        }
        Fact::Refusal {
            reason,
            client,
            body_bytes,
            headers,
            headers_left_out,
        } => {
            let bytes = match body_bytes {
                None => String::new(),
                Some(1) => ", 1 byte".to_owned(),
                Some(bytes) => format!(", {bytes} bytes"),
            };
            let headers = if headers.is_empty() {
                String::new()
            } else {
                format!(", headers {}", headers.join(" "))
            };
            let headers = match headers_left_out {
                0 => headers,
                count => format!("{headers} and {count} more"),
            };
            let told = format!("{reason}, from {client}{bytes}{headers}");
            ("refused".to_owned(), told)
        }
        Fact::Observation {
            source,
            decision,
            why,
            ..
        } => {
            let who = if *why == Why::ClockWasAhead.as_str() {
                "clock"
            } else if *decision == Decision::Reassessed.as_str() {
                // Nothing arrived then: it is an old claim, whoever made it.
                "lists"
            } else if *source == Source::Create.as_str() {
                // The row's own line is called `create` already.
                "answer"
            } else {
                source
            };
            (who.to_owned(), said(fact))
        }
        Fact::Event { seq, .. } => (format!("event {seq}"), changed(fact)),
        Fact::Delivery { .. } => ("delivery".to_owned(), owed(fact)),
        Fact::Attempt {
            seq,
            hook,
            number,
            result,
            duration_ms,
            ..
        } => {
            let end = match (result, duration_ms) {
                (Some(result), Some(ms)) => format!("{result} after {ms} ms"),
                (Some(result), None) => (*result).to_owned(),
                (None, _) => "under way".to_owned(),
            };
            let told = format!("`{hook}` for event {seq}: {end}");
            (format!("attempt {number}"), told)
        }
        Fact::Asking { .. } => ("asking".to_owned(), asking(fact)),
    }
}

fn said(fact: &Fact<'_>) -> String {
    let Fact::Observation {
        status,
        amount_reported,
        currency_reported,
        updated_at,
        differs,
        decision,
        sentence,
        ..
    } = fact
    else {
        return String::new();
    };
    let made = Decision::parse(decision).map_or(*decision, phrase);
    let Some(status) = status else {
        // A person's hand: no word of the service, so no time of its either.
        return (*sentence).to_owned();
    };
    let sum: Vec<&str> = [*amount_reported, *currency_reported]
        .into_iter()
        .flatten()
        .collect();
    let mut told = word(status).into_owned();
    if !sum.is_empty() {
        told = format!("{told}, {}", sum.join(" "));
    }
    if differs.is_some() {
        told.push_str(" (not as agreed)");
    }
    told = match updated_at {
        Some(at) => format!("{told}, as of {at}"),
        None => format!("{told}, without a time to order it by"),
    };
    format!("{told}: {made}; {sentence}")
}

/// What was decided, in place of the ledger's word.
const fn phrase(decision: Decision) -> &'static str {
    match decision {
        Decision::Advance => "taken over",
        Decision::AdvanceAgreed => "taken over after two answers",
        Decision::Repeat => "a repeat",
        Decision::Confirmed => "confirmed",
        Decision::Stale => "kept in the history",
        Decision::Doubt => "doubted, the service is asked",
        Decision::Pending => "to be asked a second time",
        Decision::Overtaken => "dropped, to be asked again",
        Decision::NotThisInvoice => "put aside",
        Decision::OtherId => "put aside, a person must look",
        Decision::Operator => "done by a person",
        Decision::Reassessed => "judged again",
    }
}

fn changed(fact: &Fact<'_>) -> String {
    let Fact::Event {
        kind,
        status,
        previous_status,
        outcome,
        previous_outcome,
        rewound,
        source,
        ..
    } = fact
    else {
        return String::new();
    };
    let step = |before: &str, after: &str| {
        if before == after || before.is_empty() {
            after.to_owned()
        } else {
            format!("{before} -> {after}")
        }
    };
    let outcome = step(previous_outcome, outcome);
    let mut told = format!("{kind}: outcome {outcome}");
    if let Some(status) = status {
        let status = step(&word(previous_status.unwrap_or_default()), &word(status));
        told = format!("{told}, status {status}");
    }
    if let Some(source) = source {
        told = format!("{told}, by {source}");
    }
    if *rewound {
        told.push_str(", rewound");
    }
    told
}

fn owed(fact: &Fact<'_>) -> String {
    let Fact::Delivery {
        seq,
        hook,
        state,
        attempts,
        next_at,
        held_why,
        replay,
        abandoned_by,
        behind_seq,
        ..
    } = fact
    else {
        return String::new();
    };
    let plural = if *attempts == 1 { "" } else { "s" };
    let by = abandoned_by.map_or_else(String::new, |by| format!(" by {by}"));
    let mut told = format!("event {seq} to `{hook}`: {state}{by}, {attempts} attempt{plural}");
    if *replay {
        told.push_str(", a replay");
    }
    match (behind_seq, next_at) {
        (Some(seq), _) => told = format!("{told}, next after event {seq}"),
        (None, Some(at)) => told = format!("{told}, next at {at}"),
        (None, None) => {}
    }
    if let Some(why) = held_why {
        told = format!("{told}, held for {}", held_for(why));
    }
    told
}

fn asking(fact: &Fact<'_>) -> String {
    let Fact::Asking {
        asked_at,
        unanswered,
        due_at,
    } = fact
    else {
        return String::new();
    };
    let mut told = match asked_at {
        Some(at) => format!("asked last at {at}"),
        None => "never asked".to_owned(),
    };
    told = match unanswered {
        0 => told,
        1 => format!("{told}, 1 question without an answer"),
        count => format!("{told}, {count} questions without an answer"),
    };
    match due_at {
        Some(at) => format!("{told}, due next at {at}"),
        None => format!("{told}, not due any more"),
    }
}

/// Rows with the lines of one stream, each led by its name.
fn written(name: &str, stream: Option<&Written<'_>>, wish: StoryOutput) -> Vec<[String; 3]> {
    let row = |text: &str| {
        // A tab in a cell would be shown as its escape.
        let text = format!("  {name}: {}", text.replace('\t', "    "));
        [String::new(), String::new(), text.trim_end().to_owned()]
    };
    let text = match stream {
        None => return Vec::new(),
        Some(Written::Text(text)) => *text,
        Some(Written::Base64(_)) => {
            return vec![row("no text; `--json` gives it in base64")];
        }
    };
    let mut lines = text.lines();
    let mut rows: Vec<[String; 3]> = match wish {
        StoryOutput::Full => lines.by_ref().map(row).collect(),
        StoryOutput::Beginning => lines.by_ref().take(OUTPUT_LINES).map(row).collect(),
    };
    if lines.next().is_some() {
        rows.push(row("...; `--full` shows all"));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_is_told_with_its_reason() {
        let mut fact = Fact::Observation {
            source: "notification",
            status: Some("paid"),
            amount_reported: Some("500"),
            currency_reported: Some("RUB"),
            updated_at: Some("2026-11-28T10:02:00.004Z".to_owned()),
            differs: Some("500 RUB"),
            decision: "doubt",
            why: "sum_differs",
            sentence: "amount or currency differ from what was agreed",
        };
        assert_eq!(
            told(&fact).1,
            "paid, 500 RUB (not as agreed), as of 2026-11-28T10:02:00.004Z: doubted, the service is asked; \
             amount or currency differ from what was agreed"
        );
        if let Fact::Observation {
            amount_reported,
            currency_reported,
            updated_at,
            differs,
            decision,
            ..
        } = &mut fact
        {
            (*amount_reported, *currency_reported, *updated_at) = (None, None, None);
            (*differs, *decision) = (None, "newer_word");
        }
        assert_eq!(
            told(&fact).1,
            "paid, without a time to order it by: newer_word; amount or currency differ from what was agreed"
        );
    }

    #[test]
    fn what_nobody_sent_is_not_told_as_sent() {
        let judged = Fact::Observation {
            source: "notification",
            status: Some("paid"),
            amount_reported: None,
            currency_reported: None,
            updated_at: Some("2026-11-28T10:02:00.004Z".to_owned()),
            differs: None,
            decision: "reassessed",
            why: "lists_changed",
            sentence: "the lists under `[statuses]` changed",
        };
        let (what, details) = told(&judged);
        assert_eq!(what, "lists");
        assert!(details.ends_with("judged again; the lists under `[statuses]` changed"));
        let tracked = Fact::Create {
            amount: "5",
            currency: "RUB",
            method: "",
            mode: "unknown",
            opening: "tracked",
            opening_note: None,
        };
        let expected = ("track", "5 RUB; opened by the shop's own code");
        let (what, details) = told(&tracked);
        assert_eq!((what.as_str(), details.as_str()), expected);
    }

    #[test]
    fn an_output_is_shown_line_by_line_and_cut() {
        let five = Written::new(b"1\n\t2\n3\n4\n5\n");
        let shown = |wish| -> Vec<String> {
            let rows = written("stdout", Some(&five), wish);
            rows.into_iter().map(|[_, _, text]| text).collect()
        };
        assert_eq!(
            shown(StoryOutput::Beginning),
            [
                "  stdout: 1",
                "  stdout:     2",
                "  stdout: 3",
                "  stdout: ...; `--full` shows all"
            ]
        );
        assert_eq!(shown(StoryOutput::Full).len(), 5);
        assert!(written("stdout", Some(&Written::new(b"")), StoryOutput::Full).is_empty());
    }
}
