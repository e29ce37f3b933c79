//! Reads `application/x-www-form-urlencoded`: the queries and the form posts of the sandbox's own pages; and the segments of
//! its paths.

use std::fmt::Write as _;

/// Fields read at most. The largest form of the pages has four.
const MOST_FIELDS: usize = 32;

/// The fields of a form or a query, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a form. What is no UTF-8 is replaced, what is no escape stands as it came; nothing is an error.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let fields = pairs.take(MOST_FIELDS).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(fields.collect())
    }

    /// The first field of this name, when it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// A segment of a path decoded: `%XX` is a byte. `None` for what is no UTF-8 then.
pub(crate) fn segment(text: &str) -> Option<String> {
    String::from_utf8(decoded(text)).ok()
}

/// A text as it stands in a query or as a segment of a path.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(encoded, "%{byte:02X}").unwrap_or_default();
        }
    }
    encoded
}

/// One field decoded: `+` is a blank, `%XX` a byte.
fn decode(text: &str) -> String {
    String::from_utf8_lossy(&decoded(&text.replace('+', " "))).into_owned()
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut ahead = bytes.clone();
                let escaped = hex(ahead.next()).zip(hex(ahead.next()));
                match escaped {
                    Some((high, low)) => {
                        bytes = ahead;
                        high << 4 | low
                    }
                    None => byte,
                }
            }
            other => other,
        });
    }
    decoded
}

fn hex(byte: Option<u8>) -> Option<u8> {
    let digit = char::from(byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_segment_of_a_path() {
        for text in ["INV/2026#17", "a+b c", "заявка", "%2e", "..", "a?b=1&c"] {
            let encoded = encode(text);
            assert!(
                !encoded.contains(['/', '#', '?', '+', '&', ' ']),
                "{encoded}"
            );
            assert_eq!(segment(&encoded).as_deref(), Some(text));
            assert_eq!(decode(&encoded), text);
        }
        assert_eq!(segment("a+b").as_deref(), Some("a+b"));
        assert_eq!(segment("%ff"), None);
    }

    #[test]
    fn fields_are_decoded() {
        let form = Form::parse("shop=%D0%9B%D0%B0+x&code=ABCD-EFGH&empty=&odd=%zz%4&flag");
        assert_eq!(form.get("shop"), Some("Ла x"));
        assert_eq!(form.get("code"), Some("ABCD-EFGH"));
        assert_eq!(form.get("odd"), Some("%zz%4"));
        for missing in ["empty", "flag", "nothing"] {
            assert_eq!(form.get(missing), None, "{missing}");
        }
    }
}
