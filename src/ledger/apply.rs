//! Applies one command to the store. The only caller of `decide`: every claim, whoever makes it, comes through here,
//! and what it changes (invoice, event, deliveries, due time, history) stands in one commit.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::hook::Subscription;
use crate::invoice::amount::Amount;
use crate::invoice::event::{Change, EventKind};
use crate::invoice::moment::Moment;
use crate::invoice::observation::{Observation, Report, Source};
use crate::invoice::opening::{Judgement, Opening, Standing, judge};
use crate::invoice::silence::{self, Due, Heard, Schedule};
use crate::invoice::status::Outcome;
use crate::invoice::sum::{Sum, Verdict};
use crate::invoice::transition::{
    Ask, Claim, Decision, Policy, Transition, claim_of, decide, reported_texts,
};

use super::command::{Begun, Command, Intent, Recorded, RecordedEvent, Reply, Settled};
use super::row::{InvoiceKey, InvoiceRow};
use super::store::{NewEvent, NewHistory, PollState, Store, StoreError, Stored};

/// A refused notification pulls the due time forward at most this often, milliseconds; those within leave one poll due
/// at its end.
const NUDGE_EVERY_MS: i64 = 60_000;

/// What the merchant configured, as far as the ledger acts on it.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How claims are judged.
    pub policy: Policy,
    /// When silent invoices are due.
    pub schedule: Schedule,
    /// Which hooks are owed what.
    pub subscriptions: Vec<Subscription>,
    /// How long after its event a delivery is first run, milliseconds.
    pub first_delay_ms: i64,
}

/// Why a command was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger has no such row.
    #[error("the ledger has no {0}")]
    Missing(&'static str),
}

/// Applies one command within the open transaction.
pub(super) fn apply<S: Store>(
    store: &mut S,
    rules: &Rules,
    command: &Command,
) -> Result<Reply, ApplyError> {
    match command {
        Command::Record(key, observation) => {
            Ok(Reply::Recorded(record(store, rules, *key, observation)?))
        }
        Command::Begin(intent) => Ok(Reply::Begun(begin(store, intent)?)),
        Command::Settle(key, settled) => settle(store, rules, *key, settled),
        Command::GiveUpOpening(key) => give_up_opening(store, *key),
        Command::PollFailed(failed) => {
            let mut state = store.poll_state(failed.key)?;
            state.asked_ms = Some(failed.asked_ms);
            state.failures = state.failures.saturating_add(1);
            redate(store, rules, failed.key, state, failed.asked_ms)
        }
        Command::Redate(keys, now_ms) => {
            for key in keys {
                let state = store.poll_state(*key)?;
                redate(store, rules, *key, state, *now_ms)?;
            }
            Ok(Reply::Done)
        }
        Command::Unresolve(key, now_ms) => unresolve(store, rules, *key, *now_ms),
        Command::Claim {
            claimant,
            now_ms,
            want,
        } => {
            let hooks: Vec<String> = rules.subscriptions.iter().map(|s| s.hook.clone()).collect();
            Ok(Reply::Claimed(
                store.claim(claimant, *now_ms, *want, &hooks)?,
            ))
        }
        Command::NameChild(key, child) => {
            if store.name_child(*key, child)? {
                Ok(Reply::Done)
            } else {
                Err(ApplyError::Missing("such running delivery"))
            }
        }
        Command::Finish(key, record, after) => {
            store.finish(*key, record, *after)?;
            Ok(Reply::Done)
        }
        Command::Retry(wish) => Ok(Reply::Retried(store.retry(wish)?)),
        Command::Refuse(refusals) => {
            let nudged: BTreeSet<InvoiceKey> = refusals
                .iter()
                .filter_map(|refusal| refusal.invoice)
                .collect();
            store.add_refusals(refusals)?;
            let now_ms = refusals
                .iter()
                .map(|refusal| refusal.at_ms)
                .max()
                .unwrap_or_default();
            for key in nudged {
                nudge(store, key, now_ms)?;
            }
            Ok(Reply::Done)
        }
        Command::Note(key, value) => {
            store.set_meta(key, value)?;
            Ok(Reply::Done)
        }
    }
}

fn load<S: Store>(store: &mut S, key: InvoiceKey) -> Result<Stored, ApplyError> {
    store.load(key)?.ok_or(ApplyError::Missing("such invoice"))
}

fn record<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    observation: &Observation,
) -> Result<Recorded, ApplyError> {
    let mut stored = load(store, key)?;
    Ok(record_on(store, rules, &mut stored, observation)?)
}

