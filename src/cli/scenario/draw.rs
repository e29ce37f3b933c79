//! What a scenario leaves to chance, drawn from its seed alone. Pure: one seed, one course, whatever happens meanwhile.

use super::step::{Mode, Storm};
use crate::sandbox::state::dice::Dice;

/// Rounds of a storm: so many things happen to an order at most.
pub(super) const ROUNDS: usize = 3;
/// A kill comes so long after a round has begun at most, ms.
const LATEST_KILL_MS: u64 = 300;

/// What happens to an order of a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happens {
    /// Paid as asked.
    Pay,
    /// Paid with less.
    PayLess,
    /// Paid with more.
    PayMore,
    /// Cancelled.
    Cancel,
    /// The window closes.
    Expire,
    /// A stranger says that it is paid.
    Forge,
    /// The service's last word comes again.
    Repeat,
}

impl Happens {
    /// Its word: that of the step.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Pay => "pay",
            Self::PayLess => "pay_less",
            Self::PayMore => "pay_more",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
            Self::Forge => "forge",
            Self::Repeat => "repeat",
        }
    }
}

/// How an invoice is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The shop's order.
    pub(super) order: String,
    /// Plain decimal.
    pub(super) amount: String,
    /// `SBP` or `TO_CARD`.
    pub(super) method: &'static str,
    /// The customer is sent to the payment page.
    pub(super) is_redirect: bool,
}

/// One order of a storm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// How it is opened.
    pub(super) asked: Asked,
    /// What happens to it, one thing a round.
    pub(super) course: Vec<Happens>,
}

/// What happens to tilld and the service in a round of a storm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// tilld is killed so long after it has begun, ms, so often.
    pub(super) kills_ms: Vec<u64>,
    /// The service gives no answers.
    pub(super) is_away: bool,
}

/// A storm as it was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    /// The orders.
    pub(super) orders: Vec<Plan>,
    /// The rounds: the opening first.
    pub(super) rounds: Vec<Round>,
}

/// Chance for one step: the same whatever other steps drew.
fn dice(seed: u64, step: usize, of: u64) -> Dice {
    Dice::of(seed, [0x5ce, u64::try_from(step).unwrap_or(u64::MAX), of])
}

fn below(dice: &mut Dice, end: u64) -> u64 {
    dice.roll() % end.max(1)
}

/// What an opening leaves out.
pub(super) fn asked(
    seed: u64,
    step: usize,
    order: &str,
    amount: Option<&str>,
    mode: Mode,
) -> Asked {
    ask(&mut dice(seed, step, 0), order, amount, mode)
}

fn ask(dice: &mut Dice, order: &str, amount: Option<&str>, mode: Mode) -> Asked {
    let kopecks = 100 + below(dice, 999_900);
    let method = ["SBP", "TO_CARD"];
    let method = method.get(usize::from(dice.roll() % 2 == 1)).copied();
    let is_redirect = dice.roll().is_multiple_of(3);
    Asked {
        order: order.to_owned(),
        amount: amount.map_or_else(
            || format!("{}.{:02}", kopecks / 100, kopecks % 100),
            str::to_owned,
        ),
        method: method.unwrap_or("SBP"),
        is_redirect: match mode {
            Mode::H2h => false,
            Mode::Redirect => true,
            Mode::Any => is_redirect,
        },
    }
}

/// Draws a storm.
pub(super) fn storm(seed: u64, step: usize, storm: &Storm) -> Drawn {
    let orders = (1..=storm.orders).map(|number| {
        let mut dice = dice(seed, step, number);
        let asked = ask(&mut dice, &format!("S{step}-{number}"), None, Mode::Any);
        Plan {
            asked,
            course: course(&mut dice),
        }
    });
    let orders: Vec<Plan> = orders.collect();
    let mut dice = dice(seed, step, 0);
    let mut rounds = vec![Round::default(); ROUNDS + 1];
    let last = u64::try_from(rounds.len()).unwrap_or(1);
    for _ in 0..storm.kills {
        let at = below(&mut dice, last);
        let ms = below(&mut dice, LATEST_KILL_MS);
        if let Some(round) = usize::try_from(at).ok().and_then(|at| rounds.get_mut(at)) {
            round.kills_ms.push(ms);
        }
    }
    for round in &mut rounds {
        round.kills_ms.sort_unstable();
    }
    if storm.away {
        // Not while invoices are opened: a shop without a service sells nothing.
        let at = 1 + below(&mut dice, last - 1);
        if let Some(round) = usize::try_from(at).ok().and_then(|at| rounds.get_mut(at)) {
            round.is_away = true;
        }
    }
    Drawn { orders, rounds }
}

fn course(dice: &mut Dice) -> Vec<Happens> {
    use Happens::{Cancel, Expire, Forge, Pay, PayLess, PayMore, Repeat};
    let mut course = Vec::new();
    if dice.roll().is_multiple_of(5) {
        course.push(Forge);
    }
    match below(dice, 12) {
        0..=4 => course.push(Pay),
        5 => course.push(PayLess),
        6 => course.push(PayMore),
        7 => course.push(Cancel),
        8 => course.push(Expire),
        9 | 10 => course.extend([Expire, Pay]),
        _ => {}
    }
    if course.len() < ROUNDS && dice.roll().is_multiple_of(3) {
        course.push(Repeat);
    }
    course
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Drawn {
        let wish = Storm {
            orders: 40,
            kills: 3,
            away: true,
            rates: std::collections::BTreeMap::default(),
        };
        storm(seed, 1, &wish)
    }

    #[test]
    fn a_seed_draws_one_storm_and_another_one_another() {
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        assert_ne!(
            asked(1, 1, "A", None, Mode::Any),
            asked(2, 1, "A", None, Mode::Any)
        );
    }

    #[test]
    fn a_storm_has_what_was_wished_for() {
        for seed in 0..50 {
            let Drawn { orders, rounds } = drawn(seed);
            assert_eq!(orders.len(), 40);
            assert!(orders.iter().all(|plan| plan.course.len() <= ROUNDS));
            assert_eq!(rounds.len(), ROUNDS + 1);
            assert_eq!(
                rounds
                    .iter()
                    .map(|round| round.kills_ms.len())
                    .sum::<usize>(),
                3
            );
            assert_eq!(rounds.iter().filter(|round| round.is_away).count(), 1);
            assert!(rounds.first().is_some_and(|round| !round.is_away));
        }
    }
}
