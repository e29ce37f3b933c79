//! From the settings to the plain structs the rest of the program takes. Nothing here decides; ranges were checked when
//! the settings were loaded.

use std::path::PathBuf;
use std::time::Duration;

use crate::client;
use crate::config::Settings;
use crate::hook::{Selector, Subscription, UnknownSelector};
use crate::invoice::silence::{Schedule, Step};
use crate::invoice::transition::Policy;
use crate::ledger::{Bounds, Options, Rules};

/// How long a one-shot command waits for another process's lock (design, section 5).
const COMMAND_BUSY: Duration = Duration::from_secs(15);

/// What the ledger acts on.
pub fn rules(settings: &Settings) -> Result<Rules, UnknownSelector> {
    let subscription = |hook: &crate::config::Hook| {
        let on: Result<Vec<Selector>, UnknownSelector> =
            hook.on.iter().map(|text| Selector::parse(text)).collect();
        on.map(|on| Subscription {
            hook: hook.name.clone(),
            on,
        })
    };
    Ok(Rules {
        policy: Policy {
            lists: settings.statuses.lists(),
            confirm_paid: settings.moves.confirm_paid,
        },
        schedule: schedule(settings),
        subscriptions: settings
            .hook
            .iter()
            .map(subscription)
            .collect::<Result<_, _>>()?,
    })
}

/// When silent invoices are due.
pub fn schedule(settings: &Settings) -> Schedule {
    let poller = &settings.poller;
    let step = |step: &crate::config::Step| Step {
        until_ms: ms(step.until_s),
        every_ms: ms(step.every_s),
    };
    Schedule {
        steps: poller.schedule.iter().map(step).collect(),
        after_expiry_ms: ms(poller.after_expiry_s),
        horizon_ms: ms(poller.horizon_s),
    }
}

/// How the daemon opens the ledger.
pub fn ledger_options(settings: &Settings, state_dir: PathBuf) -> Result<Options, UnknownSelector> {
    let ledger = &settings.ledger;
    Ok(Options {
        state_dir,
        busy_budget: Duration::from_millis(ledger.busy_budget_ms),
        queue: usize::try_from(ledger.queue).unwrap_or(usize::MAX),
        bounds: Bounds {
            history_per_invoice: small(ledger.history_per_invoice),
            history_rows: small(ledger.history_rows),
            refusal_rows: small(ledger.refusal_rows),
        },
        rules: rules(settings)?,
    })
}

/// How a one-shot command opens the ledger: it has more patience than somebody who waits for an answer.
pub fn command_ledger_options(
    settings: &Settings,
    state_dir: PathBuf,
) -> Result<Options, UnknownSelector> {
    Ok(Options {
        busy_budget: COMMAND_BUSY,
        ..ledger_options(settings, state_dir)?
    })
}

/// How the service is reached. `base_url` was required and checked by the caller.
pub fn client_settings(settings: &Settings, base_url: String) -> client::Settings {
    client::Settings {
        base_url,
        connect_timeout: Duration::from_secs(settings.service.connect_timeout_s),
        request_timeout: Duration::from_secs(settings.service.request_timeout_s),
        allow_plain_http: settings.service.allow_plain_http,
    }
}

fn ms(seconds: u64) -> i64 {
    i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000)
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
