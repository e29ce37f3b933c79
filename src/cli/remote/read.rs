//! What is asked of a daemon, and its answers as what the ledger would have given: rows, reports, failures.

use std::time::Duration;

use hyper::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded::Serializer;

use super::super::failure::{Exit, Failure};
use super::call::{Answer, Call};
use super::{MOST_INVOICES, NoAnswer, Remote};
use crate::answer::find::Lookup;
use crate::answer::name::{Kind, Name};
use crate::answer::{REMARK, event, invoice};
use crate::ledger::{Filter, InvoiceRow};
use crate::status::Report;

/// A question to the service takes this long at most: its turn, the connection and the answer.
const POLL_TIME: Duration = Duration::from_mins(1);
/// A daemon that says nothing of itself for longer is not well.
const STATUS_TIME: Duration = Duration::from_secs(2);
/// As long as a daemon waits for one question, at most.
pub(super) const LONGEST_WAIT_S: u64 = 300;

/// A failure as the socket tells it (RFC 9457).
#[derive(Debug, Deserialize)]
struct Problem {
    code: u8,
    detail: String,
    hint: Option<String>,
    /// Both where a number of another ledger was given, and nowhere else.
    generation: Option<i64>,
    after: Option<i64>,
    invoice: Option<invoice::Shown<'static>>,
}

/// How a wish about one invoice ended.
#[derive(Debug)]
pub(in super::super) struct Asked {
    /// The invoice, where there is one.
    pub(in super::super) row: Option<InvoiceRow>,
    /// Why it is not as it was wished for.
    pub(in super::super) failure: Option<Failure>,
    /// What else is to be said.
    pub(in super::super) remark: Option<String>,
}

/// Events after a number.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Events {
    /// Oldest first.
    #[serde(rename = "events")]
    pub(in super::super) told: Vec<event::Shown<'static>>,
    /// The number to go on after.
    pub(in super::super) next_after: i64,
    /// The generation of the ledger that gave it.
    pub(in super::super) generation: Option<i64>,
}

#[derive(Deserialize)]
struct Invoices {
    invoices: Vec<invoice::Shown<'static>>,
    /// Where the list goes on, if it was cut.
    next_before: Option<String>,
}

impl Lookup for Remote {
    async fn look(&self, name: &Name) -> Result<Vec<InvoiceRow>, Failure> {
        if name.kind == Kind::Order {
            return Ok(self.invoices(&of_order(&name.text)).await?.0);
        }
        let answer = self.call(Self::get(name.path())).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(Vec::new());
        }
        let shown: invoice::Shown<'static> = self.read(&answer)?;
        Ok(vec![self.row(shown)?])
    }
}

impl Remote {
    /// Invoices opened before the one with this ref, newest first, and whether there are more.
    pub(in super::super) async fn list(
        &self,
        filter: Filter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<InvoiceRow>, bool), Failure> {
        let show = match filter {
            Filter::All => "all",
            Filter::Open => "open",
            Filter::Attention => "attention",
        };
        let mut query = Serializer::new(String::new());
        query.append_pair("show", show);
        query.append_pair("limit", &limit.to_string());
        if let Some(before) = before {
            query.append_pair("before", before);
        }
        self.invoices(&query.finish()).await
    }

    /// How everything stands, but for the login.
    pub(in super::super) async fn status(&self) -> Result<Report, NoAnswer> {
        let call = Self::get("/v1/status".to_owned()).within(STATUS_TIME);
        let answer = self.call(call).await?;
        self.read(&answer)
    }

    /// An invoice once it is decided, or when the time is over, and whether it is.
    pub(in super::super) async fn wait(
        &self,
        name: &Name,
        left: Duration,
    ) -> Result<(bool, InvoiceRow), NoAnswer> {
        let seconds = left.as_secs().min(LONGEST_WAIT_S);
        let target = format!("{}/wait?timeout={seconds}", name.path());
        let call = Call::get(target, Duration::from_secs(seconds));
        let answer = self.call(call).await?;
        let shown: invoice::Shown<'static> = self.read(&answer)?;
        Ok((answer.status == StatusCode::OK, self.row(shown)?))
    }

    /// Has the service asked about an invoice.
    pub(in super::super) async fn poll(&self, name: &Name) -> Result<Asked, Failure> {
        let target = name.path() + "/poll";
        let call = Call::post(target, String::new(), POLL_TIME);
        let answer = self.call(call).await?;
        Ok(self.asked(&answer)?)
    }

