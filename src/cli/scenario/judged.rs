//! A merchant's own script, judged: `--verify` has it run as the hook for paid orders, by the real outbox, in the situations
//! that cost merchants money. What it handed over is read from what it says, or from what the merchant's own program says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::draw;
use super::report::Row;
use super::scene::Scene;
use super::step::Mode;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stage::trouble::Trouble;

/// The events the script is run for: paid, and paid with another amount, as by a shop that has one script for both.
pub(super) const ON: [&str; 2] = ["paid", "mismatch"];
/// It has so long.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// All its runs are over by then: three attempts that each take all their time, and some more.
const ALL_RUNS: Duration = Duration::from_secs(40);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How a line begins by which a script says that it handed an order over.
const SAYS: &str = "handed over ";
/// The word after which the scenario's draws for these orders go: no step has it.
const STEP: usize = usize::MAX;
/// The orders the script is judged by.
const PAID: &str = "verify-paid";
const AGAIN: &str = "verify-again";
const TWO: &str = "verify-two";
const LESS: &str = "verify-less";

/// Runs the script as it is, and keeps what it said and how it ended. The first run for one order counts as failed though
/// its work is done, as when the machine dies in between: it is run again for the same event.
pub(super) const WITNESS: &str = r#"#!/bin/sh
# Runs the script that is judged, as tilld runs it, and keeps what it said.
run=$1/$TILLD_EVENT_ID.$TILLD_ATTEMPT
: >"$run.began"
/bin/sh -c "$2" >"$run.out" 2>"$run.err"
code=$?
echo "$code" >"$run.code"
cat "$run.out"
cat "$run.err" >&2
case $TILLD_ORDER_ID.$TILLD_ATTEMPT.$code in
    verify-again.1.0) exit 1 ;;
esac
exit "$code"
"#;

/// The script, and how its goods are counted.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// What a shell runs.
    pub(super) command: String,
    /// What a shell runs to list the orders that were handed over. Without it the script's own lines count.
    pub(super) goods: Option<String>,
}

impl Script {
    /// The same, to be run from anywhere: it runs in a directory of its own, as in production, so that a path that is meant
    /// from here is made absolute.
    pub(super) fn runnable_anywhere(self) -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Error, error).context("could not tell the present directory")
        })?;
        Ok(Self {
            command: absolute(&self.command, &here),
            goods: self.goods,
        })
    }
}

/// A line for the shell whose first word is the path of a file here, with that path made absolute.
fn absolute(command: &str, here: &Path) -> String {
    let word = command.split_whitespace().next().unwrap_or_default();
    let path = here.join(word);
    if word.starts_with('/') || !word.contains('/') || !path.exists() {
        return command.to_owned();
    }
    let path = path.to_string_lossy().replace('\'', "'\\''");
    command.replacen(word, &format!("'{path}'"), 1)
}

