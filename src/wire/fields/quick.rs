//! Reads an object of the form it nearly always has in one pass over its bytes: no blanks, no numbers and nothing nested,
//! and each text spelt the shortest way.
//!
//! Relies on the text being UTF-8. Promises that what it reads is what `serde_json` reads, and that it is spelt already as it
//! would be written. Whatever has another form is left to `serde_json`, right or wrong.

use std::borrow::Cow;

use super::{Entry, Field, USUAL_FIELDS, may_stand};

/// The object's fields in their order, doubled names included. `None` says only that it has another form.
pub(super) fn entries(text: &str) -> Option<Vec<Entry<'_>>> {
    let mut rest = text.as_bytes().strip_prefix(b"{\"")?;
    let mut entries = Vec::with_capacity(USUAL_FIELDS);
    loop {
        let (name, after) = rest.split_at_checked(run(rest))?;
        let name = piece(text, rest, name.len())?;
        if !may_stand(entries.len(), name) {
            return None;
        }
        let (field, after) = match after {
            [b'"', b':', b'"', after @ ..] => {
                let (value, after) = string(text, after)?;
                (Field::Text(value), after)
            }
            [b'"', b':', b'n', b'u', b'l', b'l', after @ ..] => (Field::NULL, after),
            [b'"', b':', b't', b'r', b'u', b'e', after @ ..] => (Field::of_bool(true), after),
            [b'"', b':', b'f', b'a', b'l', b's', b'e', after @ ..] => {
                (Field::of_bool(false), after)
            }
            _ => return None,
        };
        entries.push((Cow::Borrowed(name), field));
        match after {
            [b',', b'"', after @ ..] => rest = after,
            [b'}'] => return Some(entries),
            _ => return None,
        }
    }
}

/// The text behind a quote, and what is behind its other quote.
#[inline]
fn string<'b>(text: &'b str, from: &'b [u8]) -> Option<(Cow<'b, str>, &'b [u8])> {
    let length = run(from);
    match from.split_at_checked(length)?.1 {
        [b'"', after @ ..] => Some((Cow::Borrowed(piece(text, from, length)?), after)),
        [b'\\', ..] => {
            let (value, after) = escaped(from)?;
            Some((Cow::Owned(value), after))
        }
        _ => None,
    }
}

/// As [`string`], for one that has escapes.
fn escaped(from: &[u8]) -> Option<(String, &[u8])> {
    let mut rest = from;
    let after = loop {
        match rest.split_at_checked(run(rest))?.1 {
            [b'"', after @ ..] => break after,
            [b'\\', _, after @ ..] => rest = after,
            _ => return None,
        }
    };
    // Without the quote at the end.
    let length = from.len().checked_sub(after.len() + 1)?;
    let mut bytes = from.get(..length)?.iter();
    let mut value = Vec::with_capacity(length);
    while let Some(byte) = bytes.next() {
        value.push(match byte {
            b'\\' => named(*bytes.next()?)?,
            other => *other,
        });
    }
    Some((String::from_utf8(value).ok()?, after))
}

/// What stands behind a backslash where that is the shortest spelling.
const fn named(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// So many bytes of the text, from where `rest` begins.
#[inline]
fn piece<'b>(text: &'b str, rest: &[u8], length: usize) -> Option<&'b str> {
    let begin = text.len().checked_sub(rest.len())?;
    text.get(begin..begin.checked_add(length)?)
}

/// How many bytes stand before the first quote, backslash or control character; all when there is none.
#[inline]
fn run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    let mut rest = bytes;
    while let Some((eight, after)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        // Of each byte the highest bit, if it is below the one taken off. A byte behind one that is may be told by mistake.
        let below =
            |word: u64, least: u8| word.wrapping_sub(ONES.wrapping_mul(u64::from(least))) & !word;
        let quotes = below(word ^ ONES.wrapping_mul(u64::from(b'"')), 1);
        let slashes = below(word ^ ONES.wrapping_mul(u64::from(b'\\')), 1);
        let found = (quotes | slashes | below(word, b' ')) & (ONES << 7);
        if found != 0 {
            let before = found.trailing_zeros() as usize / 8;
            return (bytes.len() - rest.len()).wrapping_add(before);
        }
        rest = after;
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    let before = rest.iter().position(ends).unwrap_or(rest.len());
    (bytes.len() - rest.len()).wrapping_add(before)
}
