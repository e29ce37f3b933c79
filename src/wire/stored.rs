//! The service's JSON as the ledger has it, on its way out into a document of ours: from text to text, without a tree of values.
//!
//! Promises the same spelling at every door: names sorted, numbers as their digits. What is no JSON goes out as a text.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::{sorted, spelt};

/// It, spelt as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored(Cow<'static, str>);

impl Stored {
    /// Stored text.
    pub fn new(text: &str) -> Self {
        let plain = || Value::from(text).to_string();
        Self(sorted(text).unwrap_or_else(plain).into())
    }

    /// The JSON text.
    pub fn into_text(self) -> String {
        self.0.into_owned()
    }
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(spelt(deserializer)?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_out_as_a_map_of_values_would() {
        for text in [
            r#"{"b":1.50,"a":{"y":[1E3,"\u0041"],"x":null},"b":true}"#,
            r#"[{"b":{},"a":[]}, -0.0, 18446744073709551616]"#,
            r#""a text""#,
            "7",
            "null",
            "no \"JSON\"",
            "",
            "{\"a\":1} x",
            r#"{"$serde_json::private::RawValue":"x"}"#,
            r#"{"a":{"$serde_json::private::RawValue":"x"}}"#,
        ] {
            let value = serde_json::from_str(text).unwrap_or_else(|_no_json| Value::from(text));
            let stored = Stored::new(text);
            let told = serde_json::to_string(&[Some(&stored), None]).expect("written");
            assert_eq!(told, format!("[{value},null]"), "{text}");
            assert_eq!(
                serde_json::to_value(&stored).expect("a value"),
                value,
                "{text}"
            );
            let read: Stored = serde_json::from_str(&value.to_string()).expect("read");
            assert_eq!(read, stored, "{text}");
        }
    }
}
