//! `POST /v1/invoices`: opens an invoice for an order, once however often it is asked for.
//!
//! A request that was sent is finished whoever leaves; what waits to be sent is given up when the last who asked has left, since
//! the invoice would be nobody's. `Prefer: wait=20` (RFC 7240) has it tried again for so long while no requisites are free. What
//! the ledger can tell by itself takes no place and needs no login. A create whose answer was lost is told with 202 and the invoice as it stands: nobody knows whether it was opened,
//! and it is not sent again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Inner;
use super::call::Call;
use super::flights::{Answered, Taken, heard};
use super::negotiate::preferred_wait;
use super::problem::{self, bad};
use crate::answer::create::{Ended, Tried, failure};
use crate::answer::failure::{Exit, Failure};
use crate::answer::service;
use crate::http::Response;
use crate::invoice::amount::Amount;
use crate::invoice::ids::OrderId;
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::sum::Sum;
use crate::opening::patient::{Patience, look};
use crate::opening::{Error, Opener, Order};
use crate::panics::contained;
use crate::wire::address::is_for_browsers;
use crate::wire::create::ReturnUrls;

/// RFC 7240.
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// How long `Prefer: wait` waits at most, seconds: a customer is gone by then.
const LONGEST_WAIT_S: u64 = 300;
/// The payment methods of contract 2.3.
const METHODS: [&str; 2] = ["SBP", "TO_CARD"];

/// What is wished for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    /// The merchant's order.
    #[serde(deserialize_with = "order_id")]
    pub(super) order_id: String,
    #[serde(deserialize_with = "amount")]
    amount: String,
    currency: String,
    method: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    success_url: Option<String>,
    #[serde(default)]
    cancel_url: Option<String>,
    #[serde(default)]
    error_url: Option<String>,
    #[serde(default)]
    fallback: Option<String>,
    /// Another invoice although the order has one, is paid, or its last create was lost.
    #[serde(default)]
    pub(super) new: bool,
    /// How long it is tried, from the header `Prefer`. Whoever waits for another time is not answered with the end of this one.
    #[serde(skip)]
    wait: Duration,
}

fn order_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_or_integer("order_id", deserializer)
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_or_integer("amount", deserializer)
}

/// Text, or the digits of a whole number. Of any other number the shop's JSON writer may have changed the digits, and contract 4.3
/// sends them on.
fn text_or_integer<'de, D>(name: &str, deserializer: D) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    let wrong = |what: &str| D::Error::custom(format!("`{name}` {what}; send it as text,"));
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) if !number.as_str().contains(['.', 'e', 'E']) => {
            Ok(number.as_str().to_owned())
        }
        Value::Number(_) => Err(wrong("is a number with a fraction or an exponent")),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong("is neither text nor a whole number"))
        }
    }
}

/// Opens it, or joins those who are at it.
pub(super) async fn run(inner: &Arc<Inner>, call: &Call) -> Result<Response, Failure> {
    let mut wish: Wish = call.body()?;
    let (order, fallback) = wish.order()?;
    let wait = preferred_wait(call.headers(&PREFER)).map(|wait| wait.min(LONGEST_WAIT_S));
    wish.wait = Duration::from_secs(wait.unwrap_or_default());
    let window_ms = inner.settings.opening.window_ms;
    let looked = look(&inner.parts.own, window_ms, &order, fallback.is_some());
    if let Some(opened) = looked.await {
        return Ok(ended(opened.into()).response());
    }
    let Some(_seat) = inner.room.take() else {
        return Ok(problem::no_room());
    };
    let patience = Patience {
        wait: wish.wait,
        fallback,
        stop: inner.stop.child(),
    };
    let told = match inner.flights.take(&wish) {
        Taken::Joins(told) => told,
        Taken::Begins(flight, told) => {
            let own = Arc::clone(inner);
            let give_up = patience.stop.clone();
            // Nobody waits for the task itself: it tells its end, and the stop waits for all of them.
            drop(inner.under_way.spawn(contained(Box::pin(async move {
                let mut opening = pin!(open(&own, &order, patience));
                let answered = tokio::select! {
                    answered = &mut opening => answered,
                    () = own.flights.abandoned(&flight) => {
                        give_up.request();
                        opening.await
                    }
                };
                own.flights.land(&flight, answered);
            }))));
            told
        }
    };
    let again = if wish.new {
        "look whether it is there before you ask again: with `new` it may open another one"
    } else {
        "ask again: an order is never opened twice"
    };
    let mut response = heard(told, again).await?.response();
    if let Some(wait) = wait {
        let applied = HeaderValue::from_str(&format!("wait={wait}")).expect("digits");
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    Ok(response)
}

async fn open(inner: &Inner, order: &Order, patience: Patience) -> Answered {
    let tried = Tried {
        waited: !patience.wait.is_zero(),
        page: order.wanted.mode == Mode::Redirect || patience.fallback.is_some(),
    };
    let parts = &inner.parts;
    let found = parts.store.find(&parts.elsewhere, &parts.client.origin());
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Answered::refused(&service::no_login(), None),
        Err(error) => return Answered::refused(&error.into(), None),
    };
    let opener = Opener {
        writer: &parts.writer,
        reader: &parts.own,
        client: &parts.client,
        token: &found.token,
        gate: &parts.gate,
        settings: &inner.settings.opening,
    };
    match opener
        .open_patiently(order, patience, &mut |_told| {})
        .await
    {
        Ok(opened) => ended(opened.into()),
        Err(error) => match lost(inner, order, &error).await {
            Some(answered) => Answered {
                remark: Some(failure(error, found.source, tried).line()),
                ..answered
            },
            None => Answered::refused(&failure(error, found.source, tried), None),
        },
    }
}

