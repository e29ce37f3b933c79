//! The polling for people: one line each for who waits, the caps and the delay, and more only when something keeps the
//! service from being asked. Pure.

use std::fmt::Write as _;

use crate::status::measures::{bound, number, span};
use crate::status::{Due, Report};
use crate::status::{LoginState, Polling};

/// Who is to be asked about, the most pressing class first.
pub(super) fn due(due: &Due) -> String {
    let Some(late_ms) = due.oldest_late_ms else {
        return "no invoice to be asked about now".to_owned();
    };
    let count = number(due.all());
    let invoices = if count == "1" { "invoice" } else { "invoices" };
    let classes = [
        ("urgent", &due.urgent),
        ("young", &due.young),
        ("old", &due.old),
        ("restored", &due.restored),
    ];
    let waiting = classes.into_iter().filter_map(|(class, of)| {
        let late_ms = of.oldest_late_ms?;
        Some((class, number(of.all()), span(late_ms)))
    });
    let waiting: Vec<(&str, String, String)> = waiting.collect();
    let mut late = span(late_ms);
    if let (Some(order_id), Some(age_ms)) = (&due.oldest_order_id, due.oldest_age_ms) {
        late = format!("{late} (order {order_id}, opened {} ago)", span(age_ms));
    }
    match waiting.as_slice() {
        [] => format!("{count} {invoices} to be asked about, the oldest for {late}"),
        [(class, ..)] => {
            format!("{count} {class} {invoices} to be asked about, the oldest for {late}")
        }
        several => {
            let each: Vec<String> = several
                .iter()
                .map(|(class, count, late)| format!("{count} {class} for {late}"))
                .collect();
            format!(
                "{count} {invoices} to be asked about, the oldest for {late}: {}",
                each.join(", ")
            )
        }
    }
}

/// Caps and delay, then what is wrong.
pub(super) fn standing(report: &Report) -> Vec<(&'static str, String)> {
    let polling = &report.polling;
    let polls = if polling.requests_per_second == 1 {
        "poll"
    } else {
        "polls"
    };
    let mut caps = format!(
        "at most {} {polls} per second, {} at once",
        polling.requests_per_second, polling.at_once
    );
    if let Some(now) = polling.requests_per_second_now {
        write!(caps, "; at present {now}").expect("into a string");
    }
    let mut pairs = vec![
        ("polling", caps),
        ("delay", delay(polling, report.daemon_running)),
    ];
    if let (Some(since), Some(reason)) = (&polling.outage_since, &polling.outage_reason) {
        pairs.push((
            "outage",
            format!("the service gives no answers since {since}: {reason}"),
        ));
    }
    if let Some(until) = &polling.left_alone_until {
        pairs.push((
            "left alone",
            format!("no polls until {until}, as the service wishes"),
        ));
    }
    if let Some(until) = &polling.creates_left_alone_until {
        pairs.push((
            "left alone",
            format!("no creates until {until}, as the service wishes"),
        ));
    }
    pairs
}

