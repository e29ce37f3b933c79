//! Amounts of money: compared by value, kept as the text that was given. No float is involved anywhere (A09).

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

    /// The text as it was given.
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
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return Err(AmountError::NotPlain(shown()));
    }
    if text.len() > LONGEST {
        return Err(AmountError::TooLong(shown()));
    }
    Decimal::from_str_exact(text).map_err(|_too_many_digits| AmountError::TooLong(shown()))
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
