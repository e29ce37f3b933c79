//! What needs a person, for people: one line each, then what helps. Pure.

use super::measures::number;
use crate::answer::argv;
use crate::daemon::status::{Access, Polling};
use crate::daemon::status::{Count, Report, Restored};

/// What needs a person, each with what helps.
pub(super) fn needs(report: &Report) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    pairs.extend(login(&report.polling));
    let (held, abandoned) = (report.deliveries.held, report.deliveries.abandoned);
    if held.count > 0 {
        pairs.push(("held", told_held(held, report.restored.as_ref())));
    }
    if abandoned.count > 0 {
        pairs.push((
            "abandoned",
            format!(
                "{}: `tilld delivery list --state abandoned` shows them; mend the script, then \
                 `tilld delivery retry EVENT`, or `tilld delivery abandon EVENT`",
                deliveries(abandoned)
            ),
        ));
    }
    for hook in &report.unknown_hooks {
        pairs.push((
            "unowned",
            format!("deliveries wait for hook {hook}, which is not configured, and are never run:"),
        ));
        pairs.push((
            "",
            format!(
                "configure it again and restart `serve`, or `tilld delivery abandon --all --hook {hook} --state waiting`"
            ),
        ));
    }
    for reason in &report.attention {
        // Not of invoices, but of the ledger's file or its disk.
        if reason.orders.is_empty() {
            pairs.push(("attention", format!("{}: {}", reason.reason, reason.advice)));
            continue;
        }
        let invoices = if reason.count == 1 {
            "invoice"
        } else {
            "invoices"
        };
        let at_least = if report.more_attention {
            "at least "
        } else {
            ""
        };
        let named = u64::try_from(reason.orders.len()).unwrap_or_default();
        let more = if reason.count > named || report.more_attention {
            " and others"
        } else {
            ""
        };
        pairs.push((
            "attention",
            format!(
                "{}: {at_least}{} {invoices}, order {}{more}",
                reason.reason,
                reason.count,
                reason.orders.join(", ")
            ),
        ));
        if !reason.advice.is_empty() {
            pairs.push(("", reason.advice.to_string()));
        }
    }
    if report
        .attention
        .iter()
        .any(|reason| !reason.orders.is_empty())
    {
        pairs.push((
            "",
            "`tilld invoice list --attention` lists them all, `tilld explain ORDER` tells one"
                .to_owned(),
        ));
    }
    for name in &report.unsorted {
        let events = if name.events == 1 { "event" } else { "events" };
        pairs.push((
            "unsorted",
            format!(
                "{} {events} with the status {}, which stands on no list:",
                name.events, name.status
            ),
        ));
        pairs.push(("", name.line.clone()));
    }
    pairs
}

/// What is held, with what to do. What may have run before is nothing to be released all at once.
fn told_held(held: Count, restored: Option<&Restored>) -> String {
    let all = deliveries(held);
    let list = "`tilld delivery list --state held` shows them";
    match restored.filter(|restored| restored.held.count > 0) {
        None => format!("{all}: {list}, `tilld delivery release --all` runs them"),
        Some(restored) => {
            let of_it = if number(restored.held) == number(held) {
                " that".to_owned()
            } else {
                format!(", {} of which", number(restored.held))
            };
            format!(
                "{all}{of_it} may have run before the ledger was put back: {list}; look at what the shop has done, then \
                 `tilld delivery abandon --order ORDER` where it is done, `tilld delivery release --order ORDER` where it is not"
            )
        }
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

fn login(polling: &Polling) -> Option<(&'static str, String)> {
    let why = match polling.login {
        Access::Needed => "there is none that can be used",
        Access::Refused => "the service refuses it",
        Access::Good | Access::Unknown => return None,
    };
    let since = polling.login_since.as_deref().unwrap_or_default();
    let told = format!(
        "{why} since {since}, so nothing is asked: run `{}`",
        argv::login()
    );
    Some(("login", told))
}
