//! `POST /faults`: what the sandbox is to do wrong. Each key sets one fault, keys that are absent leave theirs as it is. What
//! cannot be meant is refused with a word that names the key, and then nothing is set. Counts are a number (so many times
//! more), `true` (until changed) or `false`.
//!
//! For all, or with `invoice` (an invoice id or an order id, also of one that is not made yet) for one:
//!
//! | key | fault |
//! |---|---|
//! | `lose` | count: a notification is never sent |
//! | `repeat`, `copies` | count: sent with so many copies more (1 unless told, at most 100) |
//! | `wrong_token`, `missing_token` | count: with a wrong token, with none |
//! | `torn` | count: the first try ends in the middle of the body |
//! | `slow` | count: the first try's body comes in pieces with pauses |
//! | `delay_ms` | each waits first, and newer ones pass it |
//! | `reorder` | `true`: each waits for the next one of its invoice and goes after it |
//! | `give_up_ms` | the sender waits so long for an answer; 0: as long as usual |
//! | `presentation` | `header:NAME`, `bearer`, `basic-password`, `query:NAME`, `body:/POINTER`, `hmac-sha256:header:NAME`, `standard-webhooks` or `none`; `usual` or `null` takes it back |
//! | `no_requisites` | count: no requisite is free where one is needed: at a create, or when a customer chooses a method |
//! | `clock_skew_ms` | `updatedAt` is so far off, a day at most |
//! | `same_instant` | `true`: `updatedAt` stays when the status changes |
//! | `hold_create_ms` | create answers wait, a minute at most, while a notification of the new invoice goes first |
//! | `drop_create_answer` | count: the invoice is made, the connection closed without an answer |
//! | `api_status` | what `login`, `token`, `create` or `fetch` answers instead of its own; see [`super::instead`]. With `invoice`: `create` by its order, or `fetch` |
//! | `reset` | `true`: all faults off, with `invoice` those of this one, then the other keys. Who hangs or is held for their sake waits no more |
//!
//! For all only:
//!
//! | key | fault |
//! |---|---|
//! | `rates` | `{"lose": 10, …}`: by chance, of a hundred. `lose`, `repeat`, `late`, `reorder`, `wrong_token`, `missing_token`, `torn`, `slow`, `presentation`, `give_up` (after 3 s), `no_requisites`, `clock_skew` (up to an hour), `same_instant`; `api`: any endpoint fails in a way that passes, `login`, `token`, `create` or `fetch`: this one does; with `.401`, `.403`, `.404`, `.429`, `.500`, `.503`, `.html`, `.redirect`, `.hang`, `.cut` or `.drop_answer` behind it: in this way |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hyper::StatusCode;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};

use super::done;
use super::instead::AskedApi;
use super::read::{object, read, read_value};
use crate::http::Response;
use crate::sandbox::routes::Refusal;
use crate::sandbox::state::State;
use crate::sandbox::state::faults::{
    ApiFault, Endpoint, Faults, Presentation, RateOf, Times, Wrongs,
};
use crate::sandbox::world::World;

/// Longest delay and patience, ms: a test that waits longer than this is stuck.
const LONGEST_MS: i64 = 600_000;
/// Longest hold, ms: it keeps a connection busy, of which there is a number.
const LONGEST_HOLD_MS: i64 = 60_000;
/// The service's clock is off by at most a day, ms.
const MOST_SKEW_MS: i64 = 86_400_000;
/// Most copies of a repeated notification.
const MOST_COPIES: i64 = 100;
/// Longest name of an invoice: that of an order, bytes.
const LONGEST_NAME: usize = 2_048;

/// The word that takes a presentation back.
const USUAL: &str = "usual";

/// What is wrong with what is asked for.
pub(in super::super) type Lack = Cow<'static, str>;

/// What is to go wrong. Also what a step of a scenario says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Asked {
    reset: Option<bool>,
    invoice: Option<String>,
    lose: Option<Count>,
    repeat: Option<Count>,
    copies: Option<i64>,
    wrong_token: Option<Count>,
    missing_token: Option<Count>,
    torn: Option<Count>,
    slow: Option<Count>,
    delay_ms: Option<i64>,
    reorder: Option<bool>,
    give_up_ms: Option<i64>,
    /// `None`: left as it is; `null` and [`USUAL`] take it back.
    #[serde(default, deserialize_with = "told")]
    presentation: Option<String>,
    no_requisites: Option<Count>,
    rates: Option<BTreeMap<String, i64>>,
    clock_skew_ms: Option<i64>,
    same_instant: Option<bool>,
    hold_create_ms: Option<i64>,
    drop_create_answer: Option<Count>,
    #[serde(default, deserialize_with = "api")]
    api_status: Option<AskedApi>,
}

