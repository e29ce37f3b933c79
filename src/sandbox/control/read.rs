//! Reads what a request of the control listener asks for. Whoever wrote it by hand is told which key is wrong and what would do, in
//! words that are not those of this program's types.

use hyper::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::sandbox::routes::Refusal;

/// Types as the reader of JSON calls them.
const TYPES: [&str; 5] = [
    "expected i64",
    "expected u64",
    "expected u32",
    "expected u16",
    "expected usize",
];

/// The body is a JSON object where the request has one; an empty body is the empty object.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    let what = match serde_json::from_slice(body) {
        Err(cause) => format!("the body is no JSON: {cause}"),
        // From the text, where a key that comes twice is seen.
        Ok(Value::Object(asked)) => match serde_json::from_slice(body) {
            Ok(asked) => return Ok(asked),
            Err(cause) => lack::<T>(&asked, &cause),
        },
        Ok(_) => NO_OBJECT.to_owned(),
    };
    Err(Refusal::new(StatusCode::BAD_REQUEST, what))
}

const NO_OBJECT: &str = "the body is a JSON object, such as `{}`";

/// What a value asks for, or what is wrong with it.
pub(super) fn read_value<T: DeserializeOwned>(asked: &Value) -> Result<T, String> {
    match asked {
        Value::Object(asked) => object(asked),
        _ => Err("it is an object of words and what they are set to".to_owned()),
    }
}

/// What an object asks for, or what is wrong with it.
pub(super) fn object<T: DeserializeOwned>(asked: &Map<String, Value>) -> Result<T, String> {
    let whole = Value::Object(asked.clone());
    serde_json::from_value(whole).map_err(|cause| lack::<T>(asked, &cause))
}

/// Names the key that is wrong: the one that is wrong without the others too.
fn lack<T: DeserializeOwned>(asked: &Map<String, Value>, whole: &serde_json::Error) -> String {
    let of_key = |(key, value): (&String, &Value)| {
        let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
        let cause = serde_json::from_value::<T>(alone).err()?.to_string();
        // Another key is missing, or the key says itself which it is.
        let is_of_value =
            !cause.starts_with("missing field") && !cause.starts_with("unknown field");
        is_of_value.then(|| format!("`{key}`: {}", plain(&cause)))
    };
    let named = asked.iter().find_map(of_key);
    named.unwrap_or_else(|| plain(&whole.to_string()))
}

fn plain(cause: &str) -> String {
    let words = TYPES.iter().fold(cause.to_owned(), |text, name| {
        text.replace(name, "expected a whole number")
    });
    words
        .replace("missing field", "missing key")
        .replace("unknown field", "unknown key")
        .replace("duplicate field", "the key is there twice:")
        .replace("expected a map", "expected an object")
}
