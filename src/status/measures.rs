//! Counts, sizes and times as people are told them. Pure.

use super::report::Count;

/// A count that may have stopped.
pub(crate) fn number(count: Count) -> String {
    if count.more {
        format!("more than {}", count.count)
    } else {
        count.count.to_string()
    }
}

/// A size in the unit that suits it.
pub(crate) fn size(bytes: u64) -> String {
    const KIB: u64 = 1_024;
    const MIB: u64 = KIB * KIB;
    const GIB: u64 = MIB * KIB;
    let tenths = |unit: u64| (bytes / unit, bytes % unit * 10 / unit);
    let (unit, name) = match bytes {
        0..KIB => return format!("{bytes} bytes"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        GIB.. => (GIB, "GiB"),
    };
    let (whole, part) = tenths(unit);
    format!("{whole}.{part} {name}")
}

/// A time in the largest unit it fills twice.
pub(crate) fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A time that is not exceeded, rounded up: to ten seconds, or to minutes from two on. Answers take a moment as well.
pub(crate) fn bound(ms: i64) -> String {
    const MINUTE_MS: i64 = 60_000;
    let up = |unit: i64| ms.max(0).saturating_add(unit - 1) / unit * unit;
    span(if ms < 2 * MINUTE_MS {
        up(10_000)
    } else {
        up(MINUTE_MS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans_are_short() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1_536, "1.5 KiB"),
            (1_048_576, "1.0 MiB"),
            (5_905_580_032, "5.5 GiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
        for (ms, shown) in [
            (-5, "0 s"),
            (119_999, "119 s"),
            (120_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(span(ms), shown);
        }
    }

    #[test]
    fn a_bound_is_never_told_too_short() {
        for (ms, shown) in [
            (0, "0 s"),
            (60_000, "60 s"),
            (60_001, "70 s"),
            (55_000, "60 s"),
            (110_001, "2 min"),
            (120_001, "3 min"),
            (600_000, "10 min"),
        ] {
            assert_eq!(bound(ms), shown);
        }
    }
}
