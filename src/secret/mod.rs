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

/// Bytes of an anchor. Two texts that share one by chance are 64^8 apart.
const ANCHOR: usize = 8;

/// Bytes of a secret that make an anchor of base64: four letters for three of them.
const ENCODED: usize = ANCHOR / 4 * 3;

/// Of so many bytes in a row two neighbours are looked at: every anchor has one such pair, wherever it begins.
const STEP: usize = ANCHOR - 1;

/// Bytes that have a whole letter written by its number, from a backslash to the letter behind the last one, wherever they
/// begin within many such: a letter has nine at most, with four backslashes.
const SPELT: usize = 10;

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
    /// In the secret as it is and in what JSON makes of it, however often: bytes that no escaping touches. And in what
    /// base64 makes of it, in either alphabet, by the place its first whole group of three bytes has. Each as one number.
    all: [u64; 7],
    /// For each byte that comes before another in an anchor, which ones do. By their lowest six bits, so that a pair that is
    /// not there may be told as one that is.
    pairs: [u64; 64],
    /// Behind a backslash, where every letter is written by its number: that of the first one.
    unicode: u16,
    /// Letters that are written so then, at least.
    units: usize,
}

impl Anchors {
    /// `None` when the secret has no [`ANCHOR`] bytes in a row that JSON writes as they are: every text is searched then.
    fn of(secret: &str) -> Option<Self> {
        let bytes = secret.as_bytes();
        let mut pieces = bytes.windows(ANCHOR);
        let plain = pieces.find(|piece| piece.iter().all(|byte| is_left_alone(*byte)))?;
        let [zero, one, two] =
            [0, 1, 2].map(|from| Some(encoded(*bytes.get(from..)?.first_chunk()?)));
        let plain: [u8; ANCHOR] = plain.try_into().ok()?;
        let encoded = [zero?, one?, two?];
        let mut pairs = [0; 64];
        add_pairs(&mut pairs, plain);
        let for_urls = encoded.map(|letters| {
            add_pairs(&mut pairs, letters);
            let for_urls = letters.map(for_urls);
            if for_urls != letters {
                add_pairs(&mut pairs, for_urls);
            }
            u64::from_ne_bytes(for_urls)
        });
        let [zero, one, two] = encoded.map(u64::from_ne_bytes);
        let [for_urls_zero, for_urls_one, for_urls_two] = for_urls;
        let mut units = secret.encode_utf16();
        Some(Self {
            all: [
                u64::from_ne_bytes(plain),
                zero,
                one,
                two,
                for_urls_zero,
                for_urls_one,
                for_urls_two,
            ],
            pairs,
            unicode: units.next()?,
            // One of UTF-16 has three bytes of UTF-8 at most.
            units: if secret.is_ascii() {
                secret.len()
            } else {
                secret.len().div_ceil(3)
            },
        })
    }

    /// Whether a form of the secret may stand in this text.
    fn may_be_in(&self, text: &str) -> bool {
        self.is_written_in(text.as_bytes()) || self.is_spelt_in(text)
    }

    /// The same, for all forms whose letters are not written by their numbers.
    fn is_written_in(&self, text: &[u8]) -> bool {
        let (steps, _) = text.as_chunks::<STEP>();
        for (number, [.., first, second]) in steps.iter().enumerate() {
            let seconds = self.pairs.get(usize::from(first % 64));
            let is_there = seconds.is_some_and(|seconds| seconds >> (second % 64) & 1 != 0);
            if is_there && self.is_around(text, number * STEP) {
                return true;
            }
        }
        false
    }

    /// Whether an anchor has its pair at the end of the step that begins here.
    fn is_around(&self, text: &[u8], begin: usize) -> bool {
        let last = begin + STEP - 2;
        let mut around = text
            .get(last.saturating_sub(ANCHOR - 2)..)
            .unwrap_or_default();
        for _ in 1..ANCHOR {
            let Some((piece, [_, after @ ..])) = around.first_chunk().zip(Some(around)) else {
                return false;
            };
            let piece = u64::from_ne_bytes(*piece);
            if self.all.contains(&piece) {
                return true;
            }
            around = after;
        }
        false
    }

    /// The same, for the forms that have every letter written by its number. They are long, so that some of their bytes are
    /// met by looking here and there.
    fn is_spelt_in(&self, text: &str) -> bool {
        let first = self.unicode;
        let escaped = |piece: &[u8]| piece.windows(2).any(|pair| pair == b"\\u");
        // A letter has six bytes at least.
        let mut places = (0..text.len()).step_by(self.units * 6 - SPELT);
        let text_bytes = text.as_bytes();
        places.any(|at| {
            escaped(
                text_bytes
                    .get(at..text.len().min(at + SPELT))
                    .unwrap_or_default(),
            )
        }) && (text.contains(&format!("u{first:04x}")) || text.contains(&format!("u{first:04X}")))
    }
}

/// Adds each two neighbours of an anchor.
fn add_pairs(pairs: &mut [u64; 64], anchor: [u8; ANCHOR]) {
    let [mut before, rest @ ..] = anchor;
    for byte in rest {
        // A remainder of 64 is less than 64.
        if let Some(seconds) = pairs.get_mut(usize::from(before % 64)) {
            *seconds |= 1 << (byte % 64);
        }
        before = byte;
    }
}

/// What base64 makes of these bytes.
fn encoded(bytes: [u8; ENCODED]) -> [u8; ANCHOR] {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // Each letter is six bits, the first the highest ones.
    let mut bits = [0; ANCHOR];
    for (bit, byte) in bits.iter_mut().zip(bytes) {
        *bit = byte;
    }
    let bits = u64::from_be_bytes(bits);
    let mut letters = [0; ANCHOR];
    for (letter, place) in letters.iter_mut().zip(0_u32..) {
        let six = bits >> (58 - 6 * place) & 63;
        let known = usize::try_from(six).ok().and_then(|six| LETTERS.get(six));
        *letter = known.copied().unwrap_or_default();
    }
    letters
}

/// The same in the alphabet for addresses.
const fn for_urls(letter: u8) -> u8 {
    match letter {
        b'+' => b'-',
        b'/' => b'_',
        other => other,
    }
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
