//! JSON objects from strangers: exactly one object, no doubled names at the top, numbers kept as their digits, and a bound on
//! the names of one object.

use std::fmt;

use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::fields::Field;

/// A JSON object. Numbers in it keep their digits (`arbitrary_precision`).
pub type Object = Map<String, Value>;

/// Why a body is not one JSON object. Each variant is a fixed word for logs; nothing of the body is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// No bytes, or only blanks.
    #[error("the body is empty")]
    Empty,
    /// Not JSON, cut short, nested too deep, with more names in an object than [`MOST_NAMES`], not UTF-8, or with something
    /// behind it.
    #[error("the body is not one JSON document")]
    NotJson,
    /// JSON, but not an object.
    #[error("the body is JSON but not an object")]
    NotObject,
    /// A name that stands twice at the top: two readers could understand two things.
    #[error("a name stands twice in the body")]
    DoubledName,
}

/// Names that one object may have. The contract's has 16; each costs many times its text while the object is read. The word for
/// an unreadable body names the number, too.
pub(super) const MOST_NAMES: usize = 1024;

/// Where a body has its object.
pub(super) enum Document<'b> {
    /// In these bytes of it.
    Here(&'b [u8]),
    /// Within the string that the body is.
    Within(String),
}

/// Reads one JSON object. One leading byte-order mark is skipped (A12); a body that is a JSON string holding an object
/// is decoded once more (A11); nesting is limited to `serde_json`'s 128 levels.
pub fn object(body: &[u8]) -> Result<Object, ShapeError> {
    match document(body)? {
        Document::Here(body) => strict(body),
        Document::Within(text) => strict(text.as_bytes()),
    }
}

/// Finds what must be the object. Who reads that refuses the names that begin with [`PRIVATE`].
pub(super) fn document(body: &[u8]) -> Result<Document<'_>, ShapeError> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    match first(body) {
        None => Err(ShapeError::Empty),
        Some(b'{') => Ok(Document::Here(body)),
        Some(b'"') => {
            let inner: String =
                serde_json::from_slice(body).map_err(|_cause| ShapeError::NotJson)?;
            if first(inner.as_bytes()) == Some(b'{') {
                Ok(Document::Within(inner))
            } else {
                Err(ShapeError::NotObject)
            }
        }
        Some(_) => match serde_json::from_slice::<Field<'_>>(body) {
            Ok(_other) => Err(ShapeError::NotObject),
            Err(_cause) => Err(ShapeError::NotJson),
        },
    }
}

/// How the names begin that `serde_json` gives a meaning of its own: an object with one is taken for the number in it, or for
/// the document in it.
pub(super) const PRIVATE: &str = "$serde_json::private::";

/// False for a document in which an object would be read as something else. However the name is spelt.
pub fn is_sound(body: &[u8]) -> bool {
    if !body.iter().any(|byte| b"$\\".contains(byte)) {
        return true;
    }
    let text = String::from_utf8_lossy(body);
    let mut parts = text.split("\\u");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..4)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        plain.extend(code.and_then(char::from_u32));
        plain.push_str(part.get(4..).unwrap_or(part));
    }
    !plain.contains(PRIVATE)
}

/// The text of a string, or the digits of a number. `null`, the empty string and a missing value are `None` (A08).
pub fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.as_str().to_owned()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn first(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|b| !b.is_ascii_whitespace())
}

fn strict(body: &[u8]) -> Result<Object, ShapeError> {
    if !is_sound(body) {
        return Err(ShapeError::NotJson);
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let entries = reader
        .deserialize_map(Entries)
        .map_err(|_cause| ShapeError::NotJson)?;
    reader.end().map_err(|_cause| ShapeError::NotJson)?;
    let mut object = Object::new();
    for (name, value) in entries {
        if object.insert(name, value).is_some() {
            return Err(ShapeError::DoubledName);
        }
    }
    Ok(object)
}

/// Collects a map's entries in order, doubled names included, which `serde_json`'s own map would silently merge.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            if entries.len() == MOST_NAMES {
                return Err(A::Error::custom("too many names"));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_and_nothing_else() {
        let cases: [(&[u8], Result<usize, ShapeError>); 14] = [
            (b"{\"id\":1}", Ok(1)),
            (b"\xEF\xBB\xBF {\"id\":1} ", Ok(1)),
            (b"\"{\\\"id\\\":1}\"", Ok(1)),
            (b"{}", Ok(0)),
            (b"", Err(ShapeError::Empty)),
            (b" \n", Err(ShapeError::Empty)),
            (b"null", Err(ShapeError::NotObject)),
            (b"[]", Err(ShapeError::NotObject)),
            (b"\"paid\"", Err(ShapeError::NotObject)),
            (b"{\"id\":1", Err(ShapeError::NotJson)),
            (b"{\"id\":1}{}", Err(ShapeError::NotJson)),
            (b"\xEF\xBB\xBF\xEF\xBB\xBF{}", Err(ShapeError::NotJson)),
            (b"{\"a\":\"\xff\"}", Err(ShapeError::NotJson)),
            (b"{\"id\":1,\"id\":2}", Err(ShapeError::DoubledName)),
        ];
        for (body, wanted) in cases {
            assert_eq!(
                object(body).map(|o| o.len()),
                wanted,
                "{}",
                String::from_utf8_lossy(body)
            );
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
        assert_eq!(object(deep.as_bytes()), Err(ShapeError::NotJson));
    }

    #[test]
    fn an_object_that_serde_json_takes_for_a_number_is_none() {
        for name in [
            "$serde_json::private::Number",
            r"\u0024serde_json::private::Number",
            r"$serde_json\u003a\u003aprivate::Number",
        ] {
            let body = format!(r#"{{"amount":{{"{name}":"5"}}}}"#);
            assert_eq!(object(body.as_bytes()), Err(ShapeError::NotJson), "{body}");
            let within = serde_json::to_string(&body).expect("a text");
            assert_eq!(
                object(within.as_bytes()),
                Err(ShapeError::NotJson),
                "{within}"
            );
        }
        assert!(object(br#"{"note":"$5 \u0024 \\"}"#).is_ok());
    }

    #[test]
    fn digits_survive() {
        let object =
            object(br#"{"amount":599.80,"big":1000000000000.01,"small":0.10}"#).expect("an object");
        let digits = |name: &str| text(object.get(name)).expect(name);
        assert_eq!(
            [digits("amount"), digits("big"), digits("small")],
            ["599.80", "1000000000000.01", "0.10"]
        );
    }
}
