//! The steps of the demo as data: their names and what each promises.

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The imitation payment service starts.
    Sandbox,
    /// `tilld serve` starts.
    Daemon,
    /// `tilld login`, confirmed in the cabinet.
    Login,
    /// An H2H invoice is paid.
    Paid,
    /// A Redirect invoice is paid, and its notification lost.
    Lost,
    /// An invoice is cancelled.
    Cancelled,
    /// A notification comes three times more.
    Repeated,
    /// A stranger says that the cancelled order was paid.
    Forged,
    /// The daemon stops.
    Stopped,
}

impl Step {
    /// Those that are played between the start and the stop, in this order.
    pub(super) const PLAYED: [Self; 6] = [
        Self::Login,
        Self::Paid,
        Self::Lost,
        Self::Cancelled,
        Self::Repeated,
        Self::Forged,
    ];

    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Sandbox => (
                "sandbox",
                "the imitation payment service answers on loopback",
            ),
            Self::Daemon => ("daemon", "tilld serve is ready for notifications"),
            Self::Login => (
                "login",
                "tilld login ends with a token once its code is confirmed in the cabinet",
            ),
            Self::Paid => (
                "paid",
                "an H2H invoice is paid by its notification, and fulfil runs once",
            ),
            Self::Lost => (
                "lost",
                "a Redirect invoice whose notification is lost is found paid by a poll, and fulfil runs once",
            ),
            Self::Cancelled => (
                "cancelled",
                "a cancelled invoice fails, the cancelled hook runs and fulfil does not",
            ),
            Self::Repeated => (
                "repeated",
                "a notification that comes again is answered 200 and changes nothing",
            ),
            Self::Forged => (
                "forged",
                "a notification with a wrong token is answered 401, recorded and changes nothing; the service is asked",
            ),
            Self::Stopped => ("stopped", "tilld serve ends in order when it is told to"),
        }
    }

    /// The word in the timeline.
    pub(super) const fn name(self) -> &'static str {
        self.told().0
    }

    /// What must be so for the step to hold.
    pub(super) const fn promise(self) -> &'static str {
        self.told().1
    }
}
