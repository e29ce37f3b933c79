//! `Retry-After` (RFC 9110, 10.2.3): whole seconds or an HTTP date. Nonsense is no wish at all. Pure: whoever asks says
//! what time it is, and how much of a wish is heeded.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;

/// How long the sender of an answer wants to be left alone. A date is measured against the answer's own `Date` where it
/// has one, since our clock may be wrong. A wait of zero or a date in the past is no wish: taken for one, it would let
/// somebody who refuses everything be asked at full pace for ever. `date` is the value of the header `Date`.
pub(crate) fn wish(retry_after: &str, date: Option<&str>, now_ms: i64) -> Option<Duration> {
    parse(retry_after, date, now_ms).filter(|wait| !wait.is_zero())
}

fn parse(wish: &str, date: Option<&str>, now_ms: i64) -> Option<Duration> {
    let wish = wish.trim();
    if !wish.is_empty() && wish.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than a u64 holds are a very long wait, not nonsense.
        let seconds = wish.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds));
    }
    let until = http_date(wish)?;
    let from = date.and_then(http_date).unwrap_or(now_ms);
    let wait = u64::try_from(until.saturating_sub(from)).unwrap_or(0);
    Some(Duration::from_millis(wait))
}

/// Milliseconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, the one form senders may produce.
pub(crate) fn http_date(text: &str) -> Option<i64> {
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
            ("86400", Some(86_400)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 2094 08:00:00 GMT", None),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(86_400)),
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
        for (text, wanted) in [
            ("0", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
            ("1", Some(1)),
        ] {
            let got = wish(text, None, 1_800_000_000_000);
            assert_eq!(got, wanted.map(Duration::from_secs), "`{text}`");
        }
    }

    #[test]
    fn a_date_is_measured_by_the_senders_clock() {
        let wait = wish(
            "Sun, 06 Nov 1994 08:50:37 GMT",
            Some("Sun, 06 Nov 1994 08:50:27 GMT"),
            0,
        );
        assert_eq!(wait, Some(Duration::from_secs(10)));
    }
}
