//! The typed client of the payment service: the four requests of contract 4.
//!
//! Promises: an access token is sent to the configured origin only, since every address is built from it and no redirect
//! is followed; every exchange ends within the two time limits and every answer within [`LARGEST_ANSWER`]; nothing is
//! ever sent twice by itself; errors hold neither bodies nor, as reports do not, secrets of the request. It remembers nothing and decides nothing: retries
//! belong to the caller, and the pace of all requests of a process to [`gate`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use rustls::crypto::{CryptoProvider, ring};

use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::Report;
use crate::regular_file::{self, Unfit};
use crate::secret::Secret;
use crate::wire;
use crate::wire::create::CreateRequest;
use crate::wire::login::{LoginStarted, TokenIssued};
use crate::wire::problem;
use address::{Address, AddressError};
use answer::Answer;
pub(crate) use answer::is_sendable;
use error::{CreateError, Error, Foreign};
use fetches::Fetches;
use gate::outage::Verdict;
use gate::{Caller, Permit};
use proxy::Proxy;

pub(crate) mod address;
mod answer;
pub(crate) mod credentials;
pub(crate) mod error;
pub(crate) mod fetches;
pub(crate) mod gate;
pub(crate) mod login;
mod page;
pub(crate) mod private_file;
pub(crate) mod proxy;
pub(crate) mod retry_after;
#[cfg(test)]
mod tests;

/// Largest answer read, in bytes. An invoice object has about one KiB; the rest is room for requisites yet unknown. Many
/// may come at once.
pub(crate) const LARGEST_ANSWER: usize = 256 * 1024;

/// How tilld names itself to the service.
const USER_AGENT: &str = concat!("tilld/", env!("CARGO_PKG_VERSION"));

/// Where the service is and how long to wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The service's base address, with or without a path prefix.
    pub base_url: String,
    /// Longest wait for a connection, TLS included. At most nine tenths of `request_timeout` are used: were the two to
    /// end together, a connection that never stood could not be told from a lost answer.
    pub connect_timeout: Duration,
    /// Longest wait for a whole exchange: connect, send, and the last byte of the answer.
    pub request_timeout: Duration,
    /// Take plain http towards other machines too: the token then travels in the open.
    pub allow_plain_http: bool,
    /// The proxy between here and the service; a service on this machine is never asked through one.
    pub proxy: Proxy,
}

