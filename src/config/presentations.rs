//! The one setting that is a word or a list: where a notification may carry its notify token.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// The word that stands for the built-in list.
const AUTO: &str = "auto";

/// `listener.presentations`. What a place's text means is the listener's business, which judges it before it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presentations {
    /// The built-in list, `header:X-Notification-Token` first.
    Auto,
    /// Only these places, such as `header:X-Notification-Token`, `bearer` or `hmac-sha256:header:X-Signature`.
    Only(Vec<String>),
}

impl Serialize for Presentations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(AUTO),
            Self::Only(places) => places.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Presentations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrList)
    }
}

struct WordOrList;

impl<'de> Visitor<'de> for WordOrList {
    type Value = Presentations;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`auto` or a list of places")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
        if word == AUTO {
            Ok(Presentations::Auto)
        } else {
            Err(E::custom("must be `auto` or a list of places"))
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut places = Vec::new();
        while let Some(place) = list.next_element()? {
            places.push(place);
        }
        Ok(Presentations::Only(places))
    }
}
