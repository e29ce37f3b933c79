//! What is kept of a refused POST beside its reason: enough to see what a sender does wrong, nothing that could be a
//! secret. No value of a header, no body, of a ref only a short hash, and of a path that is none of ours what is no ref. Pure.

use std::fmt::Write as _;

use hyper::header::{HeaderMap, HeaderName};
use ring::digest::{SHA256, digest};

use crate::secret::{CUT_MARK, Cutter};

/// Header names kept. Senders set a dozen, proxies add as many.
const NAMES_MOST: usize = 40;
/// Bytes of all kept names with their commas, the count of the others included.
const NAMES_BYTES: usize = 1_000;
/// Room for the count of those left out.
const COUNT_BYTES: usize = 8;
/// Characters of a path that are told.
const PATH_CHARS: usize = 100;
/// Characters of a ref, see [`crate::invoice::ids::InvoiceRef`].
const REF_CHARS: usize = 22;
/// Hex digits of a hash by which a ref is recognised and not known.
const SHORT: usize = 8;

/// The names of the headers, sorted, each once, with a comma between, and without a secret that stands in one. Bytes that are
/// unusual in a name are written `\xNN`. Names beyond the bounds are only counted: `+3` at the end says that three more were
/// there.
pub(super) fn header_names(headers: &HeaderMap, hidden: &Cutter<'_>) -> String {
    // In one search. No name holds a line break, and no secret does.
    let lines: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    let mut lines = lines.join("\n");
    hidden.cut_folded(&mut lines);
    names(lines.lines())
}

fn names(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut sorted: Vec<String> = names.map(|name| escaped(name.as_ref())).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut kept = String::new();
    let (mut count, mut left_out) = (0_usize, 0_usize);
    for name in &sorted {
        let length = kept.len() + usize::from(count > 0) + name.len();
        if count == NAMES_MOST || length > NAMES_BYTES - COUNT_BYTES {
            left_out += 1;
            continue;
        }
        if count > 0 {
            kept.push(',');
        }
        kept.push_str(name);
        count += 1;
    }
    if left_out > 0 {
        let comma = if count > 0 { "," } else { "" };
        // Writing to a `String` cannot fail.
        write!(kept, "{comma}+{left_out}").unwrap_or_default();
    }
    kept
}

/// What was cut is told by the mark as it is.
fn escaped(name: &str) -> String {
    let parts: Vec<String> = name.split(CUT_MARK).map(without_odd).collect();
    parts.join(CUT_MARK)
}

fn without_odd(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte.to_ascii_lowercase() {
            usual @ (b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.') => safe.push(usual.into()),
            odd => write!(safe, "\\x{odd:02x}").unwrap_or_default(),
        }
    }
    safe
}

/// The first 8 hex digits of the SHA-256 of the path segment that stood for a ref.
pub(super) fn ref_hash(segment: &str) -> String {
    let mut hash = sha256_hex(segment.as_bytes());
    hash.truncate(SHORT);
    hash
}

/// The path as far as it may be told: whatever may be a ref, or hold one, is left out, and what remains is bounded. A ref with
/// something behind it, or in other letters, is as much nobody else's business as one alone. What stands in `public_path` is
/// known to be none.
pub(super) fn without_ref(path: &str, public_path: &str) -> String {
    let mut told = String::with_capacity(path.len().min(2 * PATH_CHARS));
    let mut rest = path;
    while !rest.is_empty() {
        let (run, chars) = run_of_ref(rest);
        let (own, behind) = rest.split_at(run);
        told.push_str(if chars < REF_CHARS || public_path.contains(own) {
            own
        } else {
            "REF"
        });
        let (other, behind) = behind.split_at(length_of_first(behind));
        told.push_str(other);
        rest = behind;
    }
    told.chars().take(PATH_CHARS).collect()
}

/// How much of the beginning consists of characters that a ref has, in bytes and in such characters. One that is written
/// `%NN` counts as the one it stands for.
fn run_of_ref(text: &str) -> (usize, usize) {
    let is_of_ref = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let (mut end, mut chars) = (0, 0);
    loop {
        end += match text.as_bytes().get(end..).unwrap_or_default() {
            [b'%', high, low, ..] if decoded(*high, *low).is_some_and(is_of_ref) => 3,
            [byte, ..] if is_of_ref(*byte) => 1,
            _ => return (end, chars),
        };
        chars += 1;
    }
}

