//! The property the moves are made for: what is heard ends the same in whatever order it comes. All sets of up to three
//! claims are tried in all orders; larger ones, with repetitions and with polls in between, by chance.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;

const REFUNDED: &str = "refunded";
const STATUSES: [&str; 5] = [NEW, ODD, PAID, FAILED, REFUNDED];

/// A claim as a test writes it: status, instant, and whether the sum is the agreed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    status: &'static str,
    at: Option<i64>,
    agrees: bool,
}

impl Said {
    fn report(self) -> Report {
        let mut report = report(self.status, self.at);
        if !self.agrees {
            report.amount = Reported::Value(Amount::parse("0.05").expect("plain"));
        }
        report
    }
}

/// Status and outcome.
type Shown = (Option<String>, &'static str);

/// One invoice on its way, with what must hold at every step.
#[derive(Clone)]
struct Run {
    invoice: Invoice,
    policy: Policy,
    now_ms: i64,
    causes: Vec<Claim>,
    payments: u32,
}

impl Run {
    fn new(policy: &Policy) -> Self {
        Self {
            invoice: unopened(),
            policy: policy.clone(),
            now_ms: 0,
            causes: Vec::new(),
            payments: 0,
        }
    }

    fn step(&mut self, observation: &Observation) -> Decision {
        let made = decide(&self.invoice, observation, &self.policy);
        let before = std::mem::replace(&mut self.invoice, made.after);
        assert_eq!(
            self.invoice.revision > before.revision,
            self.invoice != before,
            "the revision counts changes"
        );
        if let Some(change) = made.change {
            self.payments += u32::from(matches!(change.kind, EventKind::Paid | EventKind::Late));
            let cause = change.cause.expect("a claim is behind every change");
            // A service that goes back and forth is told each time; a notification never makes a second event of a claim.
            let again = self.causes.contains(&cause) && observation.source == Source::Notification;
            assert!(!again, "a second event for {cause:?}");
            self.causes.push(cause);
        }
        assert!(self.payments <= 1, "paid happens once in a life");
        let told = observation.source == Source::Notification;
        let undone = before.outcome == Outcome::Paid && self.invoice.outcome != Outcome::Paid;
        assert!(!(told && undone), "a notification took back a payment");
        let said_paid = self.policy.lists.sort(&observation.report.status) == Some(Meaning::Paid);
        let made_paid = before.outcome != Outcome::Paid && self.invoice.outcome == Outcome::Paid;
        assert!(
            !(told && made_paid && self.policy.confirm_paid && said_paid),
            "a push made a payment"
        );
        made.decision
    }

    fn tell(&mut self, said: Said) -> Decision {
        self.step(&Observation {
            source: Source::Notification,
            report: said.report(),
            asked: None,
            received_ms: self.now_ms,
        })
    }

    /// A poll that is answered at once, half a minute after the one before.
    fn poll(&mut self, said: Said) -> Decision {
        self.poll_after(SECOND_POLL_AFTER_MS, said)
    }

    fn poll_after(&mut self, wait_ms: i64, said: Said) -> Decision {
        self.now_ms += wait_ms;
        self.step(&Observation {
            source: Source::Poll,
            report: said.report(),
            asked: Some(Asked {
                revision: self.invoice.revision,
                at_ms: self.now_ms,
            }),
            received_ms: self.now_ms,
        })
    }

    fn shown(&self) -> Shown {
        let status = self
            .invoice
            .claim
            .as_ref()
            .map(|claim| claim.status.to_string());
        (status, self.invoice.outcome.as_str())
    }

    /// Two polls say the same, and that is the end.
    fn end(mut self, truth: Said) -> Shown {
        self.poll(truth);
        self.poll(truth);
        assert!(
            !self.invoice.doubt && self.invoice.pending.is_none(),
            "two polls agreed: {:?}",
            self.invoice
        );
        let shown = self.shown();
        assert_eq!(shown.0.as_deref(), Some(truth.status));
        // And nothing more comes of it.
        let settled = self.invoice.clone();
        assert_eq!(self.poll(truth), Decision::Confirmed);
        assert_eq!(self.invoice, settled);
        shown
    }
}

fn policies() -> [Policy; 2] {
    let careful = Policy {
        confirm_paid: true,
        ..policy()
    };
    [policy(), careful]
}

fn sets<T: Copy>(of: &[T], most: usize) -> Vec<Vec<T>> {
    let mut all = vec![Vec::new()];
    for one in of {
        let longer: Vec<Vec<T>> = all
            .iter()
            .filter(|set| set.len() < most)
            .map(|set| set.iter().copied().chain([*one]).collect())
            .collect();
        all.extend(longer);
    }
    all
}

fn orders<T: Copy>(set: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = set.split_first() else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for order in orders(rest) {
        for place in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(place, *first);
            all.push(longer);
        }
    }
    all
}

/// The claims the service may stand by in the end: the latest ones, or any when there is none with an instant.
fn truths(set: &[Said]) -> Vec<Said> {
    let latest = set.iter().filter_map(|said| said.at).max();
    set.iter()
        .copied()
        .filter(|said| said.at == latest || said.at.is_none())
        .collect()
}