/// Records an observation on a loaded invoice and stores it.
fn record_on<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    observation: &Observation,
) -> Result<Recorded, StoreError> {
    let key = stored.row.key;
    let claim = claim_of(&observation.report, &stored.invoice.agreed);
    let same = |current: &Claim| current.status == claim.status && current.verdict == claim.verdict;
    // Only a claim that differs from the current one needs to be looked for among the earlier ones.
    if stored
        .invoice
        .claim
        .as_ref()
        .is_some_and(|current| !same(current))
    {
        stored.invoice.recorded = store.recorded_claims(key)?;
    }
    let made = decide(&stored.invoice, observation, &rules.policy);
    let mut recorded = Recorded {
        order_id: stored.row.order_id.clone(),
        decision: made.decision,
        event: None,
        outcome: made.after.outcome,
        new_unsorted: None,
        ask_soon: made.ask == Ask::Now,
    };
    if made.decision == Decision::NotThisInvoice {
        return Ok(recorded);
    }
    if made.decision == Decision::OtherId {
        add_attention(&mut stored.row, "other_id");
        store.save(stored)?;
        return Ok(recorded);
    }
    let first_id = stored.invoice.id.is_none();
    take_over(stored, &made, observation);
    recorded.new_unsorted = note_unsorted(store, rules, stored)?;
    store.save(stored)?;
    let (at_ms, source) = (observation.received_ms, observation.source);
    store.add_history(&NewHistory {
        invoice: key,
        at_ms,
        source,
        claim: &claim,
        decision: made.decision,
    })?;
    if let Some(change) = &made.change {
        let reported = reported_texts(&observation.report);
        let raw = Some(observation.report.raw.as_str());
        recorded.event = Some(write_event(
            store,
            rules,
            key,
            change,
            Some(source),
            at_ms,
            reported,
            raw,
        )?);
    }
    date_after(store, rules, stored, observation, made.ask, first_id)?;
    Ok(recorded)
}

/// Takes the decision and the report's fields over into the stored invoice.
fn take_over(stored: &mut Stored, made: &Transition, observation: &Observation) {
    let report = &observation.report;
    let outcome_changed = stored.invoice.outcome != made.after.outcome;
    stored.invoice = made.after.clone();
    stored.heard_ms = Some(observation.received_ms);
    let row = &mut stored.row;
    row.invoice_id = made.after.id.as_ref().map(|id| id.as_str().to_owned());
    if row.opening == Opening::Unknown {
        // Its id is known now: the service has it, whatever became of the answer.
        row.opening = Opening::Answered;
        row.attention.retain(|word| word != "outcome_unknown");
    }
    row.status = made
        .after
        .claim
        .as_ref()
        .map(|claim| claim.status.as_str().to_owned());
    row.outcome = made.after.outcome;
    row.doubt = made.after.doubt;
    row.revision = made.after.revision;
    row.updated_ms = observation.received_ms;
    if outcome_changed {
        row.outcome_ms = observation.received_ms;
        row.found_by = Some(observation.source);
    }
    let stands = match made.decision {
        Decision::Advance | Decision::AdvanceAgreed | Decision::Confirmed | Decision::Repeat => {
            true
        }
        Decision::Stale
        | Decision::Doubt
        | Decision::Pending
        | Decision::Overtaken
        | Decision::NotThisInvoice
        | Decision::OtherId => false,
    };
    fill(row, report, stands);
    set_attention(row, "mismatch", row.outcome == Outcome::Mismatch);
    if made.change.as_ref().is_some_and(|change| change.rewound) {
        add_attention(row, "rewound");
    }
    if observation.source == Source::Create && differs_from_asked(stored, report) {
        add_attention(&mut stored.row, "amount_differs");
    }
    if stored.row.outcome.is_final() {
        set_attention(&mut stored.row, "unresolved", false);
    }
}

/// What stands replaces; what is stale or doubtful only fills what is empty.
fn fill(row: &mut InvoiceRow, report: &Report, stands: bool) {
    fn put<T>(slot: &mut Option<T>, value: Option<T>, stands: bool) {
        if value.is_some() && (stands || slot.is_none()) {
            *slot = value;
        }
    }
    let (amount, currency) = reported_texts(report);
    put(&mut row.amount_reported, amount, stands);
    put(&mut row.currency_reported, currency, stands);
    put(&mut row.requisites, report.requisites.clone(), stands);
    put(&mut row.payment_url, report.payment_url.clone(), stands);
    put(
        &mut row.expire_ms,
        report.expire_at.map(Moment::as_ms),
        stands,
    );
    put(&mut row.raw, Some(report.raw.clone()), stands);
}

fn differs_from_asked(stored: &Stored, report: &Report) -> bool {
    stored
        .invoice
        .agreed
        .verdict(&report.amount, report.currency.as_deref())
        != Verdict::Agrees
}

fn add_attention(row: &mut InvoiceRow, word: &str) {
    set_attention(row, word, true);
}

