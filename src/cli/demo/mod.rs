//! `tilld demo`: the whole of tilld at work in a few seconds, without a service, a shop or a network beyond this machine.
//!
//! The sandbox runs in this process; the daemon and every command are the real binary, run as children in this process
//! group and one directory. Each step is checked against what it promises, in the ledger itself. Nothing is left running
//! when it ends by itself or by a signal that can be caught: the daemon is stopped in order, and killed when this process
//! unwinds. Whoever kills this process outright (`kill -9`) has the daemon to stop too.

mod acts;
mod closing;
mod files;
mod step;
mod timeline;
mod tour;

use std::path::PathBuf;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{escape, talk};
use super::stage::daemon::{self, Daemon};
use super::stage::directory::{Directory, Kind};
use super::stage::signals::Signals;
use super::stage::trouble::Trouble;
use super::stage::{self, Stage};
use crate::sandbox;
use closing::{Account, Around, print_all};
use step::Step;
use timeline::Timeline;

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Work in DIR and keep it; an empty directory, a new one, or that of an earlier demo
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep everything running at the end, until Ctrl-C, and print a guided tour of it
    #[arg(long)]
    stay: bool,
}

/// Runs `demo`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    // Before anything is started: a signal from now on ends it in order.
    let mut signals = Signals::new()?;
    let mut directory = match &args.dir {
        Some(path) => Directory::named(Kind::Demo, path)?,
        None => Directory::temporary(Kind::Demo)?,
    };
    let timeline = Timeline::new(context.output);
    let played = play(&args, &context, timeline, &directory, &mut signals).await;
    match played {
        Ok(()) => Ok(Exit::Ok),
        Err(End::Failed(failure)) => {
            directory.keep();
            Err(explained(failure, &directory))
        }
        Err(End::Other(failure)) => Err(failure),
    }
}

/// Why a demo did not come to its end.
enum End {
    /// A step did not go as promised: there is something to look into.
    Failed(Failure),
    /// It was interrupted.
    Other(Failure),
}

async fn play(
    args: &Args,
    context: &Context,
    timeline: Timeline,
    directory: &Directory,
    signals: &mut Signals,
) -> Result<(), End> {
    let mut stage = tokio::select! {
        biased;
        () = signals.any() => return Err(interrupted()),
        stage = open(timeline, directory) => stage?,
    };
    let acted = tokio::select! {
        biased;
        () = signals.any() => Err(interrupted()),
        acted = act(timeline, &mut stage) => acted,
    };
    let reader = stage.reader.clone();
    if let Err(end) = acted {
        // How the stop went adds nothing to why it came to it.
        drop(stage.stop().await);
        return Err(end);
    }
    if !args.stay {
        let told = |(): &()| "the daemon ended in order, nothing is left running".to_owned();
        timeline.step(Step::Stopped, stage.stop(), told).await?;
        let account = Account::read(&reader).await?;
        return Ok(print_all(context.output, directory, &account, None)?);
    }
    let stayed = stay(context, directory, &mut stage, signals).await;
    let stopped = stage.stop().await.map_err(|trouble| {
        End::Failed(Failure::new(Exit::Error, trouble).context("could not stop in order"))
    });
    stayed.and(stopped)
}

/// Starts what plays.
async fn open(timeline: Timeline, directory: &Directory) -> Result<Stage<'_>, Failure> {
    let sandbox = timeline
        .step(
            Step::Sandbox,
            stage::start_sandbox(sandbox::Settings::default()),
            |sandbox| format!("the imitation payment service is at {}", sandbox.url()),
        )
        .await?;
    let started = async move {
        let daemon = Daemon::start(directory, |listen| {
            files::write(directory, &sandbox, listen)
        })
        .await?;
        Stage::new(directory, sandbox, daemon)
    };
    let told = |stage: &Stage<'_>| format!("tilld serve listens on {}", stage.daemon.listen());
    timeline.step(Step::Daemon, started, told).await
}

/// Plays the steps.
async fn act(timeline: Timeline, stage: &mut Stage<'_>) -> Result<(), End> {
    for step in Step::PLAYED {
        timeline.step(step, stage.play(step), String::clone).await?;
    }
    Ok(())
}

/// Says where everything is, and waits for a signal.
async fn stay(
    context: &Context,
    directory: &Directory,
    stage: &mut Stage<'_>,
    signals: &mut Signals,
) -> Result<(), End> {
    let account = Account::read(&stage.reader).await?;
    print_all(
        context.output,
        directory,
        &account,
        Some(&Around::of(stage)),
    )?;
    tokio::select! {
        biased;
        () = signals.any() => Ok(()),
        trouble = stage.daemon.ended() => Err(End::Failed(Failure::new(Exit::Error, trouble))),
        ended = stage.sandbox.stopping() => match ended {
            Ok(()) => Ok(()),
            Err(error) => Err(End::Failed(Failure::new(Exit::Error, Trouble::from(error)))),
        },
    }
}

/// Shows the end of the daemon's log and says where the rest is.
fn explained(failure: Failure, directory: &Directory) -> Failure {
    let log = directory.serve_log();
    let tail = daemon::tail(&log);
    if !tail.is_empty() {
        talk(&format!("the last lines of {}:", log.display()));
        for line in tail {
            talk(&format!("  {}", escape(&line)));
        }
    }
    let path = directory.path().display();
    failure.hint(format!(
        "config, logs and ledger of this demo are kept in {path}"
    ))
}

fn interrupted() -> End {
    End::Other(Failure::new(Exit::Error, "the demo was interrupted"))
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
