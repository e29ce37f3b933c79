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

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks libraries, and what Python's `hmac` module makes of the same body.
    #[test]
    fn signatures_are_those_of_other_senders() {
        let token = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            sent_s: 1_614_265_330,
            body: r#"{"test": 2432232314}"#,
        };
        for (how, value) in [
            (
                Presentation::StandardWebhooks,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                Presentation::Hmac("X-Signature".to_owned()),
                "sha256=80ec8a89ce3cd22133a1066caecb4d04fea7467657c8514d717ec42c38a5c94c",
            ),
        ] {
            let headers = headers(&how, &token, &message);
            assert_eq!(headers.last().map(|(_, value)| value.as_str()), Some(value));
        }
    }
}
