//! What signs a posted document: symmetric signatures of Standard Webhooks 1.0. Pure. The receiver's library gets the same
//! secret in the same form, so only what every such library takes is a secret here.
//! Promises that no key and no part of one stands in an error or a `Debug`.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use secrecy::zeroize::Zeroizing;

/// What a secret begins with in its text form.
const PREFIX: &str = "whsec_";

/// Fewest and most bytes of a secret, by the specification.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// Most secrets that sign at once. A rotation has two, a botched one three.
const MOST_KEYS: usize = 4;

/// The secrets to sign with.
pub struct Keys(Vec<hmac::Key>);

/// Why a text holds no secrets. The text itself is not repeated. Secrets are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// Nothing but space.
    #[error("it holds no secret")]
    None,
    /// More than anybody rotates through.
    #[error("it holds more than {MOST_KEYS} secrets")]
    TooMany,
    /// Another form of secret, or none.
    #[error("secret {0} in it does not begin with `{PREFIX}`")]
    Prefix(usize),
    /// Damaged: a letter lost or added.
    #[error("secret {0} in it is no base64 with padding behind `{PREFIX}`")]
    Base64(usize),
    /// Too short to be safe, or too long for the libraries.
    #[error("secret {0} in it has {1} bytes, wanted are {least} to {most}", least = LENGTH.start(), most = LENGTH.end())]
    Length(usize, usize),
}

impl Keys {
    /// Reads secrets with space or line ends between them. The order does not matter: all of them sign.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut keys = Vec::new();
        for word in text.split_ascii_whitespace() {
            let number = keys.len() + 1;
            if number > MOST_KEYS {
                return Err(KeysError::TooMany);
            }
            let encoded = word.strip_prefix(PREFIX);
            let encoded = encoded.ok_or(KeysError::Prefix(number))?;
            let bytes = STANDARD.decode(encoded).map(Zeroizing::new);
            let bytes = bytes.map_err(|_holds_letters_of_it| KeysError::Base64(number))?;
            if !LENGTH.contains(&bytes.len()) {
                return Err(KeysError::Length(number, bytes.len()));
            }
            keys.push(hmac::Key::new(hmac::HMAC_SHA256, &bytes));
        }
        if keys.is_empty() {
            return Err(KeysError::None);
        }
        Ok(Self(keys))
    }

    /// The value of `webhook-signature`: one signature for each secret, with a space between them. `id` must hold no dot,
    /// which is what parts it from the time in what is signed; `at_s` is in seconds since 1970.
    pub fn sign(&self, id: &str, at_s: i64, body: &[u8]) -> String {
        let signatures = self.0.iter().map(|key| {
            let mut context = hmac::Context::with_key(key);
            context.update(format!("{id}.{at_s}.").as_bytes());
            context.update(body);
            format!("v1,{}", STANDARD.encode(context.sign()))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn secret(bytes: usize) -> String {
        format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]))
    }

    #[test]
    fn a_signature_is_the_specifications() {
        // As the public library for Python signs it; `tests/it/posts/verify.rs` lets two of them judge what is posted.
        let keys = Keys::parse(SECRET).expect("a secret");
        let body = br#"{"test": 2432232314}"#;
        let signed = keys.sign("msg_p5jXN8AQM9LtM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,qAqlgV2+Rk0tnz759O2qZ6w7C2xFbUbviY3ZMj8HYLw=");
    }

    #[test]
    fn every_secret_of_a_rotation_signs() {
        let other = secret(64);
        let sign = |text: &str| Keys::parse(text).expect("secrets").sign("e", 1, b"{}");
        let both = format!("{} {}", sign(SECRET), sign(&other));
        assert_eq!(sign(&format!("{SECRET}\n{other}\n")), both);
        assert_eq!(sign(&format!(" {SECRET}  {other}")), both);
    }

    #[test]
    fn only_what_a_library_takes_is_a_secret() {
        let unpadded = secret(32).trim_end_matches('=').to_owned();
        for (text, wanted) in [
            (String::new(), KeysError::None),
            ("\n".to_owned(), KeysError::None),
            (SECRET.replace(PREFIX, ""), KeysError::Prefix(1)),
            (format!("{SECRET} # old"), KeysError::Prefix(2)),
            (unpadded, KeysError::Base64(1)),
            (format!("{SECRET}\n{PREFIX}-_-_"), KeysError::Base64(2)),
            (secret(23), KeysError::Length(1, 23)),
            (secret(65), KeysError::Length(1, 65)),
            ([SECRET; 5].join("\n"), KeysError::TooMany),
        ] {
            let error = Keys::parse(&text).expect_err(&text);
            assert_eq!(error, wanted, "{text}");
        }
        for length in [24, 32, 64] {
            assert!(Keys::parse(&secret(length)).is_ok(), "{length} bytes");
        }
    }

    #[test]
    fn no_key_is_shown() {
        let keys = Keys::parse(SECRET).expect("a secret");
        assert_eq!(format!("{keys:?}"), "Keys(1)");
    }
}
