//! `tilld hook list`: the hooks as they are configured, which events each would get, and whether their programs can be run
//! by this user, or their posts be signed, now.

use std::error::Error as _;
use std::path::PathBuf;

use serde::Serialize;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, print_json, talk};
use crate::config::{Hook, ON_ABANDONED, Outbox};
use crate::hook::{Selector, Subscription, abandonment};
use crate::invoice::event::EventKind;

/// Flags of `hook list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// One hook in the words of `--json`.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    on: Vec<String>,
    /// The kinds of events it gets, whatever their status.
    events: Vec<&'static str>,
    /// It gets the events of these statuses on top, but for `operator`.
    statuses: Vec<String>,
    run: Vec<String>,
    post: Option<String>,
    secret_file: Option<PathBuf>,
    timeout_s: u64,
    /// Runs at once.
    concurrency: u64,
    /// Runs at once on top of those, for runs that last.
    slow_concurrency: u64,
    usable: bool,
    /// Why it is not usable.
    problem: Option<String>,
}

/// Runs `hook list`.
pub(super) fn run(_args: &Args, context: &Context) -> Result<Exit, Failure> {
    // Whether a program can be run is asked for this user, and the unit's daemon is another one.
    context.check_unsaid()?;
    let settings = context.settings()?;
    let hooks = settings.every_hook();
    let hooks: Vec<Shown> = hooks
        .iter()
        .map(|hook| shown(hook, &settings.outbox))
        .collect();
    if context.output.json() {
        hooks.iter().try_for_each(print_json)?;
        return Ok(Exit::Ok);
    }
    if hooks.is_empty() {
        talk("no hooks are configured: add a `[[hook]]` with `name`, `on` and `run` to the config");
    }
    for (place, hook) in hooks.iter().enumerate() {
        if place > 0 {
            context.output.line("")?;
        }
        context.output.line(&escape(&hook.name))?;
        context.output.pairs(&cells(hook))?;
    }
    Ok(Exit::Ok)
}

fn shown(hook: &Hook, outbox: &Outbox) -> Shown {
    // Name, program and secret file stand beside it: the operating system's reason is enough.
    let problem = hook.check().err().map(|error| match error.source() {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    });
    let selectors = hook.on.iter().filter_map(|word| Selector::parse(word).ok());
    let wants = Subscription {
        hook: hook.name.clone(),
        on: selectors.collect(),
    };
    let events = if hook.name == ON_ABANDONED {
        vec![abandonment::KIND]
    } else {
        wants.kinds().into_iter().map(EventKind::as_str).collect()
    };
    Shown {
        name: hook.name.clone(),
        on: hook.on.clone(),
        events,
        statuses: wants.statuses().into_iter().map(str::to_owned).collect(),
        run: hook.run.clone(),
        post: hook.post.clone(),
        secret_file: hook.secret_file.clone(),
        timeout_s: hook.timeout_s,
        concurrency: hook.concurrency.unwrap_or(outbox.concurrency),
        // A limit of its own is a hard one.
        slow_concurrency: hook.concurrency.map_or(outbox.slow_concurrency, |_| 0),
        usable: problem.is_none(),
        problem,
    }
}

/// One hook for people, short enough for 80 columns as far as it is up to us.
fn cells(hook: &Shown) -> Vec<(&'static str, String)> {
    let (way, to) = match &hook.post {
        Some(address) => ("  posts to", address.clone()),
        None => ("  runs", hook.run.join(" ")),
    };
    let places = match hook.slow_concurrency {
        0 => hook.concurrency.to_string(),
        slow => format!("{}, and {slow} more for runs that last", hook.concurrency),
    };
    let usable = match &hook.problem {
        None => "yes".to_owned(),
        Some(problem) if hook.secret_file.is_some() => format!("no, its secret: {problem}"),
        Some(problem) => format!("no: {problem}"),
    };
    let mut cells = vec![
        ("  is told of", told_of(&hook.events, &hook.statuses)),
        (way, to),
    ];
    if let Some(file) = &hook.secret_file {
        cells.push(("  signs with", file.display().to_string()));
    }
    cells.extend([
        ("  timeout", format!("{} s", hook.timeout_s)),
        ("  at once", places),
        ("  usable", usable),
    ]);
    cells
}

/// What a hook is told of, in plain words.
fn told_of(events: &[&str], statuses: &[String]) -> String {
    if events == [abandonment::KIND] {
        return "what another hook has given up".to_owned();
    }
    if events.len() == EventKind::ALL.len() {
        return "every event".to_owned();
    }
    let (paid, late) = (EventKind::Paid.as_str(), EventKind::Late.as_str());
    let mut parts = Vec::new();
    if !events.is_empty() {
        let once = match events {
            [one] if *one == late => "; once in an invoice's life",
            [one, other] if *one == paid && *other == late => "; once in an invoice's life",
            all if all.contains(&paid) => "; paid or late once in an invoice's life",
            all if all.contains(&late) => "; late once in an invoice's life",
            _ => "",
        };
        parts.push(format!("{}{once}", events.join(", ")));
    }
    parts.extend(
        statuses
            .iter()
            .map(|name| format!("any event with status {name}")),
    );
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hook_is_told_of_is_said_in_plain_words() {
        let words = |on: &[&str]| {
            let hook = Hook {
                name: "fulfil".to_owned(),
                on: on.iter().map(|&word| word.to_owned()).collect(),
                ..Hook::default()
            };
            let shown = shown(&hook, &Outbox::default());
            told_of(&shown.events, &shown.statuses)
        };
        for (on, wanted) in [
            (&["paid"][..], "paid, late; once in an invoice's life"),
            (&["late", "paid"], "paid, late; once in an invoice's life"),
            (&["late"], "late; once in an invoice's life"),
            (
                &["paid", "failed"],
                "paid, late, failed; paid or late once in an invoice's life",
            ),
            (
                &["paid_again", "late"],
                "paid_again, late; late once in an invoice's life",
            ),
            (&["failed", "reversed"], "failed, reversed"),
            (&["status:done"], "any event with status done"),
            (
                &["mismatch", "status:done"],
                "mismatch; any event with status done",
            ),
            (&["*"], "every event"),
            (&["status:done", "*"], "every event"),
        ] {
            assert_eq!(words(on), wanted, "{on:?}");
        }
    }
}
