//! `tilld logout`: removes the local token. The service knows no request that revokes one: that is done in the cabinet,
//! and is said here (contract 5).

use serde_json::json;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{print, print_json, talk};
use super::{login, service};
use crate::client::credentials::Elsewhere;
use crate::client::login::RequestStore;

/// Flags of `logout`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `logout`.
#[expect(
    clippy::unused_async,
    reason = "commands are awaited; this one asks nobody"
)]
pub(super) async fn run(_args: Args, context: Context) -> Result<Exit, Failure> {
    let store = service::store(&context)?;
    let removed = store.remove()?;
    // Finished later, it would bring a login back.
    let begun = RequestStore::new(&context.state_dir()?).discard();
    let begun = begun.map_err(login::unkept)?;
    let remains = remaining(&Elsewhere::of_one_shot())?;
    let cabinet = context.settings()?.service.cabinet_url.clone();
    if context.output.json() {
        print_json(&json!({
            "removed": removed,
            "login_given_up": begun,
            "remains": remains,
            "cabinet_url": cabinet,
        }))?;
    } else if removed {
        print("the local token is removed\n")?;
    } else {
        print("no login was stored\n")?;
    }
    if removed {
        let place = cabinet.map_or_else(String::new, |cabinet| format!(" at {cabinet}"));
        talk(&format!(
            "the token itself stays good until it is revoked in the cabinet{place}"
        ));
    }
    if begun {
        talk("a login that was begun with `login --start` is given up");
    }
    for place in remains {
        talk(&format!("a token remains in {place}"));
    }
    Ok(Exit::Ok)
}

/// The other places that still have a token.
fn remaining(elsewhere: &Elsewhere) -> Result<Vec<&'static str>, Failure> {
    let environment = elsewhere
        .env_token
        .is_some()
        .then_some("the variable `SERVICE_TOKEN`");
    let credential = elsewhere
        .systemd_token()?
        .map(|_token| "the systemd credential `access-token`");
    Ok(environment.into_iter().chain(credential).collect())
}
