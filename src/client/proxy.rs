//! Whether requests go through a proxy (A33). Without a word of the operator they go straight, whatever variables a
//! shell or a unit exports: a proxy sees which orders are opened when, and on plain http the access token too.
//!
//! Promises that a service on this machine is asked without a proxy, whatever is set. Credentials in the address of a
//! proxy can only come from the environment, and stand in no error.

use reqwest::ClientBuilder;

/// Which proxy to use towards the payment service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// None.
    #[default]
    Straight,
    /// What `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, read when the client is made.
    Environment,
    /// This one for every request: `http://HOST:PORT`. For an https service it is asked for a tunnel (RFC 9110, 9.3.6).
    At(String),
}

impl Proxy {
    /// Puts the choice into a client under construction.
    pub(super) fn apply(
        &self,
        builder: ClientBuilder,
        is_loopback: bool,
    ) -> reqwest::Result<ClientBuilder> {
        Ok(match self {
            // reqwest would send even 127.0.0.1 through an exported HTTP_PROXY.
            _ if is_loopback => builder.no_proxy(),
            Self::Straight => builder.no_proxy(),
            Self::Environment => builder,
            Self::At(url) => builder.proxy(reqwest::Proxy::all(url)?),
        })
    }
}
