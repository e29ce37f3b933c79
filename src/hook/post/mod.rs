//! One run of a hook that is an address of the shop: the document that a program would read is posted, signed as Standard
//! Webhooks 1.0 says.
//!
//! In two steps, like a program's: [`prepare()`] reads the secret and signs, [`Prepared::run`] sends and waits for the
//! answer. Promises: one request, sent once, straight to the configured address, over a connection of its own; no redirect
//! is followed and no proxy asked; an end within the hook's time; of the answer's body only the first and last part, in
//! bounded memory. The status line is the answer: what becomes of the body after it changes nothing, as a descendant of a
//! program that holds its output changes nothing.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use rustls::crypto::{CryptoProvider, ring};
use tokio::time::Instant;

use super::capture::Capture;
use super::payload::{self, Facts};
use super::process::{Ending, Finished};
use super::secret_file;
use crate::clock::wall_ms;
use crate::news;
use crate::retry_after;
use crate::shutdown::Shutdown;

/// How tilld names itself to the shop.
const NAME: &str = concat!("tilld/", env!("CARGO_PKG_VERSION"));

/// What is posted.
const JSON: &str = "application/json";

/// How long an answer's body is read after its status came: it is for a person who looks for the reason, and the hook's
/// place is for the next order.
const BODY_TIME: Duration = Duration::from_secs(5);

/// Most bytes of a body that are read to find its last part. An endless one is cut off here.
const LONGEST_BODY: u64 = 1024 * 1024;

/// Where to post, and with what signature. Clones share their connector.
#[derive(Clone)]
pub struct Target {
    /// The address, as configured.
    pub address: String,
    /// The file with the secrets that sign.
    pub secret_file: PathBuf,
    /// How long the whole exchange may take.
    pub timeout: Duration,
    /// Made at the first use: the machine's root certificates are read for it.
    connector: Arc<OnceLock<Client>>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("secret_file", &self.secret_file)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// A target that was not posted to yet.
    pub fn new(address: impl Into<String>, secret_file: PathBuf, timeout: Duration) -> Self {
        Self {
            address: address.into(),
            secret_file,
            timeout,
            connector: Arc::default(),
        }
    }
}

