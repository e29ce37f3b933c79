//! The headers a notification presents its token by, as senders elsewhere write them. Made here from their specifications,
//! with nothing of what tilld's listener reads them with: two readings of one text find each other's mistakes.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;

use super::state::faults::Presentation;
use crate::secret::Secret;

/// What is signed.
#[derive(Debug)]
pub(super) struct Message<'a> {
    /// The same for all tries of one notification.
    pub(super) id: String,
    /// When this try is made, seconds since 1970.
    pub(super) sent_s: i64,
    /// The body to the byte.
    pub(super) body: &'a str,
}

/// Names and values; none for what does not stand in headers.
pub(super) fn headers(
    how: &Presentation,
    token: &Secret,
    message: &Message<'_>,
) -> Vec<(String, String)> {
    let authorization = |value: String| vec![("Authorization".to_owned(), value)];
    match how {
        Presentation::Header(name) => vec![(name.clone(), token.expose().to_owned())],
        Presentation::Bearer => authorization(format!("Bearer {}", token.expose())),
        Presentation::BasicPassword => {
            let pair = STANDARD.encode(format!("sandbox:{}", token.expose()));
            authorization(format!("Basic {pair}"))
        }
        Presentation::Hmac(name) => {
            let signature = sign(token.expose().as_bytes(), message.body);
            vec![(name.clone(), format!("sha256={}", hex(signature.as_ref())))]
        }
        Presentation::StandardWebhooks => standard_webhooks(token.expose(), message),
        Presentation::Query(_) | Presentation::Body(_) | Presentation::Missing => Vec::new(),
    }
}

/// Standard Webhooks 1.0. A token that is no `whsec_` secret is its own key.
fn standard_webhooks(token: &str, message: &Message<'_>) -> Vec<(String, String)> {
    let key = match token.split_once("whsec_") {
        Some(("", encoded)) => STANDARD.decode(encoded).ok(),
        _ => None,
    };
    let key = key.unwrap_or_else(|| token.as_bytes().to_vec());
    let Message { id, sent_s, body } = message;
    let signature = STANDARD.encode(sign(&key, &format!("{id}.{sent_s}.{body}")));
    [
        ("webhook-id", id.clone()),
        ("webhook-timestamp", sent_s.to_string()),
        ("webhook-signature", format!("v1,{signature}")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn sign(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}