#[test]
fn every_order_of_every_small_set_ends_the_same() {
    let mut claims = Vec::new();
    for at in [Some(1), Some(2), Some(3), None] {
        let with = |agrees: bool| move |status| Said { status, at, agrees };
        claims.extend(STATUSES.map(with(true)));
        claims.extend([PAID, ODD].map(with(false)));
    }
    let tried: usize = policies()
        .iter()
        .map(|policy| {
            let sets = sets(&claims, 3);
            for set in &sets {
                every_order_ends_the_same(policy, set);
            }
            sets.len()
        })
        .sum();
    // All sets of none to three of 28 claims, under two policies.
    assert_eq!(tried, 2 * (1 + 28 + 378 + 3_276));
}

fn every_order_ends_the_same(policy: &Policy, set: &[Said]) {
    let heard: Vec<Run> = orders(set)
        .iter()
        .map(|order| {
            let mut run = Run::new(policy);
            for said in order {
                run.tell(*said);
            }
            run
        })
        .collect();
    let undoubted = heard.iter().filter(|run| !run.invoice.doubt);
    let shown: BTreeSet<_> = undoubted.map(Run::shown).collect();
    assert!(shown.len() <= 1, "{set:?} without doubt shows {shown:?}");
    for truth in truths(set) {
        let ends: BTreeSet<_> = heard.iter().map(|run| run.clone().end(truth)).collect();
        assert_eq!(ends.len(), 1, "{set:?} with {truth:?} ends as {ends:?}");
        // What was shown without doubt was right, if the service stands by it.
        let right = shown
            .iter()
            .filter(|(status, _)| status.as_deref() == Some(truth.status));
        assert!(
            right.clone().all(|shown| ends.contains(shown)),
            "{set:?}: {shown:?}, then {ends:?}"
        );
    }
}

/// The service's own history: each status at its instant, all told by notifications in any order, and asked for at any
/// time in between. Answers come in the order of their questions, so each is the same as or later than the one before;
/// they may come from a place that lags behind, though not for half a minute.
#[test]
fn polls_in_between_change_no_end() {
    // Not under `confirm_paid`: there it matters, as it should, whether a poll met the payment.
    for first in STATUSES {
        for second in STATUSES {
            for third in STATUSES {
                let said = |(status, at)| Said {
                    status,
                    at: Some(at),
                    agrees: true,
                };
                let history = [(first, 1), (second, 2), (third, 3)].map(said);
                interleaved(&policy(), &history);
            }
        }
    }
}

fn interleaved(policy: &Policy, history: &[Said; 3]) {
    let [first, second, third] = *history;
    let answers = [
        vec![vec![]],
        [first, second, third].map(|one| vec![one]).to_vec(),
        [
            [first, first],
            [first, second],
            [first, third],
            [second, second],
            [second, third],
            [third, third],
        ]
        .map(|two| two.to_vec())
        .to_vec(),
    ];
    let mut ends = BTreeSet::new();
    for order in orders(history) {
        for places in sets(&[0, 1, 2, 3], 2) {
            for answers in answers
                .iter()
                .flatten()
                .filter(|answers| answers.len() == places.len())
            {
                let mut run = Run::new(policy);
                let mut answers = answers.iter();
                for (place, said) in order.iter().map(Some).chain([None]).enumerate() {
                    if places.contains(&place) {
                        let said = answers.next().expect("as many answers as places");
                        run.poll_after(1_000, *said);
                    }
                    if let Some(said) = said {
                        run.tell(*said);
                    }
                }
                ends.insert(run.end(third));
            }
        }
    }
    assert_eq!(ends.len(), 1, "{history:?} ends as {ends:?}");
}

fn said() -> impl Strategy<Value = Said> {
    let status = prop::sample::select(STATUSES.to_vec());
    let at = prop_oneof![9 => (1_i64..6).prop_map(Some), 1 => Just(None)];
    (status, at, prop::bool::weighted(0.8)).prop_map(|(status, at, agrees)| Said {
        status,
        at,
        agrees,
    })
}

proptest! {
    /// Larger sets, repeated and shuffled twice.
    #[test]
    fn larger_sets_end_the_same(
        set in prop::collection::vec(said(), 1..9),
        careful in any::<bool>(),
        one in any::<prop::sample::Index>(),
        mix in subsequence((0..9_usize).collect::<Vec<_>>(), 0..9).prop_shuffle(),
        other in subsequence((0..9_usize).collect::<Vec<_>>(), 0..9).prop_shuffle(),
    ) {
        let policy = Policy { confirm_paid: careful, ..policy() };
        let truths = truths(&set);
        let truth = *one.get(&truths);
        let mut ends = Vec::new();
        let mut undoubted = Vec::new();
        for mix in [mix, other] {
            let mut order: Vec<Said> = mix.iter().filter_map(|at| set.get(*at).copied()).collect();
            order.extend(set.iter().copied());
            let mut run = Run::new(&policy);
            for said in order {
                run.tell(said);
            }
            if !run.invoice.doubt {
                undoubted.push(run.shown());
            }
            ends.push(run.end(truth));
        }
        undoubted.dedup();
        prop_assert!(undoubted.len() <= 1, "without doubt: {undoubted:?}");
        ends.dedup();
        prop_assert_eq!(ends.len(), 1, "ends as {:?}", ends);
    }

    /// Whatever is heard and answered, by whatever sender: what must hold at every step does (see [`Run::step`]).
    #[test]
    fn nothing_heard_breaks_a_rule(steps in prop::collection::vec((said(), any::<bool>()), 0..24), careful in any::<bool>()) {
        let mut run = Run::new(&Policy { confirm_paid: careful, ..policy() });
        for (said, asked) in steps {
            if asked {
                run.poll(said);
            } else {
                run.tell(said);
            }
        }
    }
}
