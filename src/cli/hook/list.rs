//! `tilld hook list`: the hooks as they are configured, and whether this user can run their programs, or
//! sign what they post, now.

use std::error::Error as _;

use serde::Serialize;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{print_json, talk};
use crate::config::Hook;

/// Flags of `hook list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// One hook in the words of `--json`.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    name: &'a str,
    on: &'a [String],
    run: &'a [String],
    /// Only of a hook that posts.
    #[serde(skip_serializing_if = "Option::is_none")]
    post: Option<&'a str>,
    timeout_s: u64,
    usable: bool,
    /// Why it is not usable.
    problem: Option<String>,
}

/// Runs `hook list`.
pub(super) fn run(_args: &Args, context: &Context) -> Result<Exit, Failure> {
    let hooks: Vec<Shown<'_>> = context.settings()?.hook.iter().map(shown).collect();
    if context.output.json() {
        hooks.iter().try_for_each(print_json)?;
        return Ok(Exit::Ok);
    }
    if hooks.is_empty() {
        talk("no hooks are configured: add a `[[hook]]` with `name`, `on` and `run` to the config");
        return Ok(Exit::Ok);
    }
    let cells: Vec<[String; 5]> = hooks
        .iter()
        .map(|hook| {
            let usable = hook.problem.as_ref();
            [
                hook.name.to_owned(),
                hook.on.join(" "),
                // An address is told from a path by how it begins.
                hook.post
                    .map(str::to_owned)
                    .or_else(|| hook.run.first().cloned())
                    .unwrap_or_default(),
                format!("{} s", hook.timeout_s),
                usable.map_or_else(|| "yes".to_owned(), |problem| format!("no: {problem}")),
            ]
        })
        .collect();
    let headings = ["NAME", "ON", "RUN OR POST", "TIMEOUT", "USABLE"];
    context.output.table(Some(headings), &cells)?;
    Ok(Exit::Ok)
}

fn shown(hook: &Hook) -> Shown<'_> {
    // Name and program or file stand in their own columns: the operating system's reason is enough.
    let problem = hook.check().err().map(|error| match error.source() {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    });
    Shown {
        name: &hook.name,
        on: &hook.on,
        run: &hook.run,
        post: hook.post.as_deref(),
        timeout_s: hook.timeout_s,
        usable: problem.is_none(),
        problem,
    }
}
