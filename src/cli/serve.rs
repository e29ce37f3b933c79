//! `tilld serve`: the daemon; with `--check`, only what a start depends on that can be judged without starting.

use std::time::Duration;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{escape, print_json, talk};
use super::{ledger, owner, reach, service};
use crate::answer::argv;
use crate::client::credentials::ENV_TOKEN;
use crate::daemon::control::SocketError;
use crate::daemon::handed::{self, At, Handed, HandedError};
use crate::daemon::unheeded::Asked;
use crate::daemon::{self, Start};
use crate::ledger::LockError;
use crate::parts;
use crate::parts::ListenerError;
use crate::{clock, fault, panics, telemetry};

/// How long the end waits for somebody to read the log.
const LOG_WITHIN: Duration = Duration::from_secs(1);

/// How long a panic does: the process ends within a second of it.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Flags of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Look at the settings and the hooks' programs, say what is wrong, and exit
    #[arg(long)]
    check: bool,
    /// Listen on IP:PORT, whatever the settings say
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Serve a ledger on a network file system all the same: no other machine opens it
    #[arg(long)]
    i_know: bool,
}

/// Runs `serve`.
pub(super) async fn run(args: Args, mut context: Context) -> Result<Exit, Failure> {
    context.set_listen(args.listen);
    context.set_network_known(args.i_know);
    check(&context)?;
    // It changes the environment, so it comes before any thread.
    let handed = handed::take()?;
    let asked = Asked::of(context.settings()?, context.listen_origin()?);
    if args.check {
        return report(&context, &handed, asked.as_ref());
    }
    let settings = context.settings()?.clone();
    let state_dir = context.state_dir()?;
    owner::check(&state_dir)?;
    telemetry::init_daemon(settings.log_level, settings.log_format, clock::wall_us)
        .map_err(|error| Failure::new(Exit::Error, error).context("could not start the log"))?;
    panics::end_with(Exit::Bug.code(), || telemetry::flush(LAST_WORDS));
    fault::tell();
    // Handed over by systemd, it lies where the socket unit says.
    if handed.control.is_none()
        && let Some(trouble) = reach::trouble(&settings, &state_dir)
    {
        tracing::warn!("{trouble}");
    }
    let public_url = settings.require_public()?.to_string();
    let client = service::client(&context)?;
    let json = context.output.json();
    let ready = Box::new(move |at: &At| {
        if json {
            // A reader of stdout that went away is no reason to stop serving.
            drop(print_json(&serde_json::json!({ "listen": at.to_string() })));
        }
    });
    let read = Box::new(move || {
        let context = context.anew();
        check(&context)?;
        Ok(context.settings()?.clone())
    });
    let ended = daemon::run(Start {
        settings,
        state_dir,
        public_url,
        client,
        handed,
        asked,
        read,
        ready,
    })
    .await;
    telemetry::flush(LOG_WITHIN);
    ended?;
    Ok(Exit::Ok)
}

/// What a start would refuse.
fn check(context: &Context) -> Result<(), Failure> {
    let settings = context.settings()?;
    settings.require_service()?;
    let public = settings.require_public()?;
    for hook in settings.every_hook() {
        hook.check()?;
    }
    if let Some(program) = settings.attention.program() {
        program.check()?;
    }
    parts::listener_settings(settings, public.as_str()).map_err(daemon::Error::from)?;
    if std::env::var_os(ENV_TOKEN).is_some() {
        let failure = Failure::new(Exit::Config, "`serve` takes no token from `SERVICE_TOKEN`");
        return Err(failure.hint(format!(
            "unset it and run `{}`, which keeps the token in a file",
            argv::own_login()
        )));
    }
    Ok(())
}

fn report(context: &Context, handed: &Handed, asked: Option<&Asked>) -> Result<Exit, Failure> {
    let settings = context.settings()?;
    let (service, public) = (settings.require_service()?, settings.require_public()?);
    let state_dir = context.state_dir()?;
    let file = context.config_file()?;
    if let Some(trouble) = reach::trouble(settings, &state_dir) {
        talk(&format!("warning: {}", escape(&trouble)));
    }
    let handed = handed.public.as_ref().and_then(|socket| socket.at().ok());
    let unheeded = asked.zip(handed.as_ref());
    if let Some(unheeded) = unheeded.and_then(|(asked, at)| asked.against(at)) {
        talk(&format!("warning: {}", escape(&unheeded)));
    }
    let listen = settings.listener.listen;
    // Its name is reserved, so it is taken for no other.
    let hooks: Vec<String> = settings
        .every_hook()
        .into_iter()
        .map(|hook| hook.name)
        .collect();
    if context.output.json() {
        print_json(&serde_json::json!({
            "config": file.map(|file| file.to_string_lossy()),
            "state_dir": state_dir.to_string_lossy(),
            "service_url": service.as_str(),
            "public_url": public.as_str(),
            "listen": handed.map_or(listen.to_string(), |at| at.to_string()),
            "hooks": hooks,
        }))?;
    } else {
        let file = file.map_or("no file".to_owned(), |file| file.display().to_string());
        // Whether systemd does is not seen from here.
        let or_elsewhere = || format!("{listen}, unless a socket unit listens elsewhere");
        let listens_on = handed.map_or_else(or_elsewhere, |at| at.to_string());
        context.output.pairs(&[
            ("config", file),
            ("state directory", state_dir.display().to_string()),
            ("service", service.to_string()),
            ("public address", public.to_string()),
            ("listens on", listens_on),
            ("hooks", hooks.join(", ")),
        ])?;
    }
    Ok(Exit::Ok)
}

