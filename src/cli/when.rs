//! Times as people give them in a filter: an instant, a day, or how long ago. Pure but for [`parse`], which takes the
//! clock along.

use std::time::Duration;

use crate::clock::wall_ms;
use crate::invoice::moment::Moment;

/// How a time is given, for the text of `--help`.
pub(super) const FORMS: &str = "\
Times are given as 2026-11-28T10:00:00Z (any offset; without one it is UTC), as 2026-11-28 (the beginning of that day, UTC), \
or as 90s, 15m, 2h or 3d (so long ago).";

/// Reads a time now, for a flag.
pub(super) fn parse(text: &str) -> Result<Moment, String> {
    read(text, wall_ms()).ok_or_else(|| {
        format!("`{text}` is no time such as `2026-11-28T10:00:00Z`, `2026-11-28`, or `2h` for two hours ago")
    })
}

fn read(text: &str, now_ms: i64) -> Option<Moment> {
    if let Some(moment) = Moment::parse(text) {
        return Some(moment);
    }
    if let Some(ago) = ago(text) {
        let ago_ms = i64::try_from(ago.as_millis()).ok()?;
        return Some(Moment::from_ms(now_ms.checked_sub(ago_ms)?));
    }
    Moment::parse(&format!("{text}T00:00:00Z"))
}

/// Reads `90s`, `15m`, `2h` or `3d`. A number alone is none: nobody knows of what.
fn ago(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = text.strip_suffix(unit)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let count = digits.parse::<u64>().ok().filter(|_| plain)?;
    count.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_days_and_how_long_ago_are_read() {
        let now_ms = Moment::parse("2026-11-28T10:00:00Z")
            .expect("a time")
            .as_ms();
        for (text, wanted) in [
            ("2026-11-27T08:00:00Z", "2026-11-27T08:00:00.000Z"),
            ("2026-11-27T08:00:00.25+03:00", "2026-11-27T05:00:00.250Z"),
            ("2026-11-27 08:00:00", "2026-11-27T08:00:00.000Z"),
            ("2026-11-27", "2026-11-27T00:00:00.000Z"),
            ("90s", "2026-11-28T09:58:30.000Z"),
            ("15m", "2026-11-28T09:45:00.000Z"),
            ("2h", "2026-11-28T08:00:00.000Z"),
            ("3d", "2026-11-25T10:00:00.000Z"),
            ("0s", "2026-11-28T10:00:00.000Z"),
        ] {
            let read = read(text, now_ms).map(|moment| moment.to_string());
            assert_eq!(read.as_deref(), Some(wanted), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "5",
            "h",
            "-2h",
            "+2h",
            "1.5h",
            "2 h",
            "2w",
            "2026-11",
            "2026-02-30",
            "2026-11-27T08:00",
            "99999999999999999999d",
            "9999999999999999d",
            "2026-11-27T00:00:00Z[UTC]",
        ] {
            assert_eq!(read(text, now_ms), None, "`{text}`");
        }
    }
}
