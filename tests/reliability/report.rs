//! The table, as it is printed for a person and as the docs have it.

use std::fmt::Write as _;

use crate::list::Row;
use crate::verdict::Verdict;

/// A row that was run.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) row: Row,
    pub(crate) seed: u64,
    pub(crate) date: String,
    /// What came of it, or what ended it.
    pub(crate) verdict: Result<Verdict, String>,
}

/// The heads of the columns.
const HEADS: [&str; 9] = [
    "id", "what", "N", "seed", "date", "figure", "bar", "result", "control",
];

impl Line {
    /// Why it fails; nothing when it holds.
    pub(crate) fn faults(&self) -> Vec<String> {
        match &self.verdict {
            Ok(verdict) => verdict.faults(),
            Err(end) => vec![end.clone()],
        }
    }

    fn cells(&self) -> [String; 9] {
        let faults = self.faults();
        let result = if faults.is_empty() {
            "ok".to_owned()
        } else {
            format!("FAILED: {}", faults.join("; "))
        };
        let (n, figure, control) = match &self.verdict {
            Ok(verdict) => {
                let controls = verdict.controls.iter().map(|(what, found)| {
                    let end = if found.missed.is_empty() {
                        "PASSES"
                    } else {
                        "fails"
                    };
                    format!("{what}: {end} ({})", found.figure)
                });
                let controls: Vec<String> = controls.collect();
                let Verdict { found, .. } = verdict;
                (found.n.clone(), found.figure.clone(), controls.join("; "))
            }
            Err(_) => (String::new(), String::new(), String::new()),
        };
        let Row { id, what, bar } = self.row;
        [
            id.to_owned(),
            what.to_owned(),
            n,
            self.seed.to_string(),
            self.date.clone(),
            figure,
            bar.to_owned(),
            result,
            control,
        ]
    }
}

/// A table of Markdown.
pub(crate) fn markdown(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut add = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        writeln!(text, "| {} |", cells.join(" | ")).expect("a string");
    };
    add(&HEADS.map(str::to_owned));
    add(&HEADS.map(|_| "---".to_owned()));
    for line in lines {
        add(&line.cells());
    }
    text
}

/// For a terminal: a block for each row, since its cells are sentences.
pub(crate) fn block(line: &Line) -> String {
    let mut text = String::new();
    let cells = line.cells();
    for (head, cell) in HEADS.iter().zip(&cells) {
        match *head {
            "id" => write!(text, "{cell:<5}"),
            "what" => writeln!(text, "{cell}"),
            // The same for all, said once.
            "seed" | "date" => Ok(()),
            head => writeln!(text, "     {head:<8} {cell}"),
        }
        .expect("a string");
    }
    text
}
