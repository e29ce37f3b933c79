//! One attempt at one delivery: start the process, name it in the ledger (unless the claim did), let it run, store how it ended. Or, for a hook
//! that is an address, post and store the answer: there is no process to name.
//! Promises that no program runs whose process is not stored, and that an end is stored as soon as the ledger can.

use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::retry::{self, Count, Plan};
use super::{Action, Desk};
use crate::clock::wall_ms;
use crate::entropy;
use crate::hook::abandonment;
use crate::hook::payload::Facts;
use crate::hook::post::{Prepared, prepare};
use crate::hook::process::{Ending, Finished, Launched, Program, Waiting, launch};
use crate::invoice::moment::Moment;
use crate::ledger::{After, AttemptRecord, Claimed, DeliveryKey, EventRow, InvoiceRow, WriteError};

/// The first and the longest pause before a result that could not be stored is tried again. The ledger's own budget for
/// a lock comes on top.
const STORE_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long the end of a run waits for the claim of what follows it. The claim is made as soon as the outbox has heard of the
/// end; this is for one that is busy, or stops.
const CLAIM_WAIT: Duration = Duration::from_millis(20);

/// A program that could not be started for want of something has ended by then.
const STARTED_AFTER: Duration = Duration::from_secs(1);

/// Whether more can be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Went {
    /// The end of the attempt is stored.
    Stored,
    /// The same of a program, and programs can be started.
    Started,
    /// The ledger or the config did not let it run: a rest does good.
    Trouble,
    /// It could not be started for want of something, and was given back: a rest does good.
    Wanting,
    /// Others could change what it runs, and it was given back: its hook rests.
    Exposed,
}

/// What is made ready before the attempt has its turn.
enum Ready {
    /// The process of a program, which is named in the ledger.
    Program(Box<Launched>),
    /// A request.
    Post(Box<Prepared>),
    /// It is over before it began.
    Not(Ending, Went),
}

/// Makes the attempt once it has its turn; gives the delivery back when it will have none. Safe to abort at any point: the
/// process dies with it, and the ledger still shows it as running.
pub(super) async fn run(
    desk: Arc<Desk>,
    claimed: Claimed,
    waiting: Option<Waiting>,
    turn: oneshot::Receiver<()>,
) -> Went {
    let began = async { turn.await.is_ok().then(wall_ms) };
    let (began, ready) = tokio::join!(began, make_ready(&desk, &claimed, waiting));
    let Some(started_ms) = began else {
        return give_back(&desk, &claimed, ready).await;
    };
    let (finished, went) = match ready {
        Ready::Program(launched) => run_program(&desk, *launched).await,
        Ready::Post(prepared) => (prepared.run(&desk.ending).await, Went::Stored),
        Ready::Not(ending, went) => (unrun(ending), went),
    };
    let ended_ms = wall_ms();
    if let Ending::Wanting(why) = &finished.ending {
        return wanting(&desk, &claimed, why, ended_ms).await;
    }
    if let Ending::Exposed(how) = &finished.ending {
        return exposed(&desk, &claimed, how).await;
    }
    let count = Count {
        before: claimed.attempt.saturating_sub(1),
        failures: claimed.round_attempt.saturating_sub(1),
    };
    let random = u64::from_ne_bytes(entropy::bytes());
    let plan = retry::plan(
        &finished.ending,
        count,
        &desk.settings.schedule,
        random,
        ended_ms,
    );
    let hook = abandonment::configured(&claimed.hook);
    desk.settings.runs.ended(hook, &finished.ending, plan);
    tell(
        &claimed,
        &finished.ending,
        plan,
        ended_ms.saturating_sub(started_ms),
    );
    let result = finished.ending.to_string();
    let record = AttemptRecord {
        started_ms,
        ended_ms,
        result,
        stdout: finished.stdout,
        stderr: finished.stderr,
    };
    let after = match plan {
        Plan::Done => After::Done,
        Plan::Retry { at_ms } => After::Retry { at_ms },
        Plan::Postpone { at_ms } => After::Postponed { at_ms },
        Plan::Abandon => After::Abandoned,
        Plan::Interrupted => After::Interrupted,
    };
    let mut storing = pin!(store_end(&desk, claimed.key, record, after));
    // The first step lets it wait for a claim: what is claimed from here on comes behind it, in the same commit.
    let first = poll_fn(|context| Poll::Ready(storing.as_mut().poll(context))).await;
    let is_stored = match first {
        Poll::Ready(is_stored) => is_stored,
        Poll::Pending => {
            // Nobody hears it once the outbox stops: nothing is begun any more.
            desk.over.send(tokio::task::id()).unwrap_or_default();
            storing.await
        }
    };
    if is_stored { went } else { Went::Trouble }
}

