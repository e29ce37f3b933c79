//! Instructions per notification, as `cargo bench --bench instructions` counted and recorded them. Counting takes valgrind
//! and minutes, and gives the same each time: here the recorded figure only stands beside the others.

use std::fs;

use super::Part;
use crate::options::Options;
use crate::report::{Bar, Report};

/// The part.
pub(crate) const PART: Part = Part {
    name: "instructions",
    what: "user instructions per notification, as recorded",
    run,
};

/// The recorded figure.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");
/// What one may take, from head and body to the durable commit.
const MOST: f64 = 50_000.0;

fn run(_options: &Options, report: &mut Report) {
    let Ok(text) = fs::read_to_string(RECORDED) else {
        let note = "instructions per notification: none are recorded in benches/instructions.txt";
        report.notes.push(note.to_owned());
        return;
    };
    let recorded = text.trim().parse().expect("a number");
    let (key, what) = (
        "instructions",
        "user instructions per notification, recorded",
    );
    report.add(key, what, "", recorded);
    report.bar(key, Bar::AtMost(MOST));
}
