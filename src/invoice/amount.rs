//! Amounts of money: compared by value, kept as the text that was given.
//! Relies on `rust_decimal` for exact arithmetic; no float is involved anywhere (A09).
//! Promises that an amount is plain decimal text, whatever spelling it was read from.

use std::fmt;

use rust_decimal::Decimal;

/// Longest accepted text. 28 digits, a sign and a point fit; anything longer is not an amount of money.
const LONGEST: usize = 40;

/// A plain decimal amount. `599.8`, `599.80` and `599.800` are equal; each keeps its own text.
#[derive(Clone, Debug)]
pub struct Amount {
    text: String,
    value: Decimal,
}

/// Why a text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Something other than digits with at most one point (and a leading minus).
    #[error("amount `{0}` is not a plain decimal such as `1500.00`")]
    NotPlain(String),
    /// More digits than can be held exactly.
    #[error("amount `{0}` has more than 28 digits")]
    TooLong(String),
    /// Zero or less, where something is to be paid.
    #[error("amount `{0}` is not greater than zero")]
    NotPositive(String),
}

impl Amount {
    /// Reads a plain decimal: digits, optionally a point with digits after it, optionally a leading minus.
    /// No exponent, no grouping, no plus sign, no blanks.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let value = match usual(text.as_bytes()) {
            Some(value) => value,
            None => any(text)?,
        };
        Ok(Self {
            text: text.to_owned(),
            value,
        })
    }

    /// Reads what the service reported: a plain decimal keeps its own text, and every other JSON spelling of a number
    /// (`1e3`, `1000.000` with zeros without end) becomes one.
    pub fn read(text: &str) -> Result<Self, AmountError> {
        Self::parse(text).or_else(|error| Self::parse(&plain(text).ok_or(error)?))
    }

    /// As [`Amount::parse`], and greater than zero, without a leading zero that JSON would refuse (`007`).
    pub fn parse_payable(text: &str) -> Result<Self, AmountError> {
        let amount = Self::parse(text)?;
        if amount.value <= Decimal::ZERO {
            return Err(AmountError::NotPositive(amount.text));
        }
        let leading_zero = text.len() > 1 && text.starts_with('0') && !text.starts_with("0.");
        if leading_zero {
            Err(AmountError::NotPlain(amount.text))
        } else {
            Ok(amount)
        }
    }

    /// One spelling for equal amounts: without trailing zeros.
    pub fn canonical(&self) -> String {
        self.value.normalize().to_string()
    }

    /// Digits behind the point that are not zeros at the end.
    pub fn fraction_digits(&self) -> u32 {
        self.value.normalize().scale()
    }

    /// The plain decimal text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Bytes of which all digits surely fit an `i64`.
const SHORT: usize = 18;

/// The value of a short amount without a sign, as nearly all are, in one pass. `None` for all else, what is no amount
/// included: the whole reading has the word then.
fn usual(text: &[u8]) -> Option<Decimal> {
    if text.len() > SHORT {
        return None;
    }
    let (mut number, mut digits, mut whole) = (0_i64, 0_u32, None);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + i64::from(byte - b'0');
                digits += 1;
            }
            b'.' if whole.is_none() => whole = Some(digits),
            _ => return None,
        }
    }
    let scale = match whole {
        None if digits > 0 => 0,
        Some(whole) if whole > 0 && digits > whole => digits - whole,
        None | Some(_) => return None,
    };
    Some(Decimal::new(number, scale))
}

/// The value of any amount.
fn any(text: &str) -> Result<Decimal, AmountError> {
    let shown = || text.chars().take(LONGEST).collect::<String>();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if !all_digits(whole) || !all_digits(fraction) {
        return Err(AmountError::NotPlain(shown()));
    }
    if text.len() > LONGEST {
        return Err(AmountError::TooLong(shown()));
    }
    Decimal::from_str_exact(text).map_err(|_too_many_digits| AmountError::TooLong(shown()))
}

/// Digits that a [`Decimal`] surely holds, before or behind the point.
const MOST_DIGITS: usize = 28;
/// Stands for every exponent that a number cannot hold: no text is long enough to make up for it.
const FAR: i64 = i64::MAX / 4;

/// A number in any JSON spelling as a plain decimal, by moving the point. `None` when it is no number, or has more digits
/// than an amount; what is written never grows with the exponent.
fn plain(text: &str) -> Option<String> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text),
    };
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, places(exponent)?),
        None => (number, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, all_digits(fraction).then_some(fraction)?),
        None => (mantissa, ""),
    };
    if !all_digits(whole) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let counted = digits.trim_end_matches('0');
    if counted.is_empty() {
        return Some("0".to_owned());
    }
    let mut scale = i64::try_from(fraction.len()).ok()? - exponent;
    // Zeros at the end are kept where they fit: `5.9980e2` is 599.80.
    let fits = |scale: i64| usize::try_from(scale).is_ok_and(|scale| scale <= MOST_DIGITS);
    let digits = if digits.len() <= MOST_DIGITS && (scale < 0 || fits(scale)) {
        digits
    } else {
        scale -= i64::try_from(digits.len() - counted.len()).ok()?;
        counted
    };
    let zeros = usize::try_from(-scale.min(0)).ok()?;
    let behind = usize::try_from(scale.max(0)).ok()?;
    if digits.len().saturating_add(zeros) > MOST_DIGITS || behind > MOST_DIGITS {
        return None;
    }
    let whole_digits = digits.len().saturating_sub(behind);
    let (whole, fraction) = digits.split_at_checked(whole_digits)?;
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if behind == 0 {
        format!("{sign}{whole}{}", "0".repeat(zeros))
    } else {
        format!("{sign}{whole}.{fraction:0>behind$}")
    })
}

