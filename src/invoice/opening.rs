//! May an order be given another invoice? Pure. An order must not end with two invoices that both can be paid, and an
//! answer that was lost must never be followed by a second request on a guess (A32).

use super::status::Outcome;
use super::sum::Sum;

/// How the customer gets the requisites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Host to host: the answer carries them, the shop shows them.
    H2h,
    /// The customer is sent to the service's payment page.
    Redirect,
    /// Somebody else opened it, and no answer has shown it yet.
    Unknown,
}

impl Mode {
    /// The word used in the ledger and in the hook document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::H2h => "h2h",
            Self::Redirect => "redirect",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::H2h, Self::Redirect, Self::Unknown]
            .into_iter()
            .find(|mode| mode.as_str() == text)
    }
}

/// How far the request that opens an invoice has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Its row is written, its answer is awaited.
    Creating,
    /// The service has it.
    Answered,
    /// The service refused it, or had no requisites free, or the request never left: nothing was opened.
    Refused,
    /// The request may have arrived; nobody knows.
    Unknown,
    /// The shop's own code opened it and told tilld its id: the service has it, as if it had been answered here.
    Tracked,
}

impl Opening {
    /// The word used in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Tracked => "tracked",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Creating,
            Self::Answered,
            Self::Refused,
            Self::Unknown,
            Self::Tracked,
        ]
        .into_iter()
        .find(|o| o.as_str() == text)
    }

    /// True when the service is known to have the invoice.
    pub const fn is_known(self) -> bool {
        match self {
            Self::Answered | Self::Tracked => true,
            Self::Creating | Self::Refused | Self::Unknown => false,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Amount and currency.
    pub sum: Sum,
    /// `SBP` or `TO_CARD`.
    pub method: String,
    /// H2H or Redirect.
    pub mode: Mode,
    /// The merchant insists on another invoice, whatever stands.
    pub anew: bool,
}

/// An invoice the order has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How far its opening came.
    pub opening: Opening,
    /// What it amounts to.
    pub outcome: Outcome,
    /// What was asked for it.
    pub sum: Sum,
    /// Its payment method; empty while it is not known.
    pub method: String,
    /// Its mode.
    pub mode: Mode,
    /// The end of its payment window, milliseconds since 1970; for Redirect the caller's horizon stands in.
    pub closes_ms: i64,
    /// Only a poll can show how it stands: it is in doubt, a second answer is wanted, or a poll is owed.
    pub unsure: bool,
    /// The service said after the end that it was not paid.
    pub unpaid: bool,
    /// Another invoice stands for the order, and a payment of this one would not pay it.
    pub superseded: bool,
}

impl Standing {
    /// True while the customer can pay it, as far as tilld knows.
    fn is_open(&self, now_ms: i64) -> bool {
        self.opening.is_known() && self.outcome == Outcome::Open && now_ms < self.closes_ms
    }

    /// True while it may have been paid without tilld's knowledge. An open one needs the service's word, and so does one
    /// that only a poll can settle.
    fn may_be_paid(&self) -> bool {
        let may_be = self.unsure || self.outcome == Outcome::Open && !self.unpaid;
        self.opening.is_known() && may_be
    }
}

/// The answer. The index points into the standing invoices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A new invoice may be opened.
    Open,
    /// This one is open and is what was asked for.
    Standing(usize),
    /// This one is paid (or paid with another sum): nothing more is to be paid.
    Paid(usize),
    /// Somebody is opening this one right now.
    BeingCreated(usize),
    /// Nobody knows whether this one was opened.
    Unknown(usize),
    /// This one is open and differs in the named respect.
    Differs(usize, Difference),
    /// This one may have been paid: a poll must show it first.
    Unsettled(usize),
    /// This one is superseded, and can be paid or holds a payment that does not pay the order.
    Superseded(usize),
}

/// Whether an invoice can matter to [`judge`]: all others of its order may be left out of what it is given. `unsure`: see
/// [`Standing::unsure`].
pub const fn decides(opening: Opening, outcome: Outcome, unsure: bool) -> bool {
    match (opening, outcome) {
        (Opening::Creating | Opening::Unknown, _)
        | (_, Outcome::Paid | Outcome::Mismatch | Outcome::SecondPayment) => true,
        (_, Outcome::Open) => opening.is_known(),
        (_, Outcome::Failed | Outcome::Reversed) => opening.is_known() && unsure,
    }
}