/// A key that is there, though it may be `null`.
fn told<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let word = Option::deserialize(deserializer)?;
    Ok(Some(word.unwrap_or_else(|| USUAL.to_owned())))
}

fn api<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AskedApi>, D::Error> {
    let there = Option::<Map<String, Value>>::deserialize(deserializer)?;
    there
        .as_ref()
        .map(object)
        .transpose()
        .map_err(de::Error::custom)
}

/// [`Times`] as JSON has it.
pub(super) struct Count(pub(super) Times);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let times = match Value::deserialize(deserializer)? {
            Value::Bool(true) => Some(Times::Always),
            Value::Bool(false) => Some(Times::Never),
            Value::Number(number) => number.as_u64().map(Times::next),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        };
        times
            .map(Self)
            .ok_or_else(|| de::Error::custom("a count is a whole number, true or false"))
    }
}

/// Sets faults and shows all of them.
pub(super) fn set(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    let asked: Asked = read(body)?;
    world.with(|state, _| {
        apply(state, asked).map_err(|what| Refusal::new(StatusCode::BAD_REQUEST, what))?;
        Ok(done(&view(&state.faults)))
    })
}

/// What is wrong with faults that are to be asked for later.
pub(in super::super) fn check(asked: &Value) -> Result<(), String> {
    let asked: Asked = read_value(asked)?;
    apply_to(&mut Faults::default(), asked).map_err(Lack::into_owned)
}

/// Sets what is asked for. `Err` says what is wrong with it, and then nothing was set.
pub(in super::super) fn apply(state: &mut State, asked: Asked) -> Result<(), Lack> {
    apply_to(&mut state.faults, asked)
}

/// What was asked for, and can be.
struct Wish {
    copies: Option<u32>,
    delay_ms: Option<u64>,
    give_up_ms: Option<u64>,
    hold_create_ms: Option<u64>,
    clock_skew_ms: Option<i64>,
    presentation: Option<Place>,
    api: Option<ApiFault>,
    rates: Vec<(RateOf, u8)>,
}

fn apply_to(faults: &mut Faults, mut asked: Asked) -> Result<(), Lack> {
    let wish = wish(&asked)?;
    let name = asked.invoice.take();
    let whose = name.as_deref();
    if let Some(name) = whose {
        for_one(name, &asked)?;
        if !faults.has_room(name) {
            return Err("too many invoices with faults of their own".into());
        }
    }
    if asked.reset == Some(true) {
        faults.reset(whose);
    }
    for (of, percent) in &wish.rates {
        faults.rates.set_of(of, *percent);
    }
    faults.change(whose, |wrongs| grant(wrongs, asked, wish));
    Ok(())
}

/// What makes sense for one invoice alone.
fn for_one(name: &str, asked: &Asked) -> Result<(), Lack> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err("`invoice` is the id of an invoice or an order, 1 to 2048 bytes".into());
    }
    if asked.rates.is_some() {
        return Err("`rates` are of all invoices: they do not go with `invoice`".into());
    }
    let api = asked.api_status.as_ref();
    if api.is_some_and(|api| !matches!(api.endpoint(), Some(Endpoint::Create | Endpoint::Fetch))) {
        return Err(
            "`api_status` of one `invoice` is of `create` or `fetch`: nobody logs in for an invoice".into(),
        );
    }
    Ok(())
}

/// Where the token is to stand.
enum Place {
    /// Where it usually does.
    Usual,
    /// There.
    At(Presentation),
}

fn place(word: &str) -> Result<Place, Lack> {
    if word == USUAL {
        return Ok(Place::Usual);
    }
    let known = Presentation::parse(word).map(Place::At);
    known.ok_or_else(|| {
        let forms = Presentation::FORMS.map(|form| format!("`{form}`"));
        format!("`presentation` is {} or `{USUAL}`", forms.join(", ")).into()
    })
}

