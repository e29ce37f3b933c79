//! The fields of one JSON object as they stand in a body, borrowed from it where that is possible, in the order they came
//! in. For what comes often: a notification is read once, and only what is kept of it is copied.
//!
//! Relies on `serde_json` for the grammar. Promises what [`json::object`](super::json::object) promises: exactly one object,
//! no doubled names at the top, numbers kept as their digits; and one spelling of each value, whoever wrote it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::json::{Document, MOST_NAMES, PRIVATE, ShapeError, document};

mod nested;
mod quick;
mod spelling;

pub(super) use self::nested::spelt;
pub use self::nested::{Kind, sorted};

/// Room that is made for fields at once. The contract's object has 16; with two more it is a piece of memory that the
/// allocator still hands out at once, with four it is not.
const USUAL_FIELDS: usize = 18;
/// Names up to which each is held against those before it. More are sorted for that.
const FEW: usize = 64;

/// The fields, in the order they came in.
#[derive(Debug)]
pub struct Fields<'b> {
    entries: Vec<Entry<'b>>,
    /// The object as it stands in the body, when that is the one spelling already.
    as_it_stands: Option<&'b str>,
}

/// A name and what it holds.
type Entry<'b> = (Cow<'b, str>, Field<'b>);

/// What a field holds. A text that is borrowed was written without any escape, and is written so again.
#[derive(Debug, PartialEq)]
pub enum Field<'b> {
    /// A string.
    Text(Cow<'b, str>),
    /// Anything else, in the one spelling.
    Other(Kind, Cow<'static, str>),
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
        let (entries, as_it_stands) = match quick::entries(text) {
            Some(entries) => (entries, Some(text)),
            None => whole(text)?,
        };
        if is_doubled(&entries) {
            return Err(ShapeError::DoubledName);
        }
        Ok(Self {
            entries,
            as_it_stands,
        })
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&Field<'b>> {
        let own = self.entries.iter().find(|(own, _)| own == name);
        own.map(|(_, field)| field)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Field<'b>)> {
        self.entries
            .iter()
            .map(|(name, field)| (name.as_ref(), field))
    }

    /// The object in the one spelling, without blanks.
    pub fn to_json(&self) -> String {
        match self.as_it_stands {
            Some(text) => text.to_owned(),
            None => spelling::of(&self.entries),
        }
    }

    /// As [`Fields::to_json`], with the names sorted.
    pub(super) fn into_sorted_json(mut self) -> String {
        if !self
            .entries
            .is_sorted_by(|(one, _), (other, _)| one < other)
        {
            self.as_it_stands = None;
            let by_name = |(one, _): &Entry<'_>, (other, _): &Entry<'_>| one.cmp(other);
            self.entries.sort_unstable_by(by_name);
        }
        self.to_json()
    }

    fn into_owned(self) -> Fields<'static> {
        let own = |text: Cow<'b, str>| Cow::Owned(text.into_owned());
        let all = self.entries.into_iter().map(|(name, field)| {
            let field = match field {
                Field::Text(text) => Field::Text(own(text)),
                Field::Other(kind, json) => Field::Other(kind, json),
            };
            (own(name), field)
        });
        Fields {
            entries: all.collect(),
            as_it_stands: None,
        }
    }
}

/// The fields of an object of any form, and its text where that is the one spelling.
fn whole(text: &str) -> Result<(Vec<Entry<'_>>, Option<&str>), ShapeError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let entries = reader.deserialize_map(Entries);
    let entries = entries.map_err(|_cause| ShapeError::NotJson)?;
    reader.end().map_err(|_cause| ShapeError::NotJson)?;
    let text = text.trim_ascii();
    // No other spelling of the same is as short, so that the length alone tells.
    let is_spelt = spelling::bytes(&entries) == Some(text.len());
    Ok((entries, is_spelt.then_some(text)))
}

/// Whether a name stands twice.
fn is_doubled(entries: &[Entry<'_>]) -> bool {
    if entries.len() > FEW {
        let mut names: Vec<&str> = entries.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        return names
            .windows(2)
            .any(|pair| matches!(pair, [one, other] if one == other));
    }
    // Names that are alike have the same mark, and few others do: only those are looked at.
    let mark = |name: &str| match name.as_bytes() {
        [first, .., last] => 1_u64 << ((usize::from(first ^ last) ^ (name.len() << 1)) % 64),
        _ => 1,
    };
    let mut seen = 0;
    entries.iter().enumerate().any(|(number, (name, _))| {
        let own = mark(name);
        let maybe = seen & own != 0;
        seen |= own;
        maybe && entries.iter().take(number).any(|(other, _)| other == name)
    })
}

impl Field<'_> {
    /// `null`.
    pub(super) const NULL: Self = Self::Other(Kind::Null, Cow::Borrowed("null"));

    const fn of_bool(value: bool) -> Self {
        Self::Other(Kind::Bool, Cow::Borrowed(nested::bool_text(value)))
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(..) => None,
        }
    }

    /// The text of a string that is not empty, or the digits of a number, as [`json::text`](super::json::text) has it.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if text.is_empty() => None,
            Self::Text(text) => Some(text),
            Self::Other(Kind::Number, digits) => Some(digits),
            Self::Other(..) => None,
        }
    }

    /// True when it says something: `null` and the empty string are the same as a missing field.
    pub(super) fn is_given(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Other(kind, _) => *kind != Kind::Null,
        }
    }

    /// It in the one spelling.
    pub(super) fn to_json(&self) -> String {
        let mut json = String::new();
        spelling::write(&mut json, self);
        json
    }
}

/// Collects an object's fields in their order, doubled names included.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<Entry<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::with_capacity(USUAL_FIELDS);
        while let Some(Name(name)) = map.next_key()? {
            bounded(entries.len(), &name)?;
            entries.push((name, map.next_value()?));
        }
        Ok(entries)
    }
}

/// Whether an object may have this name behind so many others. One that `serde_json` gives a meaning of its own would be read
/// as something else by who reads it again.
fn may_stand(before: usize, name: &str) -> bool {
    before < MOST_NAMES && !name.starts_with(PRIVATE)
}

/// The same, for who must say why.
fn bounded<E: Error>(before: usize, name: &str) -> Result<(), E> {
    let may = may_stand(before, name);
    may.then_some(())
        .ok_or_else(|| E::custom("a name that no object may have, or one too many"))
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

#[cfg(test)]
mod tests;
