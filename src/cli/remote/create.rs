//! Has a daemon open an invoice, for as long as is wished.
//!
//! A daemon tries for [`LONGEST_WAIT_S`] at most; a longer wish is made again, and each is a row of its own in the ledger.
//! Promises that a wish whose answer is lost is not made again: the person is told that it may be.

use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};

use super::super::failure::{Exit, Failure};
use super::call::Call;
use super::read::LONGEST_WAIT_S;
use super::{Asked, NoAnswer, Remote};
use crate::answer::create::unknown;
use crate::invoice::opening::Mode;
use crate::ledger::InvoiceRow;
use crate::opening::Order;
use crate::opening::patient::Patience;
use crate::wire::create::ReturnUrls;

/// What an opening takes beside its waiting: turns at the ledger and the service, twice with a fallback, and the answers.
const OPENING_TIME: Duration = Duration::from_mins(2);
/// A wish that takes longer than this waits for something.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What is safe when nobody knows.
const AGAIN: &str = "run the command again: an order that has an invoice gets no second one";

/// The same after a wish for another invoice beside the first, which each time may open one.
const LOOK_FIRST: &str = "look with `tilld invoice list` whether it is there before you run the command again: with `--new` it may open another one";

/// What is safe after this wish.
const fn again(is_anew: bool) -> &'static str {
    if is_anew { LOOK_FIRST } else { AGAIN }
}

/// The end of an opening.
#[derive(Debug)]
pub(in super::super) struct Created {
    /// The invoice, where there is one.
    pub(in super::super) row: Option<InvoiceRow>,
    /// It was opened just now.
    pub(in super::super) is_fresh: bool,
    /// Why it is not to be handed to the customer.
    pub(in super::super) failure: Option<Failure>,
}

impl Remote {
    /// Opens it. `waits` is called once, when it takes longer.
    pub(in super::super) async fn create(
        &self,
        order: &Order,
        patience: &Patience,
        mut waits: impl FnMut(),
    ) -> Result<Created, Failure> {
        let is_anew = order.wanted.anew;
        let until = Instant::now() + patience.wait;
        let mut told = patience.wait.is_zero();
        loop {
            let began = Instant::now();
            let left = until.saturating_duration_since(began);
            let seconds = left.as_millis().div_ceil(1_000);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            let is_last = seconds <= LONGEST_WAIT_S;
            let seconds = seconds.min(LONGEST_WAIT_S);
            // The payment page is for when all the waiting was in vain.
            let fallback = patience.fallback.as_ref().filter(|_| is_last);
            let body = body(order, fallback).to_string();
            let wait = Duration::from_secs(seconds) + OPENING_TIME;
            let call = Call::post("/v1/invoices".to_owned(), body, wait).prefers_wait(seconds);
            let answered = self.call(call);
            tokio::pin!(answered);
            let answer = match timeout(AT_ONCE, &mut answered).await {
                Ok(answer) => answer,
                Err(_goes_on) => {
                    if !std::mem::replace(&mut told, true) {
                        waits();
                    }
                    answered.await
                }
            };
            let answer = answer.map_err(|error| lost(error, is_anew))?;
            let Asked {
                row,
                failure,
                remark,
            } = self
                .asked(&answer)
                .map_err(|error| not_understood(error, is_anew))?;
            // A daemon that answers before its time is over cannot go on, or does not want to.
            let next_at = began + Duration::from_secs(seconds);
            let may_go_on = failure
                .as_ref()
                .is_some_and(|failure| match failure.exit() {
                    Exit::NoRequisites => true,
                    Exit::Unreachable => Instant::now() >= next_at,
                    _ => false,
                });
            if !is_last && may_go_on {
                sleep_until(next_at).await;
                continue;
            }
            let is_lost = answer.status == StatusCode::ACCEPTED;
            return Ok(Created {
                is_fresh: answer.status == StatusCode::CREATED,
                failure: match &row {
                    Some(row) if is_lost => Some(why_unknown(row, remark)),
                    Some(_) | None => failure,
                },
                row,
            });
        }
    }
}

/// What was sent may have arrived.
fn lost(error: NoAnswer, is_anew: bool) -> Failure {
    match error {
        error @ (NoAnswer::Gone { .. } | NoAnswer::Silent { .. }) => {
            Failure::new(Exit::Unknown, error)
                .context("nobody knows whether the invoice was opened")
                .hint(again(is_anew))
        }
        error @ (NoAnswer::Absent { .. }
        | NoAnswer::Busy(_)
        | NoAnswer::Restored { .. }
        | NoAnswer::Ended(_)) => error.into(),
    }
}

