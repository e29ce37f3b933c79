//! What the merchant is shown: doubts about the address first, then address and code, each as a plain line of its own that
//! no terminal width breaks (A35), and only then the QR code.

use std::io::{self, IsTerminal as _};

use serde_json::{Value, json};
use url::Url;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, json_line, print_to_reader, talk};
use super::qr;
use crate::client::address::is_loopback_url;
use crate::invoice::moment::Moment;
use crate::wire::login::LoginStarted;

/// Shows them. The code's life is counted from `began_ms`. `more` are further fields for programs.
pub(super) fn show(
    context: &Context,
    started: &LoginStarted,
    began_ms: i64,
    with_qr: bool,
    more: Option<(&str, Value)>,
) -> Result<(), Failure> {
    let cabinet = context.settings()?.service.cabinet_url.as_deref();
    let doubts = doubts(&started.verification_url, cabinet);
    for doubt in &doubts {
        talk(&format!(
            "warning: {doubt}; confirm nothing there unless you know why"
        ));
    }
    // A login nobody was shown must not look like one that is done.
    let shown = |text: &str| {
        print_to_reader(text).map_err(|error| {
            Failure::new(Exit::Error, error).context("could not show where to confirm")
        })
    };
    if context.output.json() {
        return shown(&json_line(&fields(started, began_ms, &doubts, more)));
    }
    let lines = format!(
        "{}\n{}",
        escape(&started.verification_url),
        escape(&started.user_code)
    );
    shown(&format!("{lines}\n"))?;
    // Whoever sends the answer into a file still sits before the terminal.
    if io::stderr().is_terminal() && !io::stdout().is_terminal() {
        talk(&lines);
    }
    if with_qr && doubts.is_empty() {
        qr::show(&started.verification_url);
    }
    talk("open the address, choose the shop, compare the code, confirm");
    Ok(())
}

fn fields(
    started: &LoginStarted,
    began_ms: i64,
    doubts: &[String],
    more: Option<(&str, Value)>,
) -> Value {
    let life_ms = i64::try_from(started.expires_in_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
    let expires_ms = began_ms.saturating_add(life_ms);
    let mut fields = json!({
        "state": "pending",
        "verification_url": started.verification_url,
        "user_code": started.user_code,
        "expires_in_s": started.expires_in_s,
        "expires_at": Moment::from_ms(expires_ms).to_string(),
        "interval_s": started.interval_s,
        "warnings": doubts,
    });
    if let (Some(object), Some((name, value))) = (fields.as_object_mut(), more) {
        object.insert(name.to_owned(), value);
    }
    fields
}

/// What does not look right about a verification address, in words for a person. Empty when nothing is.
fn doubts(address: &str, cabinet: Option<&str>) -> Vec<String> {
    let Ok(url) = Url::parse(address) else {
        return vec!["the address is not a URL".to_owned()];
    };
    let mut doubts = Vec::new();
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback_url(address)) {
        doubts.push("the address is not https".to_owned());
    }
    let configured = cabinet.and_then(|cabinet| Url::parse(cabinet).ok());
    if let Some(wanted) = configured.as_ref().and_then(Url::host_str) {
        let host = url.host_str().unwrap_or_default();
        if host != wanted {
            doubts.push(format!(
                "the address leads to `{}`, the configured cabinet is `{wanted}`",
                escape(host)
            ));
        }
    }
    if escape(address) != address {
        doubts.push("the address holds characters that cannot be seen".to_owned());
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_does_not_look_right_is_called_out() {
        let cabinet = Some("https://cabinet.example");
        for (address, count) in [
            ("https://cabinet.example/activate?code=A", 0),
            ("https://cabinet.example:8443/activate", 0),
            ("https://cabinet.example.evil/activate", 1),
            ("https://cabinet.example@evil.example/activate", 1),
            ("http://cabinet.example/activate", 1),
            ("http://evil.example/activate", 2),
            ("http://127.0.0.1:8481/activate", 1),
            ("javascript:alert(1)", 2),
            ("activate", 1),
            ("https://cabinet.example/\u{202e}activate", 1),
            ("https://cabinet.example/acti\nvate", 1),
        ] {
            assert_eq!(doubts(address, cabinet).len(), count, "{address}");
        }
        assert_eq!(doubts("http://127.0.0.1:8481/activate", None).len(), 0);
        assert_eq!(
            doubts("http://127.0.0.1/activate", Some("http://127.0.0.1:1")).len(),
            0
        );
    }
}
