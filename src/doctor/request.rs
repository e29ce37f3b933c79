//! One request to the public address, as a stranger on the internet would make it, and what came back of it. The only place of
//! the checks that speaks HTTP itself.

use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::tls::TlsInfo;

use crate::client;
use crate::http::ends_at_s;

/// Of an answer so much is read: our own are shorter than a line.
const BODY: usize = 4_096;
/// For the whole exchange, as a sender would wait.
const WITHIN: Duration = Duration::from_secs(10);

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) status: u16,
    /// Where a redirect points to.
    pub(super) target: Option<String>,
    /// Who says that it answers.
    pub(super) server: Option<String>,
    pub(super) body: String,
    /// When the certificate ends that was shown over TLS, in seconds since 1970.
    pub(super) certificate_ends_at_s: Option<i64>,
}

/// Posts a JSON body with these headers. No redirect is followed, and no proxy of ours used: a sender has neither.
pub(super) async fn post(
    url: &str,
    headers: &[(String, String)],
    body: String,
) -> Result<Answered, reqwest::Error> {
    client::install_tls();
    let client = reqwest::Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .tls_info(true)
        .timeout(WITHIN)
        .build()?;
    let mut request = client
        .post(url)
        .header("content-type", "application/json")
        .body(body);
    for (name, value) in headers {
        request = request.header(name.as_str(), value.as_str());
    }
    let mut response = request.send().await.map_err(reqwest::Error::without_url)?;
    let text = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let mut answered = Answered {
        status: response.status().as_u16(),
        target: text(LOCATION.as_str()),
        server: text("server"),
        body: String::new(),
        certificate_ends_at_s: response
            .extensions()
            .get::<TlsInfo>()
            .and_then(TlsInfo::peer_certificate)
            .and_then(ends_at_s),
    };
    let mut read = Vec::new();
    while read.len() < BODY
        && let Some(piece) = response
            .chunk()
            .await
            .map_err(reqwest::Error::without_url)?
    {
        read.extend_from_slice(&piece);
    }
    read.truncate(BODY);
    answered.body = String::from_utf8_lossy(&read).into_owned();
    Ok(answered)
}
