//! `tilld sandbox`: runs the imitation payment service until it is interrupted. Says where it is and what to try next.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{escape, print, print_json, talk};
use super::scenario;
use crate::config::toml;
use crate::regular_file::{self, Rule};
use crate::sandbox::{self, Error, Sandbox, Settings, Statuses, Times, WriteError};
use crate::shutdown::Shutdown;
use crate::telemetry::{self, Format, Level};
use crate::{clock, entropy};

/// Most bytes of a file of status names.
const LARGEST: u64 = 1024 * 1024;

/// Most requisites of a method: more than anybody occupies.
const MOST_REQUISITES: u64 = 1_000_000;

/// Reads an address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_syntax| {
        "such as `127.0.0.1:8490` or `[::1]:8490`, with the number of a port, and no name such as `localhost`".to_owned()
    })
}

/// Reads a whole number of a range.
fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("a whole number, {} to {}", range.start(), range.end()))
    }
}

/// Flags of `sandbox`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = sandbox::inventions())]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Serve API, cabinet and payment pages on IP:PORT, loopback only; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8490", value_parser = address)]
    listen: SocketAddr,
    /// Take commands of tests on IP:PORT, loopback only; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8491", value_parser = address)]
    control: SocketAddr,
    /// Write a tilld config with these addresses and the sandbox's status names
    #[arg(long, value_name = "FILE")]
    write_config: Option<PathBuf>,
    /// Have tilld listen on IP:PORT by that config, loopback only; port 0 names one that is free now
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8480",
        value_parser = address,
        requires = "write_config"
    )]
    config_listen: SocketAddr,
    /// Make ids, codes and tokens from this number, the same ones each time [default: a new number]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
    /// Seconds between two polls of a login
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = whole::<u64>(1..=60))]
    interval: u64,
    /// Seconds in which a login can be confirmed [default: 600, and at speed 120 at least, since a person does it]
    #[arg(long, value_name = "S", value_parser = whole::<u64>(1..=86_400))]
    login_life: Option<u64>,
    /// Requisites of each method; each takes one open invoice of an amount at a time, and none is taken on the payment page
    /// before its customer has chosen a method
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<usize>(0..=MOST_REQUISITES))]
    pool: usize,
    /// Seconds in which an invoice can be paid
    #[arg(long, value_name = "S", default_value_t = 1_800, value_parser = whole::<u64>(1..=604_800))]
    window: u64,
    /// Seconds before a notification is tried again
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = whole::<u64>(0..=3_600))]
    notify_retry: u64,
    /// Let these times pass N times faster: an invoice that can be paid for 30 min is over in 30 s with 60. The start
    /// shows the shortened times, in whole seconds where the service gives them so
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=3_600))]
    speed: u32,
    /// Simple, predictable answers. Otherwise ids have any form, fields any order, unknown ones come too, some that no client
    /// needs are missing or null, and amounts and times have more or fewer zeros
    #[arg(long)]
    plain: bool,
    /// Use the status names of FILE: lists `open` (which begins with `new`), `paid`, `failed` and `reversed`, in TOML
    #[arg(long, value_name = "FILE")]
    statuses: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the API as OpenAPI 3.1 in JSON
    Openapi,
    /// Play a scenario against a sandbox and a daemon of its own, and say whether all came as expected
    #[command(after_help = scenario::STEPS)]
    Run(scenario::Args),
}

impl Args {
    fn settings(&self) -> Result<Settings, Failure> {
        let statuses = self.statuses.as_deref().map(read_statuses).transpose()?;
        Ok(Settings {
            listen: self.listen,
            control: self.control,
            seed: self.seed.unwrap_or_else(new_seed),
            interval_s: self.interval,
            login_lifetime_s: self.login_life,
            pool: self.pool,
            invoice_lifetime_s: self.window,
            notify_retry_ms: self.notify_retry.saturating_mul(1_000),
            speed: self.speed,
            is_plain: self.plain,
            statuses: statuses.unwrap_or_default(),
        })
    }
}

/// The status names of a file: such that the sandbox can work with them and tilld takes them.
fn read_statuses(file: &Path) -> Result<Statuses, Failure> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Lists {
        open: Vec<String>,
        paid: Vec<String>,
        failed: Vec<String>,
        reversed: Vec<String>,
    }
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        let doing = format!("could not read the status names in `{}`", file.display());
        Failure::new(Exit::Usage, error).context(doing).hint(
            "such as: open = [\"new\"], paid = [\"paid\"], failed = [\"canceled\"], reversed = [\"refunded\"]",
        )
    };
    let bytes =
        regular_file::read(file, Rule::open(LARGEST)).map_err(|error| failed(error.into()))?;
    let text = str::from_utf8(&bytes).map_err(|error| failed(error.into()))?;
    let lists: Lists = toml::read(text).map_err(|error| failed(error.into()))?;
    let statuses = Statuses {
        open: lists.open,
        paid: lists.paid,
        failed: lists.failed,
        reversed: lists.reversed,
    };
    match statuses.lack() {
        Some(lack) => Err(failed(lack.into())),
        None => Ok(statuses),
    }
}

