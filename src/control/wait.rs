//! `GET /v1/orders/{order_id}/wait` and the same of `/v1/invoices/by-…`: the invoice once it is decided, or as it stands when the time is over.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::Inner;
use super::call::Call;
use super::events::seconds;
use super::feed::{Follower, NoPlace};
use super::problem::{bad, busy};
use crate::answer::failure::Failure;
use crate::answer::find::end;
use crate::answer::name::Name;
use crate::answer::order::{self, Meant};
use crate::clock::wall_ms;
use crate::http::{self, Response};

/// How long is waited unless another time is given, seconds.
const USUAL_S: u64 = 30;
/// What is decided by time alone, such as that the answer to a create was lost, is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    timeout: Option<String>,
    r#for: Option<String>,
}

/// 200 with the invoice when it is paid, failed, reversed, or nobody can tell any more; 202 while it is open still.
pub(super) async fn run(inner: &Arc<Inner>, call: &Call, name: &Name) -> Result<Response, Failure> {
    let query: Query = call.query()?;
    if query.r#for.is_some_and(|what| what != "final") {
        return Err(bad("only `for=final` can be waited for", "leave it away"));
    }
    let wait = seconds(query.timeout.as_deref(), "timeout", USUAL_S)?;
    let until = Instant::now() + wait;
    let mut found = look(inner, name).await?;
    // Those who need not wait take no place.
    if end(found.standing(), wall_ms()).is_none() && Instant::now() < until {
        match inner.feed.join().await {
            Ok(follower) => found = watch(inner, name, follower, until).await?,
            // As it stands: there is nobody any more to wait with.
            Err(NoPlace::Stopping) => {}
            // Not 202, after which it would be asked again at once.
            Err(no_place @ (NoPlace::Full | NoPlace::NoRoom | NoPlace::Unread)) => {
                return Ok(busy(no_place));
            }
        }
    }
    let status = if end(found.standing(), wall_ms()).is_some() {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok(http::json(status, found.json()))
}

async fn look(inner: &Inner, name: &Name) -> Result<Meant, Failure> {
    order::load(&inner.parts.reader, name).await
}

/// Looks again after each event of its order, until it is decided or the time is over.
async fn watch(
    inner: &Inner,
    name: &Name,
    mut follower: Follower,
    until: Instant,
) -> Result<Meant, Failure> {
    loop {
        let found = look(inner, name).await?;
        if end(found.standing(), wall_ms()).is_some() || Instant::now() >= until {
            return Ok(found);
        }
        let look_at = until.min(Instant::now() + LOOK_EVERY);
        loop {
            match timeout_at(look_at, follower.batches.recv()).await {
                Ok(Ok(batch)) if !batch.is_about(Some(&found.standing().order_id)) => {}
                // The daemon stops.
                Ok(Err(RecvError::Closed)) => return Ok(found),
                Ok(Ok(_) | Err(RecvError::Lagged(_))) | Err(_) => break,
            }
        }
    }
}
