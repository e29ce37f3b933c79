//! The service's own instants (`updatedAt`, `expireAt`). Claims are ordered by these and by nothing else.

use std::fmt;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// An instant of the service, to the nanosecond, between the years 1677 and 2262.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

/// Whether a text said in which zone its time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// `Z` or an offset.
    Given,
    /// Nothing: it was taken as UTC.
    Missing,
}

/// Bytes of `2025-03-30T01:30:00`; a fraction and a zone may follow.
const WHOLE_SECONDS: usize = 19;
/// Longest text looked at, bytes: nine fraction digits and an offset with seconds end before it.
const LONGEST: usize = 40;

impl Moment {
    /// Reads an ISO 8601 date and time: `T` or one blank between them, seconds, 0 to 9 fraction digits, `Z` or any
    /// offset, letters in either case; without a zone it is taken as UTC, whatever zone this process is in (A10). A leap
    /// second is the second before it. `None` for anything else: an unreadable time never loses a claim.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text).map(|(moment, _zone)| moment)
    }

    /// As [`Moment::parse`], and whether the zone was given.
    pub fn read(text: &str) -> Option<(Self, Zone)> {
        match usual(text.as_bytes()) {
            Some(ms) => Some((Self::from_ms(ms), Zone::Given)),
            None => Self::read_any(text),
        }
    }

    /// Any of the spellings.
    fn read_any(text: &str) -> Option<(Self, Zone)> {
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
            || text.len() > LONGEST
            || text.contains('[')
        {
            return None;
        }
        // Looked for here: jiff's civil times pass over an offset that is no offset.
        let zone = if text.get(WHOLE_SECONDS..)?.contains(['Z', 'z', '+', '-']) {
            Zone::Given
        } else {
            Zone::Missing
        };
        let stamp = match zone {
            Zone::Given => text.parse::<Timestamp>().ok()?,
            Zone::Missing => TimeZone::UTC
                .to_timestamp(text.parse::<DateTime>().ok()?)
                .ok()?,
        };
        let ns = i64::try_from(stamp.as_nanosecond()).ok()?;
        Some((Self(ns), zone))
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

/// Milliseconds since 1970 of the one spelling nearly all come in, `2025-03-30T01:30:00.000Z` or without the fraction, and
/// without a look at time zones. `None` for all else, a leap second and what is no instant included: the whole reading has
/// the word then.
fn usual(text: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', rest @ ..] = text else {
        return None;
    };
    let [h1, h2, b':', n1, n2, b':', s1, s2, rest @ ..] = rest else {
        return None;
    };
    let ms = match rest {
        [b'Z'] => 0,
        [b'.', f1, f2, f3, b'Z'] => pair(*f1, *f2)? * 10 + pair(b'0', *f3)?,
        _ => return None,
    };
    let (century, in_century) = (pair(*y1, *y2)?, pair(*y3, *y4)?);
    let (year, month) = (century * 100 + in_century, pair(*m1, *m2)?);
    let (day, hour) = (pair(*d1, *d2)?, pair(*h1, *h2)?);
    let (minute, second) = (pair(*n1, *n2)?, pair(*s1, *s2)?);
    let in_day = hour < 24 && minute < 60 && second < 60;
    // The last day of February, where the length of the year counts, is left to the whole reading.
    let last = match month {
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    let certain = (1970..2200).contains(&year) && (1..=last).contains(&day) && in_day;
    if !certain {
        return None;
    }
    // Days since 1970 of the proleptic Gregorian calendar, years counted from March so that a leap day is their last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - DAYS_TO_1970;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// Days from the first of March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;

/// The number that two digits write.
fn pair(tens: u8, ones: u8) -> Option<i64> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    Some(digit(tens)? * 10 + digit(ones)?)
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

    /// The short way to an instant gives what the whole reading does, or leaves it to that.
    #[test]
    fn the_usual_spelling_is_no_other_instant() {
        for year in [1969, 1970, 1999, 2000, 2024, 2025, 2100, 2199, 2200] {
            for month in 0..=13 {
                for (day, rest) in [
                    (0, "00:00:00Z"),
                    (1, "00:00:00.000Z"),
                    (15, "23:59:59.999Z"),
                    (28, "12:34:56Z"),
                    (28, "24:00:00Z"),
                    (28, "23:59:60Z"),
                    (29, "01:02:03.004Z"),
                    (31, "01:02:03.004Z"),
                ] {
                    let text = format!("{year}-{month:02}-{day:02}T{rest}");
                    let whole = Moment::read_any(&text);
                    assert_eq!(Moment::read(&text), whole, "{text}");
                    if let Some(ms) = usual(text.as_bytes()) {
                        assert_eq!(whole, Some((Moment::from_ms(ms), Zone::Given)), "{text}");
                    }
                }
            }
        }
        assert_eq!(usual(b"2025-03-28T01:30:00.000Z"), Some(1_743_125_400_000));
        assert_eq!(usual(b"2025-03-28T01:30:00.00xZ"), None);
    }

    /// A10, the forms that are read and the instant each means.
    #[test]
    fn the_forms_seen_in_the_wild_are_read() {
        let half_past_one = "2025-03-30T01:30:00.000Z";
        for (text, wanted) in [
            ("2025-03-30T01:30:00Z", half_past_one),
            ("2025-03-30t01:30:00z", half_past_one),
            ("2025-03-30 01:30:00Z", half_past_one),
            ("2025-03-30T04:30:00+03:00", half_past_one),
            ("2025-03-30T04:30:00+0300", half_past_one),
            ("2025-03-30T04:30:00+03", half_past_one),
            ("2025-03-30T07:00:00+05:30", half_past_one),
            ("2025-03-29T20:30:00-05:00", half_past_one),
            ("2025-03-30T01:30:00-00:00", half_past_one),
            ("2025-03-30T01:30:00", half_past_one),
            ("2025-03-30 01:30:00", half_past_one),
            ("2025-03-30T01:30:00.000000000Z", half_past_one),
            ("2025-03-30T01:30:00.0+00:00", half_past_one),
            // In the hour that many zones leave out that night.
            ("2025-03-30T02:30:00", "2025-03-30T02:30:00.000Z"),
            ("2025-03-30T01:30:00.5Z", "2025-03-30T01:30:00.500Z"),
            ("2025-03-30T01:30:00.05", "2025-03-30T01:30:00.050Z"),
            ("2025-03-30T01:30:00.123456Z", "2025-03-30T01:30:00.123Z"),
            // Offsets that cross a day, a year and a leap day.
            ("2025-01-01T00:30:00+01:00", "2024-12-31T23:30:00.000Z"),
            ("2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00.000Z"),
            ("2024-02-29T00:30:00+14:00", "2024-02-28T10:30:00.000Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000Z"),
            ("2262-01-01T00:00:00Z", "2262-01-01T00:00:00.000Z"),
        ] {
            let read = Moment::parse(text).map(|moment| moment.to_string());
            assert_eq!(read.as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn every_fraction_digit_counts_and_a_shorter_fraction_is_no_smaller_number() {
        let ns = |text: &str| Moment::parse(text).expect(text).as_ns() % 1_000_000_000;
        for digits in 1..=9 {
            let fraction = "123456789".get(..digits).expect("nine digits");
            let wanted: i64 = format!("{fraction:0<9}").parse().expect("digits");
            assert_eq!(ns(&format!("2025-03-30T01:30:00.{fraction}Z")), wanted);
        }
    }

    #[test]
    fn a_zone_that_is_missing_is_told() {
        let zone = |text: &str| Moment::read(text).map(|(_, zone)| zone);
        for text in ["2025-03-30T01:30:00", "2025-03-30 01:30:00.25"] {
            assert_eq!(zone(text), Some(Zone::Missing), "{text}");
        }
        for text in ["2025-03-30T01:30:00z", "2025-03-30 01:30:00.25-01:00"] {
            assert_eq!(zone(text), Some(Zone::Given), "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for text in [
            "",
            " ",
            "0",
            "1743298200",
            "1743298200000",
            "2025-03-30",
            "20250330T013000Z",
            "2025-03-30T01:30Z",
            "2025-03-30T01:30:0Z",
            "2025-03-30T01:30:00[UTC]",
            "2025-03-30T01:30:00Z[UTC]",
            "2025-03-30T01:30:00 UTC",
            "2025-03-30T01:30:00+99:00",
            "2025-03-30T01:30:00+1",
            "2025-03-30T01:30:00.Z",
            "2025-03-30T01:30:00.1234567891Z",
            "2025-03-30T01:30:61Z",
            "2025-03-30T25:30:00Z",
            "2025-02-29T01:30:00Z",
            "2025-13-01T01:30:00Z",
            " 2025-03-30T01:30:00Z",
            "2025-03-30T01:30:00Z ",
            "2025-03-30\u{a0}01:30:00Z",
            "２025-03-30T01:30:00Z",
            "2025-03-30T01:30:0０Z",
            "9999-12-31T23:59:59Z",
            "1600-01-01T00:00:00Z",
            "-2025-03-30T01:30:00Z",
            "soon",
        ] {
            assert_eq!(Moment::parse(text), None, "`{text}`");
        }
    }
}
