//! Why tilld needs an operator: the one table of words, severity and how each reason ends. What is wrong
//! with one invoice has its own table, [`Attention`].
//!
//! Pure; relies on its caller for what was measured. Promises that each word is read back as it was written, so `status`, the
//! alarms, the page and the control socket name a reason alike.

mod need;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::invoice::attention::{Attention, End, Severity};

pub(crate) use need::Need;

/// A reason, in the order of their words; those of invoices come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Deliveries were given up.
    Abandoned,
    /// The ledger cannot be read.
    CannotRead,
    /// The daemon's writer stores nothing.
    CannotStore,
    /// The listener's certificate ends soon, or cannot be used.
    Certificate,
    /// The machine's clock cannot be right.
    Clock,
    /// No daemon runs, or it stands still.
    Daemon,
    /// The daemon has few descriptors left.
    DescriptorsLow,
    /// Little room is left on the ledger's disk.
    DiskLow,
    /// Deliveries wait for `tilld delivery release`.
    Held,
    /// Others than root and tilld's user could change what a hook runs.
    HookExposed,
    /// Few files can still be made on the ledger's disk.
    InodesLow,
    /// The ledger lacks events that were acknowledged.
    LedgerBehind,
    /// The ledger was made new where one was known.
    LedgerNew,
    /// Nothing can be polled with the login.
    Login,
    /// Events are without a delivery they were to have.
    Missing,
    /// The service gives no answer, or something else answers in its place.
    Outage,
    /// Changes are found by polling alone.
    Polled,
    /// Few threads and processes can still be started.
    ProcessesLow,
    /// The ledger's file system is mounted read-only.
    ReadOnly,
    /// Money went back.
    Reversed,
    /// No notification arrives.
    Silent,
    /// A Unix socket of tilld has lost its name.
    Socket,
    /// Programs cannot be started for want of something.
    StartsFail,
    /// A hook has not done for long what it is owed.
    Undelivered,
    /// Deliveries wait for a hook that is not configured.
    Unowned,
    /// An invoice of the ledger cannot be read.
    Unreadable,
    /// The WAL has reached its bound.
    WalFull,
    /// The WAL cannot be moved into the file.
    WalHeld,
    /// The same, and it is beyond its limit for attention.
    WalLarge,
    /// Something is wrong with an invoice.
    Invoice(Attention),
    /// A word of another version of tilld, as its daemon said it.
    Other,
}

impl Reason {
    /// Those of tilld itself.
    const OWN: [Self; 29] = [
        Self::Abandoned,
        Self::CannotRead,
        Self::CannotStore,
        Self::Certificate,
        Self::Clock,
        Self::Daemon,
        Self::DescriptorsLow,
        Self::DiskLow,
        Self::Held,
        Self::HookExposed,
        Self::InodesLow,
        Self::LedgerBehind,
        Self::LedgerNew,
        Self::Login,
        Self::Missing,
        Self::Outage,
        Self::Polled,
        Self::ProcessesLow,
        Self::ReadOnly,
        Self::Reversed,
        Self::Silent,
        Self::Socket,
        Self::StartsFail,
        Self::Undelivered,
        Self::Unowned,
        Self::Unreadable,
        Self::WalFull,
        Self::WalHeld,
        Self::WalLarge,
    ];

    /// All of them, those of invoices last.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of_invoices = Attention::ALL.into_iter().map(Self::Invoice);
        Self::OWN.into_iter().chain(of_invoices)
    }

    /// Word, severity and end.
    const fn row(self) -> (&'static str, Severity, End) {
        use End::{Ack, ByItself, Once};
        use Severity::{Critical, Warning};
        match self {
            Self::Abandoned => ("abandoned", Critical, Ack),
            Self::CannotRead => ("cannot_read", Critical, ByItself),
            Self::CannotStore => ("cannot_store", Critical, ByItself),
            Self::Certificate => ("certificate", Warning, ByItself),
            Self::Clock => ("clock", Warning, ByItself),
            Self::Daemon => ("daemon", Critical, ByItself),
            Self::DescriptorsLow => ("descriptors_low", Warning, ByItself),
            Self::DiskLow => ("disk_low", Warning, ByItself),
            Self::Held => ("held", Critical, ByItself),
            Self::HookExposed => ("hook_exposed", Critical, ByItself),
            Self::InodesLow => ("inodes_low", Warning, ByItself),
            Self::LedgerBehind => ("ledger_behind", Critical, Ack),
            Self::LedgerNew => ("ledger_new", Warning, Ack),
            Self::Login => ("login", Critical, ByItself),
            Self::Missing => ("missing", Critical, ByItself),
            Self::Outage => ("outage", Critical, ByItself),
            Self::Polled => ("polled", Critical, ByItself),
            Self::ProcessesLow => ("processes_low", Warning, ByItself),
            Self::ReadOnly => ("read_only", Critical, ByItself),
            Self::Reversed => ("reversed", Critical, Once),
            Self::Silent => ("silent", Critical, ByItself),
            Self::Socket => ("socket_lost", Critical, ByItself),
            Self::StartsFail => ("starts_fail", Critical, ByItself),
            Self::Undelivered => ("undelivered", Critical, ByItself),
            Self::Unowned => ("unowned", Critical, ByItself),
            Self::Unreadable => ("unreadable", Critical, ByItself),
            Self::WalFull => ("wal_full", Critical, ByItself),
            Self::WalHeld => ("wal_held", Warning, ByItself),
            Self::WalLarge => ("wal_large", Warning, ByItself),
            Self::Invoice(of) => (of.as_str(), of.severity(), of.end()),
            Self::Other => ("other", Warning, ByItself),
        }
    }

    /// The word used in JSON, in alerts and on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// How much it matters.
    pub(crate) const fn severity(self) -> Severity {
        self.row().1
    }

    /// How it ends.
    pub(crate) const fn end(self) -> End {
        self.row().2
    }

    /// True of what is measured and hovers about its limit: it is over only when it was gone for a while.
    pub(crate) const fn is_measured(self) -> bool {
        matches!(
            self,
            Self::CannotStore
                | Self::DescriptorsLow
                | Self::DiskLow
                | Self::InodesLow
                | Self::ProcessesLow
                | Self::ReadOnly
                | Self::StartsFail
                | Self::WalHeld
                | Self::WalLarge
                | Self::WalFull
        )
    }

    /// The worse forms of it: while one of them stands, this one is not over.
    pub(crate) const fn worse(self) -> &'static [Self] {
        match self {
            Self::WalHeld => &[Self::WalLarge, Self::WalFull],
            Self::WalLarge => &[Self::WalFull],
            _ => &[],
        }
    }

    /// True while nothing can be stored because of it.
    pub(crate) const fn stops_storing(self) -> bool {
        matches!(self, Self::CannotStore | Self::ReadOnly | Self::WalFull)
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A daemon of another version may say a word that is none of ours, and the rest of what it says still counts.
impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<str>::deserialize(deserializer)?;
        let known = Self::all().find(|reason| reason.as_str() == word);
        Ok(known.unwrap_or(Self::Other))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
