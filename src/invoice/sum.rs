//! An amount with its currency: what was asked, what was agreed, and whether a report agrees with it.

use std::fmt;

use super::amount::Amount;
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

/// Whether a report agrees with what was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Same amount by value and same currency, or the report does not say.
    Agrees,
    /// Another amount or currency; holds what was reported in one spelling, so that equal sums are equal.
    Differs(String),
}

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

    /// Measures a report against this sum. A missing amount or currency does not differ (contract 10).
    pub fn verdict(&self, amount: &Reported, currency: Option<&str>) -> Verdict {
        let amount_agrees = match amount {
            Reported::Missing => true,
            Reported::Amount(reported) => *reported == self.amount,
            Reported::Unreadable(_) => false,
        };
        let currency_agrees = currency.is_none_or(|reported| reported == self.currency);
        if amount_agrees && currency_agrees {
            return Verdict::Agrees;
        }
        let amount = match amount {
            Reported::Missing => "-".to_owned(),
            Reported::Amount(amount) => amount.canonical(),
            Reported::Unreadable(text) => text.clone(),
        };
        Verdict::Differs(format!("{amount} {}", currency.unwrap_or("-")))
    }

    /// This sum in the one spelling that [`Verdict::Differs`] holds.
    fn canonical(&self) -> String {
        format!("{} {}", self.amount.canonical(), self.currency)
    }

    /// Measures what [`Verdict::Differs`] holds against this sum.
    fn verdict_of(&self, said: &str) -> Verdict {
        let missing = "-";
        let (amount, currency) = said.rsplit_once(' ').unwrap_or((said, missing));
        let amount = if amount == missing {
            Reported::Missing
        } else {
            Amount::parse(amount).map_or_else(
                |_not_plain| Reported::Unreadable(amount.to_owned()),
                Reported::Amount,
            )
        };
        self.verdict(&amount, (currency != missing).then_some(currency))
    }
}

impl Verdict {
    /// What this verdict against `old` is against `new`. What agreed with the old sum said it, or said nothing: that the
    /// service meant the new one by it cannot be known, so it differs from another sum, and a person or a poll must tell.
    #[must_use]
    pub fn rejudged(&self, old: &Sum, new: &Sum) -> Self {
        match self {
            Self::Agrees => new.verdict_of(&old.canonical()),
            Self::Differs(said) => new.verdict_of(said),
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

    #[test]
    fn amounts_agree_by_value_and_currencies_to_the_letter() {
        let agreed = Sum::new(Amount::parse("1500.00").expect("plain"), "RUB").expect("a currency");
        let reported = |text: &str| Reported::Amount(Amount::parse(text).expect(text));
        assert_eq!(
            agreed.verdict(&reported("1500"), Some("RUB")),
            Verdict::Agrees
        );
        assert_eq!(agreed.verdict(&Reported::Missing, None), Verdict::Agrees);
        assert_eq!(
            agreed.verdict(&reported("1500"), Some("VND")),
            Verdict::Differs("1500 VND".into())
        );
        assert_eq!(
            agreed.verdict(&reported("0.050"), None),
            agreed.verdict(&reported("0.05"), None)
        );
        assert_ne!(
            agreed.verdict(&Reported::Unreadable("1e3".into()), None),
            Verdict::Agrees
        );
    }

    #[test]
    fn a_verdict_is_judged_again_against_another_sum() {
        let sum =
            |amount: &str| Sum::new(Amount::parse(amount).expect(amount), "RUB").expect("sum");
        let (asked, accepted) = (sum("1500.00"), sum("1499.90"));
        let differs = |text: &str| Verdict::Differs(text.into());
        for (before, after) in [
            (differs("1499.9 RUB"), Verdict::Agrees),
            (differs("1499.9 -"), Verdict::Agrees),
            (differs("1 RUB"), differs("1 RUB")),
            (differs("1499.9 VND"), differs("1499.9 VND")),
            (differs("1 499,90 RUB"), differs("1 499,90 RUB")),
            (differs("- VND"), differs("- VND")),
            (Verdict::Agrees, differs("1500 RUB")),
        ] {
            assert_eq!(before.rejudged(&asked, &accepted), after, "{before:?}");
        }
        assert_eq!(
            Verdict::Agrees.rejudged(&asked, &sum("1500")),
            Verdict::Agrees
        );
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
