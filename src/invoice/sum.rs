//! An amount with its currency: what was asked, what was agreed, and whether a report agrees with it.
//! Pure; relies on `amount` and `currency`.
//! Promises that what cannot be read never agrees, and that a verdict reads back as it was stored.

use std::fmt;

use super::amount::Amount;
use super::currency::minor_unit;
use super::observation::Reported;

/// An amount in a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The amount, with the digits that were given.
    pub amount: Amount,
    /// Three letters, for example `RUB`; compared to the letter.
    pub currency: String,
}

/// A text that is no currency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("currency `{0}` is not three capital letters such as `RUB`")]
pub struct CurrencyError(String);

/// An amount with more digits behind the point than its currency has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sum} has more than {most} digits behind the point, the minor unit of {} in ISO 4217", sum.currency)]
pub struct DigitsError {
    sum: Sum,
    most: u32,
}

/// Whether a report agrees with what was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Same amount by value, and the same currency or none.
    Agrees,
    /// It names no amount. Nothing else differs.
    NoAmount,
    /// What stands for its amount is none. Nothing else differs.
    Unreadable,
    /// Another amount or currency; holds what was reported in one spelling, so that equal sums are equal.
    Differs(String),
}

/// Stands in a verdict for an amount that is missing.
const MISSING: &str = "-";
/// Stands in a verdict for an amount that is none.
const UNREADABLE: &str = "?";

impl Sum {
    /// Checks the currency: three capital ASCII letters, as the contract's example shows.
    pub fn new(amount: Amount, currency: &str) -> Result<Self, CurrencyError> {
        let good = currency.len() == 3 && currency.bytes().all(|b| b.is_ascii_uppercase());
        if good {
            Ok(Self {
                amount,
                currency: currency.to_owned(),
            })
        } else {
            Err(CurrencyError(currency.chars().take(16).collect()))
        }
    }

