//! The time in front of a log line, `2026-11-28T19:08:45.898775Z`: UTC, microseconds, always of one length. Written by hand,
//! since every notification makes a line: a formatter that can do more takes a sixth of what the whole line does.
//!
//! Relies on the caller for the time; promises nothing beyond the year 9999, where the year is cut to four digits.

use std::fmt;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

const DAY_US: u64 = 86_400_000_000;

/// What tells the time: microseconds since 1970-01-01 UTC.
pub(super) struct Stamp(pub(super) fn() -> u64);

impl FormatTime for Stamp {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        let text = text((self.0)());
        w.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

/// A digit has a fixed place.
fn text(us: u64) -> [u8; 27] {
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    let (year, month, day) = civil(us / DAY_US);
    let seconds = us % DAY_US / 1_000_000;
    let mut put = |end: usize, digits: usize, mut number: u64| {
        for place in text.iter_mut().take(end).rev().take(digits) {
            *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
        }
    };
    put(4, 4, year);
    put(7, 2, month);
    put(10, 2, day);
    put(13, 2, seconds / 3_600);
    put(16, 2, seconds / 60 % 60);
    put(19, 2, seconds % 60);
    put(26, 6, us % 1_000_000);
    text
}

/// Year, month and day of a day since 1970, in the proleptic Gregorian calendar. Years are counted from March, so that a leap
/// day is the last of one, in eras of 400 years, which all have as many days.
const fn civil(days: u64) -> (u64, u64, u64) {
    /// Days from the first of March of the year 0 to 1970.
    const TO_1970: u64 = 719_468;
    const ERA: u64 = 146_097;
    let days = days + TO_1970;
    let (era, of_era) = (days / ERA, days % ERA);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day of five centuries, counted by hand.
    #[test]
    fn a_day_is_what_a_calendar_says() {
        let mut days = 0;
        for year in 1970..2470_u64 {
            let leap =
                year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
            let february = if leap { 29 } else { 28 };
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                for day in 1..=length {
                    assert_eq!(civil(days), (year, month, day), "day {days}");
                    days += 1;
                }
            }
        }
    }

    #[test]
    fn every_digit_has_its_place() {
        for (us, wanted) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (DAY_US - 1, "1970-01-01T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_795_893_005_898_775, "2026-11-28T19:10:05.898775Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
        ] {
            let own = text(us);
            assert_eq!(str::from_utf8(&own).expect("digits"), wanted);
        }
    }
}
