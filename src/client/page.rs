//! A web page in the place of the service's answer: of a firewall, a proxy, a host that is let. Pure.
//! Promises that what is shown of it is short, is escaped, and has no secret of the request.

use std::fmt;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, SERVER};

use crate::secret::{Cutter, Secret};
use crate::telemetry::escape;

/// Characters of a title or a server's name that are shown.
const LONGEST: usize = 80;

/// What a page says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    title: Option<String>,
    server: Option<String>,
}

impl Page {
    /// The page that an answer is, if it is one. The service answers in JSON (contract 1), or with nothing.
    pub(super) fn of(headers: &HeaderMap, body: &[u8], hidden: &[&Secret]) -> Option<Self> {
        let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_html = kind.is_some_and(|kind| {
            let start = b"text/html";
            kind.get(..start.len())
                .is_some_and(|kind| kind.eq_ignore_ascii_case(start))
        });
        let text = String::from_utf8_lossy(body);
        let begins = text.trim_start_matches(|at: char| at == '\u{feff}' || at.is_whitespace());
        // One that is called a page and holds JSON is judged by what it holds.
        let is_page = begins.starts_with('<') || is_html && !begins.starts_with('{');
        let server = headers.get(SERVER).and_then(|server| server.to_str().ok());
        is_page.then(|| Self {
            title: title(&text).and_then(|title| shown(title, hidden)),
            server: server.and_then(|server| shown(server, hidden)),
        })
    }
}

/// What stands between the first `<title …>` and the next `<`.
fn title(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("<title")?;
    let begins = at + lower.get(at..)?.find('>')? + 1;
    let ends = begins + lower.get(begins..)?.find('<')?;
    text.get(begins..ends)
}

fn shown(text: &str, hidden: &[&Secret]) -> Option<String> {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Cutter::new(hidden).cut(&mut text);
    let text: String = text.chars().take(LONGEST).collect();
    (!text.is_empty()).then_some(text)
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a web page")?;
        if let Some(title) = &self.title {
            write!(f, " titled \"{}\"", escape(title))?;
        }
        if let Some(server) = &self.server {
            write!(f, " from the server `{}`", escape(server))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(kind: &'static str, server: Option<&'static str>, body: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(server) = server {
            headers.insert(SERVER, HeaderValue::from_static(server));
        }
        let hidden = Secret::new("secret-of-the-request".to_owned());
        Page::of(&headers, body.as_bytes(), &[&hidden]).map(|page| page.to_string())
    }

    #[test]
    fn a_page_is_told_from_an_answer_and_named() {
        let shown = |kind, server, body| page(kind, server, body).expect("a page");
        assert_eq!(
            shown(
                "text/html; charset=UTF-8",
                Some("cloudflare"),
                "<!DOCTYPE html><html><TITLE lang=en>Attention \n Required! | x</title>",
            ),
            "a web page titled \"Attention Required! | x\" from the server `cloudflare`"
        );
        assert_eq!(shown("text/plain", None, " \u{feff}<html>"), "a web page");
        assert_eq!(shown("TEXT/HTML", None, ""), "a web page");
        let cut = shown(
            "text/html",
            None,
            "<title>secret-of-the-request a\u{1b}[2J</title>",
        );
        assert!(
            !cut.contains("secret-of") && !cut.contains('\u{1b}'),
            "{cut}"
        );
        let long = format!("<title>{}</title>", "x".repeat(1_000));
        assert_eq!(
            shown("text/html", None, &long).matches('x').count(),
            LONGEST
        );
        for (kind, body) in [
            ("application/json", "{\"error\":\"<title>\"}"),
            ("text/html", "{\"error\":\"called a page\"}"),
            ("text/plain", "not found"),
            ("application/json", ""),
            ("text/plain", ""),
        ] {
            assert_eq!(page(kind, Some("nginx"), body), None, "{kind} {body}");
        }
    }
}
