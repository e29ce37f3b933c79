//! The service's word for what went wrong: `{ "error": "…" }`. Shown to the operator, never parsed for meaning, except
//! the codes RFC 8628 names for the device login and the 503 of contract 7.

use serde_json::json;

use super::fields::{Field, Fields};
use crate::secret::{Cutter, Secret};

/// Longest error text shown, in characters. It goes to a terminal and a log, not to a machine.
const LONGEST: usize = 300;

/// The token poll's code for "not yet confirmed" (contract 4.2).
pub const AUTHORIZATION_PENDING: &str = "authorization_pending";
/// RFC 8628 3.5: poll more slowly, 5 s more from now on.
pub const SLOW_DOWN: &str = "slow_down";
/// RFC 8628 3.5: the device code has expired.
pub const EXPIRED_TOKEN: &str = "expired_token";
/// RFC 8628 3.5: the merchant refused.
pub const ACCESS_DENIED: &str = "access_denied";
/// The text of contract 7 for "all requisites are occupied".
pub const NO_REQUISITES: &str = "Нет доступных реквизитов";

/// The `error` text of an answer, when the body is a JSON object that has one: without the hidden secrets, and then
/// capped at 300 characters. In this order: a secret that was cut in half would not be found any more.
pub fn error_text(body: &[u8], hidden: &[&Secret]) -> Option<String> {
    let fields = Fields::read(body).ok()?;
    let text = fields.get("error").and_then(Field::as_str)?;
    let mut told = text.to_owned();
    Cutter::new(hidden).cut(&mut told);
    Some(told.chars().take(LONGEST).collect())
}

/// The JSON text of a problem; for the sandbox.
pub fn to_json(error: &str) -> String {
    json!({ "error": error }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_object_with_an_error_string_speaks() {
        assert_eq!(
            error_text(to_json(NO_REQUISITES).as_bytes(), &[]).as_deref(),
            Some(NO_REQUISITES)
        );
        for other in ["<html>503</html>", "", "{}", "{\"error\":5}", "[\"error\"]"] {
            assert_eq!(error_text(other.as_bytes(), &[]), None, "{other}");
        }
        assert_eq!(
            error_text(to_json(&"x".repeat(9_000)).as_bytes(), &[]).map(|t| t.len()),
            Some(LONGEST)
        );
    }

    #[test]
    fn a_secret_at_the_cap_is_cut_whole() {
        let secret = Secret::new("notify-token-notify-token-notify-token-0123");
        for pad in 200..320 {
            let body = to_json(&format!("{}{}", ".".repeat(pad), secret.expose()));
            let told = error_text(body.as_bytes(), &[&secret]).expect("it speaks");
            assert!(!told.contains("notify"), "after {pad} characters: {told}");
        }
    }
}
