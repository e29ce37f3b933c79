//! What commands that ask the payment service share: the client made of the settings, and the access token.

use super::context::Context;
use super::failure::{Exit, Failure};
use super::owner;
use crate::answer::service::hinted;
pub(super) use crate::answer::service::{failure, log_in, no_login};
use crate::client::credentials::{Elsewhere, Found, Store};
use crate::client::{Client, SettingsError};

/// The client for the configured service.
pub(super) fn client(context: &Context) -> Result<Client, Failure> {
    let base_url = context.settings()?.require_service()?.to_string();
    let settings = crate::parts::client_settings(context.settings()?, base_url);
    Ok(Client::new(&settings)?)
}

/// The credentials file of the state directory, once it is sure that this user may touch it.
pub(super) fn store(context: &Context) -> Result<Store, Failure> {
    let state_dir = context.state_dir()?;
    owner::check(&state_dir)?;
    Ok(Store::new(&state_dir))
}

/// The access token a one-shot command uses towards the service. The credentials file is only looked at when
/// `SERVICE_TOKEN` is not set.
pub(super) fn token(context: &Context, client: &Client) -> Result<Found, Failure> {
    let elsewhere = Elsewhere::of_one_shot();
    let store = if elsewhere.env_token.is_some() {
        Store::new(&context.state_dir()?)
    } else {
        store(context)?
    };
    store
        .find(&elsewhere, &client.origin())?
        .ok_or_else(no_login)
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let hint = match &error {
            SettingsError::Address(_) => Some("set `service.url` to the service's address"),
            SettingsError::Tls(_) | SettingsError::Roots(_) => Some(
                "install the root certificates (the package `ca-certificates`), or name a file of them in `SSL_CERT_FILE`",
            ),
            SettingsError::Proxy(_) => Some("set `service.proxy` to `http://HOST:PORT`"),
            SettingsError::Timeouts => None,
        };
        hinted(Self::new(Exit::Config, error), hint)
    }
}
