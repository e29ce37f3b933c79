//! How the values of an invoice object are spelt, where contract 2.3 leaves it open: an `id` is a string, an `amount`
//! and a `dealRate` are decimals, times are ISO 8601 in UTC and only `expireAt` is promised with milliseconds. No spelling
//! says anything else than another.

use serde_json::{Map, Value};

use super::dice::Dice;
use crate::invoice::moment::Moment;

/// Most digits an amount is lengthened to.
const MOST_DIGITS: usize = 18;
/// Digits behind the point that an amount is given, unless it has more that count.
const SCALES: [usize; 5] = [0, 1, 2, 3, 6];
/// Of so many invoices one has whole seconds in its times.
const ONE_IN_SECONDS: u64 = 4;

/// What of an invoice was dictated by a test, and is told to the letter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exact {
    /// `amount`
    pub(crate) amount: bool,
    /// `updatedAt`
    pub(crate) updated_at: bool,
}

/// An id that no other invoice has. Half of them look as most services' do.
pub(super) fn id(dice: &mut Dice) -> String {
    let form = dice.roll() % 12;
    match form {
        0 => (dice.roll() | 1 << 63).to_string(),
        1 => format!("INV/2026#{}", dice.token(12)),
        2 => format!("заявка {}", dice.token(12)),
        3 => format!("{}%2F{}", dice.token(8), dice.token(8)),
        4 => format!("{}?n=1&m={}", dice.token(8), dice.token(8)),
        5 => format!("{}+{}:{}", dice.token(6), dice.token(6), dice.token(6)),
        _ => dice.uuid(),
    }
}

/// Whether an invoice's times are told in whole seconds, in every answer alike: what differs by less could not be told.
pub(super) fn in_seconds(dice: &mut Dice) -> bool {
    dice.roll().is_multiple_of(ONE_IN_SECONDS)
}

/// Spells the values of an invoice object anew.
pub(super) fn vary(fields: &mut Map<String, Value>, exact: Exact, dice: &mut Dice) {
    for (name, value) in fields {
        let Value::String(text) = value else { continue };
        match name.as_str() {
            "amount" if !exact.amount => *text = decimal(text, dice),
            "dealRate" => *text = decimal(text, dice),
            "createdAt" => *text = instant(text, dice),
            "updatedAt" if !exact.updated_at => *text = instant(text, dice),
            "expireAt" => *text = zone(text, dice),
            _ => {}
        }
    }
}

/// The same number with more or fewer zeros behind the point.
fn decimal(text: &str, dice: &mut Dice) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = pick(&SCALES, dice);
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return text.to_owned();
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = scale
        .min(MOST_DIGITS.saturating_sub(whole.len()))
        .max(fraction.len());
    if scale == 0 {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction:0<scale$}")
    }
}

/// The same instant with more or fewer zeros behind the seconds.
fn instant(text: &str, dice: &mut Dice) -> String {
    let form = dice.roll() % 3;
    let Some((seconds, fraction)) = split(text) else {
        return text.to_owned();
    };
    let short = fraction.trim_end_matches('0');
    let told = match form {
        0 if short.is_empty() => format!("{seconds}Z"),
        0 => format!("{seconds}.{short}Z"),
        1 => format!("{seconds}.{fraction:0<6}Z"),
        _ => text.to_owned(),
    };
    zone(&told, dice)
}

/// The same instant with its zone written one way or the other.
fn zone(text: &str, dice: &mut Dice) -> String {
    match text.strip_suffix('Z') {
        Some(local) if dice.roll().is_multiple_of(3) => format!("{local}+00:00"),
        Some(_) | None => text.to_owned(),
    }
}

/// The seconds and the milliseconds of a time as it is written here.
fn split(text: &str) -> Option<(&str, &str)> {
    let is_ours = Moment::parse(text).is_some_and(|moment| moment.to_string() == text);
    is_ours
        .then(|| text.strip_suffix('Z')?.split_once('.'))
        .flatten()
}

fn pick(of: &[usize], dice: &mut Dice) -> usize {
    let sides = u64::try_from(of.len()).unwrap_or(1).max(1);
    let side = usize::try_from(dice.roll() % sides).unwrap_or(0);
    of.get(side).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::invoice::amount::Amount;
    use crate::invoice::ids::InvoiceId;

    fn all<T: Ord>(spell: impl Fn(&mut Dice) -> T) -> BTreeSet<T> {
        (0..200)
            .map(|seed| spell(&mut Dice::of(9, [1, 2, seed])))
            .collect()
    }

    #[test]
    fn an_amount_stays_what_it_is() {
        for (text, forms) in [
            ("150", 5),
            ("150.00", 5),
            ("599.80", 4),
            ("0.001", 2),
            ("123456789012345678", 1),
        ] {
            let spelt = all(|dice| decimal(text, dice));
            assert_eq!(spelt.len(), forms, "{spelt:?}");
            let value = |text: &str| Amount::parse(text).expect(text).canonical();
            assert!(spelt.iter().all(|one| value(one) == value(text)));
        }
        assert_eq!(all(|dice| decimal("1e3", dice)).len(), 1);
    }

    #[test]
    fn a_time_stays_the_same_instant_in_utc() {
        for (text, forms) in [
            ("2026-11-28T10:05:00.120Z", 6),
            ("2026-11-28T10:05:00.000Z", 6),
            ("2026-11-28T10:05:00.123Z", 4),
        ] {
            let spelt = all(|dice| instant(text, dice));
            assert_eq!(spelt.len(), forms, "{spelt:?}");
            let same = |one: &String| Moment::parse(one) == Moment::parse(text);
            assert!(spelt.iter().all(same), "{spelt:?}");
            let ends = all(|dice| zone(text, dice));
            assert!(
                ends.iter().all(|one| one.contains('.')),
                "milliseconds stay"
            );
        }
        assert_eq!(all(|dice| instant("soon", dice)).len(), 1);
    }

    #[test]
    fn ids_are_strings_of_any_form_and_no_two_alike() {
        let ids = all(id);
        assert_eq!(ids.len(), 200);
        for odd in ["/", "#", " ", "%", "?", "+"] {
            assert!(ids.iter().any(|id| id.contains(odd)), "{odd}");
        }
        assert!(ids.iter().all(|id| InvoiceId::new(id.as_str()).is_ok()));
    }
}
