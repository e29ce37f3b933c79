//! Finds a secret in a text however its letters are spelled there: each by itself, escaped as JSON in any number of layers
//! does it, percent-encoded, or as an entity of HTML, and mixed; and the whole of it as hex digits or base64.
//!
//! Relies on nothing. Promises that nothing but such a form is cut, and that a text of JSON stays one.

use base64::{Engine as _, engine::general_purpose};

use super::CUT_MARK;

/// Backslashes that stand for one, by the layers of JSON around it.
const LAYERED: [usize; 5] = [1, 2, 4, 8, 16];

/// Backslashes in a row that are looked at: more layers of JSON than any text has, and a bound on the work for each letter.
const RUN: usize = 64;

/// What is looked for: a secret, or what an encoding makes of it.
struct Target {
    letters: Vec<char>,
    /// Small and large letters are the same.
    is_folded: bool,
    /// A letter behind it may hold the last bits of the secret.
    is_base64: bool,
}

/// `text` with every form of these secrets cut out. `is_folded`: whatever case its letters have, as HTTP changes it in names of
/// headers.
pub(super) fn without<'s>(
    text: &str,
    secrets: impl Iterator<Item = &'s str>,
    is_folded: bool,
) -> String {
    let targets: Vec<Target> = secrets.flat_map(|plain| all(plain, is_folded)).collect();
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        // Two by two, so that those which are left pair up as before.
        if backslashes(rest.as_bytes()) > RUN {
            let (two, behind) = rest.split_at(2);
            left.push_str(two);
            rest = behind;
            continue;
        }
        let ends = targets
            .iter()
            .filter(|target| target.may_begin_with(letter))
            .filter_map(|target| target.end_in(rest.as_bytes()));
        let end = ends.max();
        match end {
            Some(_) => left.push_str(CUT_MARK),
            None => left.push(letter),
        }
        let length = end.unwrap_or(letter.len_utf8());
        rest = rest.get(length..).unwrap_or_default();
    }
    left
}

