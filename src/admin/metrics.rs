//! `/metrics` in the text format of Prometheus, version 0.0.4. Pure but for the counters it reads. Every label has few
//! values, whatever strangers and the service send: reasons, outcomes and finders are fixed words, hooks are the configured
//! ones, and a status that stands on no list is `other`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use super::Parts;
use super::census::{FINDERS, LAG_BOUNDS_S};
use super::tally::Counted;
use crate::http::Response;
use crate::ledger::{Overview, ReadError, Reader};
use crate::status::{LoginState, Report};

/// The format.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The label of statuses that stand on no list.
const OTHER: &str = "other";

/// What is told of.
pub(super) struct Seen<'a> {
    pub(super) overview: &'a Overview,
    pub(super) unfinished: Unfinished,
    pub(super) report: &'a Report,
    /// `None` while all is counted for the first time: what hangs on it is left out.
    pub(super) census: Option<&'a Counted>,
    pub(super) now_ms: i64,
}

/// Deliveries that are not done, counted to the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfinished {
    owed: u64,
    given_up: u64,
}

impl Unfinished {
    /// What the overview has, and more reading only where it stopped.
    pub(super) async fn count(overview: &Overview, reader: &Reader) -> Result<Self, ReadError> {
        let Overview {
            waiting,
            running,
            abandoned,
            ..
        } = overview;
        let owed = if waiting.more || running.more {
            reader.owed_count().await?
        } else {
            waiting.count.saturating_add(running.count)
        };
        let given_up = if abandoned.more {
            reader.abandoned_count().await?
        } else {
            abandoned.count
        };
        Ok(Self { owed, given_up })
    }
}

