//! `GET /v1/invoices`, `/v1/orders/{order_id}` and `/v1/invoices/by-…`: what the ledger has.

use hyper::StatusCode;
use serde::{Deserialize, Serialize};

use super::Inner;
use super::call::{Call, json};
use super::problem::bad;
use crate::answer::failure::Failure;
use crate::answer::find;
use crate::answer::invoice;
use crate::answer::name::{Kind, Name};
use crate::answer::order;
use crate::http::{self, Response};
use crate::ledger::Filter;

/// Invoices in one answer, at most, and unless another number is given.
const MOST: u32 = 1_000;
const USUAL: u32 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    order_id: Option<String>,
    show: Option<Show>,
    before: Option<String>,
    limit: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Show {
    All,
    Open,
    Attention,
}

/// The answer. Written as it is: a tree of it would take ten times as much.
#[derive(Serialize)]
struct Shown<'a> {
    invoices: Vec<invoice::Shown<'a>>,
    next_before: Option<&'a str>,
}

/// Invoices, newest first: of an order, or as `tilld invoice list` shows them.
pub(super) async fn run(inner: &Inner, call: &Call) -> Result<Response, Failure> {
    let query: Query = call.query()?;
    let limit = limit(query.limit.as_deref(), USUAL, MOST)?;
    let reader = &inner.parts.reader;
    let before = query.before.as_deref();
    let page = if let Some(order_id) = &query.order_id {
        if let Some(before) = before {
            let last = find::find_one(reader, &Kind::Ref.of(before)).await?;
            if last.order_id != *order_id {
                return Err(of_another_order(before));
            }
        }
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        reader.page_of_order(order_id, before, most).await?
    } else {
        let filter = match query.show.unwrap_or(Show::All) {
            Show::All => Filter::All,
            Show::Open => Filter::Open,
            Show::Attention => Filter::Attention,
        };
        let below = find::below(reader, before).await?;
        reader.list_invoices(filter, below, limit).await?
    };
    let next = page.rows.last().filter(|_| page.more);
    let shown = Shown {
        invoices: page.rows.iter().map(invoice::json).collect(),
        next_before: next.map(|row| row.reference.as_str()),
    };
    Ok(json(StatusCode::OK, &shown))
}

fn of_another_order(before: &str) -> Failure {
    bad(
        format!("`before` is {before:?}, the ref of another order's invoice"),
        "give `next_before` of the answer that this one continues",
    )
}

/// The order or the invoice that goes by a name.
pub(super) async fn show(inner: &Inner, name: &Name) -> Result<Response, Failure> {
    let found = order::load(&inner.parts.reader, name).await?;
    Ok(http::json(StatusCode::OK, found.json()))
}

/// A number of things in one answer.
pub(super) fn limit(text: Option<&str>, usual: u32, most: u32) -> Result<u32, Failure> {
    let Some(text) = text else {
        return Ok(usual);
    };
    text.parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| {
            bad(
                format!("`limit` is {text:?}"),
                &format!("give a whole number from 1 to {most}"),
            )
        })
}
