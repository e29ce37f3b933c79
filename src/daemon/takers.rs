//! Who takes up settings that were read again, and which: how much is logged, the hooks with all that says how they are run, and
//! a certificate whose files were replaced.
//!
//! Everything else is built into what runs (sockets, the ledger's file, the poller's plan, the addresses of the service), and counts
//! after a new start, which costs nobody anything where systemd holds the sockets.

use std::path::Path;

use tokio::sync::watch;

use super::reload::Taker;
use crate::config::Settings;
use crate::http::Certificates;
use crate::ledger::Writer;
use crate::parts;
use crate::{outbox, telemetry};

/// All of them. `in_use` is what others look at, and `hooks` what the outbox runs.
pub(super) fn all(
    in_use: watch::Sender<Settings>,
    (writer, hooks): (Writer, watch::Sender<outbox::Settings>),
    state_dir: &Path,
) -> Vec<Taker> {
    let state_dir = state_dir.to_owned();
    let level = Taker {
        keys: &["log_level"],
        take: Box::new(|new| {
            let set = telemetry::set_level(new.log_level).map_err(|error| error.to_string());
            Box::pin(async { set })
        }),
    };
    let hooks = Taker {
        keys: &["hook", "on_abandoned", "outbox."],
        take: Box::new(move |new| {
            let (new, state_dir) = (new.clone(), state_dir.clone());
            let (writer, hooks, in_use) = (writer.clone(), hooks.clone(), in_use.clone());
            Box::pin(async move {
                let rules = parts::rules(&new).map_err(|error| error.to_string())?;
                // First what they are owed: a hook that is gone is owed nothing more, and what a new one is owed waits for it.
                writer
                    .owe(rules)
                    .await
                    .map_err(|error| telemetry::chain(&error))?;
                let fresh = parts::outbox_settings(&new, &state_dir).after(&hooks.borrow());
                fresh
                    .runs
                    .know(new.every_hook().into_iter().map(|hook| hook.name));
                hooks.send_replace(fresh);
                in_use.send_modify(|old| {
                    old.hook = new.hook;
                    old.on_abandoned = new.on_abandoned;
                    old.outbox = new.outbox;
                });
                Ok(())
            })
        }),
    };
    vec![level, hooks]
}

/// The listener's certificate: its files may be others under the same names.
pub(super) fn certificates(certificates: Certificates) -> Taker {
    Taker {
        keys: &[],
        take: Box::new(move |_new| {
            // Told where it is done.
            drop(certificates.reload_and_tell());
            Box::pin(async { Ok(()) })
        }),
    }
}
