//! A notification's body: what shape it must have, and the observation it becomes once it is authentic. Pure.
//!
//! The shape is judged before the token, so that the answer to a misshapen body never depends on the ref.

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

use crate::invoice::ids::InvoiceId;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Observation, Report, Source};
use crate::secret::Secret;
use crate::wire::fields::Fields;
use crate::wire::invoice::{NotAnInvoice, decode};
use crate::wire::json::ShapeError;

/// A body of the right shape. It is not authentic yet.
#[derive(Debug)]
pub struct Notification<'b> {
    object: Fields<'b>,
    report: Report,
}

/// Why a body is no notification. Nothing of the body is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misshapen {
    /// It is not one JSON object.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The object is no invoice.
    #[error(transparent)]
    Invoice(#[from] NotAnInvoice),
}

/// True when the headers say that the body is compressed. Such a body is not read.
pub fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| {
        !value
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"identity")
    })
}

/// True when the headers call the body a form. Asked only of what was read and is no notification, so that the operator
/// learns what to change at the sender: the content decides, and any Content-Type, or none, is as good as another (A12).
pub fn is_form(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().any(|value| {
        let value = value.as_bytes();
        let end = value.iter().position(|b| *b == b';');
        let kind = value.split_at(end.unwrap_or(value.len())).0.trim_ascii();
        [
            b"application/x-www-form-urlencoded".as_slice(),
            b"multipart/form-data",
        ]
        .iter()
        .any(|form| kind.eq_ignore_ascii_case(form))
    })
}

impl<'b> Notification<'b> {
    /// Reads a body.
    pub fn read(body: &'b [u8]) -> Result<Self, Misshapen> {
        let object = Fields::read(body)?;
        let report = decode(&object)?;
        Ok(Self { object, report })
    }

    /// The object, for the places in it that may carry the token.
    pub const fn object(&self) -> &Fields<'b> {
        &self.object
    }

    /// The service's id of the invoice it claims to be about.
    pub const fn id(&self) -> &InvoiceId {
        &self.report.id
    }

    /// The order it claims to be about.
    pub fn order_id(&self) -> Option<&str> {
        self.report.order_id.value().map(String::as_str)
    }

    /// What it says, once it was found authentic by `token`, which is cut out of all its texts, and so are the access tokens in
    /// `hidden`: a service may know them both. `received_ms` is by our clock.
    pub fn into_observation(
        self,
        token: &NotifyToken,
        hidden: &[Secret],
        received_ms: i64,
    ) -> Observation {
        let hidden: Vec<&Secret> = hidden.iter().chain([token.secret()]).collect();
        Observation {
            source: Source::Notification,
            report: self.report.without(&hidden),
            asked: None,
            received_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::Value;

    use super::super::reason::Reason;
    use super::*;

    #[test]
    fn forms_and_compression_are_known_by_their_headers() {
        let with = |name, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).expect("a value"));
            is_compressed(&headers) || is_form(&headers)
        };
        for kind in [
            "application/json",
            "APPLICATION/JSON;charset=\"UTF-8\"",
            "applications/json",
            "text/plain",
            "",
        ] {
            assert!(!with(CONTENT_TYPE, kind), "{kind}");
        }
        for kind in [
            "application/x-www-form-urlencoded",
            "Application/X-WWW-Form-Urlencoded ; charset=utf-8",
            "multipart/form-data; boundary=x",
        ] {
            assert!(with(CONTENT_TYPE, kind), "{kind}");
        }
        assert!(!with(CONTENT_ENCODING, "Identity"));
        for encoding in ["gzip", "br", "identity, gzip", ""] {
            assert!(with(CONTENT_ENCODING, encoding), "{encoding}");
        }
    }

    #[test]
    fn the_shape_is_told_by_a_word() {
        for (body, word) in [
            ("", "body_empty"),
            ("null", "body_not_an_object"),
            ("{}", "invoice_id_unreadable"),
            (r#"{"id":"a","status":""}"#, "invoice_status_unreadable"),
            (r#"{"id":"..","status":"new"}"#, "invoice_id_unreadable"),
            (r#"{"id":"a","id":"b","status":"new"}"#, "body_doubled_name"),
            (r#"{"id":"a","status":"new"} x"#, "body_not_json"),
            ("payload=%7B%7D", "body_not_json"),
        ] {
            let told = Notification::read(body.as_bytes()).map_err(Reason::from);
            assert_eq!(told.err().map(Reason::as_str), Some(word), "{body}");
        }
    }

    #[test]
    fn the_token_is_cut_out_however_it_is_spelt() {
        let token = NotifyToken::from_stored("abcdefghijklmnopqrstuvwxyz-012345".to_owned())
            .expect("long enough");
        let escaped = r#"{"id":"i-1","status":"new","amount":10.50,"notificationToken":"\u0061bcdefghijklmnopqrstuvwxyz\u002d012345"}"#;
        let wrapped = Value::String(escaped.to_owned()).to_string();
        for body in [escaped, &wrapped] {
            let notification = Notification::read(body.as_bytes()).expect("readable");
            let observation = notification.into_observation(&token, &[], 7);
            assert_eq!(
                observation.report.raw,
                r#"{"id":"i-1","status":"new","amount":10.50,"notificationToken":"[cut]"}"#
            );
            assert_eq!(observation.source, Source::Notification);
            assert_eq!(observation.received_ms, 7);
        }
    }
}
