//! Every key there is, with the shape of its value, read off the settings themselves: one list cannot lag behind another.
//! From it come the reading of variables, the refusal of unknown keys, and the nearest known key.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use figment::value::{Dict, Value};

use super::hooks::{Hook, OnAbandoned};
use super::reserved::PREFIX;
use super::settings::{Settings, ranges};

/// What kind of value a key takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A table of keys.
    Table(BTreeMap<String, Shape>),
    /// A list of tables, each with these keys.
    Rows(BTreeMap<String, Shape>),
    /// A text.
    Text,
    /// A whole number, 0 or more.
    Whole,
    /// `true` or `false`.
    Truth,
    /// A list of texts.
    Texts,
    /// A list of whole numbers.
    Wholes,
    /// A word or a list of texts.
    WordOrTexts,
}

/// The one key that takes a word or a list.
const WORD_OR_TEXTS: &str = "listener.presentations";

/// The shape of the whole configuration.
pub(super) fn known() -> &'static Shape {
    static KNOWN: LazyLock<Shape> = LazyLock::new(|| shape_of("", &sample()));
    &KNOWN
}

/// The defaults, with a hook of each kind so that their keys show.
fn sample() -> Value {
    let settings = Settings {
        hook: vec![Hook::default()],
        on_abandoned: Some(OnAbandoned::default()),
        ..Settings::default()
    };
    Value::serialize(settings).expect("settings are plain data")
}

fn shape_of(key: &str, value: &Value) -> Shape {
    match value {
        Value::Dict(_, dict) => Shape::Table(shapes_of(key, dict)),
        Value::Array(_, list) => match list.first() {
            Some(Value::Dict(_, dict)) => Shape::Rows(shapes_of(key, dict)),
            Some(Value::Num(..)) => Shape::Wholes,
            _ => Shape::Texts,
        },
        Value::Num(..) => Shape::Whole,
        Value::Bool(..) => Shape::Truth,
        _ if key == WORD_OR_TEXTS => Shape::WordOrTexts,
        // A setting without default is `None` in the sample: a number where it has a range, else a text.
        Value::Empty(..) if ranges().contains_key(key) => Shape::Whole,
        Value::String(..) | Value::Char(..) | Value::Empty(..) => Shape::Text,
    }
}

fn shapes_of(key: &str, dict: &Dict) -> BTreeMap<String, Shape> {
    dict.iter()
        .map(|(name, value)| (name.clone(), shape_of(&join(key, name), value)))
        .collect()
}

impl Shape {
    /// The shape below a dotted key. Positions in lists are left out of such a key.
    pub(super) fn find(&self, key: &str) -> Option<&Self> {
        key.split('.').try_fold(self, |shape, name| match shape {
            Self::Table(names) | Self::Rows(names) => names.get(name),
            _ => None,
        })
    }

    /// Calls `visit` with every dotted key below, tables and rows included.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&str, &Self)) {
        self.walk_below("", visit);
    }

    fn walk_below(&self, key: &str, visit: &mut dyn FnMut(&str, &Self)) {
        if let Self::Table(names) | Self::Rows(names) = self {
            for (name, shape) in names {
                let key = join(key, name);
                visit(&key, shape);
                shape.walk_below(&key, visit);
            }
        }
    }

    /// `must be …`, with the range of `key` where it has one.
    pub(super) fn rule(&self, key: &str) -> String {
        let range = ranges().get(key).map_or(String::new(), |(least, most)| {
            format!(" from {least} to {most}")
        });
        match self {
            Self::Table(_) => "must be a table".to_owned(),
            Self::Rows(_) => "must be a list of tables".to_owned(),
            Self::Text => "must be a text".to_owned(),
            Self::Whole => format!("must be a whole number{range}"),
            Self::Truth => "must be `true` or `false`".to_owned(),
            Self::Texts => "must be a list of texts".to_owned(),
            Self::Wholes => format!("must be a list of whole numbers{range}"),
            Self::WordOrTexts => "must be a word or a list of texts".to_owned(),
        }
    }
}

/// One setting, as documentation lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Dotted; keys of `[[hook]]` and of the poller's schedule stand below the list's own name.
    pub name: String,
    /// The default as TOML; `None` where there is none.
    pub default: Option<String>,
    /// The smallest and the largest whole number allowed; `None` for other values.
    pub range: Option<(u64, u64)>,
}

/// Every setting in the order of the alphabet, for documentation that must not lag behind.
pub fn keys() -> Vec<Key> {
    let defaults = Value::serialize(Settings::default()).expect("settings are plain data");
    let mut keys = Vec::new();
    known().walk(&mut |key, shape| {
        if !matches!(shape, Shape::Table(_)) {
            let default = match key {
                "hook.timeout_s" | "on_abandoned.timeout_s" => {
                    Some(Hook::default_timeout_s().to_string())
                }
                "hook.undelivered_after_s" | "on_abandoned.undelivered_after_s" => {
                    Some(Hook::default_undelivered_after_s().to_string())
                }
                _ => defaults.find_ref(key).and_then(as_toml),
            };
            keys.push(Key {
                name: key.to_owned(),
                default,
                range: ranges().get(key).copied(),
            });
        }
    });
    keys
}