    /// Checks that it can be paid to the last digit. Zeros at the end are no digits that count.
    pub fn check_digits(&self) -> Result<(), DigitsError> {
        match minor_unit(&self.currency) {
            Some(most) if self.amount.fraction_digits() > most => Err(DigitsError {
                sum: self.clone(),
                most,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Measures a report against this sum. A missing currency does not differ (contract 10).
    pub fn verdict(&self, amount: &Reported<Amount>, currency: Option<&str>) -> Verdict {
        let currency_agrees = currency.is_none_or(|reported| reported == self.currency);
        let amount = match amount {
            Reported::Missing if currency_agrees => return Verdict::NoAmount,
            Reported::Unreadable if currency_agrees => return Verdict::Unreadable,
            Reported::Value(reported) if currency_agrees && *reported == self.amount => {
                return Verdict::Agrees;
            }
            Reported::Missing => MISSING.to_owned(),
            Reported::Unreadable => UNREADABLE.to_owned(),
            Reported::Value(amount) => amount.canonical(),
        };
        Verdict::Differs(match currency {
            Some(currency) => format!("{amount} {currency}"),
            None => amount,
        })
    }

    /// Measures what a verdict holds against this sum.
    fn verdict_of(&self, said: &str) -> Verdict {
        let (amount, currency) = match said.split_once(' ') {
            Some((amount, currency)) => (amount, Some(currency)),
            None => (said, None),
        };
        let amount = match amount {
            MISSING => Reported::Missing,
            amount => Amount::parse(amount).map_or(Reported::Unreadable, Reported::Value),
        };
        self.verdict(&amount, currency)
    }
}

impl Verdict {
    /// What this verdict against `old` is against `new`. What agreed with the old sum named it: that the service meant the
    /// new one by it cannot be known, so it differs from another sum, and a person or a poll must tell.
    #[must_use]
    pub fn rejudged(&self, old: &Sum, new: &Sum) -> Self {
        match self {
            Self::Agrees => new.verdict(&Reported::Value(old.amount.clone()), Some(&old.currency)),
            // Its currency was the old one, or none was named.
            Self::NoAmount | Self::Unreadable if old.currency == new.currency => self.clone(),
            Self::NoAmount => new.verdict(&Reported::Missing, Some(&old.currency)),
            Self::Unreadable => new.verdict(&Reported::Unreadable, Some(&old.currency)),
            Self::Differs(said) => new.verdict_of(said),
        }
    }

    /// True when an amount that can be read was named.
    pub fn names_amount(&self) -> bool {
        match self {
            Self::Agrees => true,
            Self::NoAmount | Self::Unreadable => false,
            Self::Differs(said) => {
                ![MISSING, UNREADABLE].contains(&said.split(' ').next().unwrap_or(said))
            }
        }
    }

    /// The text it is stored as: none where the report agrees, and no decimal where it names no amount.
    pub fn as_stored(&self) -> Option<&str> {
        match self {
            Self::Agrees => None,
            Self::NoAmount => Some(MISSING),
            Self::Unreadable => Some(UNREADABLE),
            Self::Differs(said) => Some(said),
        }
    }

    /// Reads the stored text back.
    pub fn of_stored(text: Option<String>) -> Self {
        match text {
            None => Self::Agrees,
            Some(text) if text == MISSING => Self::NoAmount,
            Some(text) if text == UNREADABLE => Self::Unreadable,
            Some(text) => Self::Differs(text),
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(amount: &str) -> Sum {
        Sum::new(Amount::parse(amount).expect(amount), "RUB").expect("a currency")
    }

    fn differs(text: &str) -> Verdict {
        Verdict::Differs(text.to_owned())
    }

    #[test]
    fn amounts_agree_by_value_and_currencies_to_the_letter() {
        let value = |text: &str| Reported::Value(Amount::read(text).expect(text));
        for (amount, currency, wanted) in [
            (value("1500"), Some("RUB"), Verdict::Agrees),
            (value("1.5e3"), None, Verdict::Agrees),
            (value("1500"), Some("VND"), differs("1500 VND")),
            (value("1500"), Some("[\"RUB\"]"), differs("1500 [\"RUB\"]")),
            (value("0.050"), None, differs("0.05")),
            (value("5e-2"), Some("RUB"), differs("0.05 RUB")),
            (Reported::Missing, None, Verdict::NoAmount),
            (Reported::Missing, Some("RUB"), Verdict::NoAmount),
            (Reported::Missing, Some("VND"), differs("- VND")),
            (Reported::Unreadable, None, Verdict::Unreadable),
            (Reported::Unreadable, Some("RUB"), Verdict::Unreadable),
            (Reported::Unreadable, Some("? -"), differs("? ? -")),
        ] {
            let verdict = sum("1500.00").verdict(&amount, currency);
            assert_eq!(verdict, wanted, "{amount:?} {currency:?}");
            assert_eq!(
                verdict.names_amount(),
                matches!(amount, Reported::Value(_)),
                "{verdict:?}"
            );
            let stored = verdict.as_stored().map(str::to_owned);
            assert_eq!(Verdict::of_stored(stored), verdict);
        }
    }

    #[test]
    fn a_verdict_is_judged_again_against_another_sum() {
        let (asked, accepted) = (sum("1500.00"), sum("1499.90"));
        for (before, after) in [
            (differs("1499.9 RUB"), Verdict::Agrees),
            (differs("1499.9"), Verdict::Agrees),
            (differs("1499.9 -"), differs("1499.9 -")),
            (differs("1 RUB"), differs("1 RUB")),
            (differs("1499.9 VND"), differs("1499.9 VND")),
            (differs("1499.9 RU B"), differs("1499.9 RU B")),
            (differs("- VND"), differs("- VND")),
            (differs("? VND"), differs("? VND")),
            (Verdict::NoAmount, Verdict::NoAmount),
            (Verdict::Unreadable, Verdict::Unreadable),
            (Verdict::Agrees, differs("1500 RUB")),
        ] {
            assert_eq!(before.rejudged(&asked, &accepted), after, "{before:?}");
        }
        assert_eq!(
            Verdict::Agrees.rejudged(&asked, &sum("1500")),
            Verdict::Agrees
        );
        let foreign = Sum::new(accepted.amount, "VND").expect("a currency");
        assert_eq!(
            Verdict::NoAmount.rejudged(&asked, &foreign),
            differs("- RUB")
        );
        assert_eq!(
            differs("- VND").rejudged(&asked, &foreign),
            Verdict::NoAmount
        );
        assert_eq!(
            differs("? VND").rejudged(&asked, &foreign),
            Verdict::Unreadable
        );
    }

    #[test]
    fn digits_beyond_the_minor_unit_are_zeros() {
        for (amount, currency, fits) in [
            ("599.80", "RUB", true),
            ("599.8000", "RUB", true),
            ("599.801", "RUB", false),
            ("100.00", "JPY", true),
            ("100.5", "JPY", false),
            ("1.234", "KWD", true),
            ("1.2345", "KWD", false),
            ("0.00000001", "BTC", true),
        ] {
            let amount = Amount::parse(amount).expect(amount);
            let sum = Sum::new(amount, currency).expect(currency);
            assert_eq!(sum.check_digits().is_ok(), fits, "{sum}");
        }
    }

    #[test]
    fn a_currency_is_three_capital_letters() {
        for bad in ["", "rub", "RUBL", "R1B", "₽"] {
            assert!(
                Sum::new(Amount::parse("1").expect("plain"), bad).is_err(),
                "`{bad}`"
            );
        }
    }
}
