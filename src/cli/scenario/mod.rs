//! `tilld sandbox run`: plays a scenario and says whether all came as expected. The sandbox runs in this process, the daemon is
//! the real binary as a child, in a directory of its own. One seed, one trace. Needs no network, no terminal and no home;
//! prints no secret. Nothing is left when it ends by itself or by a signal that can be caught.

mod book;
mod draw;
mod ending;
mod facts;
mod format;
mod goods;
mod judged;
mod mark;
mod named;
mod play;
mod report;
mod runs;
mod scene;
mod seeds;
mod shop;
mod step;
mod storm;
mod words;

use std::io;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{Output, escape, print, print_json};
use super::stage::signals::Signals;
use crate::entropy;
use crate::regular_file::{self, Rule, Unfit};
use crate::shutdown::Shutdown;
use judged::Script;
use report::Known;
use seeds::{Range, Work};
use step::Scenario;

/// A scenario's file is smaller than this, bytes.
const LARGEST: u64 = 1024 * 1024;

/// What `--help` says of a scenario's steps.
pub(super) const STEPS: &str = "\
A scenario is TOML: `summary`, `[settings]` where the usual ones do not fit, and a `[[step]]` for each thing that happens:
  open         { order, amount?, mode? (h2h, redirect), another?, ends? (no_requisites, unknown) }
  pay, pay_less, pay_more, cancel, expire, refund   \"ORDER\": what its customer or the service does
  lose         N notifications are never sent
  faults       { ... } in the words of the control listener's POST /faults
  pool         N requisites are free
  repeat       { order, times? } the service sends its last word again
  forge        \"ORDER\": a stranger says that it is paid
  poll         \"ORDER\": the shop has the service asked
  kill         true: tilld is killed and started again; down and up do one of the two
  pause_ms     N
  wait         as expect, without a row of the table
  expect       { order, outcome?, found_by?, status?, invoices?, events?, runs?, handed_over?, refusals?, answer? }
  storm        { orders, kills?, away?, rates? } all of it drawn from the seed
What is left out of `open` is drawn from the seed. Exit code 0: all came as expected; 1: it did not; 2: there is no such scenario, or something is wrong with its file.";

/// Flags of `sandbox run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A scenario's file, or the name of one that tilld brings along
    #[arg(value_name = "FILE|NAME", required_unless_present = "list")]
    scenario: Option<String>,
    /// Draw from this number what the scenario leaves to chance [default: a new number]
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Play it with each of these seeds, both ends included
    #[arg(long, value_name = "A..B", value_parser = Range::parse)]
    seeds: Option<Range>,
    /// Play so many seeds at once [default: four for each processor, since they mostly wait]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256), requires = "seeds")]
    jobs: Option<u64>,
    /// Judge this script of yours, a line for the shell: it is run for paid orders as in production. It says
    /// `handed over ORDER` on a line of its own when it hands an order over, unless `--goods` is given. The order ids end
    /// in a mark that no other run has
    #[arg(long, value_name = "CMD")]
    verify: Option<String>,
    /// List with this line for the shell which orders were handed over so far, one a line
    #[arg(long, value_name = "CMD", requires = "verify")]
    goods: Option<String>,
    /// Work in DIR and keep it; an empty directory, a new one, or that of an earlier scenario
    #[arg(long, value_name = "DIR", conflicts_with = "seeds")]
    dir: Option<PathBuf>,
    /// Say all that was done, drawn and seen: the same for the same seed
    #[arg(long, conflicts_with = "seeds")]
    trace: bool,
    /// List the scenarios that tilld brings along
    #[arg(long, conflicts_with_all = ["scenario", "print"])]
    list: bool,
    /// Print the scenario's file, as a beginning for one of your own
    #[arg(long)]
    print: bool,
}

/// Runs `sandbox run`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    if args.list {
        return list(context.output);
    }
    let name = args.scenario.clone().unwrap_or_default();
    let text = text_of(&name)?;
    if args.print {
        print(&text)?;
        return Ok(Exit::Ok);
    }
    let scenario = parse(&name, &text)?;
    let script = match &args.verify {
        Some(command) => Some(Script::new(command, args.goods.as_deref())?),
        None => None,
    };
    // Before anything is started: a signal from now on ends it in order.
    let mut signals = Signals::new()?;
    let known = Known {
        name: quoted(&name),
        flags: flags(&args),
    };
    let work = Work {
        scenario,
        script,
        dir: args.dir.clone(),
        stop: Shutdown::new(),
    };
    let ended = match args.seeds {
        None => one(&args, &context, &known, work, &mut signals).await?,
        Some(range) => many(&args, &context, &known, work, range, &mut signals).await?,
    };
    Ok(if ended { Exit::Ok } else { Exit::Error })
}

