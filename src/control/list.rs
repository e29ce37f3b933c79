//! `GET /v1/invoices`, `/v1/orders/{order_id}` and `/v1/invoices/by-…`: what the ledger has.

use hyper::StatusCode;
use serde::Deserialize;

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

/// Invoices, newest first: of an order, or as `tilld invoice list` shows them.
pub(super) async fn run(inner: &Inner, call: &Call) -> Result<Response, Failure> {
    let query: Query = call.query()?;
    let limit = limit(query.limit.as_deref(), USUAL, MOST)?;
    let reader = &inner.parts.reader;
    let before = query.before.as_deref();
    let mut rows = if let Some(order_id) = &query.order_id {
        let mut rows = reader.invoices_of_order(order_id).await?;
        if let Some(before) = before {
            let last = find::find_one(reader, &Kind::Ref.of(before)).await?;
            let place = rows.iter().position(|row| row.key == last.key);
            rows.drain(..=place.ok_or_else(|| of_another_order(before))?);
        }
        rows
    } else {
        let filter = match query.show.unwrap_or(Show::All) {
            Show::All => Filter::All,
            Show::Open => Filter::Open,
            Show::Attention => Filter::Attention,
        };
        let below = find::below(reader, before).await?;
        reader.list_invoices(filter, below, limit + 1).await?
    };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    let next = rows.last().filter(|_| more);
    let next = next.map(|row| row.reference.as_str());
    let rows: Vec<_> = rows.iter().map(invoice::json).collect();
    Ok(json(
        StatusCode::OK,
        &serde_json::json!({ "invoices": rows, "next_before": next }),
    ))
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
