//! What counts is what counted when it was heard: sorted again by the lists it was decided by, an invoice stays as it is.

use proptest::prelude::*;

use super::*;
use crate::invoice::event::Change;
use crate::invoice::ids::{InvoiceId, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::observation::{Asked, Observation, Report};
use crate::invoice::status::Outcome;
use crate::invoice::status::{Status, StatusLists};
use crate::invoice::sum::Verdict;
use crate::invoice::transition::{Why, claim_of, decide, reassess};

fn policy(confirm_paid: bool) -> Policy {
    let lists = StatusLists {
        paid: vec!["paid".into()],
        failed: vec!["failed".into()],
        reversed: vec!["refunded".into()],
        ..StatusLists::default()
    };
    Policy {
        lists,
        confirm_paid,
    }
}

fn unopened() -> Invoice {
    let agreed = Sum::new(Amount::parse("1500.00").expect("plain"), "RUB").expect("a sum");
    Invoice::unheard(OrderId::new("order-1").expect("an order id"), agreed)
}

/// Stands for an amount that is missing.
const MISSING: &str = "";
/// Stands for an amount that is none.
const UNREADABLE: &str = "?";

fn said(source: Source, status: &str, at: Option<i64>, amount: &str, now_ms: i64) -> Observation {
    Observation {
        source,
        report: Report {
            id: InvoiceId::new("inv-1").expect("an id"),
            status: Status::new(status).expect("a status"),
            order_id: Reported::Missing,
            amount: match amount {
                MISSING => Reported::Missing,
                UNREADABLE => Reported::Unreadable,
                amount => Reported::Value(Amount::parse(amount).expect("plain")),
            },
            currency: Some("RUB".into()),
            updated_at: at.map(Moment::from_ms),
            service_ms: None,
            expire_at: None,
            method: None,
            payment_url: None,
            requisites: None,
            updated_at_text: None,
            odd: Vec::new(),
            raw: String::new(),
        },
        asked: None,
        received_ms: now_ms,
    }
}

/// One invoice and the lines its history would have.
struct Run {
    policy: Policy,
    invoice: Invoice,
    lines: Vec<HeardClaim>,
    now_ms: i64,
}

impl Run {
    fn new(confirm_paid: bool) -> Self {
        Self {
            policy: policy(confirm_paid),
            invoice: unopened(),
            lines: Vec::new(),
            now_ms: 0,
        }
    }

    /// After a wait in seconds.
    fn hear(&mut self, wait_s: i64, source: Source, status: &str, at: Option<i64>, amount: &str) {
        self.now_ms += wait_s * 1_000;
        let mut heard = said(source, status, at, amount, self.now_ms);
        heard.asked = (source == Source::Poll).then_some(Asked {
            revision: self.invoice.revision,
            at_ms: self.now_ms,
        });
        let claim = claim_of(&heard.report, &self.invoice, &self.policy);
        let made = decide(&self.invoice, &heard, &self.policy);
        self.invoice = made.after;
        self.lines.push(HeardClaim {
            claim,
            source,
            decision: made.decision,
            known: made.why == Why::Known,
            at_ms: self.now_ms,
            reported: (
                heard.report.reported().0.map(str::to_owned),
                Some("RUB".to_owned()),
            ),
        });
    }

    fn again(&self) -> (Invoice, Option<Change>) {
        let counted = counted(&self.invoice, &self.lines, &self.policy);
        reassess(&self.invoice, &counted, &self.policy)
    }
}

#[test]
fn a_claim_is_judged_by_what_is_agreed_now() {
    let sum =
        |amount: &str| Sum::new(Amount::parse(amount).expect(amount), "RUB").expect("a currency");
    let judged = |stored: Verdict, reported: (Option<&str>, Option<&str>), wanted: Verdict| {
        let line = HeardClaim {
            claim: Claim {
                status: Status::new("paid").expect("a status"),
                verdict: stored,
                at: None,
            },
            source: Source::Poll,
            decision: Decision::Advance,
            known: false,
            at_ms: 0,
            reported: (reported.0.map(str::to_owned), reported.1.map(str::to_owned)),
        };
        assert_eq!(claim_now(&line, &sum("1400.00")).verdict, wanted);
    };
    let differs = |text: &str| Verdict::Differs(text.to_owned());
    let check = |reported, wanted| judged(differs("1400 RUB"), reported, wanted);
    check((Some("1400"), Some("RUB")), Verdict::Agrees);
    check((Some("1400"), None), Verdict::Agrees);
    check((Some("1300"), Some("RUB")), differs("1300 RUB"));
    // Nothing kept of it: as it was judged.
    check((None, None), differs("1400 RUB"));
    // What could not be read is not read again, and what is no amount is not missing.
    for (stored, wanted) in [
        (Verdict::NoAmount, Verdict::NoAmount),
        (Verdict::Unreadable, Verdict::Unreadable),
        (Verdict::Agrees, Verdict::Agrees),
        (differs("- RUB"), Verdict::NoAmount),
        (differs("? RUB"), Verdict::Unreadable),
    ] {
        judged(stored, (None, Some("RUB")), wanted);
    }
}

/// Each line: the wait before it in seconds, who says it, the status and its instant.
fn heard(confirm_paid: bool, said: &[(i64, Source, &str, i64)]) -> Run {
    let mut run = Run::new(confirm_paid);
    for (wait_s, source, status, at) in said {
        run.hear(*wait_s, *source, status, Some(*at), "1500");
    }
    run
}

#[track_caller]
fn stays(run: &Run, outcome: Outcome) {
    assert_eq!(run.invoice.outcome, outcome);
    let (after, change) = run.again();
    assert_eq!((after.outcome, after.doubt, change), (outcome, false, None));
}

/// Two polls took the payment back; the sender telling it again was a repeat and must not pay now.
#[test]
fn a_payment_that_was_taken_back_and_told_again_stays_taken_back() {
    let (push, poll) = (Source::Notification, Source::Poll);
    let run = heard(
        false,
        &[
            (0, push, "paid", 5),
            (0, poll, "new", 1),
            (31, poll, "new", 1),
            (0, push, "paid", 5),
        ],
    );
    stays(&run, Outcome::Open);
}

/// Two polls denied the failure; an answer that is newer does not bring it back.
#[test]
fn what_was_doubted_and_denied_twice_stays_denied() {
    let (push, poll) = (Source::Notification, Source::Poll);
    let run = heard(
        false,
        &[
            (0, poll, "paid", 1),
            (0, push, "failed", 4),
            (0, poll, "new", 1),
            (31, poll, "new", 1),
            (0, poll, "processing", 5),
        ],
    );
    stays(&run, Outcome::Open);
}

#[test]
fn what_a_poll_confirmed_is_not_doubted_again() {
    let (push, poll) = (Source::Notification, Source::Poll);
    let run = heard(
        true,
        &[
            (0, push, "paid", 1),
            (0, poll, "paid", 2),
            (0, push, "paid", 3),
        ],
    );
    stays(&run, Outcome::Paid);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]
    #[test]
    fn the_same_lists_change_no_outcome(
        steps in prop::collection::vec((
            prop::sample::select(vec![0_i64, 10, 31]),
            prop::sample::select(vec![Source::Notification, Source::Poll]),
            prop::sample::select(vec!["new", "processing", "paid", "failed", "refunded"]),
            prop_oneof![9 => (1_i64..6).prop_map(Some), 1 => Just(None)],
            prop::sample::select(vec!["1500", "1500", "1500", "0.05", MISSING, UNREADABLE]),
        ), 0..12),
        confirm_paid in any::<bool>(),
    ) {
        let mut run = Run::new(confirm_paid);
        for (wait_s, source, status, at, amount) in steps {
            run.hear(wait_s, source, status, at, amount);
        }
        let (after, change) = run.again();
        let told: Vec<_> = run.lines.iter().map(|line| format!(
            "{:?} {} {:?} {:?} {:?}", line.source, line.claim.status, line.claim.at.map(Moment::as_ms), line.claim.verdict, line.decision)).collect();
        prop_assert_eq!(after.outcome, run.invoice.outcome, "{:#?}", told);
        prop_assert_eq!(change, None, "{:#?}", told);
        prop_assert_eq!(after.doubt, run.invoice.doubt, "{:#?}", told);
    }
}