fn set_attention(row: &mut InvoiceRow, word: &str, wanted: bool) {
    match (row.attention.iter().position(|w| w == word), wanted) {
        (None, true) => row.attention.push(word.to_owned()),
        (Some(at), false) => drop(row.attention.remove(at)),
        (None, false) | (Some(_), true) => {}
    }
}

/// Keeps attention on an invoice whose status stands on no list, and remembers each such name once.
fn note_unsorted<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
) -> Result<Option<String>, StoreError> {
    let shown = stored.invoice.claim.as_ref().map(|claim| &claim.status);
    let unsorted = shown.filter(|status| rules.policy.lists.sort(status).is_none());
    set_attention(&mut stored.row, "unsorted_status", unsorted.is_some());
    let Some(status) = unsorted else {
        return Ok(None);
    };
    let key = format!("unsorted:{status}");
    if store.meta(&key)?.is_some() {
        return Ok(None);
    }
    store.set_meta(&key, stored.row.order_id.as_str())?;
    Ok(Some(status.as_str().to_owned()))
}

#[expect(
    clippy::too_many_arguments,
    reason = "an event is made of exactly these, and is made in two places"
)]
fn write_event<S: Store>(
    store: &mut S,
    rules: &Rules,
    invoice: InvoiceKey,
    change: &Change,
    source: Option<Source>,
    at_ms: i64,
    reported: (Option<String>, Option<String>),
    raw: Option<&str>,
) -> Result<RecordedEvent, StoreError> {
    let event_id = Uuid::now_v7().to_string();
    let event = NewEvent {
        event_id: event_id.clone(),
        invoice,
        change,
        source,
        at_ms,
        reported,
        raw,
    };
    let seq = store.insert_event(&event)?;
    let owed = rules
        .subscriptions
        .iter()
        .filter(|subscription| subscription.wants(change));
    let due_ms = at_ms.saturating_add(rules.first_delay_ms);
    let mut deliveries = 0;
    for subscription in owed {
        store.insert_delivery(seq, invoice, &subscription.hook, due_ms)?;
        deliveries += 1;
    }
    Ok(RecordedEvent {
        seq,
        event_id,
        kind: change.kind,
        deliveries,
    })
}

/// Sets the due time where the observation touches it. A notification that leaves no doubt does not: the poller counts
/// again when the old due time comes, which spares every notification a write to the due-time index.
fn date_after<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &Stored,
    observation: &Observation,
    ask: Ask,
    first_id: bool,
) -> Result<(), StoreError> {
    let asked = observation.source == Source::Poll;
    if !asked && !first_id && ask == Ask::AsPlanned {
        return Ok(());
    }
    let mut state = store.poll_state(stored.row.key)?;
    if asked {
        state.asked_ms = Some(observation.received_ms);
        state.failures = 0;
    }
    let now_ms = observation.received_ms;
    state.due_ms = match ask {
        Ask::Now => Some(now_ms),
        Ask::After(wait_ms) => Some(now_ms.saturating_add(wait_ms)),
        Ask::AsPlanned => due_ms(&rules.schedule, &heard(stored, &state), now_ms),
    };
    store.save_poll(stored.row.key, &state)
}

/// What the silence of a stored invoice is counted from.
pub(super) fn heard(stored: &Stored, state: &PollState) -> Heard {
    Heard {
        created_ms: stored.row.created_ms,
        expire_ms: stored.row.expire_ms,
        heard_ms: stored.heard_ms,
        asked_ms: state.asked_ms,
        nudged_ms: state.nudged_ms,
        failures: state.failures,
        doubt: stored.invoice.doubt,
        pending_since_ms: stored
            .invoice
            .pending
            .as_ref()
            .map(|pending| pending.since_ms),
        outcome: stored.row.outcome,
        outcome_ms: stored.row.outcome_ms,
        unresolved: stored.row.unresolved,
    }
}

/// The stored form of a due time. `unresolved` is due at once: the poller writes its event.
fn due_ms(schedule: &Schedule, heard: &Heard, now_ms: i64) -> Option<i64> {
    match silence::next(schedule, heard, now_ms) {
        Due::At(at) => Some(at),
        Due::Unresolved => Some(now_ms),
        Due::Never => None,
    }
}

fn redate<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    mut state: PollState,
    now_ms: i64,
) -> Result<Reply, ApplyError> {
    let stored = load(store, key)?;
    state.due_ms = due_ms(&rules.schedule, &heard(&stored, &state), now_ms);
    store.save_poll(key, &state)?;
    Ok(Reply::Done)
}

fn nudge<S: Store>(store: &mut S, key: InvoiceKey, now_ms: i64) -> Result<(), StoreError> {
    let Some(stored) = store.load(key)? else {
        return Ok(());
    };
    if stored.invoice.id.is_none() {
        return Ok(());
    }
    let mut state = store.poll_state(key)?;
    let at = match state.nudged_ms {
        Some(planned) if planned > now_ms => planned,
        Some(last) if now_ms < last.saturating_add(NUDGE_EVERY_MS) => {
            last.saturating_add(NUDGE_EVERY_MS)
        }
        Some(_) | None => now_ms,
    };
    state.nudged_ms = Some(at);
    state.due_ms = Some(state.due_ms.map_or(at, |due| due.min(at)));
    store.save_poll(key, &state)
}

