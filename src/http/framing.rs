//! Refuses requests that two readers could understand differently, before anything looks at their path.
//!
//! hyper refuses most of them itself (400 and close). What it lets through is judged here: a missing or repeated `Host`
//! (RFC 9112 3.2), and both lengths where both can be seen (RFC 9112 6.1; hyper hides the pair, lets
//! `Transfer-Encoding` win and closes).

use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::{Request, Version};

/// True when `request` has one `Host` (HTTP/1.0: at most one) and at most one way to tell its body's length.
pub(super) fn is_sound<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let hosts = headers.get_all(HOST).iter().count();
    let host_is_clear = match request.version() {
        Version::HTTP_10 => hosts <= 1,
        _ => hosts == 1,
    };
    host_is_clear && length_is_clear(headers)
}

fn length_is_clear(headers: &HeaderMap) -> bool {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let encodings = headers.get_all(TRANSFER_ENCODING).iter().count();
    lengths <= 1 && encodings <= 1 && lengths + encodings <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (Version, &'static [(&'static str, &'static str)], bool);

    #[test]
    fn one_host_and_one_length() {
        let cases: [Case; 8] = [
            (Version::HTTP_11, &[("host", "a")], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &[("host", "a"), ("host", "a")], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &[("host", "a"), ("host", "b")], false),
            (
                Version::HTTP_11,
                &[("host", "a"), ("content-length", "1")],
                true,
            ),
            (
                Version::HTTP_11,
                &[
                    ("host", "a"),
                    ("content-length", "1"),
                    ("transfer-encoding", "chunked"),
                ],
                false,
            ),
            (
                Version::HTTP_11,
                &[
                    ("host", "a"),
                    ("content-length", "1"),
                    ("content-length", "1"),
                ],
                false,
            ),
        ];
        for (version, headers, sound) in cases {
            let mut request = Request::builder().version(version);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(()).expect("a request");
            assert_eq!(is_sound(&request), sound, "{version:?} {headers:?}");
        }
    }
}
