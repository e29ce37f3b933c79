//! The command line: one file per command. Commands print and decide nothing; stdout is data, stderr is talk.
//!
//! To add a command: a file `cli/NAME.rs` with `pub(super) struct Args` (derives [`clap::Args`]) and
//! `pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure>`, its `mod` line here, a variant of
//! [`Command`] with the line `--help` shows, and an arm in [`dispatch`]. Settings and the state directory come from
//! [`Context`], answers go out through [`Output`](output::Output), errors come back as [`Failure`] and are printed once, here.

mod ack;
mod completions;
mod context;
mod control;
mod db;
mod delivery;
mod demo;
mod doctor;
mod event;
mod explain;
mod failure;
mod hook;
mod invoice;
mod ledger;
mod login;
mod logout;
mod man;
mod output;
mod owner;
mod page;
mod reach;
mod refusal;
mod remote;
mod sandbox;
mod scenario;
mod serve;
mod service;
mod stage;
mod status;
mod units;
mod when;
mod which;
mod whoami;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use tokio::runtime::Builder;

use crate::answer::argv;
use crate::daemon::bound;
use context::Context;
use failure::{Exit, Failure};

/// Runs next to a merchant's shop: receives payment webhooks, polls when none arrive, runs fulfilment scripts.
#[derive(Debug, Parser)]
#[command(
    name = "tilld",
    version,
    max_term_width = 100,
    after_long_help = failure::exit_code_help()
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Where `--help` shows the flags that are the same everywhere: apart from a command's own.
const GLOBAL: &str = "Options of every command";

/// What every command takes.
#[derive(Debug, clap::Args)]
struct Global {
    /// Read settings from FILE [default: /etc/tilld/config.toml when it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL, display_order = 1000)]
    config: Option<PathBuf>,
    /// Keep ledger and secrets in DIR, whatever the settings say
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL, display_order = 1001)]
    state_dir: Option<PathBuf>,
    /// Use the daemon that listens on PATH and nothing else: `invoice create`, `show`, `list`, `wait` and `poll`, `event` and
    /// `status`. Once begun, `invoice wait` and `event follow` live through its restarts
    #[arg(long, global = true, value_name = "PATH", help_heading = GLOBAL, display_order = 1002)]
    socket: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long, global = true, help_heading = GLOBAL, display_order = 1003)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: receive notifications (webhooks), poll and run hooks
    Serve(serve::Args),
    /// Run an imitation of the payment service, with its pages, on this machine, to try tilld out and to test against
    #[command(
        arg(hidden("config", "config")),
        arg(hidden("state_dir", "state-dir")),
        arg(hidden("socket", "socket"))
    )]
    Sandbox(sandbox::Args),
    /// Show everything at work on this machine in a few seconds: login, payments, a lost notification, a forged one
    #[command(
        arg(hidden("config", "config")),
        arg(hidden("state_dir", "state-dir")),
        arg(hidden("socket", "socket"))
    )]
    Demo(demo::Args),
    /// Log in to the payment service: show an address and a code, and wait for the confirmation
    #[command(after_help = login::ENDS)]
    Login(login::Args),
    /// Remove the local access token. It stays good at the service until it is revoked in the cabinet
    Logout(logout::Args),
    /// Show the shop, the service and where the access token is stored. Sends nothing to the service without `--check`
    #[command(after_help = whoami::ENDS)]
    Whoami(whoami::Args),
    /// Open invoices, show them, and settle by hand what tilld cannot
    Invoice(invoice::Args),
    /// Show what happened to invoices, or follow it as it happens
    Event(event::Args),
    /// Show deliveries to hooks and their attempts; retry, replay, release or give them up
    Delivery(delivery::Args),
    /// Describe the control socket, through which the shop uses tilld without holding its secrets
    Control(control::Args),
    /// Show which notifications (webhooks) were rejected, and why
    Refusal(refusal::Args),
    /// List the configured hooks and try one out
    Hook(hook::Args),
    /// Maintain the ledger's file: back it up, verify it, remove old details
    Db(db::Args),
    /// Show everything that happened to an order, oldest first, and why each decision was made
    Explain(explain::Args),
    /// Check the whole payment path, the public address too, and suggest fixes
    #[command(after_help = doctor::ENDS)]
    Doctor(doctor::Args),
    /// Show the current state and what needs attention
    #[command(after_help = status::ENDS)]
    Status(status::Args),
    /// Acknowledge alerts that do not end by themselves
    #[command(after_help = ack::ENDS)]
    Ack(ack::Args),
    /// Print what makes a shell complete tilld's commands and flags
    #[command(
        arg(hidden("config", "config")),
        arg(hidden("state_dir", "state-dir")),
        arg(hidden("socket", "socket"))
    )]
    Completions(completions::Args),
    /// Print the manual page of tilld or of one of its commands, for `man -l -` to show, or write all of them
    #[command(
        arg(hidden("config", "config")),
        arg(hidden("state_dir", "state-dir")),
        arg(hidden("socket", "socket"))
    )]
    Man(man::Args),
}

