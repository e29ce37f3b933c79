//! `tilld hook test`: one run of a hook outside the ledger. It shows everything the program or the address saw and said,
//! and what the daemon would do next. All goes as it does under the daemon, but as the user of this command.

use std::env;
use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::super::context::Context;
use super::super::delivery::{Written, print_body, print_written};
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, print_json, talk};
use super::super::owner;
use super::super::which::Flags;
use super::told::{self, Told};
use crate::config;
use crate::hook::payload::{self, Facts};
use crate::hook::post::{Target, prepare};
use crate::hook::process::{
    Ending, Finished, Launched, Program, Surroundings, environment, launch,
};
use crate::outbox::{Action, retry};
use crate::shutdown::Shutdown;
use crate::{daemon, parts};

/// Flags of `hook test`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").args(["order", "id", "reference", "sample"]))]
pub(super) struct Args {
    /// The hook's name in the config
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    of: Flags,
    /// Give it a sample of an event that it wants, as without any flag
    #[arg(long)]
    sample: bool,
}

/// One run that is over, with what it saw beside the document.
struct Ran {
    finished: Finished,
    saw: Saw,
    took: Duration,
}

/// What stood beside the document.
enum Saw {
    /// The environment of a program.
    Variables(Vec<(&'static str, OsString)>),
    /// The headers of a request. A signature is no secret.
    Headers(Vec<(&'static str, String)>),
}

/// Runs `hook test`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let settings = context.settings()?;
    let hooks = settings.every_hook();
    let hook = hooks.iter().find(|hook| hook.name == args.name);
    let hook = hook.ok_or_else(|| told::unknown(&args.name, &hooks))?;
    hook.check()?;
    let state_dir = context.state_dir()?;
    let outbox = parts::outbox_settings(settings, &state_dir);
    let action = outbox.hooks.into_iter().find(|one| one.name == hook.name);
    let action = action.expect("a checked hook does something").action;
    let told = match args.of.name() {
        Some(name) => told::newest(hook, &name, &context).await?,
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
    let ran = match &action {
        Action::Run(program) => run_program(program, &around, &told.facts).await?,
        Action::Post(target) => post(target, &told.facts).await?,
    };
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

/// Says before the run what is going to happen: the program or the address is real.
fn announce(hook: &config::Hook, told: &Told) {
    let facts = &told.facts;
    let runs = if hook.post.is_some() {
        "is posted to"
    } else {
        "runs"
    };
    if told.sample {
        talk(&format!(
            "`{}` {runs} once with a SAMPLE of the event `{}`; nothing is recorded",
            hook.name,
            facts.word()
        ));
    } else {
        talk(&format!(
            "`{}` {runs} once with the event `{}`, {}, of order {}, as a replay; nothing is recorded",
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
    daemon::set_umask();
    let launched: Launched = launch(program, around, facts)
        .await
        .map_err(|error| Failure::new(Exit::Error, error).context("could not run the hook"))?;
    let variables = environment(around, facts, &launched.payload_file());
    let stop = Shutdown::new();
    let (finished, took) = until_signal(launched.run(&stop), &stop).await?;
    Ok(Ran {
        finished,
        saw: Saw::Variables(variables),
        took,
    })
}

/// Posts as the daemon would. A signal to this command ends it.
async fn post(target: &Target, facts: &Facts) -> Result<Ran, Failure> {
    let prepared = prepare(target, facts).await.map_err(|error| {
        Failure::new(Exit::Error, error.why()).context("could not post to the hook")
    })?;
    let headers = prepared.headers().to_vec();
    let stop = Shutdown::new();
    let (finished, took) = until_signal(prepared.run(&stop), &stop).await?;
    Ok(Ran {
        finished,
        saw: Saw::Headers(headers),
        took,
    })
}

/// Lets it run until a signal to this command, which is passed on as the wish to stop; and how long it took.
async fn until_signal(
    run: impl Future<Output = Finished>,
    stop: &Shutdown,
) -> Result<(Finished, Duration), Failure> {
    let handler = |kind| {
        signal(kind).map_err(|error| {
            Failure::new(Exit::Error, error).context("could not listen for signals")
        })
    };
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    let began = Instant::now();
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
    Ok((finished, began.elapsed()))
}

fn pairs(saw: &Saw) -> Vec<(&'static str, String)> {
    match saw {
        Saw::Variables(variables) => variables
            .iter()
            .map(|(name, value)| (*name, value.to_string_lossy().into_owned()))
            .collect(),
        Saw::Headers(headers) => headers.clone(),
    }
}

/// The run in the words of `--json`.
fn report(told: &Told, ran: &Ran, plan: retry::Plan) -> Value {
    let document = payload::document(&told.facts);
    let document: Value = serde_json::from_str(&document).expect("the document is JSON");
    let saw = match ran.saw {
        Saw::Variables(_) => "variables",
        Saw::Headers(_) => "headers",
    };
    let pairs: Map<String, Value> = pairs(&ran.saw)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
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
        saw: pairs,
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
    let (seen, beside) = match ran.saw {
        Saw::Variables(_) => (
            "It saw, on standard input and in payload.json:",
            "\nIts environment:",
        ),
        Saw::Headers(_) => ("It was sent:", "\nwith these headers:"),
    };
    output.line(seen)?;
    let document = payload::document(&told.facts);
    output.line(&format!("  {}", escape(document.trim_end())))?;
    output.line(beside)?;
    let pairs: Vec<(String, String)> = pairs(&ran.saw)
        .into_iter()
        .map(|(name, value)| (format!("  {name}"), value))
        .collect();
    output.unwrapped().pairs(&pairs)?;
    output.line("\nIt answered:")?;
    let next = match plan {
        retry::Plan::Done => "call the delivery done".to_owned(),
        retry::Plan::Retry { at_ms } | retry::Plan::Postpone { at_ms } => {
            let gap = Duration::from_millis(at_ms.unsigned_abs());
            format!("run it again after {gap:?}")
        }
        retry::Plan::Abandon => "give the delivery up: another run would be no use".to_owned(),
        retry::Plan::Interrupted => match ran.finished.ending {
            Ending::Wanting(_) | Ending::Exposed(_) => {
                "wait until it can be started; that is no attempt".to_owned()
            }
            _ => "not say: the run was cut short".to_owned(),
        },
    };
    output.pairs(&[
        ("  result", ran.finished.ending.to_string()),
        ("  took", format!("{} ms", ran.took.as_millis())),
        ("  tilld would", next),
    ])?;
    match ran.saw {
        Saw::Variables(_) => print_written(output, &ran.finished.stdout, &ran.finished.stderr),
        Saw::Headers(_) => print_body(output, &ran.finished.stdout),
    }
}
