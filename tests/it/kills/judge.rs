//! What must hold of the runs of hooks however often the daemon was killed: pure, so that each promise can be seen broken.
//!
//! What a kill permits: a claim is stored before its program runs, so a number may be missing in the script's log where the
//! ledger says that the attempt was interrupted (or not started); and a program may do its work without anybody storing
//! that, so a delivery may succeed more than once if all but its last success stand as interrupted. Nothing else.

use std::collections::{BTreeMap, BTreeSet};

use super::marks::Run;

/// A delivery as the ledger has it in the end.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    pub(super) hook: String,
    pub(super) order: String,
    pub(super) event: String,
    pub(super) seq: u64,
    pub(super) state: String,
    /// Number and result, by number.
    pub(super) attempts: Vec<(u32, String)>,
}

/// What was found, each list with a line for everything that is wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(super) runs: usize,
    /// Successes beyond the first of their delivery, each with its reason: allowed.
    pub(super) doubled: usize,
    /// A paid invoice that a hook never did its work for, or a delivery that is not done.
    pub(super) missing: Vec<String>,
    /// Two runs of one invoice at once.
    pub(super) overlapping: Vec<String>,
    /// A hook that was told of an older event after a newer one.
    pub(super) out_of_order: Vec<String>,
    /// Attempts that are not numbered 1, 2, 3, or of which log and ledger tell different things.
    pub(super) gaps: Vec<String>,
    /// One payment under several event ids.
    pub(super) ids: Vec<String>,
    /// A second success although the first was stored.
    pub(super) needless: Vec<String>,
}

impl Verdict {
    /// How many are missing, out of order, and beside another.
    pub(crate) fn counts(&self) -> [usize; 3] {
        [&self.missing, &self.out_of_order, &self.overlapping].map(Vec::len)
    }

    /// How often a script ran, and how often its success was doubled for a reason.
    pub(crate) fn runs_and_doubled(&self) -> [usize; 2] {
        [self.runs, self.doubled]
    }

    /// Everything that is wrong.
    pub(crate) fn wrong(&self) -> Vec<&String> {
        let lists = [
            &self.missing,
            &self.overlapping,
            &self.out_of_order,
            &self.gaps,
            &self.ids,
            &self.needless,
        ];
        lists.into_iter().flatten().collect()
    }
}

/// Judges the runs beside what the ledger says, when all is quiet. `paid` are the orders the service says are paid, and
/// `hooks` those that want to know.
pub(super) fn judge(runs: &[Run], owed: &[Owed], paid: &[String], hooks: &[&str]) -> Verdict {
    let mut verdict = Verdict {
        runs: runs.len(),
        ..Verdict::default()
    };
    missing(runs, owed, paid, hooks, &mut verdict);
    overlapping(runs, &mut verdict);
    out_of_order(runs, owed, &mut verdict);
    one_id(runs, &mut verdict);
    let mut by_delivery: BTreeMap<(&str, &str), Vec<&Run>> = BTreeMap::new();
    for run in runs {
        by_delivery.entry(run.delivery()).or_default().push(run);
    }
    for delivery in owed {
        let own = by_delivery.remove(&(&*delivery.event, &*delivery.hook));
        attempts(delivery, &own.unwrap_or_default(), &mut verdict);
    }
    let strangers = by_delivery.into_values().flatten();
    let strangers = strangers.map(|run| format!("owed to nobody: {run:?}"));
    verdict.gaps.extend(strangers);
    verdict
}

fn missing(runs: &[Run], owed: &[Owed], paid: &[String], hooks: &[&str], verdict: &mut Verdict) {
    let told: BTreeSet<(&str, &str)> = runs
        .iter()
        .filter(|run| run.kind == "paid" && run.succeeded())
        .map(|run| (&*run.order, &*run.hook))
        .collect();
    for order in paid {
        for hook in hooks {
            if !told.contains(&(order.as_str(), hook)) {
                let line = format!("`{hook}` never did its work for {order}");
                verdict.missing.push(line);
            }
        }
    }
    let left = owed.iter().filter(|delivery| delivery.state != "done");
    verdict.missing.extend(left.map(|delivery| {
        let Owed { event, hook, .. } = delivery;
        format!(
            "{event} of {hook}, order {}, is {}",
            delivery.order, delivery.state
        )
    }));
}

