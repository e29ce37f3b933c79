//! `status` for people: one line for each part, then what needs a person with what helps.

mod polling;

use super::super::failure::Failure;
use super::super::output::Output;
use crate::invoice::attention::End;
use crate::status::measures::{number, size};
use crate::status::{Need, Polled, Reason, Report, Restored, StoredLogin};

/// Prints it.
pub(super) fn print(output: Output, report: &Report) -> Result<(), Failure> {
    output.pairs(&standing(report))?;
    if report.needs.is_empty() {
        return output.line("\nNothing needs a person.");
    }
    output.line("\nNeeds a person:")?;
    output.pairs(&needs(&report.needs))
}

/// What needs a person, each under its word and with what helps below. What is about invoices has one word in common, for
/// which there is one command.
fn needs(needs: &[Need]) -> Vec<(&str, String)> {
    let is_of_invoice =
        |need: &&Need| !need.orders.is_empty() && matches!(need.reason, Reason::Invoice(_));
    let last = needs.iter().rposition(|need| is_of_invoice(&need));
    let mut pairs = Vec::new();
    for (place, need) in needs.iter().enumerate() {
        pairs.push(if is_of_invoice(&need) {
            ("attention", format!("{}: {}", need.reason, need.told))
        } else {
            (need.reason.as_str(), need.told.clone())
        });
        pairs.extend(need.advice.iter().map(|advice| ("", advice.clone())));
        // The advice names `tilld ack` where that ends it.
        if need.ends == End::ByItself {
            pairs.push(("", "ends by itself".to_owned()));
        }
        if last == Some(place) {
            pairs.push(("", LISTS_THEM.to_owned()));
        }
    }
    pairs
}

/// What shows the invoices under attention.
const LISTS_THEM: &str =
    "`tilld invoice list --attention` lists them all, `tilld explain ORDER` tells one";

/// How things stand. Not escaped: the table does it.
fn standing(report: &Report) -> Vec<(&'static str, String)> {
    let daemon = match report.daemon_answers {
        _ if !report.daemon_running => "not running: `tilld serve`",
        Some(false) => "running, but it does not answer",
        Some(true) | None => "running",
    };
    let file = &report.ledger;
    let mut pairs = vec![
        ("daemon", daemon.to_owned()),
        (
            "ledger",
            format!(
                "{}, {} and {} of log",
                file.path,
                size(file.bytes),
                size(file.wal_bytes)
            ),
        ),
        ("login", login(&report.login)),
        ("last notified", notified(report)),
    ];
    if let Some(place) = &report.presentation.last
        && !report.presentation.pinned
    {
        let list = serde_json::Value::from(vec![place.as_str()]);
        pairs.push((
            "",
            format!("`presentations = {list}` under `[listener]` pins the place"),
        ));
    }
    pairs.extend([
        ("refused", refused(report)),
        ("due", polling::due(&report.due)),
    ]);
    pairs.extend(polling::standing(report));
    pairs.push((
        "deliveries",
        format!(
            "{} waiting, {} running",
            number(report.deliveries.waiting),
            number(report.deliveries.running)
        ),
    ));
    if let Some(restored) = &report.restored {
        pairs.push(("restored", told_restored(restored)));
    }
    pairs
}

fn told_restored(restored: &Restored) -> String {
    let of_it = match restored.held.count {
        0 => "nothing is held for it".to_owned(),
        _ => format!("{} held for it", number(restored.held)),
    };
    let polled = match restored.polled {
        None => "final outcomes are still to be counted and polled again".to_owned(),
        Some(Polled { of: 0, .. }) => "no final outcome to be polled again".to_owned(),
        Some(Polled { count, of }) if count == of => {
            format!("all {of} final outcomes polled again")
        }
        Some(Polled { count, of }) => format!("{count} of {of} final outcomes polled again"),
    };
    format!("from a copy, opened {}: {of_it}; {polled}", restored.at)
}

fn login(login: &StoredLogin) -> String {
    match login {
        StoredLogin::Stored {
            stored_in,
            shop_name,
            ..
        } => match shop_name {
            Some(shop) if !shop.is_empty() => format!("shop {shop}, token in {stored_in}"),
            Some(_) | None => format!("token in {stored_in}"),
        },
        StoredLogin::None => "none stored: `tilld login`".to_owned(),
        StoredLogin::Hidden => "only the owner of the state directory may know".to_owned(),
        StoredLogin::Unreadable => "cannot be read: `tilld whoami` says why".to_owned(),
    }
}

fn notified(report: &Report) -> String {
    let place = report.presentation.last.as_ref();
    let place = place.map_or_else(String::new, |place| format!(", by {place}"));
    match &report.last_notification {
        Some(last) => format!("{}, order {}{place}", last.at, last.order_id),
        None => format!("not lately{place}"),
    }
}

fn refused(report: &Report) -> String {
    let refusals = &report.refusals_24h;
    match &refusals.commonest_reason {
        Some(reason) => format!(
            "{} in 24 h, most often {reason} ({}): `tilld refusal list`",
            number(refusals.all()),
            refusals.commonest_count
        ),
        None => "none in 24 h".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::ledger::{Overview, Restore, Tally};
    use crate::status::tests::report;

    #[test]
    fn a_quiet_ledger_is_told_in_nine_lines() {
        let lines = standing(&report(&Overview::default(), &Settings::default()));
        let lines: Vec<String> = lines
            .into_iter()
            .map(|(name, told)| format!("{name}: {told}"))
            .collect();
        assert_eq!(
            lines,
            [
                "daemon: running",
                "ledger: /var/lib/tilld/ledger.db, 136.0 KiB and 4.0 KiB of log",
                "login: only the owner of the state directory may know",
                "last notified: not lately",
                "refused: none in 24 h",
                "due: no invoice to be asked about now",
                "polling: at most 20 polls per second, 4 at once",
                "delay: a lost notification of an invoice younger than 30 min is found within 60 s; 0 are that young",
                "deliveries: 0 waiting, 0 running",
            ]
        );
    }

    #[test]
    fn a_million_is_told_as_more_than_the_bound() {
        let many = Tally {
            count: 10_000,
            more: true,
        };
        let overview = Overview {
            due: many,
            oldest_due_ms: Some(0),
            abandoned: many,
            ..Overview::default()
        };
        let told = report(&overview, &Settings::default());
        assert!(polling::due(&told.due).starts_with("more than 10000 invoices"));
        let needs = needs(&told.needs);
        let first = needs.first().map(|(_, told)| told.as_str());
        assert_eq!(first, Some("more than 10000 deliveries"));
    }

    #[test]
    fn what_may_have_run_before_a_restore_is_not_told_to_be_released_at_once() {
        let tally = |count| Tally { count, more: false };
        let held = |all, restored| {
            let overview = Overview {
                held: tally(all),
                held_restored: tally(restored),
                restore: Some(Restore {
                    generation: 1,
                    at_ms: 0,
                }),
                ..Overview::default()
            };
            let told = report(&overview, &Settings::default());
            let needs = needs(&told.needs);
            let told = needs.iter().map(|(_, told)| told.as_str());
            told.collect::<Vec<_>>().join(" / ")
        };
        assert!(held(3, 0).contains("`tilld delivery release --all` runs them / ends by itself"));
        for (restored, begins) in [
            (
                3,
                "3 deliveries that may have run before the ledger was put back / ",
            ),
            (
                1,
                "3 deliveries, 1 of which may have run before the ledger was put back / ",
            ),
        ] {
            let told = held(3, restored);
            assert!(
                told.starts_with(begins) && !told.contains("--all"),
                "{told}"
            );
        }
    }
}