impl From<HandedError> for Failure {
    fn from(error: HandedError) -> Self {
        let hint = match &error {
            HandedError::Unknown { .. } | HandedError::Twice(_) => format!(
                "`FileDescriptorName=` of each socket unit must be `{}` or `{}`",
                handed::PUBLIC,
                handed::CONTROL
            ),
            HandedError::Wrong { name: handed::CONTROL, .. } => {
                "`ListenStream=` of the socket unit must be a path".to_owned()
            }
            HandedError::Wrong { .. } => {
                "`ListenStream=` of the socket unit must be a port, an address with a port, or a path"
                    .to_owned()
            }
        };
        Self::new(Exit::Config, error).hint(hint)
    }
}

impl From<daemon::Error> for Failure {
    fn from(error: daemon::Error) -> Self {
        use daemon::Error;
        match error {
            Error::Ledger(cause) => cause.into(),
            Error::Lock(cause @ LockError::Held { .. }) => Self::new(Exit::Ledger, cause)
                .hint("stop the other one first, or give this one another `state_dir`"),
            Error::Lock(LockError::File { path, source }) if ledger::is_passing(&source) => {
                Self::new(Exit::Error, LockError::File { path, source }).hint(ledger::DISK)
            }
            Error::Control(SocketError::Io { doing, path, source }) if ledger::is_passing(&source) => {
                Self::new(Exit::Error, SocketError::Io { doing, path, source }).hint(ledger::DISK)
            }
            Error::Lock(cause @ LockError::File { .. }) => Self::new(Exit::Ownership, cause)
                .hint("the state directory must belong to the user tilld runs as"),
            Error::Control(cause @ SocketError::Taken(_)) => Self::new(Exit::Ledger, cause)
                .hint("stop the other program, or set `control.socket` to another path"),
            Error::Control(cause @ SocketError::NoSocket(_)) => Self::new(Exit::Ownership, cause)
                .hint("remove it, or set `control.socket` to another path"),
            Error::Control(cause @ SocketError::TooLong(_)) => Self::new(Exit::Config, cause)
                .hint("set `control.socket` to a shorter path, such as `/run/tilld/control.sock`"),
            Error::Control(cause @ SocketError::NoGroup(_)) => Self::new(Exit::Config, cause)
                .hint("make it with `groupadd --system`, or set `control.group` to another"),
            error @ Error::Control(SocketError::Io { .. }) => Self::new(Exit::Ownership, error).hint(
                "`control.socket` must lie in a directory that tilld's user may write, and `control.group` be one of its groups",
            ),
            error @ Error::Selector(_) => Self::new(Exit::Config, error),
            error @ Error::Listener(ListenerError::Presentation(_)) => Self::new(Exit::Config, error).hint(
                "with `presentations = \"auto\"` the log names the line that fits once a notification was authentic",
            ),
            // A renewal that is half done just now must not keep tilld down once it is done; anything else stays as it is.
            Error::Listener(ListenerError::Certificate(cause)) => {
                let hint = cause.hint();
                let exit = if cause.is_passing() {
                    Exit::Error
                } else if cause.is_ownership() {
                    Exit::Ownership
                } else {
                    Exit::Config
                };
                Self::new(exit, cause).hint(hint)
            }
            // Not the exit code of settings, after which nobody starts it again: a port may be taken for a moment only.
            error @ Error::Listen { .. } => Self::new(Exit::Error, error)
                .hint("another program may listen there: choose another `listener.listen`"),
            error @ Error::Thread { .. } => Self::new(Exit::Error, error).hint(
                "the unit (`TasksMax=`), the user (`ulimit -u`) or the machine has no room for another thread",
            ),
            error @ (Error::Signals(_) | Error::Bell(_) | Error::Ended(_)) => {
                Self::new(Exit::Error, error)
            }
        }
    }
}
