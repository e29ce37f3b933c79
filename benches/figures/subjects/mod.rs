//! What is measured: programs of their own, so that what each costs can be read from the kernel, and started for one
//! measurement each.

pub(crate) mod daemon;
pub(crate) mod probe;
pub(crate) mod raw;
