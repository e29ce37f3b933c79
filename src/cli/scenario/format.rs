//! A scenario's file: a summary, settings, and a list of steps. Pure. Promises that whatever is wrong with it is said before
//! anything runs, with the line it is on; a key that is not known is refused.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::step::{Act, Expect, Open, Scenario, Settings, Step, Yes};
use crate::config::toml;
use crate::invoice::amount::Amount;
use crate::invoice::ids::OrderId;
use crate::invoice::observation::Source;
use crate::invoice::status::Outcome;
use crate::sandbox;

/// Longest scenario, in steps: what a person can follow, and the rest is drawn.
const MOST_STEPS: usize = 500;
/// Most orders of a storm.
const MOST_ORDERS: u64 = 200;
/// Most kills of a storm.
const MOST_KILLS: u64 = 10;
/// Longest pause, ms.
const LONGEST_PAUSE_MS: u64 = 60_000;
/// Most notifications that are repeated at once.
const MOST_TIMES: u64 = 100;

/// What is wrong with a scenario's file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FormatError {
    /// 1-based, where it is known.
    line: Option<usize>,
    /// 1-based, where it is about one.
    step: Option<usize>,
    what: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.step) {
            (Some(line), Some(step)) => write!(f, "line {line} (step {step}): {}", self.what),
            (None, Some(step)) => write!(f, "step {step}: {}", self.what),
            (Some(line), None) => write!(f, "line {line}: {}", self.what),
            (None, None) => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for FormatError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    summary: String,
    #[serde(default)]
    settings: Settings,
    #[serde(default)]
    step: Vec<BTreeMap<String, Value>>,
}

/// Reads a scenario.
pub(super) fn parse(text: &str) -> Result<Scenario, FormatError> {
    let about = |what: String| FormatError {
        line: line_in(&what),
        step: None,
        what,
    };
    let file: File = toml::read(text).map_err(|error| {
        let mut error = about(plainly(&error.to_string()));
        error.line = error.line.or_else(|| line_of_key(text, &error.what));
        error
    })?;
    if file.step.is_empty() {
        return Err(about("a scenario has at least one `[[step]]`".to_owned()));
    }
    if file.step.len() > MOST_STEPS {
        return Err(about(format!("a scenario has at most {MOST_STEPS} steps")));
    }
    check_settings(&file.settings).map_err(|what| about(what.to_owned()))?;
    let lines = lines_of_steps(text, file.step.len());
    let mut orders = Orders::default();
    let steps = file.step.into_iter().enumerate().map(|(at, keys)| {
        let line = lines.get(at).copied();
        let wrong = |what: String| FormatError {
            line,
            step: Some(at + 1),
            what,
        };
        let act = act(keys).map_err(&wrong)?;
        orders.check(&act).map_err(&wrong)?;
        Ok(Step {
            number: at + 1,
            line,
            act,
        })
    });
    Ok(Scenario {
        summary: file.summary,
        settings: file.settings,
        steps: steps.collect::<Result<_, _>>()?,
    })
}

fn act(keys: BTreeMap<String, Value>) -> Result<Act, String> {
    if keys.len() != 1 {
        let names: Vec<String> = keys.keys().map(|name| format!("`{name}`")).collect();
        let found = match names.as_slice() {
            [] => "nothing".to_owned(),
            names => names.join(" and "),
        };
        return Err(format!("a step says one thing, and here is {found}"));
    }
    let named = keys.keys().next().cloned().unwrap_or_default();
    let value = Value::Object(keys.into_iter().collect());
    serde_json::from_value(value).map_err(|error| {
        let what = plainly(&error.to_string());
        let unknown = format!("unknown variant `{named}`");
        if let Some(rest) = what.strip_prefix(&unknown) {
            format!("unknown step `{named}`{rest}")
        } else {
            format!(
                "`{named}`: {}",
                what.replace("unknown variant", "unknown word")
            )
        }
    })
}

/// What a reader says, without the words of its language and without quotes in quotes.
fn plainly(what: &str) -> String {
    let mut what = what.replace("`one of `", "one of `").replace("``", "`");
    for number in ["u64", "u32", "u16", "u8", "usize"] {
        what = what.replace(
            &format!("expected {number}"),
            "expected a whole number, 0 or more",
        );
    }
    what
}

fn check_settings(settings: &Settings) -> Result<(), &'static str> {
    if !(1..=604_800).contains(&settings.window_s) {
        return Err("`settings.window_s` is 1 to 604800");
    }
    if settings.notify_retry_ms > 3_600_000 {
        return Err("`settings.notify_retry_ms` is at most 3600000");
    }
    if !(1..=3_600).contains(&settings.speed) {
        return Err("`settings.speed` is 1 to 3600");
    }
    if !(1..=86_400).contains(&settings.poll_s) {
        return Err("`settings.poll_s` is 1 to 86400");
    }
    if !(1..=600).contains(&settings.within_s) {
        return Err("`settings.within_s` is 1 to 600");
    }
    Ok(())
}

