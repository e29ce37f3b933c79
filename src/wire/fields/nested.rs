//! What is nested, read in one pass and written at once in the one spelling: never a tree of it, which takes fifty times the
//! memory of its text.
//!
//! Relies on `serde_json` for the grammar and for how deep nesting may go. Promises what a map of values would be written as:
//! the names of each object sorted, the last of those that are alike, numbers as their digits.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Number;

use super::{Field, Name, bounded, spelling};

/// What a value is that is no string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A list.
    List,
    /// An object.
    Object,
}

/// The name by which `serde_json` hands over a number's digits.
const NUMBER: &str = "$serde_json::private::Number";

/// Writes a value behind what stands there, and tells what it is; nothing for a string.
struct Spell<'o>(&'o mut String);

impl<'de> DeserializeSeed<'de> for Spell<'_> {
    type Value = Option<Kind>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Spell<'_> {
    type Value = Option<Kind>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        spelling::write_text(self.0, &Cow::Borrowed(text));
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        spelling::write_escaped(self.0, text);
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        self.0.push_str(bool_text(value));
        Ok(Some(Kind::Bool))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.0.push_str("null");
        Ok(Some(Kind::Null))
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<Self::Value, E> {
        self.0.push_str(&whole.to_string());
        Ok(Some(Kind::Number))
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<Self::Value, E> {
        self.0.push_str(&whole.to_string());
        Ok(Some(Kind::Number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        list(self.0, seq)?;
        Ok(Some(Kind::List))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        object(self.0, map).map(Some)
    }
}

/// JSON text in the one spelling, the names of each object sorted; `None` when it is none.
pub fn sorted(text: &str) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut json = String::with_capacity(text.len());
    Spell(&mut json).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(json)
}

/// What comes as a value, in the one spelling.
pub(in crate::wire) fn spelt<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let mut json = String::new();
    Spell(&mut json).deserialize(deserializer)?;
    Ok(json)
}

pub(super) const fn bool_text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// Writes a list.
pub(super) fn list<'de, A: SeqAccess<'de>>(json: &mut String, mut seq: A) -> Result<(), A::Error> {
    json.push('[');
    let begin = json.len();
    while seq.next_element_seed(Spell(json))?.is_some() {
        json.push(',');
    }
    if json.len() > begin {
        json.pop();
    }
    json.push(']');
    Ok(())
}

/// The digits of a number, which `serde_json` hands over as a `String` of their own. What stands in a document as text comes
/// otherwise and is refused, so that no object passes for a number.
struct Digits(String);

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Owned;

        impl Visitor<'_> for Owned {
            type Value = Digits;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the digits of a number")
            }

            fn visit_str<E: Error>(self, _text: &str) -> Result<Digits, E> {
                Err(E::custom("an object that looks like a number"))
            }

            fn visit_string<E: Error>(self, digits: String) -> Result<Digits, E> {
                Ok(Digits(digits))
            }
        }

        deserializer.deserialize_string(Owned)
    }
}

/// Where a member of an object was written.
struct Member<'de> {
    name: Cow<'de, str>,
    at: Range<usize>,
}

/// Writes what comes as a map: an object, or a number whose digits are kept.
pub(super) fn object<'de, A: MapAccess<'de>>(
    json: &mut String,
    mut map: A,
) -> Result<Kind, A::Error> {
    let begin = json.len();
    json.push('{');
    let mut members: Vec<Member<'de>> = Vec::new();
    while let Some(Name(name)) = map.next_key()? {
        if members.is_empty() && name == NUMBER {
            // As `serde_json` does for a value, which looks at no second name either.
            let Digits(digits) = map.next_value()?;
            let number: Number = digits.parse().map_err(Error::custom)?;
            json.truncate(begin);
            json.push_str(number.as_str());
            return Ok(Kind::Number);
        }
        bounded(members.len(), &name)?;
        let from = json.len();
        spelling::write_text(json, &name);
        json.push(':');
        map.next_value_seed(Spell(json))?;
        let at = from..json.len();
        json.push(',');
        members.push(Member { name, at });
    }
    let ascend = |pair: &[Member<'_>]| matches!(pair, [one, other] if one.name < other.name);
    if !members.windows(2).all(ascend) {
        // Stable, so that of names that are alike the last stays the last.
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let mut sorted = String::with_capacity(json.len() - begin);
        for (number, member) in members.iter().enumerate() {
            let next = members.get(number + 1);
            if next.is_none_or(|next| next.name != member.name) {
                sorted.push_str(json.get(member.at.clone()).unwrap_or_default());
                sorted.push(',');
            }
        }
        json.truncate(begin + 1);
        json.push_str(&sorted);
    }
    if !members.is_empty() {
        json.pop();
    }
    json.push('}');
    Ok(Kind::Object)
}

impl Field<'_> {
    /// The string at this JSON pointer within it (RFC 6901).
    pub fn string_at(&self, pointer: &str) -> Option<String> {
        let Self::Other(_, json) = self else {
            return None;
        };
        let tokens = pointer.strip_prefix('/')?.split('/');
        let tokens: Vec<String> = tokens
            .map(|token| token.replace("~1", "/").replace("~0", "~"))
            .collect();
        let mut reader = serde_json::Deserializer::from_str(json);
        At(&tokens).deserialize(&mut reader).ok().flatten()
    }
}

/// Goes down by these names and positions.
struct At<'t>(&'t [String]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.is_empty().then(|| text.to_owned()))
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _whole: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _whole: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let wanted = self.0.split_first();
        let mut found = None;
        for position in 0_usize.. {
            let below = wanted.filter(|(token, _)| **token == position.to_string());
            let more = match below {
                Some((_, rest)) => seq.next_element_seed(At(rest))?.map(|text| found = text),
                None => seq.next_element::<IgnoredAny>()?.map(drop),
            };
            if more.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let wanted = self.0.split_first();
        let mut found = None;
        while let Some(Name(name)) = map.next_key()? {
            match wanted.filter(|(token, _)| **token == name) {
                Some((_, rest)) => found = map.next_value_seed(At(rest))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
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
                Ok(Field::of_bool(value))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Field::NULL)
            }

            fn visit_u64<E: Error>(self, whole: u64) -> Result<Self::Value, E> {
                Ok(Field::Other(Kind::Number, whole.to_string().into()))
            }

            fn visit_i64<E: Error>(self, whole: i64) -> Result<Self::Value, E> {
                Ok(Field::Other(Kind::Number, whole.to_string().into()))
            }

            // Any other number comes as a map as well, since it keeps its digits.
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let mut json = String::new();
                let kind = object(&mut json, map)?;
                Ok(Field::Other(kind, json.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                let mut json = String::new();
                list(&mut json, seq)?;
                Ok(Field::Other(Kind::List, json.into()))
            }
        }
        deserializer.deserialize_any(Reading)
    }
}
