//! The promises, looked over when a scenario has come to rest. What is expected is derived from what the service said and
//! what was acknowledged, by design 4, and not by the code that decides. Where the end depends on what
//! was heard, several ends are allowed.

use std::collections::{BTreeMap, HashMap};

use super::book::Body;
use super::restoring::known_after_restore;
use super::scenario::{MINUTE, SECOND};
use super::second::paid_once;
use super::world::World;
use crate::hook::abandonment::teller_of;
use crate::invoice::event::EventKind;
use crate::invoice::moment::Moment;
use crate::invoice::status::{Meaning, Outcome, Status};
use crate::invoice::sum::Verdict;
use crate::invoice::transition::{Claim, Invoice};
use crate::ledger::{DeliveryRow, DeliveryState, InvoiceKey, InvoiceRow};

/// Largest step back after questions that brought nothing.
const LONGEST_BACK_OFF: i64 = 10 * MINUTE;
/// Two polls that contradict what stands are so far apart.
const SECOND_POLL: i64 = 30 * SECOND;
/// For answers under way, the cadence, and the turns of the others.
const SLACK: i64 = 50 * SECOND;

/// What is broken, a line each; and how many invoices ended without anybody having had to know.
pub(super) fn check(world: &World) -> (Vec<String>, u64) {
    let mut broken = world.book.broken.clone();
    let mut untold = 0;
    for row in world.store.invoices() {
        let Some(invoice) = world.store.judged(row.key) else {
            continue;
        };
        match ends_with_the_services_word(world, &row, invoice) {
            Ok(Known::Told) => {}
            Ok(Known::Untold) => untold += 1,
            Err(why) => broken.push(format!("the service's word: invoice {}: {why}", row.key.0)),
        }
    }
    broken.extend(acknowledged_is_stored(world));
    broken.extend(hooks_are_done(world));
    broken.extend(pace_is_kept(world));
    broken.extend(events_are_once(world));
    broken.extend(paid_once(world));
    broken.extend(known_in_time(world));
    broken.extend(known_after_restore(world));
    (broken, untold)
}

/// How an invoice's end is known.
enum Known {
    /// The ledger shows the service's last word.
    Told,
    /// The last word was told to nobody, and nothing more was expected.
    Untold,
}

fn ends_with_the_services_word(
    world: &World,
    row: &InvoiceRow,
    invoice: &Invoice,
) -> Result<Known, String> {
    let Some(id) = &invoice.id else {
        return Ok(Known::Told);
    };
    if invoice.doubt || invoice.pending.is_some() {
        return Err("a doubt or a second poll is left".to_owned());
    }
    let bodies = world
        .book
        .bodies
        .get(id)
        .map_or(&[] as &[Body], Vec::as_slice);
    let (Some(claim), Some(last)) = (&invoice.claim, bodies.last()) else {
        return Err("an id without a claim".to_owned());
    };
    let is_told = claim.status == last.report.status;
    // A status may come back later: its instant tells which of them is meant.
    let place = |status: &Status, at: Option<Moment>| {
        let is_it = |body: &Body| body.report.status == *status;
        let dated = |body: &Body| is_it(body) && body.report.updated_at == at;
        bodies
            .iter()
            .rposition(dated)
            .or_else(|| bodies.iter().rposition(is_it))
    };
    let told = place(&claim.status, claim.at);
    let newer = world
        .book
        .acknowledged
        .iter()
        .filter(|one| one.invoice == row.key)
        .any(|one| place(&one.report.status, one.report.updated_at) > told);
    if !is_told && (newer || !is_at_rest(world, row)) {
        return Err(format!(
            "it shows {} ({}), the service says {}",
            claim.status, row.outcome, last.report.status
        ));
    }
    let heard: Vec<&Body> = bodies
        .iter()
        .take(told.map_or(0, |told| told + 1))
        .collect();
    let allowed = outcomes(world, row.key, invoice, &heard);
    if !allowed.contains(&row.outcome) {
        return Err(format!(
            "its outcome is {}, allowed are {allowed:?}",
            row.outcome
        ));
    }
    Ok(if is_told { Known::Told } else { Known::Untold })
}

