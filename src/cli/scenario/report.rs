//! What is said at the end of a run: the rows of what was expected and seen, the verdict, the seed and the line that plays it
//! again. Fits into 80 columns; what does not is told in full beneath.

use serde_json::{Value, json};

use super::draw::Asked;
use super::seeds::Many;
use super::step::Step;
use crate::cli::failure::Failure;
use crate::cli::output::{Output, escape, print, print_json};

/// Widest cells, in characters: with the gaps and the verdict they make less than 80 columns.
const WIDEST: [usize; 3] = [22, 20, 20];

/// Something that was expected.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Of which step: its line, where it has one, and its number.
    pub(super) place: Option<(Option<usize>, usize)>,
    /// What it is about.
    pub(super) what: String,
    /// What was expected.
    pub(super) expected: String,
    /// What was seen.
    pub(super) seen: String,
}

impl Row {
    /// A row of no step.
    pub(super) fn new(
        what: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) -> Self {
        Self {
            place: None,
            what: what.into(),
            expected: expected.into(),
            seen: seen.into(),
        }
    }

    /// The same, of a step.
    pub(super) fn of(self, step: &Step) -> Self {
        Self {
            place: Some((step.line, step.number)),
            ..self
        }
    }

    /// Whether what was seen is what was expected.
    pub(super) fn holds(&self) -> bool {
        self.expected == self.seen
    }

    fn verdict(&self) -> &'static str {
        if self.holds() { "ok" } else { "not ok" }
    }

    /// Where it stands in the file: the line, or the step where the line is not known.
    fn short_place(&self) -> String {
        match self.place {
            Some((Some(line), _)) => line.to_string(),
            Some((None, step)) => format!("#{step}"),
            None => "end".to_owned(),
        }
    }

    fn place_in_words(&self) -> String {
        match self.place {
            Some((Some(line), step)) => format!("line {line} (step {step})"),
            Some((None, step)) => format!("step {step}"),
            None => "at the end".to_owned(),
        }
    }

    /// For the trace.
    pub(super) fn line(&self) -> String {
        let Self {
            what,
            expected,
            seen,
            ..
        } = self;
        if self.holds() {
            format!("  {what}: {seen}")
        } else {
            format!("  {what}: expected {expected}, seen {}", bare(seen))
        }
    }

    /// What went otherwise, in full.
    pub(super) fn trouble(&self) -> String {
        format!(
            "{}: {}: expected {}, seen {}",
            self.place_in_words(),
            self.what,
            self.expected,
            self.seen
        )
    }

    fn json(&self) -> Value {
        json!({
            "line": self.place.and_then(|(line, _)| line),
            "step": self.place.map(|(_, step)| step),
            "what": self.what,
            "expected": self.expected,
            "seen": self.seen,
            "ok": self.holds(),
        })
    }
}

/// A run that came to its end.
#[derive(Clone, Debug)]
pub(super) struct Played {
    /// The seed it was drawn from.
    pub(super) seed: u64,
    /// What was expected and seen.
    pub(super) rows: Vec<Row>,
    /// What the script that is judged said last, harmless and without secrets, where it does not hold.
    pub(super) words: Vec<String>,
    /// What was done, drawn and seen, without anything that is an accident.
    pub(super) trace: Vec<String>,
    /// What it went through, in a line.
    pub(super) went_through: Option<String>,
}

impl Played {
    /// Whether all was as expected.
    pub(super) fn holds(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(Row::holds)
    }

    fn verdict(&self) -> &'static str {
        if self.holds() { "ok" } else { "not ok" }
    }
}

/// What a run is known by.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The scenario as it was named.
    pub(super) name: String,
    /// The rest of the line that plays it again, the seed apart.
    pub(super) flags: String,
}

impl Known {
    /// The line that plays it again.
    fn again(&self, seed: u64) -> String {
        let Self { name, flags } = self;
        format!("tilld sandbox run {name} --seed {seed}{flags}")
    }
}

/// An invoice as it was asked for, in words.
pub(super) fn opened(asked: &Asked) -> String {
    let mode = if asked.is_redirect { "redirect" } else { "h2h" };
    format!(
        "{} {} RUB {} {mode}",
        asked.order, asked.amount, asked.method
    )
}

