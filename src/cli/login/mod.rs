//! `tilld login`: shows where to confirm and which code to compare, waits, and stores the token (design 9).
//!
//! In one go, or in two steps for programs that must not block (`steps`). No browser is opened and the token is never
//! shown. The old login stands until the new one is on disk.

mod qr;
mod show;
mod steps;
mod wait;

use serde_json::json;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{escape, print, print_json, talk};
use super::service;
use crate::client::credentials::{Credentials, CredentialsError, ENV_TOKEN, Store};
use crate::client::login::{RequestStore, Tick, wait_for_token};
use crate::client::{Client, is_sendable};
use crate::clock;
use crate::wire::login::{LoginStarted, TokenIssued};
pub(super) use steps::unkept;
use wait::Stop;

/// What `--help` says at its end.
pub(super) const ENDS: &str = "Exit codes: 0 logged in (with --start: begun), 3 --finish without a login begun, 6 --finish: not confirmed yet,
12 refused in the cabinet, 13 expired, 14 may have been granted: look in the cabinet's list of tokens and run login again";

/// Flags of `login`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show no QR code of the address
    #[arg(long, conflicts_with = "finish")]
    no_qr: bool,
    #[command(flatten)]
    step: Step,
    /// Take a login for another shop than the one before. Invoices of that one are then unknown to the service
    #[arg(long, conflicts_with = "start")]
    another_shop: bool,
}

/// One of the two steps of a login.
#[derive(Debug, clap::Args)]
struct Step {
    /// Only begin: show address and code, keep the login request for `--finish`, and do not wait
    #[arg(long, conflicts_with = "finish")]
    start: bool,
    /// Go on with what `--start` began: poll once if its interval is over, and end with 6 while the login is not confirmed
    #[arg(long)]
    finish: bool,
    /// With `--finish`: go on polling for up to SECONDS, 0 to 86400 [default: 0]
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "finish",
        value_parser = clap::value_parser!(u64).range(0..=86_400)
    )]
    wait: Option<u64>,
}

/// Where the machine's name is read.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Runs `login`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let places = Places::find(&context, args.another_shop)?;
    if args.step.finish {
        return steps::finish(&context, &places, args.step.wait.unwrap_or(0)).await;
    }
    let mut stop = Stop::listen();
    let started = begin(&context, &places, &mut stop).await?;
    if args.step.start {
        return steps::keep(&context, &places, &started, args.no_qr);
    }
    let earlier = places.requests.discard().map_err(unkept)?;
    show::show(&context, &started, clock::wall_ms(), !args.no_qr, None)?;
    if earlier {
        talk("an earlier `login --start` is given up for this login");
    }
    let issued = wait::confirmed(context.output.json(), stop, async |countdown, cancel| {
        let tick = |tick: Tick<'_>| countdown.show(&tick);
        wait_for_token(&places.client, &started, tick, cancel).await
    })
    .await
    .map_err(wait::ended)?;
    places.keep(issued, context.output.json())?;
    Ok(Exit::Ok)
}

/// The service, and where what it says is kept.
struct Places {
    client: Client,
    store: Store,
    requests: RequestStore,
    shop: Shop,
}

/// Which shop a login must be for.
struct Shop {
    /// `service.shop`.
    pinned: Option<String>,
    /// Another one than that of the login before will do.
    another: bool,
}

impl Shop {
    /// The name that a login for `shop` should have been for, when it may not be kept.
    fn expected(&self, known: Option<String>, shop: &str) -> Option<String> {
        let known = known.filter(|_| !self.another);
        let expected = self.pinned.clone().or(known)?;
        (expected != shop).then_some(expected)
    }
}

impl Places {
    /// Finds them, and tries to write before anything is asked for: a token that was issued and cannot be stored is lost,
    /// and stays good.
    fn find(context: &Context, another: bool) -> Result<Self, Failure> {
        let client = service::client(context)?;
        let store = service::store(context)?;
        let pinned = context.settings()?.service.shop.clone();
        let shop = Shop { pinned, another };
        store
            .check_writable()
            .map_err(|error| unprepared(error).context("could not prepare to store the login"))?;
        let requests = RequestStore::new(&context.state_dir()?);
        Ok(Self {
            client,
            store,
            requests,
            shop,
        })
    }

    /// Puts the new login in the place of the old one.
    fn keep(&self, issued: TokenIssued, json: bool) -> Result<(), Failure> {
        let TokenIssued { token, shop_name } = issued;
        if !is_sendable(&token) {
            let told = "the service issued a token that no request can carry: it was not stored, and the login before stands";
            return Err(Failure::new(Exit::LoginMaybe, told).hint(format!(
                "revoke it in the cabinet, tell the service, and {} again",
                service::log_in()
            )));
        }
        // Now: another login may have been made since this one began.
        let known = self.store.known_shop(&self.client.origin());
        let known = known.unwrap_or_default();
        if let Some(expected) = self.shop.expected(known, &shop_name) {
            return Err(self.of_another_shop(&shop_name, &expected));
        }
        let credentials = Credentials {
            token,
            shop_name,
            origin: self.client.origin(),
            stored_ms: clock::wall_ms(),
        };
        self.store.store(&credentials).map_err(|error| {
            Failure::new(Exit::LoginMaybe, error)
                .context("the token was issued but could not be stored")
                .hint(format!(
                    "revoke it in the cabinet, mend the cause and {} again",
                    service::log_in()
                ))
        })?;
        let (shop, path) = (
            &credentials.shop_name,
            self.store.path().display().to_string(),
        );
        if std::env::var_os(ENV_TOKEN).is_some() {
            talk(&format!(
                "warning: `{ENV_TOKEN}` is set and outranks this login for single commands"
            ));
        }
        if json {
            return print_json(
                &json!({ "state": "granted", "shop_name": shop, "stored_in": path }),
            );
        }
        talk(&format!("the token is kept in {}", escape(&path)));
        print(&format!("logged in for shop {}\n", escape(shop)))
    }
}

impl Places {
    /// The token is good, and is not kept.
    fn of_another_shop(&self, shop: &str, expected: &str) -> Failure {
        let told = format!(
            "the login is for shop `{}`, not for `{}`: it was not stored, and the login before stands",
            escape(shop),
            escape(expected)
        );
        let way = if self.shop.pinned.is_some() {
            "set `service.shop` to the new name and log in again"
        } else {
            "log in again with `--another-shop`"
        };
        Failure::new(Exit::LoginMaybe, told).hint(format!(
            "revoke the new token in the cabinet; if the shop was renamed, or shall be another one, {way}"
        ))
    }
}

/// Asks the service for a login request.
async fn begin(
    context: &Context,
    places: &Places,
    stop: &mut Stop,
) -> Result<LoginStarted, Failure> {
    let name = context.settings()?.client_name.clone();
    let name = name.unwrap_or_else(default_name);
    let asking = places.client.start_login(&name);
    let started = stop.unless_wished(asking).await.map_err(wait::ended)?;
    started.map_err(|error| service::failure(error, None).context("could not begin the login"))
}

/// No place to store the login. No token was asked for yet.
fn unprepared(error: CredentialsError) -> Failure {
    if !error.is_unfit_place() {
        return error.into();
    }
    Failure::new(Exit::Ownership, error).hint(
        "make the state directory and give it to the user tilld runs as, or name another one with `--state-dir` or `state_dir`; no token was asked for",
    )
}

/// `tilld on HOST`, as the merchant sees it in the cabinet.
fn default_name() -> String {
    let host = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    match host.trim() {
        "" => "tilld".to_owned(),
        host => format!("tilld on {host}"),
    }
}