fn unresolve<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    now_ms: i64,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    if !stored.row.unresolved && stored.row.outcome == Outcome::Open {
        stored.row.unresolved = true;
        stored.row.updated_ms = now_ms;
        add_attention(&mut stored.row, "unresolved");
        store.save(&stored)?;
        let status = stored
            .invoice
            .claim
            .as_ref()
            .map(|claim| claim.status.clone());
        let change = Change {
            kind: EventKind::Unresolved,
            rewound: false,
            cause: None,
            status: status.clone(),
            previous_status: status,
            outcome: Outcome::Open,
            previous_outcome: Outcome::Open,
        };
        let reported = (
            stored.row.amount_reported.clone(),
            stored.row.currency_reported.clone(),
        );
        write_event(store, rules, key, &change, None, now_ms, reported, None)?;
    }
    let state = store.poll_state(key)?;
    redate(store, rules, key, state, now_ms)
}

fn begin<S: Store>(store: &mut S, intent: &Intent) -> Result<Begun, ApplyError> {
    let rows = store.invoices_of_order(intent.order_id.as_str())?;
    let standing: Vec<Standing> = rows
        .iter()
        .filter_map(|row| standing(row, intent.window_ms))
        .collect();
    let boxed = |at: usize| {
        rows.get(at)
            .cloned()
            .map(Box::new)
            .ok_or(ApplyError::Missing("such invoice"))
    };
    match judge(&standing, &intent.wanted, intent.now_ms) {
        Judgement::Open => Ok(Begun::Fresh(store.insert_invoice(intent)?)),
        Judgement::Standing(at) => Ok(Begun::Standing(boxed(at)?)),
        Judgement::Paid(at) => Ok(Begun::Paid(boxed(at)?)),
        Judgement::BeingCreated(at) => Ok(Begun::BeingCreated(boxed(at)?)),
        Judgement::Unknown(at) => Ok(Begun::Unknown(boxed(at)?)),
        Judgement::Differs(at, what) => Ok(Begun::Differs(boxed(at)?, what)),
    }
}

/// `None` is impossible for rows this code wrote: their sums were checked before they were stored.
fn standing(row: &InvoiceRow, window_ms: i64) -> Option<Standing> {
    // Redirect answers carry no `expireAt` (contract 2.3): a configured window stands in.
    let stand_in = row.created_ms.saturating_add(window_ms);
    Some(Standing {
        opening: row.opening,
        outcome: row.outcome,
        sum: Sum::new(Amount::parse(&row.amount_asked).ok()?, &row.currency_asked).ok()?,
        method: row.method.clone(),
        mode: row.mode,
        closes_ms: row.expire_ms.unwrap_or(stand_in),
    })
}

fn settle<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    settled: &Settled,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    let mut recorded = None;
    match settled {
        Settled::Answered(observation) => {
            stored.row.opening = Opening::Answered;
            stored.row.creator = None;
            set_attention(&mut stored.row, "outcome_unknown", false);
            let made = record_on(store, rules, &mut stored, observation)?;
            if made.decision == Decision::NotThisInvoice {
                end_opening(
                    store,
                    &mut stored,
                    Opening::Unknown,
                    "the answer names another order",
                )?;
            }
            recorded = Some(made);
        }
        Settled::Refused(note) => end_opening(store, &mut stored, Opening::Refused, note)?,
        Settled::Unknown(note) => end_opening(store, &mut stored, Opening::Unknown, note)?,
    }
    let row = load(store, key)?.row;
    Ok(Reply::Settled(Box::new(row), recorded))
}

fn give_up_opening<S: Store>(store: &mut S, key: InvoiceKey) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    if stored.row.opening == Opening::Creating {
        let note = "the process that opened it ended before the answer was recorded";
        end_opening(store, &mut stored, Opening::Unknown, note)?;
    }
    Ok(Reply::Done)
}

/// Ends an opening without an answer. If a notification has named the id meanwhile, the service has the invoice after all.
fn end_opening<S: Store>(
    store: &mut S,
    stored: &mut Stored,
    opening: Opening,
    note: &str,
) -> Result<(), StoreError> {
    let known = stored.invoice.id.is_some();
    stored.row.opening = if known { Opening::Answered } else { opening };
    stored.row.opening_note = (!known).then(|| note.to_owned());
    stored.row.creator = None;
    set_attention(
        &mut stored.row,
        "outcome_unknown",
        !known && opening == Opening::Unknown,
    );
    store.save(stored)
}