async fn one(
    args: &Args,
    context: &Context,
    known: &Known,
    work: Work,
    signals: &mut Signals,
) -> Result<bool, Failure> {
    // Short, since a person may type it again.
    let new = || u64::from(u16::from_be_bytes(entropy::bytes()));
    let seed = args.seed.unwrap_or_else(new);
    let played = seeds::one(&work, seed, signals).await?;
    report::one(context.output, known, &played, args.trace)?;
    Ok(played.holds())
}

async fn many(
    args: &Args,
    context: &Context,
    known: &Known,
    work: Work,
    range: Range,
    signals: &mut Signals,
) -> Result<bool, Failure> {
    let began = tokio::time::Instant::now();
    let all = seeds::many(work, range, args.jobs, signals).await;
    report::many(context.output, known, &all, began.elapsed().as_secs())?;
    match all.cut_short {
        Some(failure) => Err(failure),
        None => Ok(all.failed.is_empty()),
    }
}

fn list(output: Output) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for (name, text) in named::ALL {
        let summary = parse(name, text)?.summary;
        if output.json() {
            print_json(&serde_json::json!({ "name": name, "summary": summary }))?;
        } else {
            rows.push([name.to_owned(), summary]);
        }
    }
    if !output.json() {
        output.table(None, &rows)?;
    }
    Ok(Exit::Ok)
}

/// The text of a scenario: a file's, or one that was brought along.
fn text_of(name: &str) -> Result<String, Failure> {
    if let Some(text) = named::find(name) {
        return Ok(text.to_owned());
    }
    let path = Path::new(name);
    let is_path = name.contains('/') || path.extension().is_some() || path.exists();
    if !is_path {
        let names: Vec<&str> = named::ALL.iter().map(|(name, _)| *name).collect();
        let error = format!("there is no scenario `{}`", escape(name));
        let hint = format!("name a file, or one of {}", names.join(", "));
        return Err(Failure::new(Exit::Usage, error).hint(hint));
    }
    let failed = |error: io::Error| {
        let doing = format!("could not read the scenario `{}`", escape(name));
        Failure::new(Exit::Usage, error)
            .context(doing)
            .hint("`tilld sandbox run --list` lists those that tilld brings along")
    };
    let bytes = regular_file::read(path, Rule::open(LARGEST)).map_err(|unfit| match unfit {
        Unfit::TooLarge(most) => {
            let name = escape(name);
            let error = format!("the scenario `{name}` is larger than {most} bytes");
            Failure::new(Exit::Usage, error)
        }
        unfit => failed(unfit.into_io()),
    })?;
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}

fn parse(name: &str, text: &str) -> Result<Scenario, Failure> {
    format::parse(text).map_err(|error| {
        Failure::new(Exit::Usage, error)
            .context(format!("could not read the scenario `{}`", escape(name)))
            .hint("`tilld sandbox run happy --print` shows how one is written")
    })
}

/// What else stood in the line, to be repeated.
fn flags(args: &Args) -> String {
    let flag = |name: &str, value: &Option<String>| match value {
        Some(value) => format!(" --{name} {}", quoted(value)),
        None => String::new(),
    };
    flag("verify", &args.verify) + &flag("goods", &args.goods)
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_as_a_shell_takes_it() {
        for (text, wanted) in [
            ("./fulfil.sh", "./fulfil.sh"),
            ("php it's.php", "'php it'\\''s.php'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(text), wanted);
        }
    }

    #[test]
    fn the_help_names_every_step() {
        let text = "summary = 'x'\n[[step]]\nnothing = 1\n";
        let told = format::parse(text).expect_err("no such step").to_string();
        let steps: Vec<&str> = told.split('`').skip(3).step_by(2).collect();
        assert!(steps.len() > 15, "{told}");
        let words: Vec<&str> = STEPS.split([' ', ',', '\n']).collect();
        for step in steps {
            assert!(words.contains(&step), "{step}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_answered_with_those_that_are() {
        let failure = text_of("happi").expect_err("no such scenario");
        assert_eq!(failure.exit(), Exit::Usage);
        let hint = failure.way_out().unwrap_or_default();
        assert!(
            named::ALL.iter().all(|(name, _)| hint.contains(name)),
            "{hint}"
        );
    }
}
