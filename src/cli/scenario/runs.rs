//! The runs of a script that is judged: how each is kept, and what they come to. What is kept of a run, and what is read of it,
//! has a bound, whatever the script prints. What is shown of it has no secret in it and nothing a terminal would obey.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::judged::TIMEOUT;
use super::report::Row;
use super::scene::Scene;
use crate::cli::output::escape;
use crate::cli::stage::trouble::Trouble;
use crate::invoice::status::Outcome;

/// So much is kept of what a run says, bytes: the 512 blocks that the witness has.
const LARGEST: u64 = 512 * 512;
/// So much of its end may be shown, bytes.
const SHOWN: u64 = 4096;
/// So many lines of it.
const SHOWN_LINES: usize = 8;
/// So much of a line, characters.
const SHOWN_WIDTH: usize = 200;
/// Exit codes of the hook contract that say that a person must look. Of a payment that is not as agreed that is a good answer.
const A_PERSON: [i32; 3] = [65, 77, 78];

/// Runs the script as it is, and keeps what it said and how it ended: in the directory `$1` the line `$2`. The first run for
/// the order `$3` counts as failed though its work is done, as when the machine dies in between: it is run again for the same
/// event.
pub(super) const WITNESS: &str = r#"#!/bin/sh
# Runs the script that is judged, as tilld runs it, and keeps what it said.
run=$1/$TILLD_EVENT_ID.$TILLD_ATTEMPT

# Keeps the first 256 KiB of what comes, and lets the rest go by.
keep() {
    { (ulimit -c 0; ulimit -f 512; exec cat >"$1") || exec cat >/dev/null; } <"$2" 2>/dev/null
}

echo "$TILLD_OUTCOME" >"$run.began"
mkfifo "$run.o" "$run.e" || exit 78
keep "$run.out" "$run.o" & out=$!
keep "$run.err" "$run.e" & err=$!
/bin/sh -c "$2" >"$run.o" 2>"$run.e"
code=$?
echo "$code" >"$run.code"
# Whoever the script has left behind may hold its output open: that is not waited for for long.
(trap 'kill "$nap"; exit' TERM; sleep 2 & nap=$!; wait "$nap"; kill "$out" "$err") >/dev/null 2>&1 & watch=$!
wait "$out" "$err" 2>/dev/null
kill "$watch" 2>/dev/null
wait "$watch" 2>/dev/null
rm -f "$run.o" "$run.e"
cat "$run.out"
cat "$run.err" >&2
[ "$TILLD_ORDER_ID.$TILLD_ATTEMPT.$code" = "$3.1.0" ] && exit 1
exit "$code"
"#;

/// A run, as it is kept.
#[derive(Debug)]
struct Run {
    /// The path of what is kept of it, without the ending.
    path: PathBuf,
    began: SystemTime,
    /// What the event says of the order.
    outcome: String,
    /// `None` when it was cut off.
    code: Option<i32>,
}

impl Run {
    fn file(&self, kind: &str) -> PathBuf {
        self.path.with_added_extension(kind)
    }

    fn is_good(&self) -> bool {
        let odd = [Outcome::Mismatch, Outcome::SecondPayment];
        let odd = odd.iter().any(|outcome| self.outcome == outcome.as_str());
        let person = odd && self.code.is_some_and(|code| A_PERSON.contains(&code));
        self.code == Some(0) || person
    }

    fn end(&self) -> String {
        self.code
            .map_or_else(|| "cut off".to_owned(), |code| format!("exit {code}"))
    }
}

/// Text of a file, up to the bound. Nothing when it is not there yet.
fn text(path: &Path) -> Result<String, Trouble> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Err(error) if is_missing(&error) => Ok(String::new()),
        read => read.map_err(|source| trouble(path, source)),
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn trouble(path: &Path, source: io::Error) -> Trouble {
    let path = path.to_owned();
    Trouble::File { path, source }
}