async fn make_ready(desk: &Desk, claimed: &Claimed, waiting: Option<Waiting>) -> Ready {
    match desk.action(&claimed.hook) {
        _ if desk.stopping.is_requested() => Ready::Not(Ending::Interrupted, Went::Stored),
        Some(Action::Run(program)) => make_process(desk, program, claimed, waiting).await,
        Some(Action::Post(target)) => match prepare(target, &told(claimed)).await {
            Ok(prepared) => Ready::Post(Box::new(prepared)),
            Err(error) => Ready::Not(Ending::NotStarted(error.why()), Went::Stored),
        },
        None => {
            tracing::error!(
                hook.name = claimed.hook,
                order.id = claimed.invoice.order_id,
                "no hook `{}` is configured: its delivery waits",
                claimed.hook
            );
            Ready::Not(Ending::Interrupted, Went::Trouble)
        }
    }
}

/// `waiting` is the process that was named with the claim. Without one, it is started and named here.
async fn make_process(
    desk: &Desk,
    program: &Program,
    claimed: &Claimed,
    waiting: Option<Waiting>,
) -> Ready {
    let (facts, around) = (told(claimed), &desk.settings.surroundings);
    let is_named = waiting.is_some();
    let launched = match waiting {
        Some(waiting) => waiting.prepare(program, around, &facts).await,
        None => launch(program, around, &facts).await,
    };
    let launched = match launched {
        Ok(launched) => launched,
        Err(error) => return Ready::Not(error.ending(), Went::Stored),
    };
    if is_named {
        return Ready::Program(Box::new(launched));
    }
    let mark = launched.mark().clone();
    match desk.writer.name_child(claimed.key, mark).await {
        Ok(()) => Ready::Program(Box::new(launched)),
        Err(error) => {
            launched.withdraw().await;
            tracing::warn!(
                hook.name = claimed.hook,
                error = &error as &dyn Error,
                "a hook was not run, since its process could not be stored"
            );
            Ready::Not(Ending::Interrupted, Went::Trouble)
        }
    }
}

/// One that lasts has started: whether programs can be is not for its end to tell.
async fn run_program(desk: &Desk, launched: Launched) -> (Finished, Went) {
    let mut running = pin!(launched.run(&desk.ending));
    match timeout(STARTED_AFTER, running.as_mut()).await {
        Ok(finished) => {
            let is_want = matches!(finished.ending, Ending::Wanting(_) | Ending::Exposed(_));
            if !is_want {
                desk.settings.runs.started();
            }
            (finished, Went::Started)
        }
        Err(_lasts) => {
            desk.settings.runs.started();
            let finished = running.await;
            let is_well = desk.settings.runs.wanting().is_none();
            let went = if is_well { Went::Started } else { Went::Stored };
            (finished, went)
        }
    }
}

/// No attempt either, and no row of one: how often it was looked at says nothing.
async fn exposed(desk: &Desk, claimed: &Claimed, how: &str) -> Went {
    tracing::debug!(
        hook.name = claimed.hook,
        order.id = claimed.invoice.order_id,
        "a hook is not run: {how}"
    );
    match given_back(desk, claimed).await {
        Went::Stored => Went::Exposed,
        other => other,
    }
}

/// No attempt: what a person has to do is none of the hook's doing, and nothing of its schedule is used up.
async fn wanting(desk: &Desk, claimed: &Claimed, why: &str, at_ms: i64) -> Went {
    desk.settings.runs.could_not_start(at_ms, why);
    tracing::warn!(
        hook.name = claimed.hook,
        order.id = claimed.invoice.order_id,
        "a hook waits, since its program cannot be started: {why}"
    );
    match given_back(desk, claimed).await {
        Went::Stored => Went::Wanting,
        other => other,
    }
}

/// Nothing of it was begun, and nothing will be.
async fn give_back(desk: &Desk, claimed: &Claimed, ready: Ready) -> Went {
    if let Ready::Program(launched) = ready {
        launched.withdraw().await;
    }
    given_back(desk, claimed).await
}

