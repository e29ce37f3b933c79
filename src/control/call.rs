//! One request, read whole: its query, its headers and its JSON object.

use hyper::header::{HeaderMap, HeaderName};
use hyper::{Request, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::problem::bad;
use crate::answer::failure::Failure;
use crate::http::{self, BodyError, Limits, Response, read_body};
use crate::telemetry::visible_json;
use crate::wire::json::is_sound;

/// A request.
pub(super) struct Call {
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: bytes::Bytes,
}

/// A query of a call that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl Call {
    /// Reads it whole.
    pub(super) async fn read(
        request: Request<http::Body>,
        limits: &Limits,
    ) -> Result<Self, BodyError> {
        let (parts, body) = request.into_parts();
        let query = parts.uri.query().unwrap_or_default();
        let query = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let body = read_body(body, limits).await;
        Ok(Self {
            query,
            headers: parts.headers,
            body: body?,
        })
    }

    /// The query as one of ours: each name at most once, none unknown.
    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let mut fields = serde_json::Map::new();
        for (name, value) in &self.query {
            if fields.insert(name.clone(), value.clone().into()).is_some() {
                return Err(bad(format!("the query has `{name}` twice"), "give it once"));
            }
        }
        serde_json::from_value(fields.into()).map_err(|error| {
            bad(
                format!("the query cannot be read: {error}"),
                "`GET /v1/openapi.json` describes it",
            )
        })
    }

    /// The body as one of ours. It is a JSON object, whatever its type is said to be.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if !is_sound(&self.body) {
            return Err(bad(
                "the body has a name that no body may have",
                "`GET /v1/openapi.json` describes it",
            ));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            bad(
                format!("the body cannot be read: {error}"),
                "`GET /v1/openapi.json` describes it",
            )
        })
    }

    /// The texts of a header's lines, those that are text.
    pub(super) fn headers(&self, name: &HeaderName) -> impl Iterator<Item = &str> {
        let lines = self.headers.get_all(name).iter();
        lines.filter_map(|line| line.to_str().ok())
    }

    /// It has neither a query nor a body: this call takes none.
    pub(super) fn is_bare(&self) -> Result<(), Failure> {
        let Nothing {} = self.query()?;
        self.has_no_body()
    }

    /// It has no body: this call takes none.
    pub(super) fn has_no_body(&self) -> Result<(), Failure> {
        if self.body.is_empty() {
            return Ok(());
        }
        Err(bad("this call takes no body", "leave it away"))
    }

    /// The text of a header, if there is one and it is text.
    pub(super) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// An answer of JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    http::json(status, visible_json(value))
}
