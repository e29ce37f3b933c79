//! `tilld whoami`: the shop, the service and the place of the token, as the login stored them. Asks nobody, unless with
//! `--check`.

mod check;

use serde_json::json;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{print_json, talk};
use super::service;
use crate::client::address::Address;
use crate::client::credentials::{Elsewhere, Login, TokenSource};
use crate::invoice::moment::Moment;

/// What `--help` says at its end.
pub(super) const ENDS: &str = "Exit codes of --check: 0 the service accepts the token, or there is no invoice to check with yet; 4 it rejects it;
8 it could not be reached, 10 it points to another address";

/// Flags of `whoami`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Check that the service accepts the token, by fetching the newest invoice the ledger knows
    #[arg(long)]
    check: bool,
}

/// Where the token in use lies, and the login behind it where one is remembered.
pub(super) struct Identity {
    pub(super) source: TokenSource,
    /// For people: a path, or what stands for one.
    pub(super) place: String,
    pub(super) login: Option<Login>,
}

/// Runs `whoami`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let identity = identify(&context)?.ok_or_else(service::no_login)?;
    let verdict = if args.check {
        Some(check::check(&context).await?)
    } else {
        None
    };
    let login = identity.login.as_ref();
    let stored_at = login.map(|login| Moment::from_ms(login.stored_ms).to_string());
    if context.output.json() {
        let mut answer = json!({
            "shop_name": login.map(|login| &login.shop_name),
            "service": login.map(|login| &login.origin),
            "source": word(identity.source),
            "stored_in": identity.place,
            "stored_at": stored_at,
        });
        if let (Some(answer), Some(verdict)) = (answer.as_object_mut(), &verdict) {
            answer.insert("check".to_owned(), verdict.to_json());
        }
        print_json(&answer)?;
    } else {
        let unknown = || "not known: only a login remembers it".to_owned();
        let mut pairs = vec![
            (
                "shop",
                login.map_or_else(unknown, |login| login.shop_name.clone()),
            ),
            (
                "service",
                login.map_or_else(unknown, |login| login.origin.clone()),
            ),
            ("token from", identity.place),
            ("stored at", stored_at.unwrap_or_else(unknown)),
        ];
        pairs.extend(
            verdict
                .as_ref()
                .map(|verdict| ("token", verdict.sentence())),
        );
        context.output.pairs(&pairs)?;
    }
    if let (Some(login), Some(configured)) = (login, configured_origin(&context)?)
        && login.origin != configured
    {
        talk(&format!(
            "warning: the configured service is {configured}; this login cannot be used there"
        ));
    }
    Ok(verdict.map_or(Exit::Ok, check::Verdict::end))
}

/// The token in use, as far as one-shot commands see it. `None` when there is none.
pub(super) fn identify(context: &Context) -> Result<Option<Identity>, Failure> {
    let elsewhere = Elsewhere::of_one_shot();
    if elsewhere.env_token.is_some() {
        return Ok(Some(Identity {
            source: TokenSource::Environment,
            place: "the variable `SERVICE_TOKEN`".to_owned(),
            login: None,
        }));
    }
    let store = service::store(context)?;
    if let Some(stored) = store.load()? {
        return Ok(Some(Identity {
            source: TokenSource::File,
            place: store.path().display().to_string(),
            login: Some(Login {
                shop_name: stored.shop_name,
                origin: stored.origin,
                stored_ms: stored.stored_ms,
            }),
        }));
    }
    Ok(elsewhere.systemd_token()?.map(|_token| Identity {
        source: TokenSource::SystemdCredential,
        place: "the systemd credential `access-token`".to_owned(),
        login: None,
    }))
}

/// The origin of the configured service, if there is a usable one.
fn configured_origin(context: &Context) -> Result<Option<String>, Failure> {
    let service = &context.settings()?.service;
    let address = service.url.as_deref();
    Ok(address
        .and_then(|url| Address::parse(url, true).ok())
        .map(|address| address.origin()))
}

/// The source in the words of `--json`.
pub(super) const fn word(source: TokenSource) -> &'static str {
    match source {
        TokenSource::Environment => "environment",
        TokenSource::File => "file",
        TokenSource::SystemdCredential => "systemd_credential",
    }
}
