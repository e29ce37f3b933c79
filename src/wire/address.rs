//! Addresses of the service that a browser is sent to. A browser runs a `javascript:` address, opens a `file:` one, and reads one
//! without a scheme as it likes. Pure; promises that only what leads to a web server passes.

use url::Url;

/// Whether a browser may be sent to it: an absolute address of `http` or `https`, to the letter. Where it leads is the service's
/// affair.
pub fn is_for_browsers(text: &str) -> bool {
    // A reader of addresses forgives blanks and line ends before and within a scheme, as browsers do.
    let begins = |scheme: &str| {
        text.get(..scheme.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    (begins("http://") || begins("https://")) && Url::parse(text).is_ok_and(|url| url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_to_a_web_server_passes() {
        for good in [
            "https://pay.example/1",
            "HTTP://127.0.0.1:8491/pay/x?y=%20#z",
            "https://[::1]/оплата",
        ] {
            assert!(is_for_browsers(good), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "JavaScript:alert(1)//https://pay.example/",
            "java\nscript:alert(1)",
            " https://pay.example/",
            "//pay.example/1",
            "/pay/1",
            "pay.example/1",
            "data:text/html,x",
            "file:///etc/passwd",
            "ftp://pay.example/",
            "https:pay.example",
            "https://",
            "\u{202e}https://pay.example/",
        ] {
            assert!(!is_for_browsers(bad), "{bad}");
        }
    }
}