/// True when nothing more was expected, so that nobody asks: the last word may be unknown, unless it was acknowledged.
fn is_at_rest(world: &World, row: &InvoiceRow) -> bool {
    match row.outcome {
        Outcome::Paid | Outcome::Mismatch | Outcome::SecondPayment | Outcome::Reversed => true,
        // Whatever our clock showed, it is asked about until the service's clock has passed its end.
        Outcome::Open => false,
        // It failed while our clock was days behind, so that the last question after it came too early.
        Outcome::Failed => world.scenario.jumps(),
    }
}

/// The outcomes an invoice may end with, given the service's states that count.
fn outcomes(world: &World, key: InvoiceKey, invoice: &Invoice, heard: &[&Body]) -> Vec<Outcome> {
    let sorted: Vec<(&Body, Meaning)> = heard
        .iter()
        .filter_map(|body| Some((*body, meaning(world, body)?)))
        .collect();
    let is_sorted = heard
        .last()
        .is_some_and(|last| meaning(world, last).is_some());
    let ends = if is_sorted { sorted.len() - 1 } else { 0 };
    let mut others = world.store.invoices();
    let has_others = others.any(|row| row.order_id == invoice.order_id.as_str() && row.key != key);
    let mut allowed = Vec::new();
    // A last word that stands on no list changes no outcome: any of those before it may have been the last one heard.
    for (place, (body, meant)) in sorted.iter().enumerate().skip(ends) {
        let paid_before = sorted
            .iter()
            .take(place)
            .any(|(_, meant)| *meant == Meaning::Paid);
        let agrees = invoice
            .agreed
            .verdict(&body.report.amount, body.report.currency.as_deref())
            == Verdict::Agrees;
        match meant {
            Meaning::Open => allowed.push(Outcome::Open),
            // Which of an order's payments is the first depends on what was heard first; see `paid_once`.
            Meaning::Paid if has_others => allowed.extend([
                if agrees {
                    Outcome::Paid
                } else {
                    Outcome::Mismatch
                },
                Outcome::Mismatch,
                Outcome::SecondPayment,
            ]),
            Meaning::Paid if agrees => allowed.push(Outcome::Paid),
            Meaning::Paid => allowed.push(Outcome::Mismatch),
            Meaning::Failed | Meaning::Reversed if paid_before => {
                allowed.push(Outcome::Reversed);
                if !paid_was_heard(world, key) {
                    allowed.push(Outcome::Failed);
                }
            }
            Meaning::Failed | Meaning::Reversed => allowed.push(Outcome::Failed),
        }
    }
    allowed
}

fn meaning(world: &World, body: &Body) -> Option<Meaning> {
    world.rules.policy.lists.sort(&body.report.status)
}

/// True when the ledger must have counted a payment: it made an event of one, or acknowledged one that nobody had to
/// confirm.
fn paid_was_heard(world: &World, key: InvoiceKey) -> bool {
    let recorded = world
        .store
        .events()
        .any(|(event, _)| event.invoice == key && event.outcome.has_money());
    let trusted = !world.rules.policy.confirm_paid;
    // One that was dated ahead was doubted, and the poll may have come after its money had gone back.
    let was_ahead = |status: &Status| {
        world.store.history().any(|line| {
            let undated = |claim: &Claim| claim.status == *status && claim.at.is_none();
            line.invoice == key && line.claim.as_ref().is_some_and(undated)
        })
    };
    let lists = &world.rules.policy.lists;
    let acknowledged = world.book.acknowledged.iter().any(|one| {
        let status = &one.report.status;
        let is_paid = lists.sort(status) == Some(Meaning::Paid);
        let names_amount = one.report.amount.value().is_some();
        one.invoice == key && names_amount && is_paid && !was_ahead(status)
    });
    recorded || trusted && acknowledged
}