/// In the daemon's words, where it has any.
fn why_unknown(row: &InvoiceRow, remark: Option<String>) -> Failure {
    let known = unknown(row);
    let (Some(why), Some(hint)) = (remark, known.way_out()) else {
        return known;
    };
    Failure::new(known.exit(), why).hint(hint)
}

/// It was answered, and nobody can say with what.
fn not_understood(error: NoAnswer, is_anew: bool) -> Failure {
    // Turned away: nothing was opened.
    if let NoAnswer::Busy(failure) = error {
        return failure;
    }
    let failure = Failure::from(error);
    let line = failure.line();
    Failure::new(Exit::Unknown, line)
        .context("nobody knows whether the invoice was opened")
        .hint(again(is_anew))
}

/// The wish in the words of the socket.
fn body(order: &Order, fallback: Option<&ReturnUrls>) -> Value {
    let wanted = &order.wanted;
    let mut body = Map::new();
    let mut put = |name: &str, value: &str| {
        body.insert(name.to_owned(), value.into());
    };
    put("order_id", order.order_id.as_str());
    put("amount", wanted.sum.amount.as_str());
    put("currency", &wanted.sum.currency);
    put("method", &wanted.method);
    if wanted.mode == Mode::Redirect {
        put("mode", "redirect");
    }
    if fallback.is_some() {
        put("fallback", "redirect");
    }
    if let Some(urls) = order.return_urls.as_ref().or(fallback) {
        put("success_url", &urls.success);
        put("cancel_url", &urls.cancel);
        put("error_url", &urls.error);
    }
    if wanted.anew {
        body.insert("new".to_owned(), true.into());
    }
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::amount::Amount;
    use crate::invoice::ids::OrderId;
    use crate::invoice::opening::Wanted;
    use crate::invoice::sum::Sum;

    /// Repeated with `--new`, a wish may open another invoice each time: that is no advice to give.
    #[test]
    fn a_lost_wish_for_another_invoice_is_not_to_be_repeated_unseen() {
        let hint = |is_anew| {
            let gone = NoAnswer::Gone {
                path: "/run/x.sock".into(),
            };
            let failure = lost(gone, is_anew);
            assert_eq!(failure.exit(), Exit::Unknown);
            failure.way_out().unwrap_or_default()
        };
        assert!(hint(false).starts_with("run the command again"));
        assert!(hint(true).starts_with("look with `tilld invoice list`"));
    }

    fn order(mode: Mode, return_urls: Option<ReturnUrls>, anew: bool) -> Order {
        let amount = Amount::parse_payable("599.80").expect("an amount");
        Order {
            order_id: OrderId::new("1042").expect("an id"),
            wanted: Wanted {
                sum: Sum::new(amount, "RUB").expect("a sum"),
                method: "SBP".to_owned(),
                mode,
                anew,
            },
            return_urls,
        }
    }

    #[test]
    fn a_wish_is_told_with_what_was_given_and_no_more() {
        let urls = || ReturnUrls {
            success: "s".to_owned(),
            cancel: "c".to_owned(),
            error: "e".to_owned(),
        };
        let plain = order(Mode::H2h, None, false);
        let bare = r#""amount":"599.80","currency":"RUB","method":"SBP""#;
        assert_eq!(
            body(&plain, None).to_string(),
            format!(r#"{{{bare},"order_id":"1042"}}"#)
        );
        let page = body(&order(Mode::Redirect, Some(urls()), true), None);
        let page_of = |name: &str| page.get(name).cloned();
        assert_eq!(page_of("mode"), Some("redirect".into()));
        assert_eq!(page_of("new"), Some(true.into()));
        assert_eq!(page_of("success_url"), Some("s".into()));
        assert_eq!(page_of("fallback"), None);
        let instead = body(&plain, Some(&urls()));
        let instead_of = |name: &str| instead.get(name).cloned();
        assert_eq!(instead_of("mode"), None);
        assert_eq!(instead_of("fallback"), Some("redirect".into()));
        assert_eq!(instead_of("error_url"), Some("e".into()));
    }
}
