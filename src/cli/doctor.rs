//! `tilld doctor`: looks at everything a payment needs on its way, and says what to mend. Works beside a daemon and without
//! one. What the checks are is in `doctor`; here they are printed.

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{Output, print_json};
use super::{service, status};
use crate::doctor::{Finding, Patient, State, Told, examine};

/// The ends a script must tell apart.
pub(super) const ENDS: &str =
    "Exit codes: 0 nothing fails, 16 something does: each finding says what helps";

/// Flags of `doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The systemd unit whose sandbox is held against what the scripts need
    #[arg(long, value_name = "NAME", default_value = "tilld.service")]
    unit: String,
}

/// Runs `doctor`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let findings = match diagnose(&args, &context).await {
        Ok(findings) => findings,
        // Without settings nothing else can be looked at.
        Err(failure) => vec![of_config(&failure)],
    };
    if context.output.json() {
        print_json(&findings)?;
    } else {
        print(context.output, &findings)?;
    }
    let fails = findings.iter().any(|found| found.state == State::Fail);
    Ok(if fails { Exit::Attention } else { Exit::Ok })
}

async fn diagnose(args: &Args, context: &Context) -> Result<Vec<Finding>, Failure> {
    let settings = context.settings()?;
    let state_dir = context.state_dir()?;
    let file = context.config_file()?;
    let file = file.map_or("no file".to_owned(), |file| format!("`{}`", file.display()));
    let client = service::client(context).ok();
    let ask_daemon = || -> Told<'_> {
        Box::pin(async {
            match status::ask_daemon(context, &state_dir).await {
                status::Said::Report(report) => Some(*report),
                _ => None,
            }
        })
    };
    let looked = status::look(context).await;
    let patient = Patient {
        settings,
        state_dir: &state_dir,
        client: client.as_ref(),
        unit: &args.unit,
        ask_daemon: &ask_daemon,
        report: looked.as_ref().ok(),
    };
    let mut findings = vec![Finding::ok("config", format!("{file} is valid"))];
    findings.extend(examine(&patient).await);
    if let Err(failure) = &looked
        && failure.exit() != Exit::NotFound
    {
        let told = format!("the alerts could not be looked at: {}", failure.line());
        findings.push(Finding::warn("alerts", told));
    }
    Ok(findings)
}

fn of_config(failure: &Failure) -> Finding {
    let told = failure.line();
    let found = Finding::fail("config", told);
    match failure.way_out() {
        Some(hint) => found.hint(hint),
        None => found,
    }
}

/// One line for each finding, and what helps below it.
fn print(output: Output, findings: &[Finding]) -> Result<(), Failure> {
    let rows: Vec<[String; 3]> = findings
        .iter()
        .flat_map(|found| {
            let first = [
                found.state.word().to_owned(),
                found.check.to_owned(),
                found.told.clone(),
            ];
            let hint = found.hint.as_ref();
            let hint = hint.map(|hint| [String::new(), String::new(), format!("hint: {hint}")]);
            [Some(first), hint].into_iter().flatten()
        })
        .collect();
    output.table(None, &rows)?;
    let count = |state| findings.iter().filter(|found| found.state == state).count();
    let (fails, warns) = (count(State::Fail), count(State::Warn));
    output.line(&match (fails, warns) {
        (0, 0) => "\nAll is well.".to_owned(),
        (0, warns) => format!("\nNothing fails; {warns} to look at."),
        (fails, _) => format!("\nTo be mended: {fails}."),
    })
}
