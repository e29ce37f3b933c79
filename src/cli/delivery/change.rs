//! What `retry`, `replay`, `release` and `abandon` have in common: which deliveries are meant, what would be changed, the
//! change in bounded commits, and what is said about it.
//!
//! A reader finds what would be changed, for `--dry-run` and for the change alike; the writer then touches only those whose
//! state still lets it. So a daemon may go on meanwhile: what began to run, or ended, between the two is left alone and told.

use serde_json::{Map, Value};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger::{self, CLOSE_WITHIN};
use super::super::output::{print_json, talk};
use super::super::owner;
use super::show::deliveries;
use super::{find_event, missing, view};
use crate::answer::find::find_order;
use crate::clock::wall_ms;
use crate::ledger::{
    ACT_AT_ONCE, Act, Acting, Choice, DeliveryKey, DeliveryRow, DeliveryState, Ledger, Missing,
    Page, ReadError, Reader, Whose, is_served,
};

/// Runs under way that are counted at most; there are a handful.
const RUNNING_MOST: u32 = 1_000;

/// What a person wants changed, as the flags say it.
#[derive(Debug)]
pub(super) struct Wish {
    /// What is done.
    pub(super) act: Act,
    /// To what an event is owed, by its id or number.
    pub(super) event: Option<String>,
    /// To what is owed for an order. Neither: to everything.
    pub(super) order: Option<String>,
    /// To one hook only.
    pub(super) hook: Option<String>,
    /// To those that have come this far only.
    pub(super) state: Option<DeliveryState>,
    /// Only shown.
    pub(super) dry_run: bool,
}

/// Does it, or shows what it would do.
pub(super) async fn run(wish: Wish, context: Context) -> Result<Exit, Failure> {
    let Wish { act, dry_run, .. } = wish;
    if !dry_run {
        owner::check(&context.state_dir()?)?;
    }
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(&context)?;
    let choice = choice(wish, &reader).await?;
    let mut pages = Pages::begin(&reader, act, choice.clone()).await?;
    let first = pages.next().await?;
    let missing = missing::found(&reader, act, &choice).await?;
    if first.is_empty() && missing.is_empty() {
        return Err(nothing(&reader, act, &choice).await?);
    }
    let running = running(&reader, act, &choice).await?;
    if dry_run {
        return show(&context, pages, first, (&missing, running)).await;
    }
    let ledger = ledger::open(&context)?;
    let done = async {
        let made = missing::make(&ledger, act, &choice).await?;
        let done = change(&ledger, pages, first).await?;
        Ok::<_, Failure>((made + done.changed, done.moved_on))
    };
    let done = done.await;
    ledger.close(CLOSE_WITHIN).await;
    let (changed, moved_on) = done?;
    let left_alone = running + moved_on;
    if changed == 0 {
        let (error, hint) = (
            format!(
                "nothing to {}: {} on meanwhile",
                words(act).name,
                counted(moved_on, "moved")
            ),
            "`tilld delivery list` shows how far each delivery has come",
        );
        return Err(Failure::new(Exit::Error, error).hint(hint));
    }
    if context.output.json() {
        print_json(&answer(act, &choice, changed, left_alone))?;
    } else {
        let told = format!("{} {}", are(changed), words(act).now);
        context.output.line(&told)?;
    }
    tell_left_alone(running, moved_on);
    if act != Act::Abandon && !is_served(&context.state_dir()?) {
        talk("no daemon runs: `tilld serve` runs what is due");
    }
    Ok(Exit::Ok)
}

/// The words of an act.
struct Words {
    /// As the command is called.
    name: &'static str,
    /// How many it changed, in JSON.
    field: &'static str,
    /// What is said of those it changed.
    now: &'static str,
    /// What is said of those it takes.
    takes: &'static str,
}

const fn words(act: Act) -> Words {
    let (name, field, now, takes) = match act {
        Act::Retry => ("retry", "retried", "due now", "waits or was given up"),
        Act::Replay => ("replay", "replayed", "due once more", "is done"),
        Act::Release => ("release", "released", "due now", "is held"),
        Act::Abandon => ("abandon", "abandoned", "given up", "waits or is held"),
        Act::Acknowledge => (
            "acknowledge",
            "acknowledged",
            "acknowledged",
            "was given up and is not acknowledged",
        ),
    };
    Words {
        name,
        field,
        now,
        takes,
    }
}

