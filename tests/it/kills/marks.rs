//! What the hooks of a kill run noted (`tests/fixtures/marking.sh`), read back as runs.

/// One run of a hook, as its marks tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) hook: String,
    pub(super) order: String,
    pub(super) event: String,
    pub(super) kind: String,
    pub(super) attempt: u32,
    pid: u32,
    /// Number of the line of its start.
    pub(super) began: usize,
    /// Somebody of another run of the same invoice was still there.
    pub(super) found_held: bool,
    /// Number of the line of its end, and the exit code there; a run that was killed has none.
    pub(super) ended: Option<(usize, i32)>,
}

impl Run {
    /// Which delivery it is a run of.
    pub(super) fn delivery(&self) -> (&str, &str) {
        (&self.event, &self.hook)
    }

    /// True when it noted that it did its work.
    pub(super) fn succeeded(&self) -> bool {
        matches!(self.ended, Some((_, 0)))
    }
}

/// All runs, by their start. An error names a line nobody could have written.
pub(super) fn read(text: &str) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let strange = || format!("line {number}: {line}");
        let words: Vec<&str> = line.split(' ').collect();
        let [what, hook, order, event, kind, attempt, pid, last] = words[..] else {
            return Err(strange());
        };
        let attempt = attempt.parse().map_err(|_no_number| strange())?;
        let pid = pid.parse().map_err(|_no_number| strange())?;
        match (what, last) {
            ("S", "free" | "held") => runs.push(Run {
                hook: hook.to_owned(),
                order: order.to_owned(),
                event: event.to_owned(),
                kind: kind.to_owned(),
                attempt,
                pid,
                began: number,
                found_held: last == "held",
                ended: None,
            }),
            ("E", code) => {
                let code = code.parse().map_err(|_no_number| strange())?;
                let run = runs.iter_mut().rev().find(|run| {
                    run.delivery() == (event, hook) && run.attempt == attempt && run.pid == pid
                });
                let run = run.filter(|run| run.ended.is_none()).ok_or_else(strange)?;
                run.ended = Some((number, code));
            }
            _ => return Err(strange()),
        }
    }
    Ok(runs)
}
