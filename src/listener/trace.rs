//! What is kept of a refused POST beside its reason: enough to see what a sender does wrong, nothing that could be a
//! secret. No value of a header, no body, and of a path only a short hash. Pure.

use std::fmt::Write as _;

use hyper::header::HeaderMap;
use ring::digest::{SHA256, digest};

/// Header names kept. Senders set a dozen, proxies add as many.
const NAMES_MOST: usize = 40;
/// Bytes of all kept names with their commas, the count of the others included.
const NAMES_BYTES: usize = 1_000;
/// Room for the count of those left out.
const COUNT_BYTES: usize = 8;
/// Hex digits of a hash by which a ref is recognised and not known.
const SHORT: usize = 8;

/// The names of the headers, sorted, each once, with a comma between. Bytes that are unusual in a name are written
/// `\xNN`. Names beyond the bounds are only counted: `+3` at the end says that three more were there.
pub(super) fn header_names(headers: &HeaderMap) -> String {
    names(headers.keys().map(hyper::header::HeaderName::as_str))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut sorted: Vec<String> = names.map(escaped).collect();
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

fn escaped(name: &str) -> String {
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
    fn hashes_are_told_in_hex() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(ref_hash("abc"), "ba7816bf");
    }
}