async fn choice(wish: Wish, reader: &Reader) -> Result<Choice, Failure> {
    let Wish {
        act,
        event,
        order,
        hook,
        state,
        ..
    } = wish;
    let whose = match (event, order) {
        (Some(name), _) => {
            let event = find_event(reader, &name).await?;
            let whose = Whose::Event(event.event_id.clone());
            let of_it = Choice {
                whose: whose.clone(),
                hook: hook.clone(),
                ..Choice::default()
            };
            if missing::found(reader, act, &of_it).await?.is_empty() {
                deliveries(reader, &event, hook.as_deref()).await?;
            }
            whose
        }
        (None, Some(order)) => {
            find_order(reader, &order, "`tilld delivery list` names orders").await?;
            Whose::Order(order)
        }
        (None, None) => Whose::All,
    };
    Ok(Choice {
        whose,
        hook,
        state,
        ..Choice::default()
    })
}

/// What an act would change, page by page; what is made after the beginning is not meant.
pub(in crate::cli) struct Pages<'a> {
    reader: &'a Reader,
    act: Act,
    choice: Choice,
    page: Page,
}

impl<'a> Pages<'a> {
    pub(in crate::cli) async fn begin(
        reader: &'a Reader,
        act: Act,
        choice: Choice,
    ) -> Result<Self, ReadError> {
        let page = Page {
            after: DeliveryKey(0),
            upto: reader.newest_delivery().await?,
            most: ACT_AT_ONCE,
        };
        Ok(Self {
            reader,
            act,
            choice,
            page,
        })
    }

    /// The next page; empty behind the last one.
    pub(in crate::cli) async fn next(&mut self) -> Result<Vec<DeliveryRow>, ReadError> {
        let rows = self
            .reader
            .would_change(self.act, self.choice.clone(), self.page.clone())
            .await?;
        if let Some(last) = rows.last() {
            self.page.after = last.key;
        }
        Ok(rows)
    }
}

/// What became of a change.
#[derive(Default)]
pub(in crate::cli) struct Done {
    pub(in crate::cli) changed: usize,
    /// Were found, and stood otherwise a moment later.
    moved_on: usize,
}

/// Changes what the pages find, in bounded commits.
pub(in crate::cli) async fn change(
    ledger: &Ledger,
    mut pages: Pages<'_>,
    first: Vec<DeliveryRow>,
) -> Result<Done, Failure> {
    let (writer, act) = (ledger.writer(), pages.act);
    let mut done = Done::default();
    let mut rows = first;
    while !rows.is_empty() {
        let acting = Acting {
            act,
            keys: rows.iter().map(|row| row.key).collect(),
            now_ms: wall_ms(),
        };
        let changed = writer.act(acting).await.map_err(|error| {
            let failure = Failure::from(error);
            if done.changed == 0 {
                return failure;
            }
            let before = format!("{} {}, the others not", are(done.changed), words(act).now);
            failure.context(before)
        })?;
        done.changed += changed;
        done.moved_on += rows.len().saturating_sub(changed);
        rows = pages.next().await?;
    }
    Ok(done)
}

async fn show(
    context: &Context,
    mut pages: Pages<'_>,
    first: Vec<DeliveryRow>,
    (missing, running): (&[Missing], usize),
) -> Result<Exit, Failure> {
    missing::tell(missing);
    let (mut rows, mut shown) = (first, 0);
    while !rows.is_empty() {
        view::print_page(context.output, &rows, shown == 0)?;
        shown += rows.len();
        rows = pages.next().await?;
    }
    let would = counted(shown + missing.len(), "would");
    talk(&format!(
        "nothing was changed: {would} be {}",
        words(pages.act).now
    ));
    tell_left_alone(running, 0);
    Ok(Exit::Ok)
}

/// How many of those that are meant run now. Nobody asks it of `release`: what is held never runs.
async fn running(reader: &Reader, act: Act, choice: &Choice) -> Result<usize, ReadError> {
    if act == Act::Release || choice.state.is_some() {
        return Ok(0);
    }
    let choice = Choice {
        state: Some(DeliveryState::Running),
        ..choice.clone()
    };
    let rows = reader.chosen_deliveries(choice, RUNNING_MOST).await?;
    Ok(rows.len())
}