/// Judges a wish against the invoices the order has, newest first.
pub fn judge(standing: &[Standing], wanted: &Wanted, now_ms: i64) -> Judgement {
    let find = |wish: &dyn Fn(&Standing) -> bool| standing.iter().position(wish);
    if let Some(at) = find(&|s| s.opening == Opening::Creating) {
        return Judgement::BeingCreated(at);
    }
    if wanted.anew {
        return Judgement::Open;
    }
    let paid = find(&|s| s.outcome == Outcome::Paid);
    if let Some(at) = paid.or_else(|| find(&|s| s.outcome == Outcome::Mismatch && !s.superseded)) {
        return Judgement::Paid(at);
    }
    if let Some(at) = find(&|s| s.outcome.has_money()) {
        return Judgement::Superseded(at);
    }
    // The newer of the two speaks: whoever insisted on another invoice after a lost answer is given that one from then on.
    let Some(at) = find(&|s| s.opening == Opening::Unknown || s.is_open(now_ms)) else {
        return find(&Standing::may_be_paid).map_or(Judgement::Open, Judgement::Unsettled);
    };
    match standing.get(at) {
        Some(s) if s.is_open(now_ms) && s.superseded => Judgement::Superseded(at),
        Some(s) if s.is_open(now_ms) => match difference(s, wanted) {
            Some(what) => Judgement::Differs(at, what),
            None => Judgement::Standing(at),
        },
        Some(_) | None => Judgement::Unknown(at),
    }
}

/// The respect in which an open invoice is not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The amount.
    Amount,
    /// The currency.
    Currency,
    /// The payment method.
    Method,
    /// H2H or Redirect; all else is the same.
    Mode,
}

impl Difference {
    /// What it is called.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Currency => "currency",
            Self::Method => "method",
            Self::Mode => "mode",
        }
    }
}

