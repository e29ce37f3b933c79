//! What the demo prints while it plays: a line for each step as soon as it is over, or a JSON line.

use std::io::{self, Write as _};

use tokio::time::Instant;

use super::step::Step;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, escape, print_json, written_out};
use crate::cli::stage::trouble::Trouble;

/// Columns before what came of a step: time, name and the gaps between them.
const INDENT: &str = "                   ";
/// Escape sequences; they reach nothing but a terminal that takes colours.
const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";
const PLAIN: &str = "\u{1b}[0m";

/// A step did not go as promised.
#[derive(Debug, thiserror::Error)]
#[error("the demo stopped at step `{}`", step.name())]
struct StepError {
    step: Step,
    source: Trouble,
}

/// Tells the steps with the time since the demo began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    began: Instant,
    output: Output,
}

impl Timeline {
    /// Begins now.
    pub(super) fn new(output: Output) -> Self {
        Self {
            began: Instant::now(),
            output,
        }
    }

    /// Takes a step, tells what came of it and gives its fruit. `told` puts the fruit in words.
    pub(super) async fn step<T>(
        self,
        step: Step,
        taken: impl Future<Output = Result<T, Trouble>>,
        told: impl FnOnce(&T) -> String,
    ) -> Result<T, Failure> {
        match taken.await {
            Ok(fruit) => {
                self.tell(step, true, &told(&fruit))?;
                Ok(fruit)
            }
            Err(source) => {
                self.tell(step, false, &crate::telemetry::chain(&source))?;
                Err(Failure::new(Exit::Error, StepError { step, source }))
            }
        }
    }

    fn tell(self, step: Step, held: bool, found: &str) -> Result<(), Failure> {
        let at = self.began.elapsed().as_millis();
        if self.output.json() {
            return print_json(&serde_json::json!({
                "step": step.name(),
                "at_ms": u64::try_from(at).unwrap_or(u64::MAX),
                "promised": step.promise(),
                "held": held,
                "found": found.replace('\n', " "),
            }));
        }
        let text = line(at, step, held, found);
        let written = anstream::stdout().lock().write_all(text.as_bytes());
        written_out(written.and_then(|()| io::stdout().flush()))
    }
}

/// One step for people; what came of it may have several lines.
fn line(at_ms: u128, step: Step, held: bool, found: &str) -> String {
    let (seconds, tenths) = (at_ms / 1_000, at_ms % 1_000 / 100);
    let (colour, mark) = if held {
        (GREEN, "")
    } else {
        (RED, "not as promised: ")
    };
    let found: Vec<_> = found.lines().map(escape).collect();
    let found = found.join(&format!("\n{INDENT}"));
    let name = step.name();
    format!("{seconds:>3}.{tenths} s  {colour}{name:<10}{PLAIN}{mark}{found}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_below_each_other_and_strangers_text_is_escaped() {
        let text = line(840, Step::Paid, true, "order\u{1b}[2J\nand more");
        let bare = text.replace(GREEN, "").replace(PLAIN, "");
        assert_eq!(
            bare,
            "  0.8 s  paid      order\\u001b[2J\n                   and more\n"
        );
        let text = line(12_345, Step::Cancelled, false, "no");
        assert!(text.contains("12.3 s") && text.contains("not as promised: no"));
    }
}
