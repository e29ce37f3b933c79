//! Settings given as text: `TILLD_` variables and flags. The key says how the text is read, never the text itself, so that
//! a name of digits or the word `true` stays a text where a text is wanted.

use std::ffi::OsString;

use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Value};

use super::error::{Error, Origin};
use super::keys::{Shape, join, known};
use super::reserved::{PREFIX, is_reserved};

/// One setting from one place.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) origin: Origin,
    pub(super) key: String,
    pub(super) value: Value,
}

impl Given {
    /// The setting as a tree, for merging.
    pub(super) fn tree(&self) -> Dict {
        let mut names = self.key.rsplit('.');
        let leaf = names.next().unwrap_or_default().to_owned();
        let mut tree = Dict::from([(leaf, self.value.clone())]);
        for name in names {
            tree = Dict::from([(name.to_owned(), Value::from(tree))]);
        }
        tree
    }
}

/// Reads the variables with the prefix, in the order of their names. Reserved names are passed over; a name that leads
/// to no key is handed on for the refusal of unknown keys.
pub(super) fn read(variables: &[(OsString, OsString)]) -> Result<Vec<Given>, Error> {
    let mut named: Vec<(String, &OsString)> = variables
        .iter()
        .map(|(name, text)| (name.to_string_lossy().into_owned(), text))
        .filter(|(name, _)| name.starts_with(PREFIX) && !is_reserved(name))
        .collect();
    named.sort();
    named
        .into_iter()
        .map(|(name, text)| {
            let key = key_of(&name);
            let origin = Origin::Variable(name);
            match text.to_str() {
                Some(text) => given(key, text, origin),
                None => Err(Error::Refused {
                    key,
                    origin,
                    rule: "must be UTF-8".to_owned(),
                }),
            }
        })
        .collect()
}

/// `listener.listen` for `TILLD_LISTENER__LISTEN`. Letters in lower case stay as they are, and so lead to no key.
fn key_of(variable: &str) -> String {
    let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
    let name = name.replace("__", ".");
    if name.chars().any(|letter| letter.is_ascii_lowercase()) {
        name
    } else {
        name.to_ascii_lowercase()
    }
}

/// Reads one text as the value of `key`. What does not fit stays a text and is refused, with its origin, when the
/// settings are read.
pub(super) fn given(key: String, text: &str, origin: Origin) -> Result<Given, Error> {
    let value = match known().find(&key) {
        None | Some(Shape::Text) => Value::from(text),
        Some(Shape::Whole) => whole(text),
        Some(Shape::Truth) => match text {
            "true" => Value::from(true),
            "false" => Value::from(false),
            _ => Value::from(text),
        },
        Some(Shape::Wholes) => {
            let numbers: Vec<Value> = split(text).into_iter().map(whole).collect();
            Value::from(numbers)
        }
        Some(Shape::WordOrTexts) if text == "auto" => Value::from(text),
        Some(Shape::Texts | Shape::WordOrTexts) => Value::from(texts(text)),
        Some(Shape::Table(_)) => {
            let origin = origin.clone();
            let rule =
                "is a table: set its keys one by one, with `__` before each of them".to_owned();
            return Err(Error::Refused { key, origin, rule });
        }
        Some(Shape::Rows(_)) => {
            return match toml(text) {
                Some(value) => Ok(Given { origin, key, value }),
                None => Err(Error::Refused {
                    key,
                    origin,
                    rule: "must be a list of tables in TOML's inline form".to_owned(),
                }),
            };
        }
    };
    Ok(Given { origin, key, value })
}

fn whole(text: &str) -> Value {
    text.parse::<u64>().map_or(Value::from(text), Value::from)
}

/// A list of texts: TOML when its items are quoted, else split at commas, with or without brackets.
fn texts(text: &str) -> Vec<Value> {
    if let Some(Value::Array(_, items)) = text.contains('"').then(|| toml(text)).flatten() {
        return items;
    }
    split(text).into_iter().map(Value::from).collect()
}

fn split(text: &str) -> Vec<&str> {
    let text = text.trim();
    let text = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect()
}

/// A value in TOML's own form. Its error is dropped, for it shows the text.
fn toml(text: &str) -> Option<Value> {
    let name = "value";
    let document = format!("{name} = {text}");
    Toml::from_str::<Dict>(&document)
        .ok()
        .filter(|document| document.len() == 1)?
        .remove(name)
}

/// The dotted key of a figment path, as spelled in errors (rows counted from 1) and without positions.
pub(super) fn spell(path: &[String]) -> (String, String) {
    let mut spelled = String::new();
    let mut plain = String::new();
    for name in path {
        if let Ok(place) = name.parse::<usize>() {
            spelled = format!("{spelled}[{}]", place + 1);
        } else {
            spelled = join(&spelled, name);
            plain = join(&plain, name);
        }
    }
    (spelled, plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &str, text: &str) -> Value {
        given(key.to_owned(), text, Origin::Default)
            .expect(key)
            .value
    }

    #[test]
    fn a_text_stays_a_text_whatever_it_looks_like() {
        for text in ["12345", "00123", "true", "0.10", "[x]", "{", "\"", ""] {
            assert_eq!(value("client_name", text), Value::from(text));
        }
    }

    #[test]
    fn lists_are_read_with_and_without_brackets() {
        let two = Value::from(vec!["PAID", "7"]);
        for text in ["PAID,7", "[PAID, 7]", " [ PAID , 7 ] ", "[\"PAID\", \"7\"]"] {
            assert_eq!(value("statuses.paid", text), two, "{text}");
        }
        assert_eq!(
            value("statuses.paid", "[]"),
            Value::from(Vec::<String>::new())
        );
        assert_eq!(
            value("outbox.schedule_s", "0, 5"),
            Value::from(vec![0_u64, 5])
        );
    }

    #[test]
    fn rows_are_read_as_toml() {
        let rows = value("poller.schedule", "[{ until_s = 10, every_s = 1 }]");
        assert!(matches!(rows, Value::Array(_, rows) if rows.len() == 1));
        let torn = given("hook".to_owned(), "[{", Origin::Default).expect_err("torn");
        assert!(torn.to_string().contains("inline form"));
        assert!(given("service".to_owned(), "x", Origin::Default).is_err());
    }
}
