//! Text that must not be seen: redacted in `Debug`, wiped when dropped, and cut out of documents before they are stored.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose};
use secrecy::{ExposeSecret as _, SecretString};

/// A secret text. It has no `Display`, and its `Debug` prints a fixed word.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes ownership of a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself. Each call is a place where it could leak: look before adding one.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// True when the text is empty. An empty secret never equals anything.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// What stands where a secret was cut out of a stored document.
pub const CUT_MARK: &str = "[cut]";

/// Shortest secret that is searched for. A shorter one would cut ordinary words out of the document.
const SHORTEST: usize = 8;

/// Returns `text` with every occurrence of `secret` replaced by [`CUT_MARK`]: plain, JSON-escaped, and base64 in both
/// alphabets, as a whole or within something longer. Secrets shorter than 8 bytes are left, tilld makes none.
pub fn cut(text: &str, secret: &Secret) -> String {
    let plain = secret.expose();
    if plain.len() < SHORTEST {
        return text.to_owned();
    }
    let escaped = serde_json::Value::from(plain).to_string();
    let escaped = escaped.trim_matches('"').to_owned();
    let mut unicode = String::with_capacity(plain.len() * 6);
    for unit in plain.encode_utf16() {
        // Writing to a String cannot fail.
        write!(unicode, "\\u{unit:04x}").expect("a String takes any text");
    }
    let encoded = [general_purpose::STANDARD, general_purpose::URL_SAFE];
    let encoded = encoded.iter().flat_map(|alphabet| {
        let whole = [alphabet.encode(plain)];
        whole.into_iter().chain(within(alphabet, plain))
    });
    let plainly = [
        plain.to_owned(),
        escaped.replace('/', "\\/"),
        escaped,
        unicode.to_uppercase().replace("\\U", "\\u"),
        unicode,
    ];
    // JSON within a string of JSON, once and twice: each layer doubles the backslashes.
    let deeper = plainly.clone().into_iter().flat_map(|form| {
        let layers = [r"\\", r"\\\\"].map(|more| form.replace('\\', more));
        layers.into_iter().filter(move |layer| *layer != form)
    });
    let forms = plainly
        .into_iter()
        .chain(deeper.collect::<Vec<_>>())
        .chain(encoded);
    forms.fold(text.to_owned(), |text, form| {
        if text.contains(form.as_str()) {
            text.replace(form.as_str(), CUT_MARK)
        } else {
            text
        }
    })
}

/// The three things base64 makes of `plain` in the middle of something longer, such as `user:plain`, without the letters
/// at either end that depend on their neighbours.
fn within(alphabet: &general_purpose::GeneralPurpose, plain: &str) -> [String; 3] {
    [0, 1, 2].map(|before: usize| {
        let mut padded = vec![0; before];
        padded.extend(plain.as_bytes());
        // A letter holds six bits: those of a byte before or after the secret are left out.
        let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        let letters = alphabet.encode(&padded);
        letters.chars().take(end).skip(first).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("hunter2-hunter2")), "[secret]");
    }

    #[test]
    fn every_form_is_cut() {
        let secret = Secret::new("se\"cret/with-quote");
        let encoded = general_purpose::STANDARD.encode(secret.expose());
        for form in [
            "se\"cret/with-quote",
            "se\\\"cret/with-quote",
            "se\\\"cret\\/with-quote",
            encoded.as_str(),
        ] {
            assert_eq!(
                cut(&format!("a {form} b"), &secret),
                format!("a {CUT_MARK} b"),
                "form {form}"
            );
        }
    }

    #[test]
    fn a_secret_within_something_encoded_is_cut() {
        for plain in ["0123456789abcdef0123456789abcdef", "se\"cret/??>>ÿ"] {
            let secret = Secret::new(plain);
            for (before, behind) in [
                ("", ""),
                ("u:", ""),
                ("", "!"),
                ("u", "vw"),
                ("{\"t\":\"", "\"}"),
            ] {
                let whole = format!("{before}{plain}{behind}");
                for alphabet in [general_purpose::STANDARD, general_purpose::URL_SAFE_NO_PAD] {
                    let left = cut(&alphabet.encode(&whole), &secret);
                    let letters = left.replace(CUT_MARK, "");
                    let kept = whole.len() - plain.len();
                    assert!(left.contains(CUT_MARK), "{whole}: {left}");
                    // What a letter at the seam tells of the secret is less than a byte at either end.
                    assert!(letters.len() <= kept * 8 / 6 + 6, "{whole}: {left}");
                }
            }
        }
    }

    #[test]
    fn a_short_secret_cuts_no_words() {
        assert_eq!(cut("paid", &Secret::new("paid")), "paid");
    }
}