/// Whatever was answered 200 stands in the history or is an event.
fn acknowledged_is_stored(world: &World) -> Vec<String> {
    let missing = world.book.acknowledged.iter().filter(|one| {
        let same =
            // One that is ahead of the service's clock is stored without its instant.
            |claim: &Claim| {
                claim.status == one.report.status
                    && (claim.at.is_none() || claim.at == one.report.updated_at)
            };
        let in_history = world
            .store
            .history()
            .any(|line| line.invoice == one.invoice && line.claim.as_ref().is_some_and(same));
        let is_event = world
            .store
            .events()
            .any(|(event, cause)| event.invoice == one.invoice && cause.is_some_and(same));
        !in_history && !is_event
    });
    missing
        .map(|one| {
            format!(
                "acknowledged is stored: {} of invoice {} was answered 200 and is not in the ledger",
                one.report.status, one.invoice.0
            )
        })
        .collect()
}

/// Which hooks of the scenario want an event of this kind.
fn wanting(kind: EventKind) -> &'static [&'static str] {
    match kind {
        EventKind::Paid => &["fulfil", "log"],
        EventKind::Late => &["fulfil", "undo", "log"],
        EventKind::Failed | EventKind::Reversed | EventKind::PaidAgain | EventKind::Mismatch => {
            &["undo", "log"]
        }
        EventKind::SecondPayment => &["log"],
        EventKind::Opened | EventKind::Status | EventKind::Unresolved | EventKind::Operator => {
            &["log"]
        }
    }
}

/// Every event that a hook wanted was run to its end, once each, with attempts numbered without gaps; and for what was
/// given up, so was the hook that is told of that.
fn hooks_are_done(world: &World) -> Vec<String> {
    let mut broken = Vec::new();
    let deliveries = world.store.deliveries();
    for (event, _) in world.store.events() {
        let mut hooks: Vec<&str> = deliveries
            .iter()
            .filter(|delivery| delivery.seq == event.seq)
            .map(|delivery| delivery.hook.as_str())
            .collect();
        hooks.sort_unstable();
        let mut wanted = wanting(event.kind).to_vec();
        // Who is told was told of each that stands as given up, and of no other. What an operator had a hand in may have
        // been given up, told of and retried since, or given up by that hand, which is told nobody.
        let of_event = || deliveries.iter().filter(|other| other.seq == event.seq);
        let operated = |other: &&DeliveryRow| world.book.operated.contains_key(&other.key);
        let open_to_both: Vec<String> = of_event()
            .filter(operated)
            .filter_map(|other| teller_of(&other.hook))
            .collect();
        let given_up: Vec<String> = of_event()
            .filter(|other| other.state == DeliveryState::Abandoned && !operated(other))
            .filter_map(|other| teller_of(&other.hook))
            .collect();
        hooks.retain(|hook| !open_to_both.iter().any(|teller| teller == hook));
        wanted.extend(given_up.iter().map(String::as_str));
        wanted.sort_unstable();
        if hooks != wanted {
            broken.push(format!(
                "every hook that wants it: event {} ({}) is owed to {hooks:?}",
                event.seq, event.kind
            ));
        }
    }
    for delivery in &deliveries {
        if let Err(why) = is_done(world, delivery) {
            broken.push(format!(
                "run until done: delivery {} of event {} for {}: {why}",
                delivery.key.0, delivery.seq, delivery.hook
            ));
        }
    }
    broken
}

fn is_done(world: &World, delivery: &DeliveryRow) -> Result<(), String> {
    let attempts = world.store.attempts(delivery.key);
    let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
    if !numbers.iter().copied().eq(1..=delivery.attempts) {
        return Err(format!("its attempts are numbered {numbers:?}"));
    }
    let results = || attempts.iter().map(|attempt| attempt.result.as_str());
    match delivery.state {
        DeliveryState::Done if world.book.done.contains(&delivery.key) => Ok(()),
        DeliveryState::Done => Err("done, but its program never said so".to_owned()),
        DeliveryState::Abandoned if delivery.abandoned_by.is_some() => {
            if world.book.operated.contains_key(&delivery.key) {
                Ok(())
            } else {
                Err("abandoned by an operator who never came".to_owned())
            }
        }
        DeliveryState::Abandoned => {
            let failures = results().filter(|result| !["interrupted", "exit 75"].contains(result));
            let schedule = world.scenario.settings.outbox.schedule_s.len();
            let hopeless = results()
                .next_back()
                .is_some_and(|result| ["exit 65", "http 410"].contains(&result));
            let failures = failures.count();
            // A person who wants it retried gives it a fresh schedule.
            let retried = world.book.operated.contains_key(&delivery.key);
            if hopeless || failures == schedule || retried && failures > schedule {
                Ok(())
            } else {
                Err("abandoned before its schedule was used up".to_owned())
            }
        }
        other @ (DeliveryState::Waiting | DeliveryState::Running | DeliveryState::Held) => {
            Err(format!("at the end it is {}", other.as_str()))
        }
    }
}

