//! The one spelling of an object: no blanks, each text with the fewest escapes, each number as its digits, and the names in
//! the order they came in. Only in one spelling is every occurrence of a secret found.
//!
//! Promises that it is the shortest: what is as long as its own spelling is spelt so already, and need not be written.

use std::borrow::Cow;

use super::{Entry, Field, Kind};

/// Bytes beside names and texts, for each field: four quotes, a colon and a comma.
const MARKS: usize = 6;

/// These fields as an object.
pub(super) fn of(entries: &[Entry<'_>]) -> String {
    let room = |(name, field): &Entry<'_>| name.len() + about(field) + MARKS;
    let mut json = String::with_capacity(2 + entries.iter().map(room).sum::<usize>());
    json.push('{');
    for (number, (name, field)) in entries.iter().enumerate() {
        if number > 0 {
            json.push(',');
        }
        write_text(&mut json, name);
        json.push(':');
        write(&mut json, field);
    }
    json.push('}');
    json
}

/// One value, behind what stands there.
pub(super) fn write(json: &mut String, field: &Field<'_>) {
    match field {
        Field::Text(text) => write_text(json, text),
        Field::Other(_, text) => json.push_str(text),
    }
}

/// How long [`of`] is. `None` when the length would not tell whether something is spelt so: numbers can be written in
/// several ways, nested objects are sorted, and `\u001F` is as long as `\u001f`.
pub(super) fn bytes(entries: &[Entry<'_>]) -> Option<usize> {
    // The two braces, and a comma less than there are fields.
    let mut whole = 2_usize.checked_sub(usize::from(!entries.is_empty()))?;
    for (name, field) in entries {
        let name = text_bytes(name)?;
        let value = match field {
            Field::Text(text) => text_bytes(text)?,
            Field::Other(Kind::Null | Kind::Bool, json) => json.len(),
            Field::Other(..) => return None,
        };
        // With a colon and a comma.
        whole = whole
            .checked_add(name)?
            .checked_add(value)?
            .checked_add(2)?;
    }
    Some(whole)
}

/// How long a text is between its quotes, with them.
#[expect(clippy::ptr_arg, reason = "whether it is borrowed is what counts")]
fn text_bytes(text: &Cow<'_, str>) -> Option<usize> {
    let escapes = match text {
        Cow::Borrowed(_) => 0,
        Cow::Owned(text) => escapes(text)?,
    };
    Some(text.len() + escapes + 2)
}

/// How many characters have a backslash before them. `None` when one is written by its number.
fn escapes(text: &str) -> Option<usize> {
    let marks = count(text, |byte| matches!(byte, b'"' | b'\\'));
    let controls = count(text, |byte| byte < b' ');
    let named = |byte| matches!(byte, b'\x08' | b'\t' | b'\n' | b'\x0c' | b'\r');
    (controls == 0 || count(text, named) == controls).then_some(marks + controls)
}

/// How many bytes are such. In pieces whose count fits a byte, so that sixteen are looked at at once.
fn count(text: &str, is_such: impl Fn(u8) -> bool) -> usize {
    let of_piece = |piece: &[u8]| {
        let such = piece.iter().map(|byte| u8::from(is_such(*byte)));
        usize::from(such.fold(0, u8::wrapping_add))
    };
    text.as_bytes().chunks(128).map(of_piece).sum()
}

/// A text that is borrowed stood between quotes as it is, and is written so again.
#[expect(clippy::ptr_arg, reason = "whether it is borrowed is what counts")]
pub(super) fn write_text(json: &mut String, text: &Cow<'_, str>) {
    match text {
        Cow::Borrowed(text) => {
            json.push('"');
            json.push_str(text);
            json.push('"');
        }
        Cow::Owned(text) => write_escaped(json, text),
    }
}

/// A text that may need escapes.
pub(super) fn write_escaped(json: &mut String, text: &str) {
    json.push_str(&serde_json::to_string(text).expect("text is writable"));
}

/// About how long a value is written.
fn about(field: &Field<'_>) -> usize {
    match field {
        Field::Text(Cow::Borrowed(text)) => text.len(),
        // What was escaped is escaped again; a quarter is more than requisites need.
        Field::Text(Cow::Owned(text)) => text.len() + text.len() / 4,
        Field::Other(_, json) => json.len(),
    }
}