/// All runs, oldest first.
fn all(directory: &Path) -> Result<Vec<Run>, Trouble> {
    let failed = |source| trouble(directory, source);
    let mut runs = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file = entry.path();
        if file.extension().is_none_or(|ending| ending != "began") {
            continue;
        }
        let path = file.with_extension("");
        let began = entry.metadata().and_then(|told| told.modified());
        let code = text(&path.with_added_extension("code"))?;
        runs.push(Run {
            began: began.map_err(failed)?,
            outcome: text(&file)?.trim().to_owned(),
            code: code.trim().parse().ok(),
            path,
        });
    }
    runs.sort_by(|one, other| (one.began, &one.path).cmp(&(other.began, &other.path)));
    Ok(runs)
}

/// What a run says on a line of its own, counted over all runs.
pub(super) fn count_said(directory: &Path, line: &str) -> Result<usize, Trouble> {
    let mut count = 0;
    for run in all(directory)? {
        let said = text(&run.file("out"))?;
        count += said.lines().filter(|said| said.trim() == line).count();
    }
    Ok(count)
}

/// How the codes are told.
fn codes(runs: &[Run]) -> Row {
    let what = "script: exit codes";
    let codes: BTreeSet<i32> = runs.iter().filter_map(|run| run.code).collect();
    let told: Vec<String> = codes.iter().map(i32::to_string).collect();
    let told = told.join(", ");
    let ended = |run: &&Run| run.code.is_some();
    if codes.is_empty() {
        let seen = if runs.is_empty() {
            "no run"
        } else {
            "none, cut off"
        };
        Row::new(what, "0", seen)
    } else if runs.iter().filter(ended).all(Run::is_good) {
        Row::new(what, told.clone(), told)
    } else {
        Row::new(what, "0", told)
    }
}

fn time(runs: &[Run]) -> Row {
    let within = format!("within {} s", TIMEOUT.as_secs());
    let seen = match runs.iter().filter(|run| run.code.is_none()).count() {
        0 => within.clone(),
        late => format!("{late} of {} cut off", runs.len()),
    };
    Row::new("script: time", within, seen)
}

/// The end of a file, from the beginning of a line on: a cut would hide a secret from whoever looks for it.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(SHOWN);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(SHOWN).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match text.split_once('\n') {
        Some((_, whole)) if start > 0 => whole.to_owned(),
        None if start > 0 => String::new(),
        _ => text.into_owned(),
    })
}

/// Its last lines, as they may be shown.
fn shown(text: &str, secrets: &[(&str, &str)]) -> Vec<String> {
    let mut text = text.to_owned();
    for (name, secret) in secrets {
        text = text.replace(secret, &format!("[{name}]"));
    }
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    let cut = |line: &&str| {
        let line: String = line.chars().take(SHOWN_WIDTH).collect();
        escape(&line).into_owned()
    };
    lines.iter().skip(from).map(cut).collect()
}

