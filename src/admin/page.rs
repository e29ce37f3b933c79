//! The status page: today's invoices, who found their changes, what waits and what needs a person. Plain HTML that changes
//! nothing and runs no script; no secret and nothing of a customer's is on it.

use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use maud::{DOCTYPE, Markup, html};

use super::census::{HOURS, Hour};
use super::chart::chart;
use super::tally::Counted;
use crate::http::{self, Response};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::ledger::{DeliveryRow, Filter, InvoiceKey, InvoiceRow, Overview, ReadError, Reader};
use crate::status::measures::{number, size, span};
use crate::status::{Need, Report};
use crate::telemetry::{escape, word};

const STYLE: &str = include_str!("style.css");
/// Rows of a list.
const ROWS: u32 = 20;
/// Milliseconds of a day.
const DAY_MS: i64 = HOURS * 3_600_000;

/// The newest rows of what is listed.
pub(super) struct Lists {
    invoices: Vec<InvoiceRow>,
    abandoned: Vec<DeliveryRow>,
}

impl Lists {
    /// Reads them.
    pub(super) async fn read(reader: &Reader) -> Result<Self, ReadError> {
        let (invoices, abandoned) = tokio::join!(
            reader.list_invoices(Filter::All, InvoiceKey(i64::MAX), ROWS),
            // What a person gave up needs nobody.
            reader.given_up(ROWS)
        );
        Ok(Self {
            invoices: invoices?.rows,
            abandoned: abandoned?,
        })
    }
}

/// What is shown.
pub(super) struct Seen<'a> {
    pub(super) overview: &'a Overview,
    pub(super) report: &'a Report,
    pub(super) census: Option<&'a Counted>,
    pub(super) lists: &'a Lists,
    pub(super) now_ms: i64,
}

