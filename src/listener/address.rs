//! Where a POST was sent to, by the path it came on. Pure; promises that what stands for a ref is told by its hash alone.

use crate::invoice::ids::InvoiceRef;

use super::trace::ref_hash;

/// Where a POST was sent to.
pub(super) enum Address {
    /// An invoice's own.
    Own(InvoiceRef),
    /// One that ends in something that is no ref that was ever made, which is told like an unknown one.
    Nobodys(String),
    /// The bare path: the body names the invoice.
    Bare,
}

impl Address {
    /// The short hash of the segment that stood for a ref; empty when none did.
    pub(super) fn hash(&self) -> String {
        match self {
            Self::Own(reference) => ref_hash(reference.as_str()),
            Self::Nobodys(segment) => ref_hash(segment),
            Self::Bare => String::new(),
        }
    }
}
