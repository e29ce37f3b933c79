//! Text that must not be seen: redacted in `Debug`, wiped when dropped, and cut out of documents before they are stored.

mod anchors;
mod hidden;
mod spelled;

use secrecy::{ExposeSecret as _, SecretString};

use anchors::{Anchors, has_escapes};
pub use hidden::Hidden;

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

/// Secrets to be cut out of several texts.
///
/// A text that holds none of them is told by few looks, see [`anchors`], and left as it is; another is searched letter by
/// letter.
pub struct Cutter<'s> {
    secrets: Vec<&'s Secret>,
    /// Bytes of the shortest: no form of one is shorter.
    shortest: usize,
    anchors: Option<Anchors>,
}

impl<'s> Cutter<'s> {
    /// Makes ready to cut these secrets. One shorter than 8 bytes is left where it stands, tilld makes none.
    pub fn new(secrets: &[&'s Secret]) -> Self {
        let length = |secret: &&Secret| secret.expose().len();
        let long = secrets.iter().copied();
        let secrets: Vec<&Secret> = long.filter(|secret| length(secret) >= SHORTEST).collect();
        Self {
            shortest: secrets.iter().map(length).min().unwrap_or(usize::MAX),
            anchors: Anchors::of(&secrets),
            secrets,
        }
    }

    /// Replaces every occurrence of the secrets in `text` by [`CUT_MARK`]: plain, JSON-escaped, percent-encoded, as entities of
    /// HTML, as hex digits, and as base64 in both alphabets; as a whole or within something longer. To be called before a text is
    /// shortened: half a secret is found by nobody.
    pub fn cut(&self, text: &mut String) {
        if self.may_be_in(text) {
            *text = spelled::without(text, self.plain(), false);
        }
    }

    /// [`Cutter::cut`] in a text whose letters may have lost their case, as in the names of headers.
    pub fn cut_folded(&self, text: &mut String) {
        *text = spelled::without(text, self.plain(), true);
    }

    /// False for nearly every text: it holds none of the secrets.
    pub fn may_be_in(&self, text: &str) -> bool {
        text.len() >= self.shortest
            && (has_escapes(text.as_bytes())
                || self
                    .anchors
                    .as_ref()
                    .is_none_or(|anchors| anchors.may_be_in(text.as_bytes())))
    }

    fn plain(&self) -> impl Iterator<Item = &'s str> {
        self.secrets.iter().map(|secret| secret.expose())
    }
}

#[cfg(test)]
mod tests;