/// How far an exponent moves the point.
fn places(exponent: &str) -> Option<i64> {
    let (sign, digits) = match exponent.as_bytes() {
        [b'-', ..] => (-1, exponent.get(1..)?),
        [b'+', ..] => (1, exponent.get(1..)?),
        _ => (1, exponent),
    };
    let far = |_too_large| FAR;
    all_digits(digits).then(|| sign * digits.parse().unwrap_or_else(far).min(FAR))
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Amount {}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_by_value_kept_as_text() {
        let [a, b, c] = ["599.8", "599.80", "599.800"].map(|t| Amount::parse(t).expect(t));
        assert!(a == b && b == c);
        assert_eq!(
            [a.as_str(), b.as_str(), c.as_str()],
            ["599.8", "599.80", "599.800"]
        );
        assert_eq!(
            Amount::parse("1000000000000.01")
                .expect("exact")
                .to_string(),
            "1000000000000.01"
        );
    }

    /// The short way to a value gives what the whole reading does.
    #[test]
    fn a_short_amount_is_read_as_any_other() {
        for text in [
            "0",
            "0.0",
            "007",
            "5",
            "599.80",
            "1500.00",
            "0.000000000000001",
            "123456789012345678",
            "999999999999999999",
            "1234567890123456.78",
            "12345678901234567.89",
            "-599.80",
            "-0",
            "0000.5",
        ] {
            let (own, whole) = (
                Amount::parse(text).expect(text),
                Decimal::from_str_exact(text),
            );
            let whole = whole.expect(text);
            assert_eq!(own.value, whole, "{text}");
            assert_eq!(own.canonical(), whole.normalize().to_string(), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "", "1e3", "1,5", "+1", " 1", "1.", ".5", "1.2.3", "NaN", "0x1", "--1", "1_000", "１",
        ] {
            assert!(
                matches!(Amount::parse(text), Err(AmountError::NotPlain(_))),
                "`{text}`"
            );
        }
        let long = "9".repeat(35);
        assert!(matches!(Amount::parse(&long), Err(AmountError::TooLong(_))));
    }

    #[test]
    fn a_number_is_the_same_in_every_spelling() {
        let zeros = "0".repeat(60);
        for (text, wanted) in [
            ("1000", Some("1000")),
            ("1000.00", Some("1000.00")),
            ("0599.80", Some("0599.80")),
            ("1e3", Some("1000")),
            ("1E+3", Some("1000")),
            ("1e0003", Some("1000")),
            ("1000e0", Some("1000")),
            ("10000000e-4", Some("1000.0000")),
            ("5.9980e2", Some("599.80")),
            ("1.505E+2", Some("150.5")),
            ("15e-1", Some("1.5")),
            ("1.5e-3", Some("0.0015")),
            ("-1e1", Some("-10")),
            ("0e5", Some("0")),
            ("-0.0E-99999999999999999999", Some("0")),
            (
                "0.1234567890123456789012345e25",
                Some("1234567890123456789012345"),
            ),
            (&format!("1000.{zeros}"), Some("1000")),
            (&format!("1{zeros}e-57"), Some("1000")),
            (&format!("0.{zeros}1e64"), Some("1000")),
            (&format!("{zeros}1e3"), Some("1000")),
            ("1e28", None),
            ("1e-29", None),
            ("1e400", None),
            ("1e99999999999999999999999", None),
            ("1e-99999999999999999999999", None),
            (&"9".repeat(35), None),
            ("1e", None),
            ("e3", None),
            ("1.e3", None),
            (".1e3", None),
            ("+1e3", None),
            ("1e3.0", None),
            ("1e++3", None),
            ("1e 3", None),
            ("NaN", None),
            ("Infinity", None),
            ("1 000", None),
        ] {
            let read = Amount::read(text);
            assert_eq!(read.as_ref().map(Amount::as_str).ok(), wanted, "`{text}`");
        }
        let thousand = Amount::parse("1000").expect("plain");
        for text in ["1e3", "1E+3", "1000.00", "10.00e2", "1000000e-3"] {
            assert_eq!(Amount::read(text).as_ref(), Ok(&thousand), "{text}");
        }
    }

    /// A long exponent, or a long number, is read in the time its text takes.
    #[test]
    fn an_exponent_costs_no_more_than_its_text() {
        let long = "7".repeat(1_000_000);
        for text in [
            format!("1e{long}"),
            format!("1e-{long}"),
            format!("{long}e-{long}"),
        ] {
            assert!(Amount::read(&text).is_err());
        }
    }

    #[test]
    fn payable_is_positive_and_fit_for_json() {
        for text in ["0", "0.00", "-5"] {
            assert!(
                matches!(
                    Amount::parse_payable(text),
                    Err(AmountError::NotPositive(_))
                ),
                "`{text}`"
            );
        }
        assert!(Amount::parse_payable("007").is_err());
        assert!(Amount::parse_payable("0.10").is_ok());
    }
}
