//! How much of the service's `Retry-After` is heeded; what it means is in [`crate::retry_after`].

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::retry_after;

/// Longest wait taken over from the service. A longer one is more likely an accident than a wish, and an hour without a
/// single question is the most a shop's open orders can bear (A29).
pub(crate) const LONGEST: Duration = Duration::from_hours(1);

/// How long the service wants to be left alone, at most [`LONGEST`].
pub(super) fn from_headers(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let wish = retry_after::wish(text(RETRY_AFTER)?, text(DATE), now_ms)?;
    Some(wish.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wish_is_heeded_beyond_the_longest() {
        for (wish, wanted) in [
            ("0", None),
            ("30", Some(30)),
            ("86400", Some(3_600)),
            ("99999999999999999999999", Some(3_600)),
            ("Sat, 06 Nov 2094 08:00:00 GMT", Some(3_600)),
        ] {
            let header = wish.parse().expect("a header");
            let headers = HeaderMap::from_iter([(RETRY_AFTER, header)]);
            let got = from_headers(&headers, 1_800_000_000_000);
            assert_eq!(got, wanted.map(Duration::from_secs), "`{wish}`");
        }
    }
}
