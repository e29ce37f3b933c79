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

/// Bytes of an anchor. Two texts that share one by chance are 64^8 apart, and so short a needle is searched for sixteen
/// bytes at a time.
const ANCHOR: usize = 8;

/// Bytes of a secret that make an anchor of base64: four letters for three of them.
const ENCODED: usize = ANCHOR / 4 * 3;

/// One secret to be cut out of several texts.
///
/// Nearly every text holds none of the many forms it could stand in, and each form has a short piece, its anchor, that is
/// never missing where the form stands. A text without any of the few anchors is told by that alone and left as it is; only
/// one that has an anchor is searched for the forms.
pub struct Cutter<'s> {
    secret: &'s Secret,
    anchors: Option<Anchors>,
}

/// What stands in a text wherever a form of the secret does.
struct Anchors {
    /// In the secret as it is and in what JSON makes of it, however often: bytes that no escaping touches.
    plain: [u8; ANCHOR],
    /// In what base64 makes of it, by the place its first whole group of three bytes has.
    encoded: [[u8; ANCHOR]; 3],
    /// Behind a backslash, where every letter is written by its number: that of the first one.
    unicode: u16,
    /// Letters in a row that every other form is at least made of. `None`: some form has something else in it.
    in_a_row: Option<usize>,
}

impl Anchors {
    /// `None` when the secret has no [`ANCHOR`] bytes in a row that JSON writes as they are: every text is searched then.
    fn of(secret: &str) -> Option<Self> {
        let bytes = secret.as_bytes();
        let pieces = bytes.windows(ANCHOR);
        let plain = pieces
            .map_while(|piece| <[u8; ANCHOR]>::try_from(piece).ok())
            .find(|piece| piece.iter().all(|byte| is_left_alone(*byte)))?;
        let mut encoded = [[0; ANCHOR]; 3];
        for (from, letters) in encoded.iter_mut().enumerate() {
            let piece = bytes.get(from..from + ENCODED)?;
            general_purpose::STANDARD
                .encode_slice(piece, letters)
                .ok()?;
        }
        let unicode = secret.encode_utf16().next()?;
        // What base64 makes of it has more letters, also within something longer. A slash may have a backslash before it.
        let only_letters = bytes.iter().all(|byte| is_letter(*byte) && *byte != b'/');
        Some(Self {
            plain,
            encoded,
            unicode,
            in_a_row: only_letters.then_some(bytes.len()),
        })
    }

    /// Whether a form of the secret may stand in this text.
    fn may_be_in(&self, text: &str) -> bool {
        let from = match self.in_a_row {
            Some(least) => first_row(text, least),
            None => Some(text),
        };
        from.is_some_and(|from| self.is_written_in(from)) || self.is_spelt_in(text)
    }

    /// The same, for all forms whose letters are not written by their numbers.
    fn is_written_in(&self, text: &str) -> bool {
        // Only letters, so that no border of a character is in the way.
        let holds = |piece: &[u8]| str::from_utf8(piece).is_ok_and(|piece| text.contains(piece));
        let in_base64 = |letters: &[u8; ANCHOR]| {
            holds(letters) || for_urls(*letters).is_some_and(|letters| holds(&letters))
        };
        holds(&self.plain) || self.encoded.iter().any(in_base64)
    }

    fn is_spelt_in(&self, text: &str) -> bool {
        let first = self.unicode;
        text.contains("\\u")
            && (text.contains(&format!("u{first:04x}")) || text.contains(&format!("u{first:04X}")))
    }
}

/// The text from its first so many letters in a row on. Documents have few long words, and so this jumps from one end of a
/// word to the next and sees only some of their letters.
fn first_row(text: &str, least: usize) -> Option<&str> {
    let mut rest = text.as_bytes();
    while let Some(row) = rest.get(..least) {
        let Some(end) = row.iter().rposition(|byte| !is_letter(*byte)) else {
            // Before it stands a byte of its own, or nothing.
            return text.get(text.len() - rest.len()..);
        };
        rest = rest.get(end + 1..)?;
    }
    None
}

/// True for the letters of both alphabets of base64. Looked up, since it is asked of many.
fn is_letter(byte: u8) -> bool {
    #[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
    const LETTERS: [bool; 256] = {
        let mut letters = [false; 256];
        let all = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";
        let mut rest = all.as_slice();
        while let [letter, more @ ..] = rest {
            letters[*letter as usize] = true;
            rest = more;
        }
        letters
    };
    LETTERS.get(usize::from(byte)).is_some_and(|letter| *letter)
}

/// The same in the alphabet for addresses, if that is another text.
fn for_urls(letters: [u8; ANCHOR]) -> Option<[u8; ANCHOR]> {
    let differs = letters.iter().any(|letter| matches!(letter, b'+' | b'/'));
    differs.then(|| {
        letters.map(|letter| match letter {
            b'+' => b'-',
            b'/' => b'_',
            other => other,
        })
    })
}

/// True for the bytes that JSON writes as they are, whoever writes it.
const fn is_left_alone(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'/')
}

impl<'s> Cutter<'s> {
    /// Makes ready to cut this secret. One shorter than 8 bytes is left where it stands, tilld makes none.
    pub fn new(secret: &'s Secret) -> Self {
        let anchors = Anchors::of(secret.expose());
        Self { secret, anchors }
    }

    /// Replaces every occurrence of the secret in `text` by [`CUT_MARK`]: plain, JSON-escaped, and base64 in both
    /// alphabets, as a whole or within something longer.
    pub fn cut(&self, text: &mut String) {
        let secret = self.secret.expose();
        // No form is shorter than the secret.
        if secret.len() < SHORTEST || text.len() < secret.len() {
            return;
        }
        let may_be = self.anchors.as_ref().is_none_or(|own| own.may_be_in(text));
        if may_be {
            *text = search(text, secret);
        }
    }
}

/// `text` with every form of the secret cut out of it, one form after the other.
fn search(text: &str, plain: &str) -> String {
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
mod tests;
