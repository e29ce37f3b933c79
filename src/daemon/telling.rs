//! Starts what tells people and programs how the daemon is: the alarms among the other loops, and the admin listener beside
//! them, to be asked while they stop.

use std::path::Path;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Error, STOP_MARGIN, admin, alarm, beside, finish};
use crate::client::Client;
use crate::config::Settings;
use crate::ledger::{Reader, Writer};
use crate::shutdown::Shutdown;
use crate::{listener, outbox, poller};

/// What tells people and programs how the daemon is needs this.
pub(super) struct Telling<'a> {
    pub(super) ledgers: (Writer, Reader),
    pub(super) settled: (&'a Settings, &'a Path),
    pub(super) counts: (Arc<listener::Heard>, Arc<outbox::Runs>),
    pub(super) client: &'a Client,
    pub(super) looked: &'a Arc<poller::Looked>,
    pub(super) stop: &'a Shutdown,
}

/// Parts that go on to the end of all others, so that they can be asked while those stop.
pub(super) struct Aside {
    pub(super) parts: JoinSet<&'static str>,
    stops: Shutdown,
}

impl Telling<'_> {
    /// Starts the alarms among the others, and the admin listener beside them; each where it is set.
    pub(super) fn start(
        self,
        loops: &mut JoinSet<&'static str>,
        place: Option<(admin::Taken, String)>,
    ) -> Result<Aside, Error> {
        let mut aside = Aside {
            parts: JoinSet::new(),
            stops: Shutdown::new(),
        };
        let (settings, state_dir) = self.settled;
        if let Some(parts) = admin::alarm(self.ledgers.clone(), settings, state_dir) {
            let stopping = self.stop.clone();
            loops.spawn(async move {
                alarm::run(parts, stopping).await;
                "the alarms"
            });
        }
        if let Some((taken, name)) = place {
            let parts = admin::parts(
                self.ledgers,
                self.settled,
                self.counts,
                self.client,
                self.looked,
                self.stop,
            );
            let stopping = aside.stops.clone();
            beside(&mut aside.parts, "admin", "the admin listener", move || {
                tell_state(taken, parts, stopping)
            })?;
            tracing::info!(admin = %name, "tilld tells how it is on {name}");
        }
        Ok(aside)
    }
}

impl Aside {
    pub(super) async fn stop(self) {
        self.stops.request();
        finish(self.parts, STOP_MARGIN).await;
    }
}

/// Tells how the daemon is until the stop.
async fn tell_state(taken: admin::Taken, parts: crate::admin::Parts, stop: Shutdown) {
    match taken.waited_for() {
        Ok(socket) => crate::admin::run(socket, parts, stop).await,
        Err(error) => {
            tracing::error!(reason = %error, "the admin listener's socket could not be waited for");
        }
    }
}