/// Why no client can be made of the settings. All of it is for the operator to put right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The base address is not one.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// No time at all for a connection or a request.
    #[error("the time-outs of a connection and of a request must be above zero")]
    Timeouts,
    /// No TLS: most often a machine without root certificates (the package `ca-certificates`).
    #[error("could not prepare TLS")]
    Tls(#[source] reqwest::Error),
    /// What `SSL_CERT_FILE` names is no file: whoever reads it could wait for ever.
    #[error("`SSL_CERT_FILE` names {0}, not a file of root certificates")]
    Roots(&'static str),
    /// The proxy's address is none. The settings were checked, so this names what they let through.
    #[error("could not use the proxy")]
    Proxy(#[source] reqwest::Error),
}

/// What one poll for the token yields (contract 4.2, RFC 8628 3.5).
#[derive(Clone, Debug)]
pub(crate) enum TokenPoll {
    /// The merchant confirmed.
    Issued(TokenIssued),
    /// Not yet confirmed.
    Pending,
    /// Not yet confirmed, and asked too often.
    SlowDown,
    /// The code's life has ended.
    Expired,
    /// The merchant refused.
    Denied,
    /// Any other 4xx: the service will not issue a token for this code.
    Ended {
        /// The HTTP status.
        status: u16,
        /// The service's `error` text.
        text: Option<String>,
    },
}

/// The client. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    address: Address,
    asking: reqwest::Client,
    posting: reqwest::Client,
    fetches: Fetches,
    /// For a whole exchange.
    longest: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("origin", &self.0.address.origin())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client for these settings. Opens no connection.
    pub(crate) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Self::adjusted(settings, |builder| builder)
    }

    /// A client with the last word on both of its connectors.
    fn adjusted(
        settings: &Settings,
        adjust: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, SettingsError> {
        let address = Address::parse(&settings.base_url, settings.allow_plain_http)?;
        let connect = settings
            .connect_timeout
            .min(settings.request_timeout / 10 * 9);
        if connect.is_zero() {
            return Err(SettingsError::Timeouts);
        }
        install_tls();
        // The environment may name a proxy that is reached over TLS.
        let without_roots = address.is_plain() && settings.proxy != Proxy::Environment;
        if !without_roots {
            check_roots()?;
        }
        let build = |idle| {
            let mut builder = reqwest::Client::builder()
                .user_agent(USER_AGENT)
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                // When a name has addresses of both kinds, the connector turns to the other kind after 300 ms (RFC 8305;
                // its default, which no setting of reqwest reaches): `tests/network.rs` would see it go.
                .connect_timeout(connect)
                .pool_max_idle_per_host(idle);
            if without_roots {
                // No use for the machine's root certificates, and some machines have none.
                builder = builder.tls_certs_only([]);
            }
            let builder = settings
                .proxy
                .apply(builder, address.is_loopback())
                .map_err(|cause| SettingsError::Proxy(cause.without_url()))?;
            adjust(builder)
                .build()
                .map_err(|cause| SettingsError::Tls(cause.without_url()))
        };
        // An idle connection may be closed by the service at the moment it is chosen, and then nobody can say whether the
        // request was taken (A32). So a POST always has a fresh one.
        let (asking, posting) = (build(ASKING_IDLE)?, build(0)?);
        Ok(Self(Arc::new(Inner {
            address,
            asking,
            posting,
            fetches: Fetches::default(),
            longest: settings.request_timeout,
        })))
    }

    /// Scheme, host and port of the service: what a stored token is bound to.
    pub(crate) fn origin(&self) -> String {
        self.0.address.origin()
    }

    /// Begins a device login (contract 4.1). `client_name` is shown to the merchant.
    pub(crate) async fn start_login(&self, client_name: &str) -> Result<LoginStarted, Error> {
        let body = Secret::new(wire::login::login_request(client_name));
        let answer = self.post(self.0.address.login(), None, &body, &[]).await?;
        answer
            .success(Answer::refused)?
            .object(LoginStarted::from_json)
    }

    /// Asks once for the token of a login (contract 4.2). `Err` only for what may pass, a redirect, and a foreign answer.
    pub(crate) async fn poll_token(&self, device_code: &Secret) -> Result<TokenPoll, Error> {
        let body = wire::login::token_request(device_code);
        let answer = self
            .post(self.0.address.token(), None, &body, &[device_code])
            .await?;
        let answer = answer.of_the_service()?;
        if answer.is_final_refusal() {
            let (status, text) = answer.into_problem()?;
            return Ok(match text.as_deref() {
                Some(problem::AUTHORIZATION_PENDING) => TokenPoll::Pending,
                Some(problem::SLOW_DOWN) => TokenPoll::SlowDown,
                Some(problem::EXPIRED_TOKEN) => TokenPoll::Expired,
                Some(problem::ACCESS_DENIED) => TokenPoll::Denied,
                Some(_) | None => TokenPoll::Ended { status, text },
            });
        }
        let issued = answer.success(Answer::refused)?;
        issued.object(TokenIssued::from_json).map(TokenPoll::Issued)
    }

    /// Creates an invoice (contract 4.3). Never posts twice. The answer must be about the order that was asked for.
    pub(crate) async fn create_invoice(
        &self,
        token: &Secret,
        request: &CreateRequest,
    ) -> Result<Report, CreateError> {
        let created = self.create(token, request).await;
        match &created {
            Ok(_) | Err(CreateError::NoRequisites { .. }) => self.0.fetches.said_of(token, true),
            Err(CreateError::NotCreated {
                source: Error::LoginNeeded,
            }) => self.0.fetches.said_of(token, false),
            Err(_) => {}
        }
        created
    }

    async fn create(&self, token: &Secret, request: &CreateRequest) -> Result<Report, CreateError> {
        let hidden = [token, &request.notification_token];
        let sent = self
            .post(
                self.0.address.invoices(),
                Some(token),
                &request.to_json(),
                &hidden,
            )
            .await;
        let answer = sent.map_err(CreateError::sort)?;
        self.0.fetches.dated(answer.service_ms());
        if let Some(text) = answer.no_requisites() {
            return Err(CreateError::NoRequisites {
                text,
                retry_after: answer.retry_after(),
            });
        }
        let decoded = answer
            .success(Answer::refused)
            .and_then(|answer| answer.invoice(&hidden))
            .map_err(CreateError::sort)?;
        if decoded.names_other_order(&request.internal_id) {
            return Err(CreateError::sort(Error::NotTheService {
                why: Foreign::OtherOrder,
            }));
        }
        Ok(decoded)
    }

    /// Fetches one invoice (contract 4.4). The answer must be about the invoice that was asked for. `own` is its notify token,
    /// which the service knows and may tell.
    pub(crate) async fn fetch_invoice(
        &self,
        (token, own): (&Secret, Option<&Secret>),
        id: &InvoiceId,
    ) -> Result<Report, Error> {
        let hidden: Vec<&Secret> = [token].into_iter().chain(own).collect();
        let request = self.0.asking.get(self.0.address.invoice(id));
        let request = request.header(reqwest::header::AUTHORIZATION, answer::bearer(token)?);
        let answer = Answer::receive(request, self.0.longest, "fetch", &hidden)
            .await
            .inspect_err(|error| self.0.fetches.unanswered(error))?;
        self.0.fetches.answered(answer.status());
        self.0.fetches.dated(answer.service_ms());
        let decoded = answer.success(Answer::refused_one)?.invoice(&hidden)?;
        if decoded.id == *id {
            Ok(decoded)
        } else {
            Err(Error::NotTheService {
                why: Foreign::OtherInvoice,
            })
        }
    }

    /// Asks for the base address itself, without a token: the status of whatever answers there, and its clock where the answer
    /// is dated, milliseconds since 1970.
    pub(crate) async fn knock(&self) -> Result<(u16, Option<i64>), Error> {
        let request = self.0.asking.get(self.0.address.base());
        let answer = Answer::receive(request, self.0.longest, "knock", &[]).await?;
        self.0.fetches.dated(answer.service_ms());
        Ok((answer.status(), answer.service_ms()))
    }

    /// How questions about invoices were answered since the process began.
    pub(crate) fn fetches(&self) -> &Fetches {
        &self.0.fetches
    }

    /// Fetches one invoice in a turn of the gate, and tells the gate how that ended.
    pub(crate) async fn fetch_in_turn(
        &self,
        permit: Permit,
        secrets: (&Secret, Option<&Secret>),
        id: &InvoiceId,
    ) -> Result<Report, Error> {
        permit.leaves();
        let answer = self.fetch_invoice(secrets, id).await;
        if let Some(wait) = answer.as_ref().err().and_then(Error::retry_after) {
            permit.heed(Caller::Background, wait);
        }
        permit.ended(match &answer {
            Ok(_report) => Verdict::Alive,
            Err(error) => error.verdict(),
        });
        answer
    }

    async fn post(
        &self,
        url: reqwest::Url,
        token: Option<&Secret>,
        body: &Secret,
        hidden: &[&Secret],
    ) -> Result<Answer, Error> {
        let mut request = self.0.posting.post(url);
        request = request.header(reqwest::header::CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            request = request.header(reqwest::header::AUTHORIZATION, answer::bearer(token)?);
        }
        let request = request.body(body.expose().to_owned());
        Answer::receive(request, self.0.longest, "post", hidden).await
    }
}

/// Makes TLS ready, once for the process: reqwest panics without a provider.
pub(crate) fn install_tls() {
    if CryptoProvider::get_default().is_none() {
        // Losing the race to another thread is as good as winning it.
        drop(ring::default_provider().install_default());
    }
}

/// Looks at the file that is read in place of the machine's root certificates, where the environment names one.
fn check_roots() -> Result<(), SettingsError> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    match named.as_deref().map(regular_file::open) {
        Some(Err(Unfit::Kind(kind))) => Err(SettingsError::Roots(kind)),
        Some(_) | None => Ok(()),
    }
}

/// Idle connections kept for fetches. As many as are asked at once under the default caps (design 7).
const ASKING_IDLE: usize = 4;