/// Says how one run ended.
pub(super) fn one(
    output: Output,
    known: &Known,
    played: &Played,
    with_trace: bool,
) -> Result<(), Failure> {
    if output.json() {
        let rows: Vec<Value> = played.rows.iter().map(Row::json).collect();
        let mut told = json!({
            "scenario": known.name, "seed": played.seed, "ok": played.holds(), "rows": rows,
            "again": known.again(played.seed), "went_through": played.went_through,
        });
        if with_trace && let Some(told) = told.as_object_mut() {
            told.insert("trace".to_owned(), played.trace.clone().into());
        }
        if !played.words.is_empty()
            && let Some(told) = told.as_object_mut()
        {
            told.insert("script".to_owned(), played.words.clone().into());
        }
        return print_json(&told);
    }
    if with_trace {
        let mut text = String::new();
        for line in &played.trace {
            text.push_str(&escape(line));
            text.push('\n');
        }
        print(&format!("{text}\n"))?;
    }
    let cells = |row: &Row| {
        let [what, expected, seen] = WIDEST;
        [
            row.short_place(),
            cut(&row.what, what),
            cut(&row.expected, expected),
            cut(&row.seen, seen),
            row.verdict().to_owned(),
        ]
    };
    let rows: Vec<[String; 5]> = played.rows.iter().map(cells).collect();
    let headings = ["LINE", "WHAT", "EXPECTED", "SEEN", ""];
    output.unwrapped().table(Some(headings), &rows)?;
    output.line("")?;
    // How much went wrong is a matter of the moment, and what stands under a trace is as it was the last time.
    if let Some(told) = &played.went_through
        && !with_trace
    {
        output.line(told)?;
    }
    for row in played.rows.iter().filter(|row| !row.holds()) {
        output.line(&format!("not ok: {}", escape(&row.trouble())))?;
    }
    for line in &played.words {
        output.line(line)?;
    }
    let (name, seed) = (escape(&known.name), played.seed);
    output.line(&format!("{}: {name} with seed {seed}", played.verdict()))?;
    let more = if played.holds() {
        ""
    } else {
        "  # --dir DIR keeps config, log and ledger"
    };
    output.line(&format!("again: {}{more}", escape(&known.again(seed))))
}

/// Says how many runs ended.
pub(super) fn many(output: Output, known: &Known, all: &Many, took_s: u64) -> Result<(), Failure> {
    let Many {
        count,
        failed,
        cut_short,
    } = all;
    // Of none at all there is nothing to say but why.
    if *count == 0 && cut_short.is_some() {
        return Ok(());
    }
    let is_good = failed.is_empty() && cut_short.is_none();
    let good = count - u64::try_from(failed.len()).unwrap_or(*count);
    if output.json() {
        let failed: Vec<Value> = failed
            .iter()
            .map(|played| {
                let troubles = played.rows.iter().filter(|row| !row.holds());
                let rows: Vec<Value> = troubles.map(Row::json).collect();
                json!({ "seed": played.seed, "rows": rows, "again": known.again(played.seed) })
            })
            .collect();
        return print_json(&json!({
            "scenario": known.name, "seeds": count, "ok": is_good, "held": good,
            "failed": failed, "took_s": took_s,
        }));
    }
    for played in failed {
        for row in played.rows.iter().filter(|row| !row.holds()) {
            let trouble = row.trouble();
            output.line(&format!(
                "not ok: seed {}: {}",
                played.seed,
                escape(&trouble)
            ))?;
        }
        for line in &played.words {
            output.line(line)?;
        }
        output.line(&format!("again: {}", escape(&known.again(played.seed))))?;
    }
    let verdict = if is_good { "ok" } else { "not ok" };
    let name = escape(&known.name);
    output.line(&format!(
        "{verdict}: {name}, {good} of {count} seeds hold, in {took_s} s"
    ))
}

/// A text without what is an accident of the run: addresses, paths and numbers of processes.
fn bare(text: &str) -> String {
    let mut last = "";
    let words = text.split(' ').map(|word| {
        let inner = word.trim_matches(|c: char| "`'\"(),;:.".contains(c));
        let is_number = !inner.is_empty() && inner.chars().all(|c| c.is_ascii_digit());
        let told = if inner.contains("://") || inner.contains("127.0.0.1") {
            word.replace(inner, "ADDRESS")
        } else if inner.starts_with('/') && inner.len() > 1 {
            word.replace(inner, "PATH")
        } else if is_number && ["pid", "process"].contains(&last) {
            word.replace(inner, "N")
        } else {
            word.to_owned()
        };
        last = inner;
        told
    });
    words.collect::<Vec<String>>().join(" ")
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let short: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{short}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_when_what_was_seen_is_what_was_expected() {
        let row = Row::new("A-1 outcome", "paid", "open");
        assert!(!row.holds());
        assert_eq!(
            row.trouble(),
            "at the end: A-1 outcome: expected paid, seen open"
        );
        assert!(Row::new("x", "1", "1").holds());
        let nothing = Played {
            seed: 1,
            rows: Vec::new(),
            words: Vec::new(),
            trace: Vec::new(),
            went_through: None,
        };
        assert!(!nothing.holds(), "nothing was looked at");
    }

    #[test]
    fn a_trace_has_no_accidents() {
        for (text, wanted) in [
            (
                "the page `http://127.0.0.1:4/pay/x` does not",
                "the page `ADDRESS` does not",
            ),
            (
                "could not use `/tmp/a b`: denied",
                "could not use `PATH b`: denied",
            ),
            (
                "held by process 4711, exit 11",
                "held by process N, exit 11",
            ),
            ("expected 1 / 2", "expected 1 / 2"),
        ] {
            assert_eq!(bare(text), wanted);
        }
    }

    #[test]
    fn long_cells_are_cut_by_characters() {
        assert_eq!(cut("заявка оплачена", 7), "заявка…");
        assert_eq!(cut("short", 7), "short");
    }
}