/// Bytes of the first character, of `%NN` as a whole: its digits begin nothing.
fn length_of_first(text: &str) -> usize {
    match text.as_bytes() {
        [b'%', high, low, ..] if decoded(*high, *low).is_some() => 3,
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

fn decoded(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// The SHA-256 in lower-case hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let mut hex = String::with_capacity(2 * digest.as_ref().len());
    for byte in digest.as_ref() {
        write!(hex, "{byte:02x}").unwrap_or_default();
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_escaped_and_bounded() {
        let kept = |given: &[&str]| names(given.iter().copied());
        assert_eq!(kept(&[]), "");
        assert_eq!(kept(&["Host", "accept", "host"]), "accept,host");
        // A comma or a plus sign in a name is neither a border nor a count.
        assert_eq!(
            kept(&["a,b", "+3", "x\r\n~"]),
            "\\x2b3,a\\x2cb,x\\x0d\\x0a\\x7e"
        );
        let many: Vec<String> = (0..43).map(|number| format!("h-{number:02}")).collect();
        let told = names(many.iter().map(String::as_str));
        assert!(
            told.starts_with("h-00,h-01,") && told.ends_with(",h-39,+3"),
            "{told}"
        );
        // What is too long is left out, and what stands behind it is not.
        let long = "l".repeat(2_000);
        assert_eq!(kept(&["host", &long, "accept"]), "accept,host,+1");
        assert_eq!(kept(&[&long]), "+1");
        let longish: Vec<String> = (0..60).map(|number| format!("{number:099}")).collect();
        let told = names(longish.iter().map(String::as_str));
        assert!(
            told.len() <= NAMES_BYTES && told.ends_with(",+51"),
            "{told}"
        );
    }

    #[test]
    fn no_path_tells_a_ref() {
        const REF: &str = "AzBy-CxDw_EvFu09GtHsIr";
        for (path, wanted) in [
            ("/cart".to_owned(), "/cart"),
            (format!("/pay/{REF}"), "/pay/REF"),
            (format!("/pay/{REF}/"), "/pay/REF/"),
            (format!("/{REF}//{REF}"), "/REF//REF"),
            // With something behind or before it.
            (format!("/pay/{REF}.json"), "/pay/REF.json"),
            (format!("/pay/{REF}x"), "/pay/REF"),
            (format!("/pay/{REF}%2fx"), "/pay/REF%2fx"),
            (format!("/pay/{REF}%20"), "/pay/REF%20"),
            (format!("/pay/n={REF};v=1"), "/pay/n=REF;v=1"),
            (format!("/pay%2F{REF}"), "/pay%2FREF"),
            // In other letters.
            (format!("/pay/{}", REF.replace('-', "%2D")), "/pay/REF"),
            (format!("/pay/{}", REF.replace('E', "%45")), "/pay/REF"),
            // One less, and what is no hex.
            (
                "/pay/AzBy-CxDw_EvFu09GtHsI".to_owned(),
                "/pay/AzBy-CxDw_EvFu09GtHsI",
            ),
            ("/%zz%4".to_owned(), "/%zz%4"),
            // The merchant's own words.
            (
                "/x/notifications-of-payments/n".to_owned(),
                "/x/notifications-of-payments/n",
            ),
            ("/пример/ё".to_owned(), "/пример/ё"),
        ] {
            assert_eq!(
                without_ref(&path, "/notifications-of-payments"),
                wanted,
                "{path}"
            );
        }
        // Across the place where it is cut, and behind it.
        for lead in 70..105 {
            let path: String = "/abc".chars().cycle().take(lead).collect();
            let told = without_ref(&format!("{path}/{REF}"), "/n");
            assert!(!told.contains("Az"), "{told}");
            assert!(told.len() <= PATH_CHARS, "{told}");
        }
    }

    #[test]
    fn hashes_are_told_in_hex() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(ref_hash("abc"), "ba7816bf");
    }
}
