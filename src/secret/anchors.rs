//! Whether a text may hold a secret at all. Nearly every text does not, and each form of a secret has a short piece, its
//! anchor, that is never missing where the form stands without an escape in it.
//!
//! Relies on nothing. Promises that a form which [`super::spelled`] finds is never missed here.

use memchr::memchr3_iter;

use super::Secret;

/// Bytes of an anchor. Two texts that share one by chance are 64^8 apart.
const ANCHOR: usize = 8;

/// Bytes of a secret that make an anchor of base64: four letters for three of them.
pub(super) const ENCODED: usize = ANCHOR / 4 * 3;

/// Bytes of a secret that make an anchor of hex digits.
const DIGITS: usize = ANCHOR / 2;

/// Anchors of one secret.
const EACH: usize = 8;

/// Of so many bytes in a row two neighbours are looked at: every anchor has one such pair, wherever it begins.
const STEP: usize = ANCHOR - 1;

/// What stands in a text wherever a form of one of the secrets does.
pub(super) struct Anchors {
    /// In a secret as it is: bytes that JSON leaves as they are. In its hex digits, small ones. And in what base64 makes of it, in either alphabet, by the place its first whole group of three bytes has. Each as one number.
    all: Vec<u64>,
    /// For each byte that comes before another in an anchor, which ones do. By their lowest six bits, so that a pair that is
    /// not there may be told as one that is.
    pairs: [u64; 64],
}

impl Anchors {
    /// `None` when a secret has no [`ANCHOR`] bytes in a row that JSON writes as they are: every text is searched then.
    pub(super) fn of(secrets: &[&Secret]) -> Option<Self> {
        let mut anchors = Self {
            all: Vec::with_capacity(secrets.len() * EACH),
            pairs: [0; 64],
        };
        for secret in secrets {
            for anchor in of_one(secret.expose())? {
                add_pairs(&mut anchors.pairs, anchor, anchor);
                anchors.all.push(u64::from_ne_bytes(anchor));
            }
            // Hex digits may have any case, each by itself.
            let digits = hex(*secret.expose().as_bytes().first_chunk()?);
            let large = digits.map(|digit| digit.to_ascii_uppercase());
            for (before, after) in [(digits, large), (large, digits), (large, large)] {
                add_pairs(&mut anchors.pairs, before, after);
            }
        }
        Some(anchors)
    }

    /// Whether a form of a secret may stand in this text without an escape in it.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        let (steps, _) = text.as_chunks::<STEP>();
        for (number, [.., first, second]) in steps.iter().enumerate() {
            if self.has_pair(*first, *second) && self.is_around(text, number * STEP) {
                return true;
            }
        }
        false
    }

    fn has_pair(&self, first: u8, second: u8) -> bool {
        let seconds = self.pairs.get(usize::from(first % 64));
        seconds.is_some_and(|seconds| seconds >> (second % 64) & 1 != 0)
    }

    /// Whether an anchor has its pair at the end of the step that begins here.
    fn is_around(&self, text: &[u8], begin: usize) -> bool {
        let last = begin + STEP - 2;
        let mut around = text
            .get(last.saturating_sub(ANCHOR - 2)..)
            .unwrap_or_default();
        for _ in 1..ANCHOR {
            let Some((piece, [_, after @ ..])) = around.first_chunk::<ANCHOR>().zip(Some(around))
            else {
                return false;
            };
            // One pair by chance is common, two are not.
            let [first, second, ..] = *piece;
            let has = |piece| self.all.contains(&u64::from_ne_bytes(piece));
            if self.has_pair(first, second) && (has(*piece) || has(piece.map(small))) {
                return true;
            }
            around = after;
        }
        false
    }
}

/// The anchors of one secret.
fn of_one(secret: &str) -> Option<[[u8; ANCHOR]; EACH]> {
    let bytes = secret.as_bytes();
    let mut pieces = bytes.windows(ANCHOR);
    let plain = pieces.find(|piece| piece.iter().all(|byte| is_left_alone(*byte)))?;
    let plain: [u8; ANCHOR] = plain.try_into().ok()?;
    let digits = hex(*bytes.first_chunk()?);
    let [zero, one, two] = [0, 1, 2].map(|from| Some(encoded(*bytes.get(from..)?.first_chunk()?)));
    let (zero, one, two) = (zero?, one?, two?);
    Some([
        plain,
        digits,
        zero,
        one,
        two,
        zero.map(for_urls),
        one.map(for_urls),
        two.map(for_urls),
    ])
}

/// Whether anything in the text may be a letter that is written another way than by itself. What JSON escapes in any text,
/// a quotation mark or a backslash, stands in no anchor.
pub(super) fn has_escapes(text: &[u8]) -> bool {
    memchr3_iter(b'%', b'&', b'\\', text).any(|at| match text.get(at..).unwrap_or_default() {
        [b'%', next, ..] => next.is_ascii_hexdigit(),
        [b'&', next, ..] => *next == b'#' || next.is_ascii_lowercase(),
        [b'\\', next, ..] => matches!(next, b'u' | b'x') || is_escaped_punctuation(*next),
        _ => false,
    })
}

const fn is_escaped_punctuation(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !matches!(byte, b'"' | b'\\')
}

const fn small(letter: u8) -> u8 {
    letter.to_ascii_lowercase()
}

/// Adds each two neighbours of an anchor, which may be written in two ways.
fn add_pairs(pairs: &mut [u64; 64], before: [u8; ANCHOR], after: [u8; ANCHOR]) {
    let [_, after @ ..] = after;
    for (before, after) in before.into_iter().zip(after) {
        // A remainder of 64 is less than 64.
        if let Some(seconds) = pairs.get_mut(usize::from(before % 64)) {
            *seconds |= 1 << (after % 64);
        }
    }
}

/// The hex digits of these bytes, in small letters.
fn hex(bytes: [u8; DIGITS]) -> [u8; ANCHOR] {
    let mut digits = [0; ANCHOR];
    let (pairs, _) = digits.as_chunks_mut::<2>();
    for ([high, low], byte) in pairs.iter_mut().zip(bytes) {
        (*high, *low) = (digit(byte >> 4), digit(byte & 15));
    }
    digits
}

const fn digit(four_bits: u8) -> u8 {
    match four_bits {
        0..=9 => b'0' + four_bits,
        more => b'a' + (more - 10),
    }
}

/// What base64 makes of these bytes.
pub(super) fn encoded(bytes: [u8; ENCODED]) -> [u8; ANCHOR] {
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
pub(super) const fn for_urls(letter: u8) -> u8 {
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
