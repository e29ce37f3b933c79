//! What a run of a row found, and whether that is what its bar asks for. A run and its controls are judged by the same
//! function; a control is a daemon, a reader or a listener that is wrong on purpose, and must miss the bar.

use std::fmt::Display;

/// One run, judged.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// How often, of what.
    pub(crate) n: String,
    /// What was measured.
    pub(crate) figure: String,
    /// Where it missed the bar.
    pub(crate) missed: Vec<String>,
    /// Why it says nothing, above all when nothing was injected.
    pub(crate) void: Vec<String>,
}

impl Found {
    pub(crate) fn new(n: impl Display, figure: impl Display) -> Self {
        Self {
            n: n.to_string(),
            figure: figure.to_string(),
            ..Self::default()
        }
    }

    /// With another run of the same row.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            n: format!("{}; {}", self.n, other.n),
            figure: format!("{}; {}", self.figure, other.figure),
            missed: [self.missed, other.missed].concat(),
            void: [self.void, other.void].concat(),
        }
    }

    /// A part of the bar.
    pub(crate) fn bar(mut self, holds: bool, otherwise: impl Display) -> Self {
        if !holds {
            self.missed.push(otherwise.to_string());
        }
        self
    }

    /// What must have happened for the run to say anything.
    pub(crate) fn needs(mut self, happened: bool, otherwise: impl Display) -> Self {
        if !happened {
            self.void.push(otherwise.to_string());
        }
        self
    }
}

/// What came of a row.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) found: Found,
    /// What was wrong on purpose, and what the same look found then.
    pub(crate) controls: Vec<(&'static str, Found)>,
}

impl Verdict {
    pub(crate) fn new(found: Found) -> Self {
        Self {
            found,
            controls: Vec::new(),
        }
    }

    /// With a control.
    pub(crate) fn control(mut self, what: &'static str, found: Found) -> Self {
        self.controls.push((what, found));
        self
    }

    /// Why the row fails; nothing when it holds.
    pub(crate) fn faults(&self) -> Vec<String> {
        let Found { missed, void, .. } = &self.found;
        let mut faults: Vec<String> = missed.iter().chain(void).cloned().collect();
        if self.controls.is_empty() {
            faults.push("it has no control".to_owned());
        }
        for (what, found) in &self.controls {
            faults.extend(
                found
                    .void
                    .iter()
                    .map(|why| format!("control, {what}: {why}")),
            );
            if found.missed.is_empty() {
                faults.push(format!("the control passes: {what}: {}", found.figure));
            }
        }
        faults
    }
}
