//! What it means for whoever asked that the ledger could not be read or written.

use super::failure::{Exit, Failure};
use crate::ledger::{ReadError, WriteError};

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(Exit::Ledger, error)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let transient = error.is_transient();
        let failure = Self::new(Exit::Ledger, error);
        if transient {
            failure.hint("another program holds the ledger, or the disk is full: mend that and run the command again")
        } else {
            failure
        }
    }
}