/// A number no ledger knows the ids of: one that outlives the sandbox would refuse an id it holds already. Short, since
/// a person may type it again.
fn new_seed() -> u64 {
    u64::from(u32::from_be_bytes(entropy::bytes()))
}

/// Runs `sandbox` until SIGINT or SIGTERM.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Some(Action::Openapi) => {
            print(&sandbox::openapi())?;
            return Ok(Exit::Ok);
        }
        Some(Action::Run(args)) => return scenario::run(args, context).await,
        None => {}
    }
    // What a person must see of it: that it refused an address beyond this machine.
    telemetry::init(Level::Warn, Format::Text, clock::wall_us)
        .map_err(|error| Failure::new(Exit::Error, error).context("could not start the log"))?;
    // Before anything is started: a signal from now on ends it in order.
    let handler = |kind| {
        signal(kind).map_err(|error| {
            Failure::new(Exit::Error, error).context("could not listen for signals")
        })
    };
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    let mut sandbox = sandbox::start(args.settings()?, Shutdown::new()).await?;
    let file = args.write_config.as_deref();
    let ended = match announce(&sandbox, file.zip(Some(args.config_listen)), &context) {
        Ok(()) => until(&mut sandbox, &mut interrupt, &mut terminate).await,
        Err(failure) => Err(failure),
    };
    sandbox.stop().await;
    ended
}

/// Waits for a signal, or for the sandbox to end by itself.
async fn until(
    sandbox: &mut Sandbox,
    interrupt: &mut Signal,
    terminate: &mut Signal,
) -> Result<Exit, Failure> {
    tokio::select! {
        _signal = interrupt.recv() => {}
        _signal = terminate.recv() => {}
        ended = sandbox.stopping() => ended?,
    }
    Ok(Exit::Ok)
}

/// The addresses on stdout, what to try on stderr.
fn announce(
    sandbox: &Sandbox,
    config: Option<(&Path, SocketAddr)>,
    context: &Context,
) -> Result<(), Failure> {
    let written = config.map(|(file, listen)| sandbox::write_config(sandbox, file, listen));
    let written = written.transpose()?;
    if let Some(written) = &written {
        sandbox.has_config(&written.path);
    }
    let kept = written.as_ref().is_some_and(|written| written.kept);
    let made = written.as_ref().and_then(|written| written.made.clone());
    let shown = written.map(|written| written.path.display().to_string());
    if context.output.json() {
        print_json(&serde_json::json!({
            "service": sandbox.url(),
            "cabinet": sandbox.cabinet_url(),
            "control": sandbox.control_url(),
            "seed": sandbox.seed(),
            "speed": sandbox.speed(),
            "times": sandbox.times(),
            "config": shown,
            "config_kept": kept,
        }))?;
    } else {
        let mut pairs = vec![
            ("service", sandbox.url()),
            ("cabinet", format!("{}/cabinet", sandbox.cabinet_url())),
            ("control", sandbox.control_url()),
            ("seed", sandbox.seed().to_string()),
        ];
        if sandbox.speed() > 1 {
            let told = format!("times pass {} times faster", sandbox.speed());
            pairs.push(("speed", told));
            pairs.push(("times", times(sandbox.times())));
        }
        pairs.extend(shown.clone().map(|path| ("config", path)));
        context.output.pairs(&pairs)?;
    }
    let config = shown.map_or_else(|| "FILE".to_owned(), |path| escape(&path).into_owned());
    if kept {
        talk(&format!(
            "note: {config} was edited and names this sandbox: it is kept as it is"
        ));
    }
    if let Some(made) = made {
        let made = made.display().to_string();
        talk(&format!(
            "note: the directory {} was made for it",
            escape(&made)
        ));
    }
    // Talk: with nobody to read it the sandbox serves all the same.
    drop(io::stderr().lock().write_all(advice(&config).as_bytes()));
    Ok(())
}

/// The times as they are.
fn times(times: Times) -> String {
    let Times {
        login_s,
        interval_s,
        window_s,
        notify_retry_ms,
    } = times;
    format!(
        "a login lives {login_s} s and is asked for every {interval_s} s, an invoice can be paid for {window_s} s, a notification \
         is tried again after {notify_retry_ms} ms"
    )
}

