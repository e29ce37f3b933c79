//! What needs a person: the one list that `status` shows, the status page shows, and alarms are made of. Pure.
//!
//! Whatever a person must look at has an entry here, under a word of its own; a word that is new here is an alarm by itself.

use serde::{Deserialize, Serialize};

use super::measures::{number, span};
use super::polling::Polling;
use super::report::{Count, Report, Restored, UnderAttention};
use crate::answer::argv;
use crate::config::Attention;
use crate::ledger::Overview;

/// One thing that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Need {
    /// The word for it. Several entries may share one.
    pub(crate) reason: String,
    /// What is so, in a sentence. Not escaped.
    pub(crate) told: String,
    /// What helps, a sentence or a line of the config each. Not escaped.
    pub(crate) advice: Vec<String>,
    /// The newest orders it is about, a few; none when it is about no order.
    pub(crate) orders: Vec<String>,
}

impl Need {
    pub(super) fn new(reason: &str, told: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            told: told.into(),
            advice: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// Money that went back, of these orders. On no list that stands: each is told once.
    pub(crate) fn reversed(orders: Vec<String>) -> Self {
        let told = format!("money went back, order {}", orders.join(", "));
        Self {
            orders,
            ..Self::new("reversed", told)
                .helped_by("look at what was handed over for it: `tilld explain ORDER` tells all")
        }
    }

    /// The ledger cannot be read. On no list either: one is made of what was read.
    pub(crate) fn unreadable(word: &str, why: &str) -> Self {
        Self::new(word, format!("the ledger cannot be read: {why}"))
            .helped_by("look at its disk, and at what `tilld db check` says of it")
    }

    pub(super) fn helped_by(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }
}

/// What needs a person, each with what helps, the most pressing first.
pub(super) fn needs(
    report: &Report,
    overview: &Overview,
    settings: &Attention,
    now_ms: i64,
) -> Vec<Need> {
    let mut needs = Vec::new();
    if !report.daemon_running {
        let told = "none runs, so no notification is heard, nothing is asked and no hook is run";
        needs.push(
            Need::new("daemon", told)
                .helped_by("`systemctl start tilld`, or `tilld serve`, starts one"),
        );
    }
    needs.extend(login(&report.polling));
    needs.extend(silent(overview, settings, now_ms));
    needs.extend(polled(overview, settings));
    let (held, abandoned) = (report.deliveries.held, report.deliveries.abandoned);
    if held.count > 0 {
        needs.push(of_held(held, report.restored.as_ref()));
    }
    if abandoned.count > 0 {
        needs.push(of_abandoned(abandoned, &overview.abandoned_orders));
    }
    for hook in &report.unknown_hooks {
        let told =
            format!("deliveries wait for hook {hook}, which is not configured, and are never run:");
        needs.push(Need::new("unowned", told).helped_by(format!(
            "configure it again and restart `serve`, or `tilld delivery abandon --all --hook {hook} --state waiting`"
        )));
    }
    let more = report.more_attention;
    let known = |reason: &&UnderAttention| reason.reason != UNSORTED || report.unsorted.is_empty();
    let attention = report.attention.iter().filter(known);
    needs.extend(attention.map(|reason| under_attention(reason, more)));
    needs.extend(of_unsorted(report));
    needs
}

/// The word for invoices whose status stands on no list, and for the names of these.
const UNSORTED: &str = "unsorted_status";

/// Statuses that stand on no list, with the invoices that have one now: one thing to do.
fn of_unsorted(report: &Report) -> Option<Need> {
    let names = &report.unsorted;
    let counted = names.iter().map(|name| {
        let events = if name.events == 1 { "event" } else { "events" };
        format!("{} {events} with the status {}", name.events, name.status)
    });
    let counted: Vec<String> = counted.collect();
    let stand = if names.len() == 1 { "stands" } else { "stand" };
    let named = format!("{}, which {stand} on no list:", counted.join(", "));
    let lines = names.iter().map(|name| name.line.clone());
    let mut invoices = report.attention.iter();
    let invoices = invoices.find(|reason| reason.reason == UNSORTED);
    let invoices = invoices.map(|reason| under_attention(reason, report.more_attention));
    (!names.is_empty()).then(|| match invoices {
        None => Need {
            advice: lines.collect(),
            ..Need::new(UNSORTED, named)
        },
        Some(need) => Need {
            told: format!("{}; {named}", need.told),
            advice: lines.chain(need.advice).collect(),
            ..need
        },
    })
}

/// Why invoices stand under attention, or what of the ledger's disk does. With `more` others do that are not counted.
pub(super) fn under_attention(reason: &UnderAttention, more_attention: bool) -> Need {
    if reason.orders.is_empty() {
        return Need::new(&reason.reason, reason.advice.to_string());
    }
    let invoices = if reason.count == 1 {
        "invoice"
    } else {
        "invoices"
    };
    let at_least = if more_attention { "at least " } else { "" };
    let named = u64::try_from(reason.orders.len()).unwrap_or_default();
    let more = if reason.count > named || more_attention {
        " and others"
    } else {
        ""
    };
    let told = format!(
        "{at_least}{} {invoices}, order {}{more}",
        reason.count,
        reason.orders.join(", ")
    );
    let advice = Some(reason.advice.to_string()).filter(|advice| !advice.is_empty());
    Need {
        orders: reason.orders.clone(),
        advice: advice.into_iter().collect(),
        ..Need::new(&reason.reason, told)
    }
}

/// No notification for as long as the merchant finds too long, whether invoices are open or not. Before the first one it is
/// counted from the first event, and where that was long ago, from the oldest that is known to be none.
fn silent(overview: &Overview, settings: &Attention, now_ms: i64) -> Option<Need> {
    let after_ms = i64::try_from(settings.silent_after_s)
        .ok()?
        .checked_mul(1_000)?;
    let last_ms = overview.last_notification.as_ref().map(|(at_ms, _)| *at_ms);
    let since_ms = last_ms.or(overview.unheard_since_ms)?;
    let for_ms = now_ms.saturating_sub(since_ms);
    (after_ms > 0 && for_ms > after_ms).then(|| {
        let told = format!("no notification was heard for {}", span(for_ms));
        Need::new("silent", told).helped_by(WAY_IN)
    })
}

/// Changes that asking found, one after another: notifications are lost, all of them. One that is heard at last, even if
/// it tells nothing new, ends that.
fn polled(overview: &Overview, settings: &Attention) -> Option<Need> {
    let (count, found_ms) = overview.polled_in_a_row;
    let heard_ms = overview.last_notification.as_ref().map(|(at_ms, _)| *at_ms);
    let heard_since = heard_ms > found_ms;
    let wanted = settings.polled_in_a_row;
    (wanted > 0 && count >= wanted && !heard_since).then(|| {
        let told = format!(
            "the last {count} changes were found by asking, none was told by a notification"
        );
        Need::new("polled", told).helped_by(WAY_IN)
    })
}

/// What to do when notifications do not arrive.
const WAY_IN: &str = "`tilld doctor` asks the public address from this machine; `tilld refusal list` shows what came and was refused";

/// What is held, with what to do. What may have run before is nothing to be released all at once.
fn of_held(held: Count, restored: Option<&Restored>) -> Need {
    let all = deliveries(held);
    let list = "`tilld delivery list --state held` shows them";
    match restored.filter(|restored| restored.held.count > 0) {
        None => Need::new("held", all)
            .helped_by(format!("{list}, `tilld delivery release --all` runs them")),
        Some(restored) => {
            let of_it = if number(restored.held) == number(held) {
                " that".to_owned()
            } else {
                format!(", {} of which", number(restored.held))
            };
            let told = format!("{all}{of_it} may have run before the ledger was put back");
            Need::new("held", told).helped_by(format!(
                "{list}; look at what the shop has done, then `tilld delivery abandon --order ORDER` where it is done, \
                 `tilld delivery release --order ORDER` where it is not"
            ))
        }
    }
}

/// What was given up, with the newest orders of it.
fn of_abandoned(abandoned: Count, orders: &[String]) -> Need {
    let of_orders = if orders.is_empty() {
        String::new()
    } else {
        format!(", order {}", orders.join(", "))
    };
    let told = format!("{}{of_orders}", deliveries(abandoned));
    Need {
        orders: orders.to_vec(),
        ..Need::new("abandoned", told).helped_by(
            "`tilld delivery list --state abandoned` shows them; mend the script, then `tilld delivery retry EVENT`, or \
             `tilld delivery abandon EVENT`",
        )
    }
}

fn deliveries(count: Count) -> String {
    let plural = if count.count == 1 && !count.more {
        "delivery"
    } else {
        "deliveries"
    };
    format!("{} {plural}", number(count))
}

fn login(polling: &Polling) -> Option<Need> {
    let why = polling.login.problem()?;
    let since = polling.login_since.as_deref().unwrap_or_default();
    let told = format!("{why} since {since}, so nothing is asked");
    Some(Need::new("login", told).helped_by(format!("run `{}`", argv::login())))
}
