//! Refuses requests that two readers could understand differently, before anything looks at their path.
//!
//! hyper refuses most of them itself (400 and close). What it lets through is judged here: a missing or repeated `Host`
//! (RFC 9112 3.2), a transfer coding beside `chunked`, which nobody here undoes (RFC 9112 6.1), more than one way to tell the body's length (RFC 9112 6.1, 6.3), whether told twice alike or not, and
//! lines that end without a carriage return. The last two hyper hides, so they are read off the bytes by [`super::head`].

use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::{Request, Uri, Version};

use super::head::{Length, Told};

/// True when `request`, whose head said `told`, has one `Host` (HTTP/1.0: at most one), at most one way to tell its body's
/// length, no coding but `chunked`, whole lines, and no fragment in its target.
pub(super) fn is_sound<B>(request: &Request<B>, told: Told) -> bool {
    let hosts = request.headers().get_all(HOST).iter().count();
    let host_is_clear = match request.version() {
        Version::HTTP_10 => hosts <= 1,
        _ => hosts == 1,
    };
    let codings = request.headers().get(TRANSFER_ENCODING);
    let is_plain =
        codings.is_none_or(|codings| codings.as_bytes().eq_ignore_ascii_case(b"chunked"));
    host_is_clear && is_plain && told.lengths <= 1 && !told.is_ragged && !told.has_fragment
}

/// A target that names a host goes before the line `Host`, which an origin server ignores then (RFC 9112 3.2.2). Whoever looks
/// at `Host` sees what counts.
pub(super) fn take_host_of_target<B>(request: &mut Request<B>) {
    let named = request.uri().authority();
    let named = named.and_then(|named| HeaderValue::from_str(named.as_str()).ok());
    if let Some(named) = named {
        request.headers_mut().insert(HOST, named);
    }
}

/// Copies the head out of the buffer that hyper read it into, which it would keep for as long as the request goes on: while a
/// body comes, there would be a second one.
pub(super) fn detach<B>(request: &mut Request<B>) {
    for value in request.headers_mut().values_mut() {
        if let Ok(own) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = own;
        }
    }
    if let Ok(own) = Uri::try_from(request.uri().to_string()) {
        *request.uri_mut() = own;
    }
}

/// How the body's end is found, as hyper does: it has refused what is not one of these.
pub(super) fn length(headers: &HeaderMap) -> Length {
    if headers.contains_key(TRANSFER_ENCODING) {
        return Length::Chunked;
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| {
        let digits = value.to_str().ok()?;
        digits.parse().ok()
    });
    Length::Known(length.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (Version, &'static [&'static str], Told, bool);

    #[test]
    fn one_host_one_length_and_whole_lines() {
        const ONE: Told = Told {
            lengths: 1,
            is_ragged: false,
            has_fragment: false,
        };
        const NONE: Told = Told { lengths: 0, ..ONE };
        const BOTH: Told = Told { lengths: 2, ..ONE };
        const RAGGED: Told = Told {
            is_ragged: true,
            ..ONE
        };
        const FRAGMENT: Told = Told {
            has_fragment: true,
            ..NONE
        };
        let cases: [Case; 9] = [
            (Version::HTTP_11, &["a"], NONE, true),
            (Version::HTTP_11, &[], NONE, false),
            (Version::HTTP_11, &["a", "a"], NONE, false),
            (Version::HTTP_10, &[], NONE, true),
            (Version::HTTP_10, &["a", "b"], NONE, false),
            (Version::HTTP_11, &["a"], ONE, true),
            (Version::HTTP_11, &["a"], BOTH, false),
            (Version::HTTP_11, &["a"], RAGGED, false),
            (Version::HTTP_11, &["a"], FRAGMENT, false),
        ];
        for (version, hosts, told, sound) in cases {
            let mut request = Request::builder().version(version);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let request = request.body(()).expect("a request");
            assert_eq!(
                is_sound(&request, told),
                sound,
                "{version:?} {hosts:?} {told:?}"
            );
        }
    }

    #[test]
    fn the_host_of_the_target_is_the_one_that_counts() {
        for (target, wanted) in [
            ("/n", "a"),
            ("http://evil.example/n", "evil.example"),
            ("http://b:81", "b:81"),
        ] {
            let request = Request::builder().uri(target).header(HOST, "a");
            let mut request = request.body(()).expect("a request");
            take_host_of_target(&mut request);
            assert_eq!(request.headers()[HOST], wanted, "{target}");
        }
    }

    #[test]
    fn a_head_that_was_copied_is_the_same() {
        for target in ["/n/ref?a=%20&b", "http://a:81/n", "*"] {
            let request = Request::builder().uri(target).header(HOST, "a");
            let request = request.header("x", "1").header("x", "\u{e9}\t2");
            let mut request = request.body(()).expect("a request");
            let before = (request.uri().clone(), request.headers().clone());
            detach(&mut request);
            let after = (request.uri().clone(), request.headers().clone());
            assert_eq!(after, before, "{target}");
        }
    }

    #[test]
    fn nobody_undoes_another_coding() {
        for (codings, sound) in [
            ("chunked", true),
            ("Chunked", true),
            ("gzip, chunked", false),
        ] {
            let request = Request::builder()
                .header(HOST, "a")
                .header(TRANSFER_ENCODING, codings);
            let request = request.body(()).expect("a request");
            assert_eq!(is_sound(&request, Told::default()), sound, "{codings}");
        }
    }

    #[test]
    fn a_length_is_what_hyper_goes_by() {
        for (name, value, wanted) in [
            ("host", "a", Length::Known(0)),
            (
                "content-length",
                "18446744073709551615",
                Length::Known(u64::MAX),
            ),
            ("transfer-encoding", "chunked", Length::Chunked),
        ] {
            let request = Request::builder().header(name, value);
            let request = request.body(()).expect("a request");
            assert_eq!(length(request.headers()), wanted, "{name}");
        }
    }
}
