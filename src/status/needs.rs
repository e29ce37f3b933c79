//! What needs an operator: the one list that `status` shows, the status page shows, and alarms are made of. Pure.
//!
//! Relies on [`super::reason`] for words and sentences. Promises that each reason that stands is on the list, so a new one is an
//! alarm by itself.

use super::polling::Polling;
use super::reason::{Need, Reason};
use super::report::{Count, UnderAttention};
use super::unsorted::Names;
use crate::config;
use crate::hook::abandonment;
use crate::invoice::attention::Attention;
use crate::invoice::silence::CLOCK_IS_SET_MS;
use crate::ledger::{Overview, Owed, Undelivered, WrongClock};

/// What the list is made of.
pub(super) struct Known<'a> {
    pub(super) now_ms: i64,
    pub(super) daemon_running: bool,
    /// Whether it answers, where that was tried.
    pub(super) answers: Option<&'a Result<(), String>>,
    /// What it says of itself.
    pub(super) daemon: Vec<Need>,
    pub(super) overview: &'a Overview,
    pub(super) limits: &'a config::Attention,
    pub(super) polling: &'a Polling,
    /// Deliveries that are held because of a restore.
    pub(super) held_restored: Option<Count>,
    pub(super) unknown_hooks: &'a [String],
    pub(super) hooks: &'a [config::Hook],
    pub(super) unsorted: &'a Names,
    /// Of the ledger's file and disk.
    pub(super) storage: &'a [UnderAttention],
    pub(super) invoices: &'a [UnderAttention],
    pub(super) files: Vec<Need>,
}

/// What needs an operator, the most severe first.
pub(super) fn needs(known: Known<'_>) -> Vec<Need> {
    let overview = known.overview;
    let mut needs = Vec::new();
    match known.answers {
        _ if !known.daemon_running => needs.push(Need::daemon()),
        Some(Err(why)) => needs.push(Need::silent_daemon(why)),
        Some(Ok(())) | None => {}
    }
    needs.extend(wrong_clock(&known));
    needs.extend(login(known.polling));
    needs.extend(outage(&known));
    needs.extend(silent(&known));
    needs.extend(polled(&known));
    if overview.held.count > 0 {
        needs.push(Need::held(overview.held.into(), known.held_restored));
    }
    needs.extend(overview.lost.as_ref().map(Need::lost));
    if overview.abandoned.count > 0 {
        let (count, orders) = (overview.abandoned.into(), &overview.abandoned_orders);
        needs.push(Need::abandoned(count, orders));
    }
    if !overview.missing.is_empty() {
        needs.push(Need::missing(&overview.missing, overview.more_missing));
    }
    needs.extend(
        known
            .overview
            .undelivered
            .iter()
            .filter_map(|of| undelivered(&known, of)),
    );
    needs.extend(known.unknown_hooks.iter().map(|hook| Need::unowned(hook)));
    needs.extend(known.storage.iter().map(Need::storage));
    needs.extend(of_invoices(&known));
    needs.extend(known.files);
    needs.extend(known.daemon);
    needs.sort_by_key(|need| need.severity);
    needs
}

/// Those of invoices; a status that is not mapped stands once, with the lines that map it.
fn of_invoices(known: &Known<'_>) -> Vec<Need> {
    let more = known.overview.more_attention;
    let (unmapped, others): (Vec<_>, Vec<_>) = known
        .invoices
        .iter()
        .map(|of| Need::invoices(of, more))
        .partition(|need| need.reason == Reason::Invoice(Attention::UnsortedStatus));
    let mut unmapped = unmapped.into_iter().next();
    if !known.unsorted.shown.is_empty() {
        unmapped = Some(Need::unmapped(known.unsorted, unmapped));
    }
    others.into_iter().chain(unmapped).collect()
}

/// What a hook of the settings has owed for longer than it may.
fn undelivered(known: &Known<'_>, of: &Undelivered) -> Option<Need> {
    let configured = abandonment::configured(&of.hook);
    let hook = known.hooks.iter().find(|hook| hook.name == configured)?;
    let after_ms = i64::try_from(hook.undelivered_after_s)
        .ok()?
        .checked_mul(1_000)?;
    let is_late = |owed: &&Owed| after_ms > 0 && owed.for_ms >= after_ms;
    let late: Vec<&Owed> = of.owed.iter().filter(is_late).collect();
    let for_ms = late.first()?.for_ms;
    let orders = late.iter().map(|owed| owed.order_id.clone()).collect();
    Some(Need::undelivered(of, for_ms, orders))
}

/// A clock that was never set is seen at once; all else is the daemon's to find out.
fn wrong_clock(known: &Known<'_>) -> Option<Need> {
    let not_set = (known.now_ms < CLOCK_IS_SET_MS).then_some(WrongClock::NotSet);
    not_set
        .or(known.overview.wrong_clock)
        .map(Need::wrong_clock)
}

fn login(polling: &Polling) -> Option<Need> {
    let since = polling.login_since.as_deref().unwrap_or_default();
    let state = polling.login;
    (!state.is_usable()).then(|| Need::login(state, since))
}

/// No answer of the service for as long as the merchant finds too long.
fn outage(known: &Known<'_>) -> Option<Need> {
    let after_ms = i64::try_from(known.limits.outage_after_s)
        .ok()?
        .checked_mul(1_000)?;
    let for_ms = known.polling.outage_ms?;
    let reason = known.polling.outage_reason.as_deref().unwrap_or_default();
    (after_ms > 0 && for_ms >= after_ms).then(|| Need::outage(for_ms, reason))
}

/// No notification for as long as the merchant finds too long, whether invoices are open or not. Before the first one it is
/// counted from the first event, and where that was long ago, from the oldest that is known to be none.
fn silent(known: &Known<'_>) -> Option<Need> {
    let after_ms = i64::try_from(known.limits.silent_after_s)
        .ok()?
        .checked_mul(1_000)?;
    let overview = known.overview;
    let last_ms = overview.last_notification.as_ref().map(|(at_ms, _)| *at_ms);
    let since_ms = last_ms.or(overview.unheard_since_ms)?;
    let for_ms = known.now_ms.saturating_sub(since_ms);
    (after_ms > 0 && for_ms > after_ms).then(|| Need::silent(for_ms))
}

/// Changes that polling found, one after another: notifications are lost, all of them. One that arrives at last, even if
/// it says nothing new, ends that.
fn polled(known: &Known<'_>) -> Option<Need> {
    let (count, found_ms) = known.overview.polled_in_a_row;
    let last = known.overview.last_notification.as_ref();
    let arrived_since = last.map(|(at_ms, _)| *at_ms) > found_ms;
    let wanted = known.limits.polled_in_a_row;
    (wanted > 0 && count >= wanted && !arrived_since).then(|| Need::polled(count))
}