/// Every target of one secret. Two alphabets of base64 often make the same.
fn all(plain: &str, is_folded: bool) -> Vec<Target> {
    let target = |letters: &str, is_folded, is_base64| Target {
        letters: letters.chars().collect(),
        is_folded,
        is_base64,
    };
    let digits = plain.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits: String = digits
        .filter_map(|four_bits| char::from_digit(four_bits.into(), 16))
        .collect();
    let mut found = vec![
        target(plain, is_folded, false),
        target(&digits, true, false),
    ];
    let alphabets = [
        general_purpose::STANDARD_NO_PAD,
        general_purpose::URL_SAFE_NO_PAD,
    ];
    let mut encoded: Vec<String> = alphabets.iter().flat_map(|by| within(by, plain)).collect();
    encoded.sort_unstable();
    encoded.dedup();
    found.extend(
        encoded
            .iter()
            .map(|letters| target(letters, is_folded, true)),
    );
    found
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

impl Target {
    fn may_begin_with(&self, letter: char) -> bool {
        matches!(letter, '%' | '&' | '\\' | '+')
            || self
                .letters
                .first()
                .is_some_and(|first| is_same(*first, letter, self.is_folded))
    }

    /// Where it ends in a text that begins with it.
    fn end_in(&self, text: &[u8]) -> Option<usize> {
        let mut letters = self.letters.iter();
        let mut ends = Vec::new();
        spellings(text, *letters.next()?, self.is_folded, |end| ends.push(end));
        for letter in letters {
            let mut next = Vec::new();
            for from in ends {
                let rest = text.get(from..).unwrap_or_default();
                spellings(rest, *letter, self.is_folded, |end| next.push(from + end));
            }
            if next.is_empty() {
                return None;
            }
            next.sort_unstable();
            next.dedup();
            ends = next;
        }
        let end = ends.into_iter().max()?;
        Some(if self.is_base64 {
            end + tail(text.get(end..)?)
        } else {
            end
        })
    }
}

/// Bytes of base64 that hold what is left of the secret: one letter, and the padding behind it.
fn tail(text: &[u8]) -> usize {
    let one_of = |from: usize, letters: &mut dyn Iterator<Item = char>| {
        let rest = text.get(from..).unwrap_or_default();
        let mut end = None;
        letters
            .for_each(|letter| spellings(rest, letter, false, |length| end = Some(from + length)));
        end
    };
    let mut of_base64 =
        (' '..='z').filter(|letter| letter.is_ascii_alphanumeric() || "+/-_".contains(*letter));
    let letter = one_of(0, &mut of_base64).unwrap_or(0);
    let mut end = letter;
    while let Some(behind) = one_of(end, &mut std::iter::once('=')) {
        end = behind;
    }
    // Without padding it is part of something longer, and the letter is a neighbour's as well.
    if end > letter { end } else { 0 }
}

fn is_same(one: char, other: char, is_folded: bool) -> bool {
    one == other || is_folded && one.eq_ignore_ascii_case(&other)
}

/// Tells where each way to spell `letter` ends that the text begins with.
fn spellings(text: &[u8], letter: char, is_folded: bool, mut take: impl FnMut(usize)) {
    let mut buffer = [0; 4];
    let bytes: &[u8] = letter.encode_utf8(&mut buffer).as_bytes();
    let is_byte = |byte: u32, wanted: u8| {
        u8::try_from(byte)
            .is_ok_and(|byte| is_same(byte.into(), wanted.into(), is_folded && wanted.is_ascii()))
    };
    match text {
        [b'\\', ..] => escaped(text, letter, is_folded, &mut take),
        [b'%', ..] => {
            let end = bytes.iter().try_fold(0, |from, wanted| {
                let (byte, length) = percent(text.get(from..)?)?;
                is_byte(byte, *wanted).then_some(from + length)
            });
            end.into_iter().for_each(&mut take);
        }
        [b'&', ..] => {
            let found = entity(text).filter(|(found, _)| is_same(*found, letter, is_folded));
            if let Some((_, end)) = found {
                take(end);
            }
        }
        [b'+', ..] if letter == ' ' => take(1),
        _ => {}
    }
    let own = text.get(..bytes.len()).unwrap_or_default();
    if own == bytes || is_folded && own.eq_ignore_ascii_case(bytes) {
        take(bytes.len());
    }
}

/// What stands behind backslashes, of which each layer of JSON adds some.
fn escaped(text: &[u8], letter: char, is_folded: bool, take: &mut impl FnMut(usize)) {
    let run = backslashes(text);
    let rest = text.get(run..).unwrap_or_default();
    if letter == '\\' {
        LAYERED
            .into_iter()
            .filter(|one| (2..=run).contains(one))
            .for_each(&mut *take);
    }
    let short = match letter {
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        _ => u8::try_from(letter)
            .ok()
            .filter(u8::is_ascii_punctuation)
            .unwrap_or_default(),
    };
    match rest {
        [first, ..] if *first == short && short != b'\\' => take(run + 1),
        [b'u', ..] => {
            let first = unit(rest);
            let next = || {
                let behind = text.get(run + 5..)?;
                let more = backslashes(behind);
                let low = unit(behind.get(more..).filter(|_| more > 0)?)?;
                Some((low, run + 5 + more + 5))
            };
            let mut units = [0; 2];
            let end = match letter.encode_utf16(&mut units) {
                [one] => first
                    .filter(|first| {
                        let found = char::from_u32(u32::from(*first));
                        first == one || found.is_some_and(|found| is_same(found, letter, is_folded))
                    })
                    .map(|_| run + 5),
                [high, low] => first
                    .filter(|first| first == high)
                    .and_then(|_| next())
                    .and_then(|(second, end)| (second == *low).then_some(end)),
                _ => None,
            };
            end.into_iter().for_each(take);
        }
        [b'x', high, low, ..] => {
            let found = number(&[*high, *low], 16).and_then(char::from_u32);
            if found.is_some_and(|found| is_same(found, letter, is_folded)) {
                take(run + 3);
            }
        }
        _ => {}
    }
}

/// How many the text begins with, as far as they are looked at.
fn backslashes(text: &[u8]) -> usize {
    let run = text.iter().take(RUN + 1);
    run.take_while(|byte| **byte == b'\\').count()
}

/// The sixteen bits of `uXXXX`.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"u")?.get(..4)?;
    number(digits, 16).and_then(|unit| u16::try_from(unit).ok())
}

/// The byte of `%XX`, whose percent sign may be encoded itself, and its length.
fn percent(text: &[u8]) -> Option<(u32, usize)> {
    let mut rest = text.strip_prefix(b"%")?;
    while let Some(within) = rest.strip_prefix(b"25") {
        let is_more = matches!(within, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
        if !is_more {
            break;
        }
        rest = within;
    }
    let byte = number(rest.get(..2)?, 16)?;
    Some((byte, text.len() - rest.len() + 2))
}

/// The letter of `&#58;`, `&#x3a;` or `&amp;`, whose ampersand may be an entity itself, and its length.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    let mut rest = text.strip_prefix(b"&")?;
    while let Some(within) = rest.strip_prefix(b"amp;").filter(|within| {
        matches!(within, [b'#', ..])
            || [&b"amp;"[..], b"quot;", b"lt;", b"gt;", b"apos;"]
                .iter()
                .any(|name| within.starts_with(name))
    }) {
        rest = within;
    }
    let length = rest.iter().take(8).position(|byte| *byte == b';')?;
    let (name, _) = rest.split_at(length);
    let letter = match name {
        b"amp" => '&',
        b"quot" => '"',
        b"lt" => '<',
        b"gt" => '>',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        _ => return None,
    };
    Some((letter, text.len() - rest.len() + length + 1))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_number = !digits.is_empty()
        && digits
            .iter()
            .all(|digit| char::from(*digit).is_digit(radix));
    let text = str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(text, radix).ok()
}
