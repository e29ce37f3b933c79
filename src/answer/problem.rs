//! What clients of the control socket tell apart where one exit code stands for several ends: the types of problem documents.
//!
//! Relies on nothing. Promises one row for each type; an end without a row has the type that its exit code is called by.

/// A type of problem (RFC 9457), beside those of the exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The order is paid.
    AlreadyPaid,
    /// The order is paid with another amount or currency than agreed.
    PaidOtherAmount,
    /// A superseded invoice of the order can be paid, or holds a payment that does not pay the order.
    Superseded,
    /// The order has an open invoice with another amount.
    OtherAmount,
    /// The same with another currency.
    OtherCurrency,
    /// The same with another method.
    OtherMethod,
    /// The same in the other mode.
    OtherMode,
    /// An earlier invoice of the order may have been paid.
    Unsettled,
    /// The service rejected the create: it opened nothing.
    RefusedByService,
    /// The service opened an invoice that must not be shown to the customer.
    NotToBeShown,
}

impl Problem {
    /// Its name and its title.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::AlreadyPaid => ("already_paid", "the order is paid"),
            Self::PaidOtherAmount => ("paid_other_amount", "the order is paid with another amount"),
            Self::Superseded => (
                "superseded",
                "a superseded invoice is paid or can still be paid",
            ),
            Self::OtherAmount => ("other_amount", "the open invoice has another amount"),
            Self::OtherCurrency => ("other_currency", "the open invoice has another currency"),
            Self::OtherMethod => ("other_method", "the open invoice has another method"),
            Self::OtherMode => ("other_mode", "the open invoice has the other mode"),
            Self::Unsettled => ("unsettled", "an earlier invoice may have been paid"),
            Self::RefusedByService => ("refused_by_service", "the service rejected the create"),
            Self::NotToBeShown => (
                "not_to_be_shown",
                "the invoice must not be shown to the customer",
            ),
        }
    }
}