/// The page.
pub(super) fn response(seen: &Seen<'_>) -> Response {
    let headers: [(HeaderName, &'static str); 4] = [
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    // The page itself has one line and nothing that is not seen.
    let shown = page(seen).into_string();
    let mut response = http::html(StatusCode::OK, escape(&shown).into_owned());
    for (name, value) in headers {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// Its style.
pub(super) fn stylesheet() -> Response {
    let mut response = http::plain(StatusCode::OK, STYLE);
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn page(seen: &Seen<'_>) -> Markup {
    let needs = &seen.report.needs;
    let title = match needs.len() {
        0 => "Nothing needs a person".to_owned(),
        1 => "One thing needs a person".to_owned(),
        more => format!("{more} things need a person"),
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · tilld" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="data:,";
            }
            body {
                a.skip href="#main" { "To the content" }
                header { strong { "tilld " (env!("CARGO_PKG_VERSION")) } span.quiet { "as of " (instant(seen.now_ms)) } }
                main #main {
                    h1 { (title) }
                    @if !needs.is_empty() { (attention(needs)) }
                    (found(seen))
                    (invoices(seen))
                    (deliveries(seen))
                    (standing(seen))
                }
            }
        }
    }
}

/// What needs a person, each with what helps.
fn attention(needs: &[Need]) -> Markup {
    html! {
        ul.needs {
            @for need in needs {
                li {
                    strong { (need.reason) } " " (marked(&need.told))
                    @for advice in &need.advice { p { (marked(advice)) } }
                }
            }
        }
    }
}

/// The meter of lost notifications, and the day.
fn found(seen: &Seen<'_>) -> Markup {
    let day = seen.census.map(|counted| counted.census.day(seen.now_ms));
    let longest = seen.overview.silent.longest.as_ref();
    html! {
        h2 { "Who found the changes of the last 24 hours" }
        @match day {
            None => p.quiet { "The ledger is being counted; look again in a moment." },
            Some(day) => {
                (meter(&day))
                (chart(&day, clock))
                p.key { span.told {} " told by a notification " span.found {} " found by asking" }
                details {
                    summary { "The same as a table" }
                    (table("Changes by the hour", ["Hour (UTC)", "By notification", "By asking", "Paid"], day.iter().rev().map(|(at, hour)| [
                        html! { (clock(*at)) }, html! { (hour.notified) }, html! { (hour.polled) }, html! { (hour.paid) },
                    ])))
                }
            }
        }
        dl {
            dt { "Last notification" }
            dd { @match &seen.overview.last_notification {
                Some((at_ms, order)) => { (instant(*at_ms)) ", order " (order) },
                None => "not lately",
            } }
            dt { "Silent for longest" }
            dd { @match longest {
                Some(longest) => {
                    "order " (longest.order_id) ", due to be asked about for " (span(seen.now_ms.saturating_sub(longest.due_ms)))
                },
                None => "no invoice is due to be asked about",
            } }
            dt { "Refused in 24 h" }
            dd { (number(seen.report.refusals_24h.all())) @if let Some(reason) = &seen.report.refusals_24h.commonest_reason { ", most often " code { (reason) } } }
        }
    }
}

/// How many notifications are lost: what asking found is what nobody told.
fn meter(day: &[(i64, Hour)]) -> Markup {
    let told: u64 = day.iter().map(|(_, hour)| hour.notified).sum();
    let found: u64 = day.iter().map(|(_, hour)| hour.polled).sum();
    let all = told + found;
    html! {
        p.meter {
            @if all == 0 { "No changes, so no notification was missed." }
            @else {
                strong { (found) " of " (all) } " changes were not told by a notification but found by asking: " (permille(found, all))
            }
        }
    }
}

/// A share with one decimal.
fn permille(part: u64, all: u64) -> String {
    let share = (part * 1_000).checked_div(all).unwrap_or(0);
    format!("{}.{} %", share / 10, share % 10)
}

fn invoices(seen: &Seen<'_>) -> Markup {
    let midnight = seen.now_ms.div_euclid(DAY_MS) * DAY_MS;
    let of_today = seen.lists.invoices.iter();
    let of_today: Vec<&InvoiceRow> = of_today
        .filter(|invoice| invoice.created_ms >= midnight)
        .collect();
    let today = seen.census.map(|counted| counted.census.today(seen.now_ms));
    let rows = of_today.iter().map(|invoice| {
        [
            html! { (invoice.order_id) },
            html! { span.sum { (invoice.amount_agreed) " " (invoice.currency_agreed) } },
            html! { (invoice.outcome.as_str()) @if let Some(status) = &invoice.status { br; span.quiet { (word(status)) } } },
            html! { (invoice.found_by.map_or("", finder)) },
            instant(invoice.created_ms),
        ]
    });
    html! {
        h2 { "Today's invoices" }
        @if let Some(today) = today {
            p {
                (today.opened) " opened, " (today.paid) " paid, " (today.failed) " failed, " (today.reversed) " reversed, "
                (today.mismatched) " paid with another sum, since midnight by UTC."
            }
        }
        @if of_today.is_empty() { p.quiet { "None was opened." } }
        @else { (table("Today's invoices", ["Order", "Amount", "Outcome", "Found by", "Opened"], rows)) }
        @if of_today.len() == ROWS as usize { p.quiet { "The newest " (ROWS) "; `tilld invoice list` shows all." } }
    }
}

const fn finder(source: Source) -> &'static str {
    match source {
        Source::Notification => "notification",
        Source::Poll => "asking",
        Source::Create => "its opening",
        Source::Operator => "a person",
    }
}

fn deliveries(seen: &Seen<'_>) -> Markup {
    let counts = &seen.report.deliveries;
    let oldest = seen.overview.oldest_owed_ms;
    let rows = seen.lists.abandoned.iter().map(|delivery| {
        [
            html! { (delivery.order_id) },
            html! { (delivery.hook) },
            html! { (delivery.kind.as_str()) },
            html! { (delivery.attempts) },
            html! { code { (delivery.event_id) } },
        ]
    });
    html! {
        h2 { "Deliveries to hooks" }
        p {
            (number(counts.waiting)) " waiting, " (number(counts.running)) " running, " (number(counts.held)) " held, "
            (number(counts.abandoned)) " given up."
            @if let Some(at_ms) = oldest { " The oldest event still owed is from " (instant(at_ms)) "." }
        }
        @if !seen.lists.abandoned.is_empty() {
            (table("Given up", ["Order", "Hook", "Event", "Attempts", "Event's id"], rows))
        }
    }
}

fn standing(seen: &Seen<'_>) -> Markup {
    let report = seen.report;
    let login = report.polling.login.sentence();
    html! {
        h2 { "How it stands" }
        dl {
            dt { "Login" } dd { (login) }
            dt { "Ledger" } dd { (size(report.ledger.bytes)) ", and " (size(report.ledger.wal_bytes)) " of log" }
            dt { "To be asked about" } dd { (number(report.due.all())) }
            @if let Some(since) = &report.polling.outage_since { dt { "Service" } dd { "no answers since " (since) } }
            @if let Some(until) = &report.polling.left_alone_until { dt { "Service" } dd { "wants no polls until " (until) } }
            @if let Some(until) = &report.polling.creates_left_alone_until { dt { "Service" } dd { "wants no creates until " (until) } }
        }
        p.quiet { (marked("`tilld status` tells the same, `/metrics` has the figures for programs.")) }
    }
}

/// An instant by the second, in UTC.
fn instant(ms: i64) -> Markup {
    let exact = Moment::from_ms(ms).to_string();
    let shown = exact.get(..19).unwrap_or(&exact).replace('T', " ");
    html! { time datetime=(exact) { (shown) " UTC" } }
}

/// Hours and minutes, by UTC.
fn clock(ms: i64) -> String {
    let exact = Moment::from_ms(ms).to_string();
    exact.get(11..16).unwrap_or_default().to_owned()
}

/// A text in which what stands between backquotes is code.
fn marked(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A table; where the page is narrow each row stands by itself, with the heads in front of its cells.
fn table<const N: usize>(
    name: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [Markup; N]>,
) -> Markup {
    html! {
        table aria-label=(name) {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody { @for cells in rows { tr {
                @for (at, (head, cell)) in heads.iter().zip(cells).enumerate() {
                    td data-head=[(at > 0).then_some(head)] { (cell) }
                }
            } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_what_is_quoted_is_code() {
        let told = marked("run `tilld <x>` & see").into_string();
        assert_eq!(told, "run <code>tilld &lt;x&gt;</code> &amp; see");
    }

    #[test]
    fn shares_are_told_with_one_decimal() {
        for (part, all, told) in [
            (0, 7, "0.0 %"),
            (1, 3, "33.3 %"),
            (7, 7, "100.0 %"),
            (0, 0, "0.0 %"),
        ] {
            assert_eq!(permille(part, all), told);
        }
    }

    #[test]
    fn hours_are_named_by_their_clock() {
        assert_eq!(clock(1_795_860_120_004), "10:02");
    }
}
