//! Reads `application/x-www-form-urlencoded`: the queries and the form posts of the sandbox's own pages; and the segments of
//! its paths.

use percent_encoding::{percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::percent::SEGMENT;

/// Fields read at most. The largest form of the pages has four.
const MOST_FIELDS: usize = 32;

/// The fields of a form or a query, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a form. What is no UTF-8 is replaced, what is no escape stands as it came; nothing is an error.
    pub(crate) fn parse(text: &str) -> Self {
        let fields = form_urlencoded::parse(text.as_bytes()).into_owned();
        Self(fields.take(MOST_FIELDS).collect())
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
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// A text as it stands in a query or as a segment of a path.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
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
            let form = Form::parse(&format!("text={encoded}"));
            assert_eq!(form.get("text"), Some(text));
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