/// The orders that were opened so far.
#[derive(Default)]
struct Orders(Vec<String>);

impl Orders {
    fn check(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Open(open) => self.opens(open),
            Act::Pay(order)
            | Act::PayLess(order)
            | Act::PayMore(order)
            | Act::Cancel(order)
            | Act::Expire(order)
            | Act::Refund(order)
            | Act::Forge(order)
            | Act::Poll(order) => self.knows(order),
            Act::Repeat(repeat) => {
                bounded("times", repeat.times, 1..=MOST_TIMES)?;
                self.knows(&repeat.order)
            }
            Act::Wait(expect) | Act::Expect(expect) => {
                self.knows(&expect.order)?;
                expected(expect)
            }
            Act::Faults(asked) => sandbox::check_faults(asked),
            Act::PauseMs(ms) => bounded("pause_ms", *ms, 1..=LONGEST_PAUSE_MS),
            Act::Storm(storm) => {
                bounded("orders", storm.orders, 1..=MOST_ORDERS)?;
                bounded("kills", storm.kills, 0..=MOST_KILLS)?;
                sandbox::check_faults(&serde_json::json!({ "rates": storm.rates }))
            }
            Act::Lose(_) | Act::Pool(_) | Act::Kill(Yes) | Act::Down(Yes) | Act::Up(Yes) => Ok(()),
        }
    }

    fn opens(&mut self, open: &Open) -> Result<(), String> {
        OrderId::new(open.order.as_str()).map_err(|error| format!("`order`: {error}"))?;
        if let Some(amount) = &open.amount {
            Amount::parse_payable(amount).map_err(|error| format!("`amount`: {error}"))?;
        }
        if is_reserved(&open.order) {
            return Err(format!(
                "`order`: `{}` is a name of orders that are drawn or judge a script",
                open.order
            ));
        }
        self.0.push(open.order.clone());
        Ok(())
    }

    fn knows(&self, order: &str) -> Result<(), String> {
        if self.0.iter().any(|known| known == order) {
            return Ok(());
        }
        Err(format!("no step before it opens order `{order}`"))
    }
}

/// Orders of a storm are `S2-1`, those that judge a script `verify-paid`.
fn is_reserved(order: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let drawn = order
        .strip_prefix('S')
        .and_then(|rest| rest.split_once('-'));
    order.starts_with("verify-")
        || drawn.is_some_and(|(step, number)| is_number(step) && is_number(number))
}

fn bounded(name: &str, number: u64, range: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    if range.contains(&number) {
        return Ok(());
    }
    Err(format!("`{name}` is {} to {}", range.start(), range.end()))
}

fn expected(expect: &Expect) -> Result<(), String> {
    let outcomes = Outcome::ALL.map(Outcome::as_str);
    let finders = Source::ALL.map(Source::as_str);
    let one_of = |name: &str, given: &Option<String>, list: &[&str]| match given {
        Some(word) if !list.contains(&word.as_str()) => {
            let list: Vec<String> = list.iter().map(|word| format!("`{word}`")).collect();
            Err(format!("`{name}` is one of {}", list.join(", ")))
        }
        Some(_) | None => Ok(()),
    };
    one_of("outcome", &expect.outcome, &outcomes)?;
    one_of("found_by", &expect.found_by, &finders)?;
    let says = expect.outcome.is_some()
        || expect.found_by.is_some()
        || expect.status.is_some()
        || expect.answer.is_some()
        || [
            expect.invoices,
            expect.events,
            expect.runs,
            expect.handed_over,
            expect.refusals,
        ]
        .iter()
        .any(Option::is_some);
    if says {
        Ok(())
    } else {
        Err("beside `order` it says what is to be so, as `outcome = \"paid\"`".to_owned())
    }
}

/// The line a message of the TOML reader names.
fn line_in(what: &str) -> Option<usize> {
    let (_, rest) = what.split_once("line ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

/// The first line that sets a key which the message names in backticks.
fn line_of_key(text: &str, what: &str) -> Option<usize> {
    what.split('`').skip(1).step_by(2).find_map(|name| {
        let name = name.rsplit('.').next().unwrap_or(name);
        let sets = |line: &str| {
            let rest = line.trim_start().strip_prefix(name);
            let rest = rest.or_else(|| line.trim_start().strip_prefix('[')?.strip_prefix(name));
            rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']']))
        };
        text.lines().position(sets).map(|at| at + 1)
    })
}