/// The answer.
pub(super) fn response(parts: &Parts, seen: &Seen<'_>) -> Response {
    let text = text(parts, seen);
    let mut response = Response::new(bytes::Bytes::from(text).into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn text(parts: &Parts, seen: &Seen<'_>) -> String {
    let mut page = Page::default();
    let Seen {
        overview, report, ..
    } = seen;
    page.family(
        "tilld_build_info",
        "gauge",
        "The version that runs; always 1.",
    );
    page.line("", &[("version", env!("CARGO_PKG_VERSION"))], "1");
    if let Some(counted) = seen.census {
        counted_families(&mut page, counted, &parts.listed);
    }

    page.family(
        "tilld_notifications_total",
        "counter",
        "Notifications since the start: stored ones, repetitions included, and refused ones by reason.",
    );
    let stored = parts.heard.all_stored().to_string();
    page.line("", &[("result", "stored"), ("reason", "")], &stored);
    for (reason, count) in parts.heard.all_refused() {
        let labels = [("result", "refused"), ("reason", reason)];
        page.line("", &labels, &count.to_string());
    }

    page.family(
        "tilld_requests_unserved_total",
        "counter",
        "Connections to the notifications' listener since the start that brought no whole request that can be read, or left an answer unread, by reason.",
    );
    for (reason, count) in parts.heard.all_unserved() {
        page.line("", &[("reason", reason)], &count.to_string());
    }

    page.single(
        "tilld_outbox_depth",
        "gauge",
        "Deliveries that wait or run.",
        &seen.unfinished.owed.to_string(),
    );
    let oldest_ms = overview.oldest_owed_ms;
    let age_ms = oldest_ms.map_or(0, |at_ms| seen.now_ms.saturating_sub(at_ms).max(0));
    page.single(
        "tilld_outbox_oldest_seconds",
        "gauge",
        "Age of the earliest event that a hook is still owed; 0 when none is.",
        &seconds(age_ms),
    );
    page.single(
        "tilld_dead_letters",
        "gauge",
        "Deliveries that were given up and are not acknowledged.",
        &seen.unfinished.given_up.to_string(),
    );
    page.family(
        "tilld_hook_runs_total",
        "counter",
        "Runs of hooks, and posts, since the start, by how they ended.",
    );
    for (hook, outcome, count) in parts.runs.all() {
        let labels = [("hook", hook.as_str()), ("outcome", outcome)];
        page.line("", &labels, &count.to_string());
    }
    page.family(
        "tilld_poll_requests_total",
        "counter",
        "Questions about invoices put to the service since the start, by the status of the answer; none for no answer.",
    );
    for (code, count) in parts.client.fetches().all() {
        page.line("", &[("code", &code)], &count.to_string());
    }
    page.single(
        "tilld_token_ok",
        "gauge",
        "1 while there is an access token and the service does not refuse it.",
        if report.polling.login == LoginState::Good {
            "1"
        } else {
            "0"
        },
    );
    let heard_ms = overview.last_notification.as_ref().map(|(at_ms, _)| *at_ms);
    let heard_ms = heard_ms.max(parts.heard.last_ms()).unwrap_or_default();
    page.single(
        "tilld_last_notification_timestamp_seconds",
        "gauge",
        "When the last notification was stored, seconds since 1970; 0 when none is known.",
        &seconds(heard_ms),
    );
    page.single(
        "tilld_needs_person",
        "gauge",
        "How many entries the list of what needs a person has: tilld status shows them.",
        &report.needs.len().to_string(),
    );
    page.0
}

/// What the census knows.
fn counted_families(page: &mut Page, counted: &Counted, listed: &[String]) {
    let census = &counted.census;
    page.family(
        "tilld_invoices",
        "gauge",
        "Invoices by the service's status and what it means here; a status on no list is other, before the first it is empty.",
    );
    let mut by_label: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut spoken_of = 0;
    for (status, outcome, count) in census.standing() {
        let is_listed = listed.iter().any(|known| known == status);
        let status = if is_listed { status } else { OTHER };
        *by_label.entry((status, outcome)).or_default() += count;
        spoken_of += count;
    }
    let silent = counted.invoices.saturating_sub(spoken_of);
    by_label.insert(("", "open"), silent);
    for ((status, outcome), count) in by_label {
        let labels = [("status", status), ("outcome", outcome)];
        page.line("", &labels, &count.to_string());
    }

    page.family(
        "tilld_transitions_total",
        "counter",
        "Changes of invoices that were recorded since the start, by who found them first.",
    );
    for (finder, count) in FINDERS.iter().zip(census.found) {
        page.line("", &[("found_by", finder)], &count.to_string());
    }

    page.family(
        "tilld_detect_lag_seconds",
        "histogram",
        "From the service's own time of a change to its being recorded, of changes told by a notification or found by asking.",
    );
    let mut sum = 0;
    let (within, beyond) = census.lags.split_at(LAG_BOUNDS_S.len());
    for (bound, count) in LAG_BOUNDS_S.iter().zip(within) {
        sum += count;
        page.line("_bucket", &[("le", &bound.to_string())], &sum.to_string());
    }
    sum += beyond.iter().sum::<u64>();
    page.line("_bucket", &[("le", "+Inf")], &sum.to_string());
    let lag_ms = i64::try_from(census.lag_sum_ms).unwrap_or(i64::MAX);
    page.line("_sum", &[], &seconds(lag_ms));
    page.line("_count", &[], &sum.to_string());
}

/// Milliseconds as seconds, exactly.
fn seconds(ms: i64) -> String {
    let (whole, part) = (ms.div_euclid(1_000), ms.rem_euclid(1_000));
    format!("{whole}.{part:03}")
}

/// The text, with the family that is being written.
#[derive(Default)]
struct Page(String, &'static str);

impl Page {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.1 = name;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let text = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        self.0.push_str(&text);
    }

    fn single(&mut self, name: &'static str, kind: &str, help: &str, value: &str) {
        self.family(name, kind, help);
        self.line("", &[], value);
    }

    fn line(&mut self, end: &str, labels: &[(&str, &str)], value: &str) {
        self.0.extend([self.1, end]);
        for (at, (name, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            // Writing to a `String` cannot fail.
            write!(self.0, "{before}{name}=\"{}\"", escaped(text)).unwrap_or_default();
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.0.extend([" ", value, "\n"]);
    }
}

/// A label's value as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_help_are_escaped() {
        let mut page = Page::default();
        page.family("a_total", "counter", "one\ntwo\\");
        page.line("", &[("x", "a\"b\\c\nd"), ("y", "")], "1");
        assert_eq!(
            page.0,
            "# HELP a_total one\\ntwo\\\\\n# TYPE a_total counter\na_total{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 1\n"
        );
    }

    #[test]
    fn milliseconds_are_seconds_without_a_float() {
        for (ms, told) in [
            (0, "0.000"),
            (1_005, "1.005"),
            (1_795_860_120_004, "1795860120.004"),
        ] {
            assert_eq!(seconds(ms), told);
        }
    }
}