fn delay(polling: &Polling, daemon_running: bool) -> String {
    let young = format!(
        "a lost notification of an invoice younger than {}",
        span(polling.young_below_ms)
    );
    if let Some(within_ms) = polling.found_within_ms {
        let count = number(polling.young);
        let are = if count == "1" { "is" } else { "are" };
        return format!(
            "{young} is found within {}; {count} {are} that young",
            bound(within_ms)
        );
    }
    let why = match polling.login {
        _ if !daemon_running => "while no daemon runs",
        LoginState::Needed => "before somebody logs in",
        LoginState::Refused => "before somebody logs in anew",
        LoginState::Good | LoginState::Unknown if polling.outage_since.is_some() => {
            "while the service gives no answers"
        }
        LoginState::Good | LoginState::Unknown if polling.left_alone_until.is_some() => {
            "while the service wants to be left alone"
        }
        LoginState::Good | LoginState::Unknown => {
            return format!(
                "{young} may be found late: {} are that young",
                number(polling.young)
            );
        }
    };
    format!("{young} is not found {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::invoice::silence::Class;
    use crate::ledger::{DueOf, Overdue, Overview, Silent, Tally};
    use crate::poller::standing::{LeftAlone, Outage, Standing};
    use crate::status::Around;
    use crate::status::tests::{around, report};

    fn waits(class: Class, count: u64, oldest_ms: i64) -> DueOf {
        DueOf {
            class,
            count: Tally { count, more: false },
            oldest_ms: Some(oldest_ms),
        }
    }

    #[test]
    fn who_waits_is_told_by_class_and_the_longest_by_its_order() {
        let now_ms = around().now_ms;
        let told = |due: Vec<DueOf>| {
            let oldest = due.iter().filter_map(|of| of.oldest_ms).min();
            let due_ms = oldest.expect("something waits");
            let count = due.iter().map(|of| of.count.count).sum();
            let overview = Overview {
                due: Tally { count, more: false },
                oldest_due_ms: oldest,
                silent: Silent {
                    due,
                    longest: Some(Overdue {
                        order_id: "1042".to_owned(),
                        due_ms,
                        created_ms: now_ms - 7_200_000,
                    }),
                    ..Silent::default()
                },
                ..Overview::default()
            };
            super::due(&report(&overview, &Settings::default()).due)
        };
        let urgent = waits(Class::Urgent, 1, now_ms - 2_000);
        let old = waits(Class::Old, 2, now_ms - 300_000);
        assert_eq!(
            told(vec![urgent]),
            "1 urgent invoice to be asked about, the oldest for 2 s (order 1042, opened 2 h ago)"
        );
        assert_eq!(
            told(vec![urgent, old]),
            "3 invoices to be asked about, the oldest for 5 min (order 1042, opened 2 h ago): \
             1 urgent for 2 s, 2 old for 5 min"
        );
    }

    #[test]
    fn the_delay_is_told_with_how_many_are_young() {
        let told = |count, more| {
            let overview = Overview {
                silent: Silent {
                    young: Tally { count, more },
                    ..Silent::default()
                },
                ..Overview::default()
            };
            let told = report(&overview, &Settings::default());
            delay(&told.polling, told.daemon_running)
        };
        let of = "a lost notification of an invoice younger than 30 min";
        let one = told(1, false);
        assert!(
            one.starts_with(of) && one.ends_with("; 1 is that young"),
            "{one}"
        );
        assert_eq!(
            told(600, false),
            format!("{of} is found within 2 min; 600 are that young")
        );
        assert_eq!(
            told(10_000, true),
            format!("{of} may be found late: more than 10000 are that young")
        );
    }

    fn lines(around: Around) -> Vec<String> {
        let told = Report::new(&Overview::default(), &Settings::default(), around);
        let pairs = standing(&told).into_iter();
        pairs
            .map(|(name, told)| format!("{name}: {told}"))
            .collect()
    }

    #[test]
    fn nothing_is_promised_while_nobody_asks() {
        let since_ms = around().now_ms;
        let quiet = Standing::default;
        let said = |standing: Standing| Around {
            standing: Some(standing),
            ..around()
        };
        let outage = Outage {
            since_ms,
            reason: "could not connect".to_owned(),
        };
        let gone = Around {
            daemon_running: false,
            ..around()
        };
        for (around, why, more) in [
            (gone, "while no daemon runs", None),
            (
                said(Standing {
                    login: LoginState::Needed,
                    login_since_ms: Some(since_ms),
                    ..quiet()
                }),
                "before somebody logs in",
                None,
            ),
            (
                said(Standing {
                    login: LoginState::Refused,
                    login_since_ms: Some(since_ms),
                    ..quiet()
                }),
                "before somebody logs in anew",
                None,
            ),
            (
                said(Standing {
                    outage: Some(outage),
                    ..quiet()
                }),
                "while the service gives no answers",
                Some(
                    "outage: the service gives no answers since 2026-11-28T10:02:00.004Z: could not connect",
                ),
            ),
            (
                said(Standing {
                    no_polls: Some(LeftAlone {
                        until_ms: since_ms + 1_000,
                        for_ms: 1_000,
                    }),
                    ..quiet()
                }),
                "while the service wants to be left alone",
                Some("left alone: no polls until 2026-11-28T10:02:01.004Z, as the service wishes"),
            ),
        ] {
            let delay = format!(
                "delay: a lost notification of an invoice younger than 30 min is not found {why}"
            );
            let told = lines(around);
            let wanted = ["polling: at most 20 polls per second, 4 at once", &delay];
            assert_eq!(told, wanted.into_iter().chain(more).collect::<Vec<_>>());
        }
    }
}
