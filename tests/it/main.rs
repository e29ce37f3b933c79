//! Tests against the real binary.

mod launch;