fn advice(config: &str) -> String {
    let note = if config == "FILE" {
        " (FILE: what `--write-config FILE` writes)"
    } else {
        ""
    };
    format!(
        "\n\
         An imitation of the payment service: no real money, in memory only, and on this machine only (loopback addresses).\n\
         Of its status names only `new` is the service's own.\n\
         To try next, in other terminals{note}:\n\
         \x20 tilld --config {config} login\n\
         \x20 tilld --config {config} serve\n\
         \x20 tilld --config {config} invoice create --order A-1 --amount 150.00 --currency RUB --method SBP\n\
         then open the cabinet in a browser and pay the invoice there. Ctrl-C ends the sandbox and forgets everything;\n\
         with `--seed` and the number above a new one makes the same ids, for which the state directory must be new too.\n"
    )
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = match &error {
            Error::NotLoopback(_) => Some("use an address such as `127.0.0.1:8490`"),
            Error::Bind { .. } => Some("is another sandbox running? port 0 takes a free port"),
            Error::Statuses(_) => Some("mend the lists in the file of `--statuses`"),
            Error::Interval | Error::Notifier(_) | Error::Ended => None,
        };
        let failure = Self::new(Exit::Error, error).context("could not run the sandbox");
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let hint = match &error {
            WriteError::Io { .. } | WriteError::NoPort { .. } => None,
            WriteError::NotLoopback(_) => {
                Some("use an address such as `127.0.0.1:8480` for `--config-listen`".to_owned())
            }
            WriteError::NotOurs(_) => Some("name another file for `--write-config`".to_owned()),
            WriteError::Edited { url, .. } => Some(format!(
                "set `url` and `cabinet_url` under `[service]` to `{url}` there, or name another file for `--write-config`"
            )),
        };
        let failure = Self::new(Exit::Error, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::{self, ConfigFile, Flags, Sources};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_defaults_of_the_flags_are_those_of_the_sandbox() {
        let line = Line::parse_from(["sandbox", "--seed=1"]);
        let (flags, own) = (line.args.settings().expect("good"), Settings::default());
        assert_eq!(format!("{flags:?}"), format!("{own:?}"));
    }

    #[test]
    fn a_flag_that_cannot_be_meant_is_told_what_would_do() {
        for (flag, wanted) in [
            ("--listen=localhost:18600", "`127.0.0.1:8490`"),
            ("--control=127.0.0.1", "the number of a port"),
            ("--speed=abc", "a whole number, 1 to 3600"),
            ("--speed=3601", "a whole number, 1 to 3600"),
            ("--interval=0", "a whole number, 1 to 60"),
            ("--pool=-1", "a whole number, 0 to"),
            ("--seed=x", "a whole number, 0 to"),
        ] {
            let refused = Line::try_parse_from(["sandbox", flag]).err();
            let said = refused
                .map(|refused| refused.to_string())
                .unwrap_or_default();
            assert!(said.contains(wanted), "{flag}: {said}");
        }
        let line = Line::parse_from(["sandbox", "--listen=[::1]:0", "--speed=3600", "--pool=0"]);
        assert_eq!((line.args.speed, line.args.pool), (3_600, 0));
    }

    #[test]
    fn without_a_seed_each_sandbox_makes_other_ids() {
        let line = Line::parse_from(["sandbox"]);
        let seed = |line: &Line| line.args.settings().expect("good").seed;
        assert_ne!(seed(&line), seed(&line));
    }

    #[test]
    fn status_names_are_read_from_a_file_or_their_fault_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("statuses.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).expect("written");
            let path = file.to_str().expect("text");
            let line = Line::parse_from(["sandbox", "--statuses", path]);
            line.args.settings().map(|settings| settings.statuses)
        };
        let good = "open=['new']\npaid=['Оплачен']\nfailed=['no']\nreversed=['back']\n";
        assert_eq!(read(good).expect("good").paid, ["Оплачен"]);
        let short = read("open=['new']\npaid=['x']\nfailed=['y']\n").expect_err("no reversed");
        assert!(short.line().contains("reversed"));
        assert!(read(&good.replace("no", "")).is_err());
        let shared = read(&good.replace("Оплачен", "new")).expect_err("shared");
        let said = shared.line();
        assert!(said.contains("`open` and `paid` share one"), "{said}");
    }

    #[tokio::test]
    async fn the_config_it_writes_is_one_that_tilld_takes() {
        let line = Line::parse_from(["sandbox", "--listen=127.0.0.1:0", "--control=127.0.0.1:0"]);
        let sandbox = sandbox::start(line.args.settings().expect("good"), Shutdown::new()).await;
        let sandbox = sandbox.expect("it starts");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("deep").join("config.toml");
        let path =
            sandbox::write_config(&sandbox, &file, line.args.config_listen).expect("written");
        assert_eq!(path.made.as_deref(), file.parent());
        let path = path.path;
        let loaded = config::load(&Sources {
            file: ConfigFile::Named(path),
            variables: Vec::new(),
            flags: Flags::default(),
        });
        let settings = loaded.expect("tilld takes it").settings;
        assert_eq!(settings.service.url, Some(sandbox.url()));
        assert_eq!(settings.statuses.paid, sandbox.statuses().paid);
        assert_eq!(settings.statuses.open, sandbox.statuses().open);
        assert_eq!(
            settings.state_dir,
            Some(directory.path().join("deep/state"))
        );
        assert!(settings.require_service().is_ok() && settings.require_public().is_ok());
        sandbox.stop().await;
    }
}