fn as_toml(value: &Value) -> Option<String> {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::String(_, text) => Some(format!("\"{text}\"")),
        Value::Char(_, text) => Some(format!("\"{text}\"")),
        Value::Bool(_, truth) => Some(truth.to_string()),
        Value::Num(_, number) => number.to_u128().map(|number| number.to_string()),
        Value::Array(_, items) => {
            let items = items.iter().filter_map(as_toml).collect();
            Some(format!("[{}]", list(items)))
        }
        Value::Dict(_, dict) => {
            let pairs = dict
                .iter()
                .filter_map(|(name, value)| Some(format!("{name} = {}", as_toml(value)?)))
                .collect();
            Some(format!("{{ {} }}", list(pairs)))
        }
        Value::Empty(..) => None,
    }
}

/// `parent.name`, or `name` at the top.
pub(super) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

/// The variable that sets a key: `TILLD_LISTENER__LISTEN` for `listener.listen`.
pub fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase())
}

/// The first key of `dict` that no setting has: as it is spelled in errors, and without positions in lists.
pub(super) fn first_unknown(dict: &Dict) -> Option<(String, String)> {
    let Shape::Table(names) = known() else {
        return None;
    };
    unknown_in(dict, names, "", "")
}

fn unknown_in(
    dict: &Dict,
    names: &BTreeMap<String, Shape>,
    spelled: &str,
    plain: &str,
) -> Option<(String, String)> {
    dict.iter().find_map(|(name, value)| {
        let (spelled, plain) = (join(spelled, name), join(plain, name));
        match (names.get(name), value) {
            (None, _) => Some((spelled, plain)),
            (Some(Shape::Table(names)), Value::Dict(_, dict)) => {
                unknown_in(dict, names, &spelled, &plain)
            }
            (Some(Shape::Rows(names)), Value::Array(_, rows)) => {
                rows.iter().enumerate().find_map(|(place, row)| {
                    let dict = row.as_dict()?;
                    unknown_in(dict, names, &format!("{spelled}[{}]", place + 1), &plain)
                })
            }
            // A value of the wrong type is found when the settings are read.
            _ => None,
        }
    })
}

/// The known key nearest to an unknown one, if any is near: a slip of the fingers, the right name under the wrong table,
/// or `_` for the `__` of a variable.
pub(super) fn nearest(unknown: &str) -> Option<String> {
    let (parent, leaf) = unknown.rsplit_once('.').unwrap_or(("", unknown));
    let mut best: Option<((usize, bool), String)> = None;
    known().walk(&mut |key, _| {
        let (key_parent, key_leaf) = key.rsplit_once('.').unwrap_or(("", key));
        let elsewhere = usize::from(parent != key_parent);
        let whole = strsim::osa_distance(&key.replace('.', "_"), &unknown.replace('.', "_"));
        let within = strsim::osa_distance(key_leaf, leaf) + elsewhere;
        let distance = whole.min(within);
        // A third of the letters may differ: beyond that the suggestion would only puzzle.
        let near = distance <= (leaf.chars().count() / 3).clamp(1, 4);
        // Of two that are as near, the one that begins so.
        let rank = (distance, !key.starts_with(leaf));
        if near && best.as_ref().is_none_or(|(least, _)| rank < *least) {
            best = Some((rank, key.to_owned()));
        }
    });
    best.map(|(_, key)| key)
}

/// The known keys beside an unknown one, for when none is near.
pub(super) fn beside(unknown: &str) -> Vec<String> {
    let parent = unknown.rsplit_once('.').map(|(parent, _)| parent);
    let shape = parent.map_or(Some(known()), |parent| known().find(parent));
    match shape {
        Some(Shape::Table(names) | Shape::Rows(names)) => names.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        let near = |unknown: &str| nearest(unknown).unwrap_or_default();
        assert_eq!(near("listner"), "listener");
        assert_eq!(near("listener.listne"), "listener.listen");
        assert_eq!(near("listen"), "listener.listen");
        assert_eq!(near("public_url"), "listener.public_url");
        assert_eq!(near("service_url"), "service.url");
        assert_eq!(near("hook.timeout"), "hook.timeout_s");
        assert_eq!(near("hooks"), "hook");
        assert_eq!(near("statuses.payd"), "statuses.paid");
        assert_eq!(nearest("frobnicate"), None);
    }

    #[test]
    fn every_whole_number_has_a_range_and_every_range_a_key() {
        let mut whole = Vec::new();
        known().walk(&mut |key, shape| {
            if matches!(shape, Shape::Whole | Shape::Wholes) {
                whole.push(key.to_owned());
            }
        });
        whole.sort();
        assert_eq!(whole, ranges().into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn keys_carry_their_defaults() {
        let default = |name: &str| {
            keys()
                .into_iter()
                .find(|key| key.name == name)
                .expect(name)
                .default
        };
        assert_eq!(default("poller.cadence_s").as_deref(), Some("5"));
        assert_eq!(default("statuses.open").as_deref(), Some("[\"new\"]"));
        assert_eq!(default("log_level").as_deref(), Some("\"info\""));
        assert_eq!(default("hook.timeout_s").as_deref(), Some("30"));
        assert_eq!(default("service.url"), None);
    }
}
