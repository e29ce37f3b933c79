//! What a scenario is made of: settings and steps, as its file has them. Plain data; what is more than a form is looked at in
//! `format`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

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
    /// By the one that is drawn: it is left out.
    #[default]
    #[serde(skip_deserializing)]
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

impl Expect {
    /// What of it is counted: a number that is right may grow.
    pub(super) fn counts(&self) -> Self {
        Self {
            order: self.order.clone(),
            invoices: self.invoices,
            events: self.events,
            runs: self.runs,
            handed_over: self.handed_over,
            refusals: self.refusals,
            ..Self::default()
        }
    }
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