impl Scene<'_> {
    /// How often an order's goods were handed over.
    pub(super) async fn handed_over(&self, order: &str) -> Result<usize, Trouble> {
        match self.script {
            Some(Script {
                goods: Some(goods), ..
            }) => {
                let listed = listed(goods).await?;
                Ok(listed.lines().filter(|line| line.trim() == order).count())
            }
            Some(Script { goods: None, .. }) => {
                let said = self.kept("out")?;
                let is_it = |line: &str| line.trim().strip_prefix(SAYS) == Some(order);
                let lines = said.iter().flat_map(|(_, text)| text.lines());
                Ok(lines.filter(|line| is_it(line)).count())
            }
            None => {
                let path = self.directory.fulfilled();
                let log = match fs::read_to_string(&path) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                    read => read.map_err(|source| Trouble::File { path, source })?,
                };
                let start = format!("order={order} ");
                Ok(log.lines().filter(|line| line.starts_with(&start)).count())
            }
        }
    }

    /// Files of this kind that are kept of the runs: their names without the ending, and their text.
    fn kept(&self, kind: &str) -> Result<Vec<(String, String)>, Trouble> {
        let path = self.directory.runs();
        let failed = |path: &PathBuf| {
            let path = path.clone();
            |source| Trouble::File { path, source }
        };
        let mut kept = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed(&path))? {
            let file = entry.map_err(failed(&path))?.path();
            let name = file
                .file_stem()
                .map(|name| name.to_string_lossy().into_owned());
            let is_it = file.extension().is_some_and(|ending| ending == kind);
            if let Some(name) = name.filter(|_| is_it) {
                let bytes = fs::read(&file).map_err(failed(&file))?;
                kept.push((name, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        kept.sort();
        Ok(kept)
    }

    /// Judges the script.
    pub(super) async fn judge(&self, seed: u64) -> Result<Vec<Row>, Trouble> {
        for order in [PAID, AGAIN, TWO, LESS] {
            let asked = draw::asked(seed, STEP, order, None, Mode::H2h);
            self.open(&asked, false).await?;
        }
        for (order, what) in [
            (PAID, "paid"),
            (AGAIN, "paid"),
            (TWO, "paid"),
            (LESS, "paid-less"),
        ] {
            self.happen(order, what).await?;
        }
        let again = draw::asked(seed, STEP, TWO, None, Mode::H2h);
        self.open(&again, true).await?;
        self.happen(TWO, "paid").await?;
        self.all_over().await?;
        let mut rows = Vec::new();
        for (order, what, wanted) in [
            (PAID, "script: paid", 1),
            (AGAIN, "script: run twice", 1),
            (TWO, "script: paid twice", 1),
            (LESS, "script: paid less", 0),
        ] {
            let seen = self.handed_over(order).await?;
            rows.push(Row::new(what, goods(wanted), goods(seen)));
        }
        rows.extend(self.manners().await?);
        Ok(rows)
    }

    /// Waits until no run is left: each of the four has had its events, and the script has been run for them.
    async fn all_over(&self) -> Result<(), Trouble> {
        let until = Instant::now() + ALL_RUNS;
        loop {
            let mut open = Vec::new();
            for (order, events) in [(PAID, 1), (AGAIN, 1), (TWO, 2), (LESS, 1)] {
                let (over, owed) = self.over(order).await?;
                if !over || owed < events {
                    open.push(order);
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                let expected = format!("the script to be done within {} s", ALL_RUNS.as_secs());
                return Err(Trouble::otherwise(
                    expected,
                    format!("not for {}", open.join(", ")),
                ));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// How it ended, how long it took, and whether it printed a secret.
    async fn manners(&self) -> Result<Vec<Row>, Trouble> {
        let began = self.kept("began")?;
        let ended = self.kept("code")?;
        let codes: BTreeSet<&str> = ended.iter().map(|(_, code)| code.trim()).collect();
        let codes: Vec<&str> = codes.into_iter().collect();
        let late = began.len().saturating_sub(ended.len());
        let within = format!("within {} s", TIMEOUT.as_secs());
        let time = match late {
            0 => within.clone(),
            late => format!("{late} of {} cut off", began.len()),
        };
        let book = self.book().await?;
        let mut secrets = vec![("the access token", self.token.expose())];
        for booked in &book {
            secrets.push(("a notify token", booked.token.expose()));
            secrets.push(("a ref", booked.reference()));
        }
        let mut printed = BTreeSet::new();
        for (_, text) in self.kept("out")?.iter().chain(&self.kept("err")?) {
            let found = secrets.iter().filter(|(_, secret)| text.contains(secret));
            printed.extend(found.map(|(name, _)| *name));
        }
        let printed: Vec<&str> = printed.into_iter().collect();
        let printed = match printed.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        Ok(vec![
            Row::new("script: exit codes", "0", codes.join(", ")),
            Row::new("script: time", within, time),
            Row::new("script: secrets shown", "none", printed),
        ])
    }
}

fn goods(count: usize) -> String {
    match count {
        0 => "no goods".to_owned(),
        1 => "goods once".to_owned(),
        count => format!("goods {count} times"),
    }
}

/// What the merchant's own program lists.
async fn listed(command: &str) -> Result<String, Trouble> {
    let run = |source| Trouble::Goods {
        command: command.to_owned(),
        source,
    };
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let late = |_elapsed| Trouble::otherwise(format!("`{command}` to end"), "it goes on");
    let output = timeout(TIMEOUT, child).await.map_err(late)?.map_err(run)?;
    if !output.status.success() {
        let found = crate::cli::stage::command::told(output.status);
        return Err(Trouble::otherwise(
            format!("`{command}` to end with exit 0"),
            found,
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