impl Scene<'_> {
    /// How it ended, how long it took, how much it said, and whether it printed a secret.
    pub(super) async fn manners(&self) -> Result<Vec<Row>, Trouble> {
        let runs = all(&self.directory.runs())?;
        let book = self.book().await?;
        let mut secrets = vec![("the access token", self.token.expose())];
        for booked in &book {
            secrets.push(("a notify token", booked.token.expose()));
            secrets.push(("a ref", booked.reference()));
        }
        let (mut printed, mut is_much) = (BTreeSet::new(), false);
        for file in runs
            .iter()
            .flat_map(|run| ["out", "err"].map(|kind| run.file(kind)))
        {
            let text = text(&file)?;
            let found = secrets.iter().filter(|(_, secret)| text.contains(secret));
            printed.extend(found.map(|(name, _)| *name));
            is_much |= fs::metadata(&file).is_ok_and(|kept| kept.len() >= LARGEST);
        }
        let printed: Vec<&str> = printed.into_iter().collect();
        let printed = match printed.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let bound = format!("below {} KiB", LARGEST / 1024);
        let much = if is_much { "too much output" } else { &bound };
        Ok(vec![
            codes(&runs),
            time(&runs),
            Row::new("script: output", bound.clone(), much),
            Row::new("script: secrets shown", "none", printed),
        ])
    }

    /// What the script said last on stderr in the first run that failed, or else in the first that said something.
    pub(super) async fn last_words(&self) -> Result<Vec<String>, Trouble> {
        let runs = all(&self.directory.runs())?;
        let says = |run: &&Run| fs::metadata(run.file("err")).is_ok_and(|file| file.len() > 0);
        let failed = runs.iter().find(|run| !run.is_good());
        let Some(run) = failed.or_else(|| runs.iter().find(says)) else {
            return Ok(Vec::new());
        };
        let book = self.book().await?;
        let mut secrets = vec![("access token", self.token.expose())];
        for booked in &book {
            secrets.push(("notify token", booked.token.expose()));
            secrets.push(("ref", booked.reference()));
        }
        let path = run.file("err");
        let end = match end_of(&path) {
            Err(error) if is_missing(&error) => String::new(),
            end => end.map_err(|source| trouble(&path, source))?,
        };
        let lines = shown(&end, &secrets);
        let end = run.end();
        let mut words = vec![if lines.is_empty() {
            format!("the script ({end}) said nothing on stderr that can be shown")
        } else {
            format!("the script ({end}) said last on stderr:")
        }];
        words.extend(lines.into_iter().map(|line| format!("    {line}")));
        words.push(if self.directory.is_kept() {
            format!("all of it: {}", escape(&path.to_string_lossy()))
        } else {
            "all of it: `--dir DIR` keeps it in DIR/runs/*.err".to_owned()
        });
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcome: &str, code: Option<i32>) -> Run {
        Run {
            path: PathBuf::from("evt.1"),
            began: SystemTime::UNIX_EPOCH,
            outcome: outcome.to_owned(),
            code,
        }
    }

    #[track_caller]
    fn told(runs: &[Run], is_good: bool, seen: &str) {
        let row = codes(runs);
        assert_eq!(
            (row.holds(), row.seen.as_str()),
            (is_good, seen),
            "{runs:?}"
        );
    }

    #[test]
    fn codes_are_judged_by_the_contract_of_hooks() {
        told(&[run("paid", Some(0)), run("mismatch", Some(0))], true, "0");
        told(
            &[run("paid", Some(0)), run("mismatch", Some(65))],
            true,
            "0, 65",
        );
        told(
            &[run("paid", Some(65)), run("paid", Some(0))],
            false,
            "0, 65",
        );
        told(&[run("mismatch", Some(75))], false, "75");
        let mixed = [100, 3, 20].map(|code| run("paid", Some(code)));
        told(&mixed, false, "3, 20, 100");
        told(&[run("paid", None)], false, "none, cut off");
        told(&[], false, "no run");
    }

    #[test]
    fn what_is_shown_is_short_harmless_and_holds_no_secret() {
        let secrets = [("ref", "s3cret")];
        let many: Vec<String> = (0..50).map(|number| format!("line {number}")).collect();
        let many = many.join("\n");
        assert_eq!(shown(&many, &[]).len(), SHOWN_LINES);
        assert_eq!(
            shown(&many, &[]).last().map(String::as_str),
            Some("line 49")
        );
        let lines = shown("bad \u{1b}[31ms3cret\n\n", &secrets).concat();
        assert!(
            lines.contains("[ref]") && !lines.contains('\u{1b}'),
            "{lines}"
        );
        let long = "x".repeat(SHOWN_WIDTH * 2);
        assert_eq!(shown(&long, &[]).concat().len(), SHOWN_WIDTH);
    }

    #[test]
    fn a_line_that_is_cut_is_not_shown() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("evt.1.err");
        let long = usize::try_from(SHOWN).expect("small");
        fs::write(&file, format!("{}\nlast\n", "s".repeat(long))).expect("written");
        assert_eq!(end_of(&file).expect("read"), "last\n");
        fs::write(&file, "s".repeat(long + 1)).expect("written");
        assert_eq!(end_of(&file).expect("read"), "");
    }
}
