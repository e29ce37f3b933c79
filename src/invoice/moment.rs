//! The service's own instants (`updatedAt`, `expireAt`). Claims are ordered by these and by nothing else.

use std::fmt;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// An instant of the service, to the nanosecond, between the years 1677 and 2262.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Reads an ISO 8601 date and time: `T` or one blank between them, seconds, 0 to 9 fraction digits, `Z` or any
    /// offset; without a zone it is taken as UTC (A10). `None` for anything else: an unreadable time never loses a claim.
    pub fn parse(text: &str) -> Option<Self> {
        // jiff reads more than RFC 3339 allows: no seconds, zone names. The shape is judged here first.
        let shape = text.as_bytes();
        let right = |at: usize, wanted: u8| {
            shape
                .get(at)
                .is_some_and(|b| b.eq_ignore_ascii_case(&wanted))
        };
        let separated = right(4, b'-') && right(7, b'-') && right(13, b':') && right(16, b':');
        if !separated
            || !(right(10, b'T') || right(10, b' '))
            || text.len() > 40
            || text.contains('[')
        {
            return None;
        }
        let stamp = match text.parse::<Timestamp>() {
            Ok(stamp) => stamp,
            Err(_no_zone) => TimeZone::UTC
                .to_timestamp(text.parse::<DateTime>().ok()?)
                .ok()?,
        };
        i64::try_from(stamp.as_nanosecond()).ok().map(Self)
    }

    /// From whole milliseconds since 1970-01-01 UTC.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// From nanoseconds since 1970-01-01 UTC, as the ledger keeps it.
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since 1970-01-01 UTC, rounded down.
    pub const fn as_ms(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
}

impl fmt::Display for Moment {
    /// Fixed width, UTC, milliseconds: `2026-11-28T10:02:00.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(stamp) => write!(f, "{stamp:.3}"),
            Err(_outside) => write!(f, "{} ns", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_seen_in_the_wild_are_read() {
        let at = |text: &str| Moment::parse(text).map(|m| m.to_string());
        for same in [
            "2025-03-30T01:30:00Z",
            "2025-03-30T04:30:00+03:00",
            "2025-03-30T01:30:00",
            "2025-03-30 01:30:00",
        ] {
            assert_eq!(
                at(same).as_deref(),
                Some("2025-03-30T01:30:00.000Z"),
                "{same}"
            );
        }
        assert_eq!(
            at("2025-03-30T01:30:00.5Z").as_deref(),
            Some("2025-03-30T01:30:00.500Z")
        );
        assert_eq!(
            Moment::parse("2025-03-30T01:30:00.123456789Z").map(|m| m.as_ns() % 1_000_000_000),
            Some(123_456_789)
        );
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for text in [
            "",
            "1743298200",
            "2025-03-30",
            "2025-03-30T01:30Z",
            "2025-03-30T01:30:00[UTC]",
            "9999-01-01T00:00:00Z",
            "soon",
        ] {
            assert_eq!(Moment::parse(text), None, "`{text}`");
        }
    }
}