fn overlapping(runs: &[Run], verdict: &mut Verdict) {
    for run in runs {
        if run.found_held {
            verdict.overlapping.push(format!("beside another: {run:?}"));
        }
        let Some((end, _)) = run.ended else { continue };
        let within =
            |other: &&Run| other.order == run.order && (run.began + 1..end).contains(&other.began);
        let beside = runs.iter().filter(within);
        let lines = beside.map(|other| format!("within {run:?}: {other:?}"));
        verdict.overlapping.extend(lines);
    }
}

fn out_of_order(runs: &[Run], owed: &[Owed], verdict: &mut Verdict) {
    let seqs: BTreeMap<&str, u64> = owed.iter().map(|owed| (&*owed.event, owed.seq)).collect();
    let mut newest: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for run in runs {
        let seq = seqs.get(&*run.event).copied().unwrap_or_default();
        let newest = newest.entry((&run.order, &run.hook)).or_default();
        if seq < *newest {
            verdict
                .out_of_order
                .push(format!("after {newest}: {run:?}"));
        }
        *newest = seq.max(*newest);
    }
}

fn one_id(runs: &[Run], verdict: &mut Verdict) {
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.kind == "paid") {
        ids.entry(&run.order).or_default().insert(&run.event);
    }
    let several = ids.into_iter().filter(|(_, ids)| ids.len() > 1);
    let lines = several.map(|(order, ids)| format!("{order} was paid as {ids:?}"));
    verdict.ids.extend(lines);
}

/// The attempts of one delivery: `runs` in the script's log, by their start, beside the ledger's.
fn attempts(delivery: &Owed, runs: &[&Run], verdict: &mut Verdict) {
    let Owed { hook, event, .. } = delivery;
    let of = |what: &str| format!("{event} of {hook}: {what}");
    let numbers: Vec<u32> = delivery
        .attempts
        .iter()
        .map(|(number, _)| *number)
        .collect();
    let gapless: Vec<u32> = (1..).take(numbers.len()).collect();
    if numbers != gapless {
        verdict
            .gaps
            .push(of(&format!("the ledger has {numbers:?}")));
    }
    let logged: Vec<u32> = runs.iter().map(|run| run.attempt).collect();
    if !logged.is_sorted_by(|one, next| one < next) {
        verdict
            .gaps
            .push(of(&format!("the script was run as {logged:?}")));
    }
    let unknown = logged.iter().filter(|number| !numbers.contains(number));
    let unknown = unknown.map(|number| of(&format!("run as {number}, which the ledger has not")));
    verdict.gaps.extend(unknown);
    for (number, result) in &delivery.attempts {
        let run = runs.iter().find(|run| run.attempt == *number);
        let ended = run.and_then(|run| run.ended).map(|(_, code)| code);
        let agree = match (run, result.strip_prefix("exit ")) {
            (_, Some(code)) => ended.is_some() && code.parse().ok() == ended,
            // Killed by a signal of its own, or by tilld when its time was over: it noted no end, or had noted it.
            (Some(_), None) => true,
            (None, None) => result == "interrupted" || result.starts_with("not started"),
        };
        if !agree {
            let line = format!("attempt {number} is `{result}`, and its marks say {run:?}");
            verdict.gaps.push(of(&line));
        }
    }
    let mut successes: Vec<&&Run> = runs.iter().filter(|run| run.succeeded()).collect();
    successes.pop();
    verdict.doubled += successes.len();
    for run in successes {
        let stored = delivery.attempts.iter().find(|(n, _)| *n == run.attempt);
        if stored.is_none_or(|(_, result)| result == "exit 0") {
            verdict
                .needless
                .push(of(&format!("done in attempt {}", run.attempt)));
        }
    }
}