async fn given_back(desk: &Desk, claimed: &Claimed) -> Went {
    match desk.writer.give_back(claimed.key).await {
        Ok(()) => Went::Stored,
        Err(error) => {
            // It stands as running, and is found as such: an attempt that was interrupted.
            tracing::warn!(
                hook.name = claimed.hook,
                error = &error as &dyn Error,
                "a delivery that was not begun could not be given back yet"
            );
            Went::Trouble
        }
    }
}

fn unrun(ending: Ending) -> Finished {
    Finished {
        ending,
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

/// Stores the end of an attempt, however long the ledger takes to be able to: unstored, the hook would run once more.
/// False when it never will.
pub(super) async fn store_end(
    desk: &Desk,
    key: DeliveryKey,
    record: AttemptRecord,
    after: After,
) -> bool {
    let (mut pause, longest) = STORE_AGAIN;
    let writer = &desk.writer;
    let first = writer.finish_with_claim(key, record.clone(), after, CLAIM_WAIT);
    let mut stored = first.await;
    loop {
        match stored {
            Ok(()) => return true,
            Err(error @ (WriteError::Ended | WriteError::Missing(_))) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    result = record.result,
                    "the end of a hook cannot be stored"
                );
                return false;
            }
            Err(error @ (WriteError::QueueFull | WriteError::NotStored(_))) => {
                // The ledger tells why, once a minute.
                tracing::debug!(
                    error = &error as &dyn Error,
                    result = record.result,
                    "the end of a hook is not stored yet"
                );
            }
        }
        sleep(pause).await;
        pause = longest.min(pause * 2);
        stored = writer.finish_attempt(key, record.clone(), after).await;
    }
}

/// One line for each attempt. What will be run again is a warning, and says when; an abandoned delivery is for a person to
/// look at, and says where.
fn tell(claimed: &Claimed, ending: &Ending, plan: Plan, took_ms: i64) {
    let (order, hook, attempt) = (&claimed.invoice.order_id, &claimed.hook, claimed.attempt);
    let event = &claimed.event.event_id;
    let next = match plan {
        Plan::Done => "done".to_owned(),
        Plan::Retry { at_ms } | Plan::Postpone { at_ms } => {
            format!("will be run again at {}", Moment::from_ms(at_ms))
        }
        Plan::Abandon => format!("abandoned: `tilld delivery show {event}` shows all attempts"),
        Plan::Interrupted => "waits again".to_owned(),
    };
    // The level is part of a line's fixed description, so each has its own.
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                order.id = order, hook.name = hook, event.id = event, attempt, result = %ending, took_ms,
                "hook {hook} for order {order}: {ending}, {next}"
            )
        };
    }
    match plan {
        Plan::Abandon => line!(error),
        Plan::Retry { .. } | Plan::Postpone { .. } => line!(warn),
        Plan::Done | Plan::Interrupted => line!(info),
    }
}

/// What is told with this delivery: its event, or that the event's delivery to another hook was given up.
fn told(claimed: &Claimed) -> Facts {
    let (event, invoice) = (claimed.event.clone(), claimed.invoice.clone());
    let hook = abandonment::configured(&claimed.hook);
    let facts = facts(hook, claimed.attempt, claimed.replay, event, invoice);
    match &claimed.given_up {
        Some(given_up) => facts.telling(given_up.clone()),
        None => facts,
    }
}

/// What a hook is told of an event: the event as it was, and the invoice as it stands. `attempt` is 1-based.
pub(crate) fn facts(
    hook: &str,
    attempt: u32,
    replay: bool,
    event: EventRow,
    invoice: InvoiceRow,
) -> Facts {
    Facts {
        hook: hook.to_owned(),
        attempt,
        replay,
        event_id: event.event_id,
        seq: event.seq,
        kind: event.kind,
        rewound: event.rewound,
        at_ms: event.at_ms,
        source: event.source,
        status: event.status,
        previous_status: event.previous_status,
        outcome: event.outcome,
        previous_outcome: event.previous_outcome,
        order_outcome: event.order_outcome,
        order_id: invoice.order_id,
        invoice_id: invoice.invoice_id,
        invoice_ref: invoice.reference.as_str().to_owned(),
        mode: invoice.mode.as_str().to_owned(),
        method: invoice.method,
        amount_asked: invoice.amount_asked,
        amount_agreed: invoice.amount_agreed,
        currency_agreed: invoice.currency_agreed,
        amount_reported: event.amount_reported,
        currency_reported: event.currency_reported,
        payment_url: invoice.payment_url,
        requisites: invoice.requisites,
        expire_ms: invoice.expire_ms,
        service: event.raw,
        abandoned: None,
    }
}
