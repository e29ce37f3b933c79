//! What the daemon is told by signals: SIGTERM and SIGINT are the wish to stop, SIGHUP that to read the settings again. Where
//! tilld was started from a terminal, SIGHUP says that the terminal goes away, and is a wish to stop in order.

use std::io::{self, IsTerminal as _};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is wished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To stop; the signal's name.
    Stop(&'static str),
    /// To read the settings again.
    Reload,
}

/// The signals, heard from the moment this is made.
pub(super) struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    has_terminal: bool,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            has_terminal: io::stdin().is_terminal() || io::stderr().is_terminal(),
        })
    }

    /// The next wish.
    pub(super) async fn wish(&mut self) -> Wish {
        tokio::select! {
            // Who wishes both wishes to stop.
            biased;
            _ = self.terminate.recv() => Wish::Stop("SIGTERM"),
            _ = self.interrupt.recv() => Wish::Stop("SIGINT"),
            _ = self.hangup.recv() => if self.has_terminal {
                Wish::Stop("SIGHUP")
            } else {
                Wish::Reload
            },
        }
    }

    /// The next wish to stop that somebody repeats on purpose. A SIGHUP is not: it may come together with SIGTERM.
    pub(super) async fn pressed(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
