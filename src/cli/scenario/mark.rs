//! Order ids of one run alone. A merchant's script that does its work remembers which orders it has handed over, in a file or
//! a database that outlives the run: with the same ids in every run it would rightly do nothing from the second one on. So the
//! orders of a run that judges a script end in a mark of its own. What is said of them is said without it.

use super::step::{Act, Scenario, Step};
use crate::entropy;
use crate::invoice::ids::LONGEST_ID;

/// What the order ids of a run end in. Empty where no script is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// One that no other run has. Not from the seed: the same seed is played again.
    pub(super) fn new() -> Self {
        Self(format!(
            "-{:010x}",
            u64::from_be_bytes(entropy::bytes()) >> 24
        ))
    }

    /// This order's id in the run. One that would be too long stays as it is.
    pub(super) fn order(&self, order: &str) -> String {
        if order.len() + self.0.len() > LONGEST_ID {
            return order.to_owned();
        }
        format!("{order}{}", self.0)
    }

    /// What is said of the run, with the orders' plain names.
    pub(super) fn plain(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        text.replace(&self.0, "")
    }

    /// The same scenario with the run's orders.
    pub(super) fn scenario(&self, scenario: &Scenario) -> Scenario {
        let mut marked = scenario.clone();
        for Step { act, .. } in &mut marked.steps {
            match act {
                Act::Open(open) => open.order = self.order(&open.order),
                Act::Repeat(repeat) => repeat.order = self.order(&repeat.order),
                Act::Wait(expect) | Act::Expect(expect) => {
                    expect.order = self.order(&expect.order);
                }
                Act::Pay(order)
                | Act::PayLess(order)
                | Act::PayMore(order)
                | Act::Cancel(order)
                | Act::Expire(order)
                | Act::Refund(order)
                | Act::Forge(order)
                | Act::Poll(order) => *order = self.order(order),
                Act::Faults(asked) => {
                    if let Some(invoice) = asked.get_mut("invoice")
                        && let Some(order) = invoice.as_str()
                    {
                        *invoice = self.order(order).into();
                    }
                }
                // The orders of a storm get theirs when they are drawn.
                Act::Storm(_)
                | Act::Lose(_)
                | Act::Pool(_)
                | Act::Kill(_)
                | Act::Down(_)
                | Act::Up(_)
                | Act::PauseMs(_) => {}
            }
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::scenario::format;

    #[test]
    fn every_step_means_the_runs_own_order_and_tells_its_plain_name() {
        let mut text = "summary = \"x\"\n[[step]]\nopen = { order = \"A-1\" }\n".to_owned();
        for step in [
            "pay = \"A-1\"",
            "pay_less = \"A-1\"",
            "pay_more = \"A-1\"",
            "cancel = \"A-1\"",
            "expire = \"A-1\"",
            "refund = \"A-1\"",
            "forge = \"A-1\"",
            "poll = \"A-1\"",
            "repeat = { order = \"A-1\" }",
            "faults = { invoice = \"A-1\", delay_ms = 1 }",
            "wait = { order = \"A-1\", outcome = \"paid\" }",
            "expect = { order = \"A-1\", outcome = \"paid\" }",
        ] {
            text.push_str(&["[[step]]\n", step, "\n"].concat());
        }
        let scenario = format::parse(&text).expect("well formed");
        let (mark, other) = (Mark::new(), Mark::new());
        assert_ne!(mark, other);
        let wanted = mark.order("A-1");
        for step in &mark.scenario(&scenario).steps {
            let told = format!("{:?}", step.act);
            assert!(told.contains(&wanted), "{told}");
            assert!(!mark.plain(&told).contains(&wanted), "{told}");
        }
    }

    #[test]
    fn an_order_id_that_is_as_long_as_can_be_stays_one() {
        let long = "x".repeat(LONGEST_ID);
        assert_eq!(Mark::new().order(&long), long);
        assert_eq!(Mark::default().order("A-1"), "A-1");
    }
}
