//! Numbers as people read them: three figures that matter, thousands apart, times in the unit that fits.

/// Units of time, each a thousand of the one before.
const TIMES: [&str; 4] = ["ns", "µs", "ms", "s"];

/// `1,234`, `56.7`, `8.90`, `0.12`, `0.0034`: at least three figures that matter, or two below 1.
pub(super) fn text(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    // A value that would be rounded up to the next range has that range's form.
    let decimals = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else if size >= 0.0995 || size == 0.0 {
        2
    } else if size >= 0.000_995 {
        4
    } else {
        6
    };
    grouped(&format!("{value:.decimals$}"))
}

/// A bar as it was written: without what follows its last figure.
pub(super) fn plain(value: f64) -> String {
    // What a change of units leaves behind the sixth decimal is none of it.
    grouped(&format!("{}", (value * 1e6).round() / 1e6))
}

fn grouped(text: &str) -> String {
    let (whole, rest) = text
        .split_once('.')
        .map_or((text, None), |(a, b)| (a, Some(b)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |it| ("-", it));
    let mut grouped = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(rest) = rest {
        grouped.push('.');
        grouped.push_str(rest);
    }
    grouped
}

/// The unit in which a time of about this size is read, and by what values must be multiplied for it; other units stay.
pub(super) fn fitting(unit: &'static str, size: f64) -> (&'static str, f64) {
    let unit = if unit == "us" { "µs" } else { unit };
    let Some(mut at) = TIMES.iter().position(|time| *time == unit) else {
        return (unit, 1.0);
    };
    let (mut fit, mut factor, mut size) = (unit, 1.0, size.abs());
    while size > 0.0 && size < 1.0 && at > 0 {
        at -= 1;
        size *= 1000.0;
        factor *= 1000.0;
        fit = TIMES.get(at).copied().unwrap_or(fit);
    }
    while size >= 1000.0 && at + 1 < TIMES.len() {
        at += 1;
        size /= 1000.0;
        factor /= 1000.0;
        fit = TIMES.get(at).copied().unwrap_or(fit);
    }
    (fit, factor)
}

/// Fails when numbers do not read as promised.
pub(super) fn check() {
    let texts = [
        (0.0, "0.00"),
        (1_234_567.8, "1,234,568"),
        (999.6, "1,000"),
        (99.97, "100"),
        (56.74, "56.7"),
        (8.9, "8.90"),
        (0.12, "0.12"),
        (0.0034, "0.0034"),
        (-1234.0, "-1,234"),
        (-56.74, "-56.7"),
        (f64::NAN, "–"),
    ];
    for (value, expected) in texts {
        assert_eq!(text(value), expected);
    }
    assert_eq!(plain(50_000.0), "50,000");
    assert_eq!(plain(0.2), "0.2");
    let units = [
        ("µs", 1500.0, "ms"),
        ("us", 15.0, "µs"),
        ("us", -1500.0, "ms"),
        ("ms", 0.5, "µs"),
        ("s", 0.000_004, "µs"),
        ("ms", 50.0, "ms"),
        ("s", 5000.0, "s"),
        ("1/s", 5000.0, "1/s"),
    ];
    for (unit, size, expected) in units {
        assert_eq!(fitting(unit, size).0, expected, "{size} {unit}");
    }
}
