//! `tilld hook test`: one run of a hook outside the ledger. It shows everything the program saw and said, and what the
//! daemon would do next. The program runs as it does under the daemon, but as the user of this command.

use std::env;
use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::super::context::Context;
use super::super::delivery::{Written, print_written};
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, print_json, talk};
use super::super::owner;
use super::told::{self, Told};
use crate::config;
use crate::daemon::{self, plain};
use crate::hook::payload::{self, Facts};
use crate::hook::process::{Finished, Launched, Program, Surroundings, environment, launch};
use crate::outbox::retry;
use crate::shutdown::Shutdown;

/// Flags of `hook test`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The hook's name in the config
    #[arg(value_name = "NAME")]
    name: String,
    /// Tell it the newest event of this invoice that it wants, as a replay: by the order id, the service's id or the ref
    #[arg(
        long,
        value_name = "ORDER-OR-ID",
        alias = "order",
        conflicts_with = "sample"
    )]
    invoice: Option<String>,
    /// Tell it a sample of an event that it wants, as without any flag
    #[arg(long)]
    sample: bool,
}

/// One run that is over, with what it saw.
struct Ran {
    finished: Finished,
    variables: Vec<(&'static str, OsString)>,
    took: Duration,
}

/// Runs `hook test`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let settings = context.settings()?;
    let hooks = settings.every_hook();
    let hook = hooks.iter().find(|hook| hook.name == args.name);
    let hook = hook.ok_or_else(|| told::unknown(&args.name, &hooks))?;
    hook.check()?;
    let state_dir = context.state_dir()?;
    let outbox = plain::outbox_settings(settings, &state_dir);
    let program = outbox.hooks.into_iter().find(|one| one.name == hook.name);
    let program = program.expect("a checked hook has a program").program;
    let told = match &args.invoice {
        Some(name) => told::newest(hook, name, &context).await?,
        None => told::sample(hook),
    };
    if let Err(other) = owner::check(&state_dir) {
        talk(&format!(
            "warning: {other}; the daemon's hooks run as its owner"
        ));
    }
    announce(hook, &told);
    let around = Surroundings {
        // The daemon's own directory is cleared by the daemon when it starts.
        work_dir: env::temp_dir(),
        ..outbox.surroundings
    };
    let ran = run_program(&program, &around, &told.facts).await?;
    let random = 0;
    let plan = retry::plan(
        &ran.finished.ending,
        retry::Count::default(),
        &outbox.schedule,
        random,
        0,
    );
    if context.output.json() {
        print_json(&report(&told, &ran, plan))?;
    } else {
        show(&context, &told, &ran, plan)?;
    }
    Ok(match plan {
        retry::Plan::Done => Exit::Ok,
        retry::Plan::Retry { .. }
        | retry::Plan::Postpone { .. }
        | retry::Plan::Abandon
        | retry::Plan::Interrupted => Exit::Error,
    })
}

/// Says before the run what is going to happen: the program is real.
fn announce(hook: &config::Hook, told: &Told) {
    let facts = &told.facts;
    if told.sample {
        talk(&format!(
            "`{}` runs once with a SAMPLE of a `{}` event; nothing is recorded",
            hook.name,
            facts.word()
        ));
    } else {
        talk(&format!(
            "`{}` runs once with the `{}` event {} of order {}, as a replay; nothing is recorded",
            hook.name,
            facts.word(),
            facts.event_id,
            escape(&facts.order_id)
        ));
    }
}

/// Runs the program as the daemon would. A signal to this command ends it with all it started.
async fn run_program(
    program: &Program,
    around: &Surroundings,
    facts: &Facts,
) -> Result<Ran, Failure> {
    let handler = |kind| {
        signal(kind).map_err(|error| {
            Failure::new(Exit::Error, error).context("could not listen for signals")
        })
    };
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    daemon::set_umask();
    let launched: Launched = launch(program, around, facts)
        .await
        .map_err(|error| Failure::new(Exit::Error, error).context("could not run the hook"))?;
    let variables = environment(around, facts, &launched.payload_file());
    let (stop, began) = (Shutdown::new(), Instant::now());
    let run = launched.run(&stop);
    tokio::pin!(run);
    let finished = tokio::select! {
        finished = &mut run => finished,
        _signal = async { tokio::select! {
            signal = interrupt.recv() => signal,
            signal = terminate.recv() => signal,
        }} => {
            stop.request();
            run.await
        }
    };
    Ok(Ran {
        finished,
        variables,
        took: began.elapsed(),
    })
}

/// The run in the words of `--json`.
fn report(told: &Told, ran: &Ran, plan: retry::Plan) -> Value {
    let document = payload::document(&told.facts);
    let document: Value = serde_json::from_str(&document).expect("the document is JSON");
    let variables: Map<String, Value> = ran
        .variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_string_lossy().into()))
        .collect();
    let (next, next_after_ms) = match plan {
        retry::Plan::Done => ("done", None),
        retry::Plan::Retry { at_ms } | retry::Plan::Postpone { at_ms } => ("retry", Some(at_ms)),
        retry::Plan::Abandon => ("abandon", None),
        retry::Plan::Interrupted => ("interrupted", None),
    };
    json!({
        "hook": told.facts.hook,
        "sample": told.sample,
        "document": document,
        "variables": variables,
        "result": ran.finished.ending.to_string(),
        "took_ms": u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
        "stdout": Written::new(&ran.finished.stdout),
        "stderr": Written::new(&ran.finished.stderr),
        "next": next,
        "next_after_ms": next_after_ms,
    })
}

/// The run for people.
fn show(context: &Context, told: &Told, ran: &Ran, plan: retry::Plan) -> Result<(), Failure> {
    let output = context.output;
    output.line("It saw, on standard input and in payload.json:")?;
    let document = payload::document(&told.facts);
    output.line(&format!("  {}", escape(document.trim_end())))?;
    output.line("\nIts environment:")?;
    let variables: Vec<(String, String)> = ran
        .variables
        .iter()
        .map(|(name, value)| (format!("  {name}"), value.to_string_lossy().into_owned()))
        .collect();
    output.unwrapped().pairs(&variables)?;
    output.line("\nIt answered:")?;
    let next = match plan {
        retry::Plan::Done => "call the delivery done".to_owned(),
        retry::Plan::Retry { at_ms } | retry::Plan::Postpone { at_ms } => {
            let gap = Duration::from_millis(at_ms.unsigned_abs());
            format!("run it again after {gap:?}")
        }
        retry::Plan::Abandon => "give the delivery up: another run would be no use".to_owned(),
        retry::Plan::Interrupted => "not say: the run was cut short".to_owned(),
    };
    output.pairs(&[
        ("  result", ran.finished.ending.to_string()),
        ("  took", format!("{} ms", ran.took.as_millis())),
        ("  tilld would", next),
    ])?;
    print_written(output, &ran.finished.stdout, &ran.finished.stderr)
}