fn ended(ended: Ended) -> Answered {
    let Ended {
        row,
        is_fresh,
        failure,
    } = ended;
    let status = match &failure {
        None if is_fresh => StatusCode::CREATED,
        None => StatusCode::OK,
        Some(failure) if failure.exit() == Exit::Unknown => StatusCode::ACCEPTED,
        Some(failure) => {
            return Answered::refused(failure, Some(&row));
        }
    };
    Answered {
        remark: failure.map(|failure| failure.line()),
        ..Answered::stands(status, &row)
    }
}

/// The invoice whose create may have arrived.
async fn lost(inner: &Inner, order: &Order, error: &Error) -> Option<Answered> {
    use crate::client::error::CreateError::OutcomeUnknown;
    let is_lost = match error {
        Error::Create { source, .. } => matches!(source, OutcomeUnknown { .. }),
        Error::After { .. } => true,
        Error::Gate(_)
        | Error::Unsettled { .. }
        | Error::Before(_)
        | Error::Late
        | Error::Stopping
        | Error::Look { .. } => false,
    };
    if !is_lost {
        return None;
    }
    let rows = inner.parts.own.invoices_of_order(order.order_id.as_str());
    let rows = rows.await.ok()?;
    Some(Answered::stands(StatusCode::ACCEPTED, rows.first()?))
}

impl Wish {
    fn order(&self) -> Result<(Order, Option<ReturnUrls>), Failure> {
        let of = |error: &dyn std::fmt::Display, name: &str| {
            bad(
                format!("`{name}` cannot be used: {error}"),
                "`GET /v1/openapi.json` describes it",
            )
        };
        let order_id =
            OrderId::new(self.order_id.as_str()).map_err(|error| of(&error, "order_id"))?;
        let amount = Amount::parse_payable(&self.amount).map_err(|error| of(&error, "amount"))?;
        let sum = Sum::new(amount, &self.currency).map_err(|error| of(&error, "currency"))?;
        sum.check_digits().map_err(|error| of(&error, "amount"))?;
        if !METHODS.contains(&self.method.as_str()) {
            return Err(of(&"it must be `SBP` or `TO_CARD`", "method"));
        }
        let mode = match self.mode.as_deref() {
            None | Some("h2h") => Mode::H2h,
            Some("redirect") => Mode::Redirect,
            Some(_) => return Err(of(&"it must be `h2h` or `redirect`", "mode")),
        };
        let falls_back = match self.fallback.as_deref() {
            None => false,
            Some("redirect") if mode == Mode::H2h => true,
            Some(_) => return Err(of(&"it must be `redirect`, for the mode `h2h`", "fallback")),
        };
        for (name, url) in [
            ("success_url", &self.success_url),
            ("cancel_url", &self.cancel_url),
            ("error_url", &self.error_url),
        ] {
            if url.as_deref().is_some_and(|url| !is_for_browsers(url)) {
                return Err(of(&"it must begin with `http://` or `https://`", name));
            }
        }
        let urls = self.urls(mode == Mode::Redirect || falls_back)?;
        let (return_urls, fallback) = if falls_back {
            (None, urls)
        } else {
            (urls, None)
        };
        let order = Order {
            order_id,
            wanted: Wanted {
                sum,
                method: self.method.clone(),
                mode,
                anew: self.new,
            },
            return_urls,
        };
        Ok((order, fallback))
    }

    /// All three, exactly when the payment page may be used.
    fn urls(&self, page: bool) -> Result<Option<ReturnUrls>, Failure> {
        let three = [&self.success_url, &self.cancel_url, &self.error_url];
        match (page, three) {
            (true, [Some(success), Some(cancel), Some(error)]) => Ok(Some(ReturnUrls {
                success: success.clone(),
                cancel: cancel.clone(),
                error: error.clone(),
            })),
            (false, [None, None, None]) => Ok(None),
            (true, _) => Err(bad(
                "the payment page needs `success_url`, `cancel_url` and `error_url`",
                "it sends the customer there",
            )),
            (false, _) => Err(bad(
                "addresses to return to are for `mode` or `fallback` `redirect`",
                "the mode `h2h` has no payment page",
            )),
        }
    }
}
