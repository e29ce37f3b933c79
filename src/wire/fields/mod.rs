//! The fields of one JSON object as they stand in a body, borrowed from it where that is possible, in the order of their
//! names. For what comes often: a notification is read once, and only what is kept of it is copied.
//!
//! Relies on `serde_json` for the grammar. Promises what [`json::object`](super::json::object) promises: exactly one object,
//! no doubled names at the top, numbers kept as their digits; and the same spelling of it.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::json::{Document, ShapeError, document};

/// Room that is made for fields at once. The contract's object has 16.
const USUAL_FIELDS: usize = 20;
/// Room in a spelling beside the bytes of names and texts, for each field: four quotes, a colon and a comma.
const MARKS: usize = 6;

/// The fields, by name.
#[derive(Debug)]
pub struct Fields<'b>(Vec<(Cow<'b, str>, Field<'b>)>);

/// What a field holds. A text that is borrowed was written without any escape, and is written so again.
#[derive(Debug)]
pub enum Field<'b> {
    /// A string.
    Text(Cow<'b, str>),
    /// Anything else.
    Other(Value),
}

impl<'b> Fields<'b> {
    /// Reads one JSON object, as [`json::object`](super::json::object) does.
    pub fn read(body: &'b [u8]) -> Result<Self, ShapeError> {
        match document(body)? {
            Document::Here(body) => {
                Self::strict(str::from_utf8(body).map_err(|_cause| ShapeError::NotJson)?)
            }
            Document::Within(text) => Fields::strict(&text).map(Fields::into_owned),
        }
    }

    /// Reads one JSON object and nothing around it.
    pub(super) fn strict(text: &'b str) -> Result<Self, ShapeError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let entries = reader.deserialize_map(Entries);
        let mut entries = entries.map_err(|_cause| ShapeError::NotJson)?;
        reader.end().map_err(|_cause| ShapeError::NotJson)?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let doubled = |pair: &[(Cow<'_, str>, Field<'_>)]| matches!(pair, [(one, _), (other, _)] if one == other);
        if entries.windows(2).any(doubled) {
            return Err(ShapeError::DoubledName);
        }
        Ok(Self(entries))
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&Field<'b>> {
        let at = self.0.binary_search_by(|(own, _)| own.as_ref().cmp(name));
        at.ok()
            .and_then(|at| self.0.get(at))
            .map(|(_, field)| field)
    }

    /// The text of a string that is not empty, or the digits of a number, as [`json::text`](super::json::text) has it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Field::text)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Field<'b>)> {
        self.0.iter().map(|(name, field)| (name.as_ref(), field))
    }

    /// The object in the one spelling: names sorted, no blanks.
    pub fn to_json(&self) -> String {
        let room = |(name, field): (&str, &Field<'b>)| name.len() + field.bytes() + MARKS;
        let mut json = String::with_capacity(2 + self.iter().map(room).sum::<usize>());
        json.push('{');
        for (number, (name, field)) in self.0.iter().enumerate() {
            if number > 0 {
                json.push(',');
            }
            match name {
                Cow::Borrowed(name) => write_verbatim(&mut json, name),
                Cow::Owned(name) => write_escaped(&mut json, name),
            }
            json.push(':');
            field.write(&mut json);
        }
        json.push('}');
        json
    }

    fn into_owned(self) -> Fields<'static> {
        let own = |text: Cow<'b, str>| Cow::Owned(text.into_owned());
        let all = self.0.into_iter().map(|(name, field)| {
            let field = match field {
                Field::Text(text) => Field::Text(own(text)),
                Field::Other(value) => Field::Other(value),
            };
            (own(name), field)
        });
        Fields(all.collect())
    }
}

impl Field<'_> {
    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }

    /// As [`Fields::text`].
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if text.is_empty() => None,
            Self::Text(text) => Some(text),
            Self::Other(Value::Number(number)) => Some(number.as_str()),
            Self::Other(_) => None,
        }
    }

    /// True when it says something: `null` and the empty string are the same as a missing field.
    pub(super) fn is_given(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Other(value) => !value.is_null(),
        }
    }

    /// It in the one spelling.
    pub(super) fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }

    fn write(&self, json: &mut String) {
        match self {
            Self::Text(Cow::Borrowed(text)) => write_verbatim(json, text),
            Self::Text(Cow::Owned(text)) => write_escaped(json, text),
            Self::Other(value) => json.push_str(&spelt(value)),
        }
    }

    /// About how long it is written.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(Cow::Borrowed(text)) => text.len(),
            // What was escaped is escaped again; a quarter is more than requisites need.
            Self::Text(Cow::Owned(text)) => text.len() + text.len() / 4,
            Self::Other(_) => 0,
        }
    }
}

/// A value in the one spelling.
pub(super) fn spelt(value: &Value) -> String {
    serde_json::to_string(value).expect("a value read from JSON is writable")
}

/// A text that stood between quotes as it is, and is written so again.
fn write_verbatim(json: &mut String, text: &str) {
    json.push('"');
    json.push_str(text);
    json.push('"');
}

/// Any text.
fn write_escaped(json: &mut String, text: &str) {
    json.push_str(&serde_json::to_string(text).expect("text is writable"));
}

/// Collects an object's fields in their order, doubled names included.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, Field<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::with_capacity(USUAL_FIELDS);
        while let Some(Name(name)) = map.next_key()? {
            entries.push((name, map.next_value()?));
        }
        Ok(entries)
    }
}

/// A field's name.
struct Name<'b>(Cow<'b, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Reading)
    }
}

impl<'de> Deserialize<'de> for Field<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Field<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Field::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Field::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Field::Other(value.into()))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Field::Other(Value::Null))
            }

            fn visit_u64<E: Error>(self, whole: u64) -> Result<Self::Value, E> {
                Ok(Field::Other(whole.into()))
            }

            fn visit_i64<E: Error>(self, whole: i64) -> Result<Self::Value, E> {
                Ok(Field::Other(whole.into()))
            }

            // Any other number comes as a map as well, since it keeps its digits.
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Field::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(seq)).map(Field::Other)
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

#[cfg(test)]
mod tests;