/// The whole command line, for what describes it: completions and manual pages.
fn described() -> clap::Command {
    Cli::command()
}

/// A flag of every command that this one refuses: taken as ever, so that [`without_use`] can say why, and not in its help.
/// A command's own argument stands in the place of the global one with its id.
fn hidden(id: &'static str, flag: &'static str) -> clap::Arg {
    clap::Arg::new(id)
        .long(flag)
        .value_parser(clap::value_parser!(PathBuf))
        .hide(true)
}

/// Threads that still block when the command is done get this long; nothing durable depends on them.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Runs the command line of this process.
pub(crate) fn run() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => run_command(cli),
        Err(error) => usage(&harmless(error)),
    }
}

fn run_command(cli: Cli) -> ExitCode {
    let json = cli.global.json;
    let fits = without_use(&cli.command, &cli.global);
    let ended = fits.and_then(|()| Context::new(cli.global));
    let ended = ended.and_then(|context| {
        // One thread for what a command waits for. The parts of the daemon have threads of their own.
        let runtime = bound(&mut Builder::new_current_thread())
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Error, error).context("could not start"))?;
        let ended = runtime.block_on(dispatch(cli.command, context));
        runtime.shutdown_timeout(LAST_WAIT);
        ended
    });
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => failure::report(&failure, json).into(),
    }
}

async fn dispatch(command: Command, context: Context) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => serve::run(args, context).await,
        Command::Sandbox(args) => sandbox::run(args, context).await,
        Command::Demo(args) => demo::run(args, context).await,
        Command::Login(args) => login::run(args, context).await,
        Command::Logout(args) => logout::run(args, context).await,
        Command::Whoami(args) => whoami::run(args, context).await,
        Command::Invoice(args) => invoice::run(args, context).await,
        Command::Event(args) => event::run(args, context).await,
        Command::Delivery(args) => delivery::run(args, context).await,
        Command::Control(args) => control::run(&args, &context),
        Command::Refusal(args) => refusal::run(args, context).await,
        Command::Hook(args) => hook::run(args, context).await,
        Command::Db(args) => db::run(args, context).await,
        Command::Explain(args) => explain::run(args, context).await,
        Command::Doctor(args) => doctor::run(args, context).await,
        Command::Status(args) => status::run(args, context).await,
        Command::Ack(args) => ack::run(args, context).await,
        Command::Completions(args) => completions::run(&args, &context),
        Command::Man(args) => man::run(&args, &context),
    }
}

/// Refuses flags that would look as if they did something: these commands read no config and have no state directory.
fn without_use(command: &Command, global: &Global) -> Result<(), Failure> {
    let name = match command {
        Command::Sandbox(_) => "sandbox",
        Command::Demo(_) => "demo",
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
        command => return goes_over_socket(command, global),
    };
    let flag = match global {
        Global {
            config: Some(_), ..
        } => "--config",
        Global {
            state_dir: Some(_), ..
        } => "--state-dir",
        Global {
            socket: Some(_), ..
        } => "--socket",
        Global { .. } => return Ok(()),
    };
    let error = format!("`{name}` takes no `{flag}`: it reads no settings and no ledger");
    Err(Failure::new(Exit::Usage, error).hint(match name {
        "sandbox" => "`--write-config FILE` makes a config for the other commands",
        "demo" => "`--dir DIR` says where the demo works and keeps its files",
        _ => "leave it out: what it prints is the same for every tilld of this version",
    }))
}

/// Refuses `--socket` where there is nothing to ask a daemon for.
fn goes_over_socket(command: &Command, global: &Global) -> Result<(), Failure> {
    let name = match command {
        _ if global.socket.is_none() => return Ok(()),
        // Some of its commands do: they look themselves.
        Command::Invoice(_) | Command::Event(_) | Command::Status(_) => return Ok(()),
        Command::Sandbox(_) => "sandbox",
        Command::Demo(_) => "demo",
        Command::Serve(_) => "serve",
        Command::Login(_) => "login",
        Command::Logout(_) => "logout",
        Command::Whoami(_) => "whoami",
        Command::Delivery(_) => "delivery",
        Command::Control(_) => "control",
        Command::Refusal(_) => "refusal",
        Command::Hook(_) => "hook",
        Command::Db(_) => "db",
        Command::Explain(_) => "explain",
        Command::Doctor(_) => "doctor",
        Command::Ack(_) => "ack",
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
    };
    Err(takes_no_socket(name))
}

/// The command asks no daemon.
fn takes_no_socket(command: &str) -> Failure {
    let error = format!("`{command}` takes no `--socket`: no daemon is asked for it");
    Failure::new(Exit::Usage, error)
        .hint("`--config` or `--state-dir` says which tilld is meant; the user must be its own")
}

