//! The signals that end what is played. Heard before anything is started, so that one that comes meanwhile ends it in order.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::failure::{Exit, Failure};

/// The signals that end it.
pub(in crate::cli) struct Signals([Signal; 3]);

impl Signals {
    /// Hears them from now on.
    pub(in crate::cli) fn new() -> Result<Self, Failure> {
        let hear = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Exit::Error, error).context("could not listen for signals")
            })
        };
        Ok(Self([
            hear(SignalKind::interrupt())?,
            hear(SignalKind::terminate())?,
            hear(SignalKind::hangup())?,
        ]))
    }

    /// Resolves with the next one.
    pub(in crate::cli) async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _signal = interrupt.recv() => {}
            _signal = terminate.recv() => {}
            _signal = hangup.recv() => {}
        }
    }
}
