//! The two languages of the pages, by what the browser asks for.

use hyper::HeaderMap;
use hyper::header::ACCEPT_LANGUAGE;

/// A language of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lang {
    /// English, also for whoever asks for neither.
    En,
    /// Russian.
    Ru,
}

impl Lang {
    /// The one of the two that the browser likes better (RFC 9110, section 12.5.4).
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(ACCEPT_LANGUAGE).iter();
        let texts = lines.filter_map(|line| line.to_str().ok());
        let (mut en, mut ru) = (0, 0);
        for range in texts.flat_map(|text| text.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
            let weight = weight.map_or(Some(1_000), thousandths).unwrap_or(0);
            match name.split('-').next() {
                Some("en") => en = weight.max(en),
                Some("ru") => ru = weight.max(ru),
                _ => {}
            }
        }
        if ru > en { Self::Ru } else { Self::En }
    }

    /// The text in this language.
    pub(super) fn t(self, en: &'static str, ru: &'static str) -> &'static str {
        match self {
            Self::En => en,
            Self::Ru => ru,
        }
    }

    /// As HTML names it.
    pub(super) fn code(self) -> &'static str {
        self.t("en", "ru")
    }
}

/// A weight in thousandths: 0 to 1 with at most three digits behind the point (RFC 9110, section 12.4.2). Nothing else is
/// one; it comes from whoever sends the header.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    if digits.len() > 3 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part: u32 = format!("{digits:0<3}").parse().ok()?;
    match (whole, part) {
        ("0", part) => Some(part),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn the_language_the_browser_likes_better() {
        for (asked, wanted) in [
            ("ru-RU,ru;q=0.9,en-US;q=0.8,en;q=0.7", Lang::Ru),
            ("en-US,en;q=0.9,ru;q=0.8", Lang::En),
            ("de,ru;q=0.3", Lang::Ru),
            ("ru;q=0", Lang::En),
            ("ru;q=x", Lang::En),
            ("en;q=0.5,ru;q=4294968", Lang::En),
            ("en;q=0.5, ru ; Q=1.000", Lang::Ru),
            ("de", Lang::En),
            ("", Lang::En),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(asked));
            assert_eq!(Lang::of(&headers), wanted, "{asked}");
        }
        assert_eq!(Lang::of(&HeaderMap::new()), Lang::En);
    }
    #[test]
    fn a_weight_is_0_to_1_with_three_digits_at_most() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("0.", Some(0)),
            ("0.5", Some(500)),
            ("0.123", Some(123)),
            ("1", Some(1_000)),
            ("1.000", Some(1_000)),
            ("1.001", None),
            ("0.1234", None),
            ("00", None),
            ("2", None),
            (".5", None),
            ("+1", None),
            ("-0", None),
            ("0.+1", None),
            ("0.é", None),
            ("4294968", None),
            ("", None),
        ] {
            assert_eq!(thousandths(text), wanted, "`{text}`");
        }
    }
}