fn wish(asked: &Asked) -> Result<Wish, Lack> {
    let presentation = asked.presentation.as_deref().map(place).transpose()?;
    let mut rates = Vec::new();
    for (word, percent) in asked.rates.iter().flatten() {
        let of = RateOf::parse(word).ok_or_else(|| {
            format!("`rates` are of what may go wrong by chance: `{word}` is none of that")
        })?;
        rates.push((of, within(*percent, 0..=100, "`rates` are 0 to 100")?));
    }
    let number = |value: Option<i64>, most, what| {
        let within = |value| within::<u64>(value, 0..=most, what);
        value.map(within).transpose()
    };
    let copies = asked.copies.map(|copies| {
        let what = "`copies` is 1 to 100";
        within(copies, 1..=MOST_COPIES, what)
    });
    let skew = asked.clock_skew_ms.map(|ms| {
        let what = "`clock_skew_ms` is -86400000 to 86400000";
        within(ms, -MOST_SKEW_MS..=MOST_SKEW_MS, what)
    });
    Ok(Wish {
        copies: copies.transpose()?,
        delay_ms: number(asked.delay_ms, LONGEST_MS, "`delay_ms` is 0 to 600000")?,
        give_up_ms: number(asked.give_up_ms, LONGEST_MS, "`give_up_ms` is 0 to 600000")?,
        hold_create_ms: number(
            asked.hold_create_ms,
            LONGEST_HOLD_MS,
            "`hold_create_ms` is 0 to 60000",
        )?,
        clock_skew_ms: skew.transpose()?,
        presentation,
        api: asked.api_status.as_ref().map(AskedApi::fault).transpose()?,
        rates,
    })
}

pub(super) fn within<T: TryFrom<i64>>(
    value: i64,
    range: RangeInclusive<i64>,
    what: &'static str,
) -> Result<T, Lack> {
    let fits = Some(value).filter(|value| range.contains(value));
    fits.and_then(|value| T::try_from(value).ok())
        .ok_or(what.into())
}

fn grant(wrongs: &mut Wrongs, asked: Asked, wish: Wish) {
    for (place, count) in [
        (&mut wrongs.lose, asked.lose),
        (&mut wrongs.repeat, asked.repeat),
        (&mut wrongs.wrong_token, asked.wrong_token),
        (&mut wrongs.missing_token, asked.missing_token),
        (&mut wrongs.torn, asked.torn),
        (&mut wrongs.slow, asked.slow),
        (&mut wrongs.no_requisites, asked.no_requisites),
        (&mut wrongs.drop_create_answer, asked.drop_create_answer),
    ] {
        *place = count.map_or(*place, |Count(times)| times);
    }
    wrongs.copies = wish.copies.unwrap_or(wrongs.copies);
    wrongs.delay_ms = wish.delay_ms.unwrap_or(wrongs.delay_ms);
    wrongs.reorder = asked.reorder.unwrap_or(wrongs.reorder);
    if let Some(ms) = wish.give_up_ms {
        wrongs.give_up_ms = (ms > 0).then_some(ms);
    }
    if let Some(place) = wish.presentation {
        wrongs.presentation = match place {
            Place::Usual => None,
            Place::At(presentation) => Some(presentation),
        };
    }
    wrongs.clock_skew_ms = wish.clock_skew_ms.unwrap_or(wrongs.clock_skew_ms);
    wrongs.same_instant = asked.same_instant.unwrap_or(wrongs.same_instant);
    wrongs.hold_create_ms = wish.hold_create_ms.unwrap_or(wrongs.hold_create_ms);
    if let Some(api) = wish.api {
        wrongs.set_api(api);
    }
}

/// The faults as `GET /state` shows them.
pub(in super::super) fn view(faults: &Faults) -> Value {
    let own: BTreeMap<&str, Value> = faults
        .owners()
        .map(|(name, own)| (name, wrongs(own)))
        .collect();
    let mut shown = wrongs(&faults.all);
    if let Value::Object(shown) = &mut shown {
        shown.insert("own".to_owned(), json!(own));
        shown.insert("rates".to_owned(), json!(faults.rates.shown()));
    }
    shown
}

fn wrongs(wrongs: &Wrongs) -> Value {
    let api: Vec<Value> = wrongs
        .api()
        .iter()
        .map(|api| {
            json!({
                "endpoint": api.endpoint.word(),
                "answer": api.answer.word(),
                "times": count(api.times),
            })
        })
        .collect();
    json!({
        "lose": count(wrongs.lose),
        "repeat": count(wrongs.repeat),
        "copies": wrongs.copies,
        "wrong_token": count(wrongs.wrong_token),
        "missing_token": count(wrongs.missing_token),
        "torn": count(wrongs.torn),
        "slow": count(wrongs.slow),
        "delay_ms": wrongs.delay_ms,
        "reorder": wrongs.reorder,
        "give_up_ms": wrongs.give_up_ms,
        "presentation": wrongs.presentation.as_ref().map(Presentation::word),
        "no_requisites": count(wrongs.no_requisites),
        "clock_skew_ms": wrongs.clock_skew_ms,
        "same_instant": wrongs.same_instant,
        "hold_create_ms": wrongs.hold_create_ms,
        "drop_create_answer": count(wrongs.drop_create_answer),
        "api_status": api,
    })
}

fn count(times: Times) -> Value {
    match times {
        Times::Never => false.into(),
        Times::Always => true.into(),
        Times::Next(left) => left.into(),
    }
}
