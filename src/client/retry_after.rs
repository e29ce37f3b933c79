//! `Retry-After` (RFC 9110, 10.2.3): whole seconds or an HTTP date. Nonsense is no wish at all.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Longest wait taken over from the service. A longer one is more likely an accident than a wish, and an hour without a
/// single question is the most a shop's open orders can bear (A29).
pub(crate) const LONGEST: Duration = Duration::from_hours(1);

/// How long the service wants to be left alone, at most [`LONGEST`]. A date is measured against the answer's own `Date`
/// where it has one, since our clock may be wrong. A wait of zero or a date in the past is no wish: taken for one, it would
/// let a service that refuses everything be asked at full pace for ever.
pub(super) fn from_headers(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    parse(text(RETRY_AFTER)?, text(DATE), now_ms).filter(|wait| !wait.is_zero())
}

fn parse(wish: &str, date: Option<&str>, now_ms: i64) -> Option<Duration> {
    let wish = wish.trim();
    if !wish.is_empty() && wish.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than a u64 holds are a very long wait, not nonsense.
        let seconds = wish.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let until = http_date(wish)?;
    let from = date.and_then(http_date).unwrap_or(now_ms);
    let wait = u64::try_from(until.saturating_sub(from)).unwrap_or(0);
    Some(Duration::from_millis(wait).min(LONGEST))
}

/// Milliseconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, the one form senders may produce.
pub(super) fn http_date(text: &str) -> Option<i64> {
    let stamp = DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    Some(stamp.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_dates_and_nonsense() {
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        let now_ms = http_date(now).expect("an HTTP date");
        assert_eq!(now_ms, 784_111_777_000);
        for (wish, wanted) in [
            ("30", Some(30)),
            (" 0 ", Some(0)),
            ("86400", Some(3_600)),
            ("99999999999999999999999", Some(3_600)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 2094 08:00:00 GMT", None),
            ("Sat, 06 Nov 2094 08:00:00 GMT", Some(3_600)),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            let got = parse(wish, None, now_ms);
            assert_eq!(got, wanted.map(Duration::from_secs), "`{wish}`");
        }
    }

    #[test]
    fn a_wait_of_zero_is_no_wish() {
        for (wish, wanted) in [
            ("0", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
            ("1", Some(1)),
        ] {
            let header = wish.parse().expect("a header");
            let headers = HeaderMap::from_iter([(RETRY_AFTER, header)]);
            let got = from_headers(&headers, 1_800_000_000_000);
            assert_eq!(got, wanted.map(Duration::from_secs), "`{wish}`");
        }
    }

    #[test]
    fn a_date_is_measured_by_the_senders_clock() {
        let wait = parse(
            "Sun, 06 Nov 1994 08:50:37 GMT",
            Some("Sun, 06 Nov 1994 08:50:27 GMT"),
            0,
        );
        assert_eq!(wait, Some(Duration::from_secs(10)));
    }
}