/// What was typed comes from a shop's script as often as from a person, and a customer may have chosen it: it is repeated
/// in a form that speaks to no terminal and begins no line of a log (A39).
fn harmless(mut error: clap::Error) -> clap::Error {
    let told: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => {
                Some((kind, text.clone(), output::escape(text).into_owned()))
            }
            _ => None,
        })
        .filter(|(_, text, escaped)| text != escaped)
        .collect();
    for (kind, _, escaped) in told {
        // Tips repeat it in words of their own.
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(Vec::new()));
        error.insert(kind, ContextValue::String(escaped));
    }
    error
}

/// Help and version go to stdout and are no error; all else is exit code 2, in plain text and, when JSON was wished for,
/// in JSON as well.
fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        if argv::wants_json() {
            // With stdout or stderr gone the exit code is all that is left to say.
            drop(output::print(&format!("{}\n", mistake(error))));
        }
        drop(error.print());
        return Exit::Usage.into();
    }
    let printed = if error.kind() == ErrorKind::DisplayVersion {
        output::print(&version())
    } else {
        output::written_out(error.print())
    };
    match printed {
        Ok(()) => Exit::Ok.into(),
        Err(failure) => failure::report(&failure, false).into(),
    }
}

/// A mistake in the command line as every other failure looks in JSON.
fn mistake(error: &clap::Error) -> serde_json::Value {
    let text = error.to_string();
    let mut parts = text.split("\n\n").map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        words.join(" ")
    });
    let first = parts.next().unwrap_or_default();
    let (error, tip) = match first.strip_prefix("error: ") {
        Some(error) => {
            let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
            (error, tip)
        }
        // The help stands in the place of a message.
        None => ("a command is missing", None),
    };
    let hint = tip.unwrap_or_else(|| "`--help` shows what can be given".to_owned());
    serde_json::json!({ "error": error, "hint": hint, "code": Exit::Usage.code() })
}

/// What `--version` prints, with its last newline.
fn version() -> String {
    let (own, sqlite) = (env!("CARGO_PKG_VERSION"), crate::ledger::sqlite_version());
    format!("tilld {own} (SQLite {sqlite})\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_mistake_in_the_line_is_told_as_one_object() {
        for (line, error, hint) in [
            (
                ["tilld", "sandbox", "--sed=1"].as_slice(),
                "unexpected argument '--sed' found",
                "a similar argument exists: '--seed'",
            ),
            (
                &["tilld", "invoice", "show"],
                "the following required arguments were not provided: <NAME|--order <ORDER>|--id <ID>|--ref <REF>>",
                "`--help` shows what can be given",
            ),
            (
                &["tilld"],
                "a command is missing",
                "`--help` shows what can be given",
            ),
        ] {
            let told = mistake(&Cli::try_parse_from(line).expect_err("it is wrong"));
            let wanted = serde_json::json!({ "error": error, "hint": hint, "code": 2 });
            assert_eq!(told, wanted);
        }
    }

    #[test]
    fn what_was_typed_is_repeated_without_harm() {
        for line in [
            ["tilld", "invoice", "show", "--x\nforged\u{1b}[2J"],
            ["tilld", "invoice", "create", "--order=a\nforged\u{1b}[2J"],
            ["tilld", "invoice", "a\nforged\u{1b}[2J", "x"],
        ] {
            let error = harmless(Cli::try_parse_from(line).expect_err("it is wrong"));
            let told = error.to_string();
            assert!(told.contains("\\nforged\\u001b[2J"), "{told:?}");
            assert!(
                !told.contains("\nforged") && !told.contains('\u{1b}'),
                "{told:?}"
            );
        }
    }

    #[test]
    fn flags_that_a_command_refuses_are_not_in_its_help() {
        for name in ["sandbox", "demo"] {
            let told = Cli::try_parse_from(["tilld", name, "--help"]).expect_err("a help text");
            let told = told.to_string();
            assert!(told.contains("--json"), "{told}");
            assert!(
                !told.contains("--config <")
                    && !told.contains("--state-dir")
                    && !told.contains("--socket"),
                "{told}"
            );
            for (flag, before) in [
                ("--config", true),
                ("--config", false),
                ("--state-dir", false),
                ("--socket", false),
            ] {
                let line = if before {
                    ["tilld", flag, "x", name]
                } else {
                    ["tilld", name, flag, "x"]
                };
                let cli = Cli::try_parse_from(line).expect("parses");
                let failure = without_use(&cli.command, &cli.global).expect_err("refused");
                assert_eq!(failure.code(), 2, "{line:?}");
            }
        }
    }

    #[test]
    fn global_flags_are_taken_on_either_side_of_the_command() {
        for line in [
            ["tilld", "--json", "serve", "--check"],
            ["tilld", "serve", "--check", "--json"],
        ] {
            assert!(Cli::try_parse_from(line).expect("parses").global.json);
        }
    }
}
