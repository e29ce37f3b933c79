//! Until when a certificate holds, read off its DER (RFC 5280 4.1). Pure.
//!
//! Nothing in the tree tells it, and a crate that reads certificates would bring ten more for the one field. What is not as
//! the RFC has it gives nothing.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When the certificate ends, in seconds since 1970.
pub(crate) fn ends_at_s(der: &[u8]) -> Option<i64> {
    let (certificate, _) = value(der, SEQUENCE)?;
    let (body, _signature) = value(certificate, SEQUENCE)?;
    // Certificates of version 1 have none.
    let body = value(body, VERSION).map_or(body, |(_version, rest)| rest);
    let (_serial, body) = any(body)?;
    let (_algorithm, body) = value(body, SEQUENCE)?;
    let (_issuer, body) = value(body, SEQUENCE)?;
    let (validity, _) = value(body, SEQUENCE)?;
    let (_begin, validity) = any(validity)?;
    let ((kind, end), _) = any(validity)?;
    instant(kind, str::from_utf8(end).ok()?)
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, the only forms there are (RFC 5280 4.1.2.5).
fn instant(kind: u8, text: &str) -> Option<i64> {
    let whole = match kind {
        // Two digits of a year stand for 1950 to 2049.
        UTC_TIME if text.len() == 13 => {
            let century = if text.get(..2)? < "50" { "20" } else { "19" };
            format!("{century}{text}")
        }
        GENERALIZED_TIME if text.len() == 15 => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", whole).ok()?;
    Some(TimeZone::UTC.to_timestamp(time).ok()?.as_second())
}

/// The content of the first element, which has this tag, and what follows it.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let ((found, content), rest) = any(der)?;
    (found == tag).then_some((content, rest))
}

type Element<'a> = ((u8, &'a [u8]), &'a [u8]);

/// Tag and content of the first element, and what follows it.
fn any(der: &[u8]) -> Option<Element<'_>> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        // So many bytes of length; four are more than any certificate has.
        long @ 0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length = bytes.iter().try_fold(0_usize, |sum, byte| {
                Some(sum.checked_mul(256)? + usize::from(*byte))
            })?;
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some(((*tag, content), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut der = vec![tag];
        match u8::try_from(length) {
            Ok(short @ 0..=0x7f) => der.push(short),
            Ok(long) => der.extend([0x81, long]),
            Err(_) => {
                let [high, low] = u16::try_from(length).expect("short").to_be_bytes();
                der.extend([0x82, high, low]);
            }
        }
        der.extend(content);
        der
    }

    fn certificate(version: bool, kind: u8, end: &str) -> Vec<u8> {
        let begin = element(UTC_TIME, b"250101000000Z");
        let validity = [begin, element(kind, end.as_bytes())].concat();
        let version = if version {
            element(VERSION, &element(2, &[2]))
        } else {
            Vec::new()
        };
        let long = element(0x0c, &[b'x'; 300]);
        let body = [
            version,
            element(2, &[1, 2, 3]),
            element(SEQUENCE, b""),
            element(SEQUENCE, &long),
            element(SEQUENCE, &validity),
            element(SEQUENCE, b"the rest"),
        ];
        element(SEQUENCE, &element(SEQUENCE, &body.concat()))
    }

    #[test]
    fn the_end_is_read_in_both_forms() {
        for (kind, end, wanted) in [
            (UTC_TIME, "271128191005Z", Some(1_827_429_005)),
            (UTC_TIME, "700101000000Z", Some(0)),
            (GENERALIZED_TIME, "20501231235959Z", Some(2_556_143_999)),
            (UTC_TIME, "20501231235959Z", None),
            (UTC_TIME, "2711281910Z", None),
            (GENERALIZED_TIME, "20501331235959Z", None),
            (4, "271128191005Z", None),
        ] {
            for version in [true, false] {
                let der = certificate(version, kind, end);
                assert_eq!(ends_at_s(&der), wanted, "{end}");
            }
        }
    }

    #[test]
    fn a_torn_certificate_gives_nothing() {
        let whole = certificate(true, UTC_TIME, "271128191005Z");
        for length in 0..whole.len() {
            let torn = whole.get(..length).expect("a part");
            assert_eq!(ends_at_s(torn), None, "{length}");
        }
        assert_eq!(ends_at_s(&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(ends_at_s(&[SEQUENCE, 0x80]), None);
    }
}
