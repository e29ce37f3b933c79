//! A scenario's file: a summary, settings, and a list of steps. Pure. Promises that whatever is wrong with it is said before
//! anything runs, with the line it is on; a key that is not known is refused.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::config::toml;
use crate::invoice::amount::Amount;
use crate::invoice::ids::OrderId;
use crate::sandbox;

/// The line every step begins with.
const STEP: &str = "[[step]]";
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

/// A scenario.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// What it is about, in a line.
    pub(super) summary: String,
    /// What it runs with.
    pub(super) settings: Settings,
    /// What happens, in this order.
    pub(super) steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// 1-based.
    pub(super) number: usize,
    /// The line it begins at, 1-based; `None` when the steps stand in one list.
    pub(super) line: Option<usize>,
    /// What happens.
    pub(super) act: Act,
}

/// What a scenario runs with.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    /// Requisites in the service's pool.
    pub(super) pool: usize,
    /// Seconds in which an invoice can be paid.
    pub(super) window_s: u64,
    /// Milliseconds before a notification is tried again.
    pub(super) notify_retry_ms: u64,
    /// These times pass so many times faster.
    pub(super) speed: u32,
    /// Seconds of silence after which tilld asks about an invoice. The usual ones are more than a scenario lasts, so that it
    /// is no accident who finds a payment.
    pub(super) poll_s: u64,
    /// What is expected may take so long, seconds.
    pub(super) within_s: u64,
    /// tilld's `moves.confirm_paid`.
    pub(super) confirm_paid: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pool: 500,
            window_s: 1_800,
            notify_retry_ms: 100,
            speed: 1,
            poll_s: 600,
            within_s: 15,
            confirm_paid: false,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    summary: String,
    #[serde(default)]
    settings: Settings,
    #[serde(default)]
    step: Vec<BTreeMap<String, Value>>,
}

/// What a step does. One key of a `[[step]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    /// The shop opens an invoice.
    Open(Open),
    /// The customer pays what was asked; after an end without money: late.
    Pay(String),
    /// The customer pays too little.
    PayLess(String),
    /// The customer pays too much.
    PayMore(String),
    /// The customer cancels.
    Cancel(String),
    /// The payment window closes.
    Expire(String),
    /// The money goes back.
    Refund(String),
    /// The next so many notifications are never sent.
    Lose(u64),
    /// What else goes wrong, in the words of `POST /faults`.
    Faults(Value),
    /// Exactly so many requisites are free.
    Pool(u64),
    /// The service sends its last word again.
    Repeat(Repeat),
    /// A stranger who knows the address claims that the order is paid.
    Forge(String),
    /// The shop has the service asked.
    Poll(String),
    /// tilld is killed and started again.
    Kill(Yes),
    /// tilld is killed, and stays down.
    Down(Yes),
    /// tilld is started again.
    Up(Yes),
    /// Nothing, for so many milliseconds.
    PauseMs(u64),
    /// The run goes on once this is so.
    Wait(Expect),
    /// This is so, at once or soon.
    Expect(Expect),
    /// Many orders at once, all drawn from the seed.
    Storm(Storm),
}

/// The value of a verb that takes nothing: `true`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yes;

impl<'de> Deserialize<'de> for Yes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            Ok(Self)
        } else {
            Err(serde::de::Error::custom(
                "it is `true`, or the step is left out",
            ))
        }
    }
}

/// How an invoice is shown to the customer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// By the shop.
    H2h,
    /// By the payment page.
    Redirect,
    /// By the one that is drawn.
    #[default]
    Any,
}

/// How an opening ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ends {
    /// With an invoice for the customer.
    #[default]
    Open,
    /// Without, since all requisites are occupied.
    NoRequisites,
    /// Nobody knows how.
    Unknown,
}

impl Ends {
    /// Its word.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::NoRequisites => "no_requisites",
            Self::Unknown => "unknown",
        }
    }
}

/// An invoice to be opened.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    /// The shop's order.
    pub(super) order: String,
    /// Drawn when it is left out.
    pub(super) amount: Option<String>,
    /// Drawn when it is left out.
    #[serde(default)]
    pub(super) mode: Mode,
    /// Another one, whatever stands.
    #[serde(default)]
    pub(super) another: bool,
    /// How that ends.
    #[serde(default)]
    pub(super) ends: Ends,
}

/// A notification that comes again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Repeat {
    /// Of which order.
    pub(super) order: String,
    /// How often, all at once.
    #[serde(default = "once")]
    pub(super) times: u64,
}

const fn once() -> u64 {
    1
}

/// What is to be so of an order. What is left out may be as it likes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// Which order.
    pub(super) order: String,
    /// What its invoice amounts to.
    pub(super) outcome: Option<String>,
    /// Who brought that.
    pub(super) found_by: Option<String>,
    /// The service's word.
    pub(super) status: Option<String>,
    /// Invoices it has in the ledger.
    pub(super) invoices: Option<u64>,
    /// Events it has.
    pub(super) events: Option<u64>,
    /// Runs of the script for it.
    pub(super) runs: Option<u64>,
    /// How often its goods were handed over.
    pub(super) handed_over: Option<u64>,
    /// Notifications of it that were refused.
    pub(super) refusals: Option<u64>,
    /// The answer to its last notification: an HTTP status, or why there is none.
    pub(super) answer: Option<Value>,
}

/// Many orders at once.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Storm {
    /// How many.
    pub(super) orders: u64,
    /// How often tilld is killed meanwhile.
    #[serde(default)]
    pub(super) kills: u64,
    /// Whether the service is away for a while.
    #[serde(default)]
    pub(super) away: bool,
    /// What goes wrong by chance meanwhile, of a hundred each.
    #[serde(default)]
    pub(super) rates: BTreeMap<String, u8>,
}

/// Reads a scenario.
pub(super) fn parse(text: &str) -> Result<Scenario, FormatError> {
    let about = |what: String| FormatError {
        line: line_in(&what),
        step: None,
        what,
    };
    let file: File = toml::read(text).map_err(|error| {
        let mut error = about(error.to_string());
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
    let lines = lines_of_steps(text);
    let mut orders = Orders::default();
    let steps = file.step.into_iter().enumerate().map(|(at, keys)| {
        let line = lines.get(at).copied().filter(|_| !lines.is_empty());
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
        let what = error.to_string();
        let what = what.replace("unknown variant", "unknown step");
        if what.contains("unknown step") {
            what
        } else {
            format!("`{named}`: {what}")
        }
    })
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

fn bounded(name: &str, number: u64, range: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    if range.contains(&number) {
        return Ok(());
    }
    Err(format!("`{name}` is {} to {}", range.start(), range.end()))
}

fn expected(expect: &Expect) -> Result<(), String> {
    const OUTCOMES: [&str; 5] = ["open", "paid", "failed", "reversed", "mismatch"];
    const FINDERS: [&str; 4] = ["notification", "poll", "create", "operator"];
    let one_of = |name: &str, given: &Option<String>, list: &[&str]| match given {
        Some(word) if !list.contains(&word.as_str()) => {
            let list: Vec<String> = list.iter().map(|word| format!("`{word}`")).collect();
            Err(format!("`{name}` is one of {}", list.join(", ")))
        }
        Some(_) | None => Ok(()),
    };
    one_of("outcome", &expect.outcome, &OUTCOMES)?;
    one_of("found_by", &expect.found_by, &FINDERS)?;
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

fn lines_of_steps(text: &str) -> Vec<usize> {
    let begins = |(at, line): (usize, &str)| line.trim_start().starts_with(STEP).then_some(at + 1);
    text.lines().enumerate().filter_map(begins).collect()
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
