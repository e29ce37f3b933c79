//! `api_status` of `POST /faults`: what an endpoint answers instead of its own, once unless `times` says otherwise.
//!
//! `{"endpoint", "times"?}` and one of
//!
//! | | what comes |
//! |---|---|
//! | `"status"`, `"body"?`, `"retry_after_s"?`, `"location"?` | this answer: 200 to 599, a body of 64 KiB at most, which is JSON when it begins or reads as such; `location` goes with 201 and 3xx |
//! | `"kind": "html"`, `"status"?`, `"retry_after_s"?` | a proxy's page, 502 unless told |
//! | `"kind": "redirect"`, `"status"?`, `"location"?` | elsewhere: 301, 302, 303, 307 or 308 |
//! | `"kind": "hang"` | nothing, until the client leaves, a reset, or a minute has passed |
//! | `"kind": "cut"` | nothing is done, the connection is closed |
//! | `"kind": "drop_answer"` | it is done, the connection is closed all the same |

use hyper::header::HeaderValue;
use serde::Deserialize;

use super::fault::Count;
use crate::sandbox::state::faults::{ApiFault, ELSEWHERE, Endpoint, StandIn, Times};

/// Longest body, bytes. One is kept for each endpoint of each invoice with faults of its own.
const LONGEST_BODY: usize = 64 * 1024;
/// Longest address, bytes.
const LONGEST_LOCATION: usize = 2_048;
/// Longest wait that is asked for, s: a day.
const LONGEST_RETRY_S: i64 = 86_400;

/// As it is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedApi {
    endpoint: String,
    status: Option<i64>,
    body: Option<String>,
    retry_after_s: Option<i64>,
    location: Option<String>,
    kind: Option<String>,
    times: Option<Count>,
}

impl AskedApi {
    /// Which one.
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        Endpoint::parse(&self.endpoint)
    }

    /// The fault, if there is one like this.
    pub(super) fn fault(&self) -> Result<ApiFault, &'static str> {
        let endpoint = self.endpoint();
        Ok(ApiFault {
            endpoint: endpoint.ok_or("`endpoint` is `login`, `token`, `create` or `fetch`")?,
            answer: self.answer()?,
            times: self.times.as_ref().map_or(Times::next(1), |count| count.0),
        })
    }

    fn answer(&self) -> Result<StandIn, &'static str> {
        match self.kind.as_deref() {
            None => self.told(),
            Some("html") => self.page(),
            Some("redirect") => self.redirect(),
            Some("hang") => self.nothing(StandIn::Hang),
            Some("cut") => self.nothing(StandIn::Cut),
            Some("drop_answer") => self.nothing(StandIn::DropAnswer),
            Some(_) => Err("`kind` is `html`, `redirect`, `hang`, `cut` or `drop_answer`"),
        }
    }

    fn told(&self) -> Result<StandIn, &'static str> {
        let status = self.status()?.ok_or("`status` or `kind` is needed")?;
        let body = self.body.clone().unwrap_or_default();
        if body.len() > LONGEST_BODY {
            return Err("`body` is 64 KiB at most");
        }
        if !body.is_empty() && is_bare(status) {
            return Err("`body` does not go with this `status`");
        }
        if self.location.is_some() && status != 201 && !(300..400).contains(&status) {
            return Err("`location` goes with 201 and 300 to 399");
        }
        Ok(StandIn::Answer {
            status,
            body,
            retry_after_s: self.retry_after()?,
            location: self.location()?,
        })
    }

    fn page(&self) -> Result<StandIn, &'static str> {
        self.without_body()?;
        self.without_location()?;
        let status = self.status()?.unwrap_or(502);
        if is_bare(status) {
            return Err("`status` is of an answer with a page");
        }
        let mut page = StandIn::html(status);
        if let StandIn::Answer { retry_after_s, .. } = &mut page {
            *retry_after_s = self.retry_after()?;
        }
        Ok(page)
    }

    fn redirect(&self) -> Result<StandIn, &'static str> {
        self.without_body()?;
        self.without_retry_after()?;
        let status = self.status()?.unwrap_or(307);
        if ![301, 302, 303, 307, 308].contains(&status) {
            return Err("`status` of a redirect is 301, 302, 303, 307 or 308");
        }
        let location = self.location()?;
        let location = location.as_deref().unwrap_or(ELSEWHERE);
        Ok(StandIn::redirect(status, location))
    }

    /// Says all by itself.
    fn nothing(&self, what: StandIn) -> Result<StandIn, &'static str> {
        if self.status.is_some() {
            return Err("`status` does not go with this `kind`");
        }
        self.without_body()?;
        self.without_retry_after()?;
        self.without_location()?;
        Ok(what)
    }

    fn without_body(&self) -> Result<(), &'static str> {
        let there = self.body.is_some();
        refuse(there, "`body` does not go with this `kind`")
    }

    fn without_retry_after(&self) -> Result<(), &'static str> {
        let there = self.retry_after_s.is_some();
        refuse(there, "`retry_after_s` does not go with this `kind`")
    }

    fn without_location(&self) -> Result<(), &'static str> {
        let there = self.location.is_some();
        refuse(there, "`location` does not go with this `kind`")
    }

    fn status(&self) -> Result<Option<u16>, &'static str> {
        let read = |status: i64| {
            let status = u16::try_from(status).ok();
            let status = status.filter(|status| (200..600).contains(status));
            status.ok_or("`status` is 200 to 599")
        };
        self.status.map(read).transpose()
    }

    fn retry_after(&self) -> Result<Option<u64>, &'static str> {
        let read = |seconds: i64| {
            let seconds = Some(seconds).filter(|s| (0..=LONGEST_RETRY_S).contains(s));
            let seconds = seconds.and_then(|s| u64::try_from(s).ok());
            seconds.ok_or("`retry_after_s` is 0 to 86400")
        };
        self.retry_after_s.map(read).transpose()
    }

    fn location(&self) -> Result<Option<String>, &'static str> {
        let Some(location) = &self.location else {
            return Ok(None);
        };
        let fits = (1..=LONGEST_LOCATION).contains(&location.len());
        if fits && HeaderValue::from_str(location).is_ok_and(|value| value.to_str().is_ok()) {
            return Ok(Some(location.clone()));
        }
        Err("`location` is 1 to 2048 characters that a header can carry")
    }
}

fn refuse(there: bool, what: &'static str) -> Result<(), &'static str> {
    if there { Err(what) } else { Ok(()) }
}

/// HTTP knows no body with these (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
fn is_bare(status: u16) -> bool {
    matches!(status, 204 | 205 | 304)
}