/// A signed document that was not sent yet.
#[derive(Debug)]
pub struct Prepared {
    client: Client,
    address: Url,
    headers: [(&'static str, String); 5],
    document: String,
    timeout: Duration,
}

/// Why nothing is sent.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The address is none. The settings were checked, so this names what they let through.
    #[error("the hook's address is none")]
    Address,
    /// There is nothing to sign with.
    #[error("no secret in `{}`", .0.display())]
    Secret(PathBuf, #[source] secret_file::SecretFileError),
    /// No TLS: most often a machine without root certificates (the package `ca-certificates`).
    #[error("could not prepare TLS")]
    Tls(#[source] reqwest::Error),
}

impl PrepareError {
    /// What happened and its cause in one line, as it is stored with the attempt.
    pub fn why(&self) -> String {
        match self {
            Self::Address => self.to_string(),
            Self::Secret(_, cause) => format!("{self}: {cause}"),
            Self::Tls(cause) => format!("{self}: {}", innermost(cause)),
        }
    }
}

/// Reads the secrets and signs what will be sent, with the time of now.
pub async fn prepare(target: &Target, facts: &Facts) -> Result<Prepared, PrepareError> {
    let address = Url::parse(&target.address).map_err(|_unshown| PrepareError::Address)?;
    let (file, connector) = (target.secret_file.clone(), Arc::clone(&target.connector));
    let encrypted = address.scheme() == "https";
    // Files are read for both.
    let read = tokio::task::spawn_blocking(move || {
        (secret_file::read(&file), connected(&connector, encrypted))
    });
    let (keys, client) = match read.await {
        Ok(read) => read,
        Err(error) => (Err(std::io::Error::other(error).into()), connect(encrypted)),
    };
    let keys = keys.map_err(|error| PrepareError::Secret(target.secret_file.clone(), error))?;
    let document = payload::document(facts);
    // Of the attempt, not of the event: receivers refuse what is older than some minutes.
    let at_s = wall_ms().div_euclid(1_000);
    let signature = keys.sign(&facts.event_id, at_s, document.as_bytes());
    Ok(Prepared {
        client: client.map_err(PrepareError::Tls)?,
        address,
        headers: [
            (CONTENT_TYPE.as_str(), JSON.to_owned()),
            (USER_AGENT.as_str(), NAME.to_owned()),
            ("webhook-id", facts.event_id.clone()),
            ("webhook-timestamp", at_s.to_string()),
            ("webhook-signature", signature),
        ],
        document,
        timeout: target.timeout,
    })
}

fn connected(connector: &OnceLock<Client>, encrypted: bool) -> reqwest::Result<Client> {
    if let Some(client) = connector.get() {
        return Ok(client.clone());
    }
    let client = connect(encrypted)?;
    Ok(connector.get_or_init(|| client).clone())
}

fn connect(encrypted: bool) -> reqwest::Result<Client> {
    if CryptoProvider::get_default().is_none() {
        // reqwest panics without a provider. Losing the race to another thread is as good as winning it.
        drop(ring::default_provider().install_default());
    }
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // A proxy of the environment is nothing the shop's own address was configured for.
        .no_proxy()
        // An idle connection may be closed by the shop at the moment it is chosen, and a failed attempt would be the
        // answer of a shop that works.
        .pool_max_idle_per_host(0);
    if !encrypted {
        // No use for the machine's root certificates, and some machines have none.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

impl Prepared {
    /// The headers that are sent beside those of every request.
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }

    /// Sends it, and waits for the answer: at the latest the hook's time from now, or until the wish to stop.
    pub async fn run(self, stop: &Shutdown) -> Finished {
        let deadline = Instant::now() + self.timeout;
        let mut request = self.client.post(self.address);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let mut sending = pin!(request.body(self.document).send());
        let (answer, late) = tokio::select! {
            biased;
            // An answer that came meanwhile and waits to be read is no interruption.
            () = stop.requested() => (news::within(Duration::ZERO, sending).await, Ending::Interrupted),
            answer = news::before(deadline, sending.as_mut()) => (answer, Ending::TimedOut),
        };
        let response = match answer {
            Some(Ok(response)) => response,
            // Without the address: its query may hold what only the shop should know, and the result is read by many.
            Some(Err(error)) => {
                let why = innermost(&error.without_url());
                return unanswered(Ending::NoAnswer(why));
            }
            None => return unanswered(late),
        };
        let ending = Ending::Answered {
            status: response.status().as_u16(),
            retry_after: wish(response.headers()),
        };
        let until = deadline.min(Instant::now() + BODY_TIME);
        Finished {
            ending,
            stdout: body(response, until, stop).await,
            stderr: Vec::new(),
        }
    }
}

fn unanswered(ending: Ending) -> Finished {
    Finished {
        ending,
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

fn wish(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    retry_after::wish(text(RETRY_AFTER)?, text(DATE), wall_ms())
}

/// First and last part of the body, as far as it came.
async fn body(mut response: Response, until: Instant, stop: &Shutdown) -> Vec<u8> {
    let (mut capture, mut count) = (Capture::default(), 0_u64);
    while count < LONGEST_BODY {
        let chunk = tokio::select! {
            biased;
            () = stop.requested() => break,
            chunk = news::before(until, response.chunk()) => chunk,
        };
        let Some(Ok(Some(bytes))) = chunk else {
            break;
        };
        // A part may be large, and what is beyond the limit counts for nothing, not even as dropped.
        let room = usize::try_from(LONGEST_BODY - count).unwrap_or(usize::MAX);
        let taken = bytes.get(..room).unwrap_or(&bytes);
        capture.add(taken);
        count = count.saturating_add(taken.len() as u64);
    }
    capture.into_bytes()
}

/// What went wrong in the end: the layers above say only that something did.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