/// The lines the steps begin at; none where it is not sure that they are those.
fn lines_of_steps(text: &str, steps: usize) -> Vec<usize> {
    let is_head = |line: &str| {
        let name = line
            .trim_start()
            .strip_prefix("[[")?
            .split_once("]]")?
            .0
            .trim();
        Some(name.trim_matches(['"', '\'']) == "step")
    };
    let begins = |(at, line): (usize, &str)| is_head(line)?.then_some(at + 1);
    let lines: Vec<usize> = text.lines().enumerate().filter_map(begins).collect();
    // A text over several lines may hold whatever looks like a head.
    let is_sure = !text.contains("\"\"\"") && !text.contains("\'\'\'");
    if is_sure && lines.len() == steps {
        lines
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_read_with_the_lines_of_its_steps() {
        let text = "summary = \"one\"\n\n[[step]]\nopen = { order = \"A-1\" }\n\n[[step]]\npay = \"A-1\"\n";
        let scenario = parse(text).expect("good");
        let lines: Vec<_> = scenario.steps.iter().map(|step| step.line).collect();
        assert_eq!(lines, [Some(3), Some(6)]);
        let listed = "summary = 'x'\nstep = [{ open = { order = 'A-1' } }]\n";
        let scenario = parse(listed).expect("good");
        assert_eq!(scenario.steps.first().and_then(|step| step.line), None);
        let spaced = text.replace("[[step]]\npay", " [[ step ]]\npay");
        let scenario = parse(&spaced).expect("good");
        assert_eq!(scenario.steps.last().and_then(|step| step.line), Some(6));
        let told = text.replace("\"one\"", "\"\"\"\n[[step]]\n\"\"\"");
        let scenario = parse(&told).expect("good");
        assert_eq!(scenario.steps.last().and_then(|step| step.line), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let head = "summary = \"x\"\n[[step]]\nopen = { order = \"A-1\" }\n[[step]]\n";
        for (text, parts) in [
            ("", ["summary", ""]),
            ("summary = \"x\"\n", ["at least one `[[step]]`", ""]),
            ("summary = \"x\"\nstpe = 1\n", ["line 2", "stpe"]),
            (
                "summary = \"x\"\n[settings]\npoool = 1\n",
                ["line 3", "poool"],
            ),
            ("summary = \"x\"\n[settings\n", ["line 2", ""]),
            (
                &format!("{head}pya = \"A-1\"\n"),
                ["line 4 (step 2)", "`pya`, expected one of `open`"],
            ),
            (
                &format!("{head}pay = \"A-2\"\n"),
                ["line 4 (step 2)", "opens order `A-2`"],
            ),
            (
                &format!("{head}open = {{ order = \"A-2\", amont = \"1\" }}\n"),
                ["step 2", "`amont`"],
            ),
            (
                &format!("{head}open = {{ order = \"A-2\", amount = \"0\" }}\n"),
                ["step 2", "amount"],
            ),
            (
                &format!("{head}expect = {{ order = \"A-1\" }}\n"),
                ["step 2", "to be so"],
            ),
            (
                &format!("{head}expect = {{ order = \"A-1\", outcome = \"payed\" }}\n"),
                ["step 2", "`paid`"],
            ),
            (
                &format!("{head}faults = {{ loose = 1 }}\n"),
                ["step 2", "loose"],
            ),
            (
                &format!("{head}faults = {{ rates = {{ loose = 1 }} }}\n"),
                ["step 2", "rate"],
            ),
            (
                &format!("{head}open = {{ order = \"A-2\", mode = \"H2H\" }}\n"),
                ["`open`: unknown word `H2H`", "expected `h2h` or `redirect`"],
            ),
            (
                &format!("{head}open = {{ order = \"S2-1\" }}\n"),
                ["step 2", "`S2-1` is a name"],
            ),
            (
                &format!("{head}open = {{ order = \"verify-paid\" }}\n"),
                ["step 2", "`verify-paid` is a name"],
            ),
            (
                &format!("{head}lose = \"one\"\n"),
                ["step 2", "expected a whole number"],
            ),
            ("summary = nothing\n", ["line 1", "string"]),
            (
                "summary = \"x\"\n[settings]\npoool = 1\n",
                ["`poool`", "expected one of `pool`"],
            ),
            (&format!("{head}kill = false\n"), ["step 2", "`true`"]),
            (
                &format!("{head}pay = \"A-1\"\nlose = 1\n"),
                ["step 2", "`lose` and `pay`"],
            ),
            (
                &format!("{head}storm = {{ orders = 0 }}\n"),
                ["step 2", "`orders` is 1 to"],
            ),
        ] {
            let error = parse(text).expect_err(text).to_string();
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }
}
