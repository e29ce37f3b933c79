//! The rules that are broken on purpose, one by one.
//! Relies on whoever keeps a rule to look here.
//! Promises that a check which notices none of them is found out.

/// A rule that is broken on purpose, to see that the checks notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// None.
    #[default]
    Nothing,
    /// A notification is answered 200 before it is stored.
    AcknowledgeFirst,
    /// A doubt is dropped, and nobody asks.
    DropDoubt,
    /// Requests leave without their turn.
    NoPace,
    /// A hook an earlier daemon left running is run again at once.
    NoSettling,
    /// The shop opens another invoice although an earlier one is not settled.
    OpenUnsettled,
    /// An invoice stands for its order beside a newer one.
    NothingSuperseded,
    /// An instant ahead of the service's clock orders what is said.
    TrustInstants,
    /// What waits stays as planned when the clock is set.
    KeepWaits,
    /// After a restore nobody polls what is final.
    NothingAgain,
}