fn tell_left_alone(running: usize, moved_on: usize) {
    if running > 0 {
        let verb = if running == 1 { "is" } else { "are" };
        talk(&format!(
            "{} running now and left alone",
            counted(running, verb)
        ));
    }
    if moved_on > 0 {
        talk(&format!(
            "{} on meanwhile and left alone",
            counted(moved_on, "moved")
        ));
    }
}

fn answer(act: Act, choice: &Choice, changed: usize, left_alone: usize) -> Value {
    let mut fields = Map::new();
    if let Whose::Event(event_id) = &choice.whose {
        fields.insert("event_id".to_owned(), event_id.as_str().into());
    }
    fields.insert(words(act).field.to_owned(), changed.into());
    fields.insert("left_alone".to_owned(), left_alone.into());
    Value::Object(fields)
}

/// `1 delivery moved`, `2 deliveries moved`.
pub(in crate::cli) fn counted(count: usize, verb: &str) -> String {
    let plural = if count == 1 { "delivery" } else { "deliveries" };
    format!("{count} {plural} {verb}")
}

/// `1 delivery is`, `2 deliveries are`.
fn are(count: usize) -> String {
    counted(count, if count == 1 { "is" } else { "are" })
}

/// Why nothing is to be changed.
async fn nothing(reader: &Reader, act: Act, choice: &Choice) -> Result<Failure, Failure> {
    let name = words(act).name;
    if let Whose::Event(event_id) = &choice.whose {
        let rows = reader.deliveries_of(event_id).await?;
        let hook = choice.hook.as_ref();
        let wanted = |row: &&DeliveryRow| hook.is_none_or(|hook| *hook == row.hook);
        let meant: Vec<&DeliveryRow> = rows.iter().filter(wanted).collect();
        let reasons: Vec<String> = meant
            .iter()
            .map(|row| format!("`{}` {}", row.hook, stands(act, row)))
            .collect();
        let runs = meant.iter().any(|row| row.state == DeliveryState::Running);
        let hint = if act == Act::Abandon && runs {
            "a run under way is never cut short: give it up once it waits again".to_owned()
        } else {
            format!("`tilld delivery show {event_id}` shows what was said")
        };
        let error = format!("nothing to {name}: {}", reasons.join(", "));
        return Ok(Failure::new(Exit::Error, error).hint(hint));
    }
    let whose = match &choice.whose {
        Whose::Order(order) => format!(" of order `{order}`"),
        Whose::All | Whose::Event(_) => String::new(),
    };
    let hook = choice.hook.as_ref();
    let hook = hook.map_or_else(String::new, |hook| format!(" for hook `{hook}`"));
    let takes = match choice.state {
        Some(state) => format!("that is {} would change", state.as_str()),
        None if act == Act::Retry && matches!(choice.whose, Whose::All) => {
            "waits or was given up by the schedule".to_owned()
        }
        None => words(act).takes.to_owned(),
    };
    let running = match running(reader, act, choice).await? {
        0 => String::new(),
        1 => "; 1 is running now".to_owned(),
        more => format!("; {more} are running now"),
    };
    let error = format!("nothing to {name}: no delivery{whose}{hook} {takes}{running}");
    let hint = "`tilld delivery list` shows how far each delivery has come";
    Ok(Failure::new(Exit::Error, error).hint(hint))
}

/// How a delivery stands that an act does not take.
const fn stands(act: Act, row: &DeliveryRow) -> &'static str {
    match (row.state, act) {
        (DeliveryState::Done, Act::Retry) => {
            "is done already, `tilld delivery replay` runs it once more"
        }
        (DeliveryState::Done, _) => "is done already",
        (DeliveryState::Running, _) => "is running now",
        (DeliveryState::Waiting, _) => "waits to be run",
        (DeliveryState::Abandoned, Act::Abandon) if row.acknowledged => "was given up already",
        (DeliveryState::Abandoned, Act::Abandon) => {
            "was given up already, `tilld ack ORDER` ends its alert"
        }
        (DeliveryState::Abandoned, _) => "was given up, `tilld delivery retry` starts it over",
        (DeliveryState::Held, Act::Release | Act::Abandon) => "is held",
        (DeliveryState::Held, _) => "is held until `tilld delivery release`",
    }
}