/// No second saw more requests than the cap, in any daemon's life.
fn pace_is_kept(world: &World) -> Vec<String> {
    let cap = world.scenario.settings.poller.requests_per_second;
    let cap = usize::try_from(cap).expect("a small number");
    let requests = &world.book.requests;
    let faster = requests
        .iter()
        .zip(requests.iter().skip(cap))
        .find(|((life, first), (later, last))| life == later && last - first < SECOND);
    faster
        .map(|((_, first), _)| {
            format!("the cap: more than {cap} requests within 1 s from {first} ms")
        })
        .into_iter()
        .collect()
}

/// `paid` fires once in an invoice's life, and a claim with its outcome is one event.
fn events_are_once(world: &World) -> Vec<String> {
    let mut broken = Vec::new();
    let mut paid: BTreeMap<InvoiceKey, u32> = BTreeMap::new();
    let mut claims: HashMap<(InvoiceKey, String), u32> = HashMap::new();
    for (place, (event, cause)) in (1..).zip(world.store.events()) {
        if event.seq != place {
            broken.push(format!(
                "events are gapless: {} at place {place}",
                event.seq
            ));
        }
        if matches!(event.kind, EventKind::Paid | EventKind::Late) {
            *paid.entry(event.invoice).or_default() += 1;
        }
        if let (Some(cause), false) = (cause, event.rewound) {
            // A claim that was counted makes an earlier one mean something else, which is an event of its own.
            let claim = (event.invoice, format!("{cause:?}, {}", event.outcome));
            *claims.entry(claim).or_default() += 1;
        }
    }
    let twice = paid.into_iter().filter(|(_, times)| *times > 1);
    broken.extend(twice.map(|(key, _)| format!("paid once: invoice {} was paid twice", key.0)));
    let twice = claims.into_iter().filter(|(_, times)| *times > 1);
    broken.extend(
        twice.map(|((key, claim), _)| format!("one event a claim: invoice {}: {claim}", key.0)),
    );
    broken
}

/// After the healing no open invoice stays unknown for longer than its place in the schedule allows.
fn known_in_time(world: &World) -> Vec<String> {
    let mut broken = Vec::new();
    let healed = world.scenario.heals_at;
    for (key, unknown) in &world.book.unknown {
        let Some(invoice) = world.store.judged(*key) else {
            continue;
        };
        let last = invoice.id.as_ref().and_then(|id| world.book.last(id));
        let changed_since = last.is_none_or(|last| last.at > healed);
        // What failed is asked about at six times within three days; what is paid, not at all.
        if !unknown.is_open || changed_since {
            continue;
        }
        let steps = &world.polling.schedule.steps;
        let gap = |age| {
            let step = steps.iter().find(|step| age < step.until_ms);
            step.or(steps.last()).map_or(MINUTE, |step| step.every_ms)
        };
        // Its next step may have begun when its next time is counted.
        let gap = gap(unknown.age + gap(unknown.age));
        let gap = if unknown.has_failed {
            gap.max(LONGEST_BACK_OFF)
        } else {
            gap
        };
        let bound = gap + SECOND_POLL + SLACK + unknown.held;
        let took = world.book.known_at.get(key).map(|at| at - healed);
        if took.is_none_or(|took| took > bound) {
            broken.push(format!(
                "known in time: invoice {} of age {} s took {took:?} ms after the healing, {bound} allowed",
                key.0,
                unknown.age / SECOND
            ));
        }
    }
    broken
}
