//! `status` for people: one line for each part, then what needs a person with what helps.

use super::super::failure::Failure;
use super::super::output::Output;
use super::report::{Count, Login, Report};

/// Prints it.
pub(super) fn print(output: Output, report: &Report) -> Result<(), Failure> {
    output.pairs(&standing(report))?;
    let needs = needs(report);
    if needs.is_empty() {
        return output.line("\nNothing needs a person.");
    }
    output.line("\nNeeds a person:")?;
    output.pairs(&needs)
}

/// How things stand. Not escaped: the table does it.
fn standing(report: &Report) -> Vec<(&'static str, String)> {
    let daemon = if report.daemon_running {
        "running"
    } else {
        "not running: `tilld serve`"
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
        ("due", due(report)),
        (
            "deliveries",
            format!(
                "{} waiting, {} running",
                number(report.deliveries.waiting),
                number(report.deliveries.running)
            ),
        ),
    ]);
    pairs
}

fn login(login: &Login) -> String {
    match login {
        Login::Stored {
            stored_in,
            shop_name,
            ..
        } => match shop_name {
            Some(shop) if !shop.is_empty() => format!("shop {shop}, token in {stored_in}"),
            Some(_) | None => format!("token in {stored_in}"),
        },
        Login::None => "none stored: `tilld login`".to_owned(),
        Login::Hidden => "only the owner of the state directory may know".to_owned(),
        Login::Unreadable => "cannot be read: `tilld whoami` says why".to_owned(),
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
            number(refusals.all),
            refusals.commonest_count
        ),
        None => "none in 24 h".to_owned(),
    }
}

fn due(report: &Report) -> String {
    let count = number(report.due.all);
    let invoices = if count == "1" { "invoice" } else { "invoices" };
    match report.due.oldest_late_ms {
        Some(late_ms) => format!(
            "{count} {invoices} to be asked about, the oldest for {}",
            span(late_ms)
        ),
        None => "no invoice to be asked about now".to_owned(),
    }
}

/// What needs a person, each with what helps.
fn needs(report: &Report) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    let (held, abandoned) = (report.deliveries.held, report.deliveries.abandoned);
    if held.count > 0 {
        pairs.push((
            "held",
            format!(
                "{}: `tilld delivery list --state held` shows them, `tilld delivery release --all` runs them",
                deliveries(held)
            ),
        ));
    }
    if abandoned.count > 0 {
        pairs.push((
            "abandoned",
            format!(
                "{}: `tilld delivery list --state abandoned` shows them; mend the script, then `tilld delivery retry EVENT`",
                deliveries(abandoned)
            ),
        ));
    }
    for reason in &report.attention {
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
            pairs.push(("", reason.advice.to_owned()));
        }
    }
    if !report.attention.is_empty() {
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

fn deliveries(count: Count) -> String {
    let plural = if count.count == 1 && !count.more {
        "delivery"
    } else {
        "deliveries"
    };
    format!("{} {plural}", number(count))
}

fn number(count: Count) -> String {
    if count.more {
        format!("more than {}", count.count)
    } else {
        count.count.to_string()
    }
}

/// A size in the unit that suits it.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1_024;
    const MIB: u64 = KIB * KIB;
    const GIB: u64 = MIB * KIB;
    let tenths = |unit: u64| (bytes / unit, bytes % unit * 10 / unit);
    let (unit, name) = match bytes {
        0..KIB => return format!("{bytes} bytes"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        GIB.. => (GIB, "GiB"),
    };
    let (whole, part) = tenths(unit);
    format!("{whole}.{part} {name}")
}

/// A time in the largest unit it fills twice.
fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;
    use crate::config::Settings;
    use crate::ledger::{Overview, Tally};

    #[test]
    fn sizes_and_spans_are_short() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1_536, "1.5 KiB"),
            (1_048_576, "1.0 MiB"),
            (5_905_580_032, "5.5 GiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
        for (ms, shown) in [
            (-5, "0 s"),
            (119_999, "119 s"),
            (120_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(span(ms), shown);
        }
    }

    #[test]
    fn a_quiet_ledger_is_told_in_seven_lines() {
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
        assert!(due(&told).starts_with("more than 10000 invoices"));
        let needs = needs(&told);
        let first = needs.first().map(|(_, told)| told.as_str());
        assert!(first.is_some_and(|told| told.starts_with("more than 10000 deliveries:")));
    }
}