/// What is not known of an invoice that was opened elsewhere differs from nothing. The mode comes last: whoever takes
/// either mode may then rely on all the rest.
fn difference(standing: &Standing, wanted: &Wanted) -> Option<Difference> {
    let other_method = !standing.method.is_empty() && standing.method != wanted.method;
    let other_mode = standing.mode != Mode::Unknown && standing.mode != wanted.mode;
    if standing.sum.amount != wanted.sum.amount {
        Some(Difference::Amount)
    } else if standing.sum.currency != wanted.sum.currency {
        Some(Difference::Currency)
    } else if other_method {
        Some(Difference::Method)
    } else {
        other_mode.then_some(Difference::Mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::amount::Amount;

    fn sum(amount: &str) -> Sum {
        Sum::new(Amount::parse(amount).expect(amount), "RUB").expect("a currency")
    }

    fn wanted() -> Wanted {
        Wanted {
            sum: sum("5.00"),
            method: "SBP".into(),
            mode: Mode::H2h,
            anew: false,
        }
    }

    fn standing(opening: Opening, outcome: Outcome) -> Standing {
        Standing {
            opening,
            outcome,
            sum: sum("5"),
            method: "SBP".into(),
            mode: Mode::H2h,
            closes_ms: 100,
            unsure: false,
            unpaid: false,
            superseded: false,
        }
    }

    #[test]
    fn a_tracked_invoice_counts_as_answered_and_what_is_unknown_of_it_differs_from_nothing() {
        let tracked = Standing {
            method: String::new(),
            mode: Mode::Unknown,
            ..standing(Opening::Tracked, Outcome::Open)
        };
        let known = standing(Opening::Tracked, Outcome::Open);
        let redirect = Wanted {
            mode: Mode::Redirect,
            ..wanted()
        };
        let dearer = Wanted {
            sum: sum("6"),
            ..wanted()
        };
        for (standing, wanted, answer) in [
            (&tracked, wanted(), Judgement::Standing(0)),
            (&tracked, redirect.clone(), Judgement::Standing(0)),
            (&tracked, dearer, Judgement::Differs(0, Difference::Amount)),
            (&known, redirect, Judgement::Differs(0, Difference::Mode)),
        ] {
            assert_eq!(judge(std::slice::from_ref(standing), &wanted, 50), answer);
            // Its window is over.
            assert_eq!(
                judge(std::slice::from_ref(standing), &wanted, 100),
                Judgement::Unsettled(0)
            );
        }
    }

    #[test]
    fn each_standing_invoice_has_its_answer() {
        let cases = [
            (vec![], Judgement::Open),
            (
                vec![standing(Opening::Answered, Outcome::Open)],
                Judgement::Standing(0),
            ),
            (
                vec![standing(Opening::Answered, Outcome::Failed)],
                Judgement::Open,
            ),
            (
                vec![standing(Opening::Answered, Outcome::Reversed)],
                Judgement::Open,
            ),
            (
                vec![standing(Opening::Answered, Outcome::Paid)],
                Judgement::Paid(0),
            ),
            (
                vec![standing(Opening::Answered, Outcome::Mismatch)],
                Judgement::Paid(0),
            ),
            (
                vec![standing(Opening::Refused, Outcome::Open)],
                Judgement::Open,
            ),
            (
                vec![standing(Opening::Unknown, Outcome::Open)],
                Judgement::Unknown(0),
            ),
            (
                vec![standing(Opening::Creating, Outcome::Open)],
                Judgement::BeingCreated(0),
            ),
            (
                vec![
                    standing(Opening::Answered, Outcome::Open),
                    standing(Opening::Answered, Outcome::Paid),
                ],
                Judgement::Paid(1),
            ),
            (
                vec![
                    standing(Opening::Answered, Outcome::Open),
                    standing(Opening::Unknown, Outcome::Open),
                ],
                Judgement::Standing(0),
            ),
            (
                vec![
                    standing(Opening::Refused, Outcome::Open),
                    standing(Opening::Unknown, Outcome::Open),
                    standing(Opening::Answered, Outcome::Open),
                ],
                Judgement::Unknown(1),
            ),
        ];
        for (invoices, judgement) in cases {
            assert_eq!(judge(&invoices, &wanted(), 50), judgement, "{invoices:?}");
        }
    }

    #[test]
    fn an_expired_one_makes_room_once_the_service_says_that_it_was_not_paid() {
        let judged = |outcome, unsure, unpaid| {
            let earlier = Standing {
                unsure,
                unpaid,
                ..standing(Opening::Answered, outcome)
            };
            judge(&[earlier], &wanted(), 100)
        };
        for (outcome, unsure, unpaid, answer) in [
            (Outcome::Open, false, false, Judgement::Unsettled(0)),
            (Outcome::Open, true, false, Judgement::Unsettled(0)),
            (Outcome::Open, false, true, Judgement::Open),
            (Outcome::Failed, false, false, Judgement::Open),
            (Outcome::Failed, true, false, Judgement::Unsettled(0)),
            (Outcome::Open, true, true, Judgement::Unsettled(0)),
            (Outcome::Reversed, true, false, Judgement::Unsettled(0)),
        ] {
            assert_eq!(
                judged(outcome, unsure, unpaid),
                answer,
                "{outcome:?} {unsure} {unpaid}"
            );
        }
        // The explicit way around it.
        let anew = Wanted {
            anew: true,
            ..wanted()
        };
        let doubted = standing(Opening::Answered, Outcome::Open);
        assert_eq!(judge(&[doubted], &anew, 100), Judgement::Open);
    }

    #[test]
    fn another_wish_for_an_open_order_is_named() {
        let open = [standing(Opening::Answered, Outcome::Open)];
        let differs = |wanted: Wanted| judge(&open, &wanted, 50);
        assert_eq!(
            differs(Wanted {
                sum: sum("6"),
                ..wanted()
            }),
            Judgement::Differs(0, Difference::Amount)
        );
        assert_eq!(
            differs(Wanted {
                method: "TO_CARD".into(),
                ..wanted()
            }),
            Judgement::Differs(0, Difference::Method)
        );
        assert_eq!(
            differs(Wanted {
                mode: Mode::Redirect,
                ..wanted()
            }),
            Judgement::Differs(0, Difference::Mode)
        );
    }

    #[test]
    fn insisting_overrides_all_but_a_creation_under_way() {
        let anew = Wanted {
            anew: true,
            ..wanted()
        };
        for opening in [Opening::Answered, Opening::Unknown] {
            assert_eq!(
                judge(&[standing(opening, Outcome::Paid)], &anew, 50),
                Judgement::Open
            );
        }
        assert_eq!(
            judge(&[standing(Opening::Creating, Outcome::Open)], &anew, 50),
            Judgement::BeingCreated(0)
        );
    }
}