    /// Events after a number of this generation, or the newest number when none is given; held back for so many seconds while there are none.
    pub(in super::super) async fn events(
        &self,
        (generation, after): (Option<i64>, Option<i64>),
        order: Option<&str>,
        (limit, wait_s): (u32, u64),
    ) -> Result<Events, NoAnswer> {
        let mut query = Serializer::new(String::new());
        if let Some(after) = after {
            query.append_pair("after", &after.to_string());
        }
        if let Some(generation) = generation {
            query.append_pair("generation", &generation.to_string());
        }
        if let Some(order) = order {
            query.append_pair("order_id", order);
        }
        query.append_pair("limit", &limit.to_string());
        query.append_pair("wait", &wait_s.to_string());
        let target = format!("/v1/events?{}", query.finish());
        let call = Call::get(target, Duration::from_secs(wait_s));
        let answer = self.call(call).await?;
        self.read(&answer)
    }

    async fn invoices(&self, query: &str) -> Result<(Vec<InvoiceRow>, bool), Failure> {
        let call = Self::get(format!("/v1/invoices?{query}"));
        let answer = self.call(call).await?;
        let Invoices {
            invoices,
            next_before,
        } = self.read(&answer)?;
        let rows: Result<Vec<InvoiceRow>, NoAnswer> =
            invoices.into_iter().map(|shown| self.row(shown)).collect();
        Ok((rows?, next_before.is_some()))
    }

    fn row(&self, shown: invoice::Shown<'_>) -> Result<InvoiceRow, NoAnswer> {
        shown.row().ok_or_else(|| self.foreign())
    }

    /// An answer about one invoice: a failure may come with how it stands.
    pub(super) fn asked(&self, answer: &Answer) -> Result<Asked, NoAnswer> {
        let remark = answer.headers.get(REMARK);
        let remark = remark.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        if answer.status.is_success() {
            let shown: invoice::Shown<'static> = self.read(answer)?;
            return Ok(Asked {
                row: Some(self.row(shown)?),
                failure: None,
                remark,
            });
        }
        let (failure, shown) = self.failure(answer)?;
        let row = match shown {
            Some(shown) => Some(self.row(shown)?),
            None => None,
        };
        Ok(Asked {
            row,
            failure: Some(failure),
            remark,
        })
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, NoAnswer> {
        if !answer.status.is_success() {
            return Err(self.no_answer(answer));
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            tracing::debug!(reason = %error, "the answer cannot be read: {error}");
            self.foreign()
        })
    }

    /// What passes by itself is told apart from what does not: a question asked again does no harm.
    fn no_answer(&self, answer: &Answer) -> NoAnswer {
        if answer.status == StatusCode::GONE {
            let problem: Option<Problem> = serde_json::from_slice(&answer.body).ok();
            let at = problem.and_then(|problem| problem.generation.zip(problem.after));
            if let (Some(at), Ok((failure, _invoice))) = (at, self.failure(answer)) {
                return NoAnswer::Restored { failure, at };
            }
        }
        match self.failure(answer) {
            Ok((failure, _invoice)) if is_passing(answer.status) => NoAnswer::Busy(failure),
            Ok((failure, _invoice)) => NoAnswer::Ended(failure),
            Err(no_answer) => no_answer,
        }
    }

    fn failure(
        &self,
        answer: &Answer,
    ) -> Result<(Failure, Option<invoice::Shown<'static>>), NoAnswer> {
        let problem: Option<Problem> = serde_json::from_slice(&answer.body).ok();
        let Some(problem) = problem else {
            // Turned away before it was looked at, to make room for others.
            return Err(if is_passing(answer.status) {
                self.busy()
            } else {
                self.foreign()
            });
        };
        let exit = Exit::from_code(problem.code).filter(|exit| *exit != Exit::Ok);
        let failure = Failure::new(exit.unwrap_or(Exit::Error), problem.detail);
        let failure = match problem.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
        Ok((failure, problem.invoice))
    }
}

/// The query for as many invoices of an order as there may be.
fn of_order(order_id: &str) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("order_id", order_id);
    query.append_pair("limit", &MOST_INVOICES.to_string());
    query.finish()
}

/// Whether what was asked may be asked again.
const fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_turned_away_may_ask_again_and_nothing_was_done() {
        let remote = Remote::at(std::path::Path::new("/run/x.sock"));
        let answer = |status, body: &'static str| Answer {
            status,
            headers: hyper::HeaderMap::new(),
            body: body.into(),
        };
        for status in [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ] {
            let busy = remote.asked(&answer(status, "busy"));
            let failure = Failure::from(busy.expect_err("it is no answer"));
            assert_eq!(failure.code(), 8);
            assert_eq!(failure.line(), "the daemon on `/run/x.sock` is busy");
            let hint = failure.way_out().unwrap_or_default();
            assert!(hint.contains("try again"), "{hint}");
        }
        let foreign = remote.asked(&answer(StatusCode::BAD_GATEWAY, "?"));
        assert!(matches!(foreign, Err(NoAnswer::Ended(_))));
    }
}
