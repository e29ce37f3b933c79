//! SQLite's errors, sorted by what can be done about them.

use rusqlite::{ErrorCode, ffi};

use crate::ledger::files::{How, Moved, Part};
use crate::ledger::store::StoreError;

/// Sorts an error of SQLite.
pub(super) fn from_sqlite(error: rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(failure, _) = &error else {
        return StoreError::Refused(Box::new(error));
    };
    match (failure.code, failure.extended_code) {
        (_, ffi::SQLITE_READONLY_DBMOVED) => StoreError::Moved(Moved {
            part: Part::Database,
            how: How::Replaced,
        }),
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => StoreError::Busy,
        (ErrorCode::DiskFull, _) => StoreError::Full,
        (
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::FileLockingProtocolFailed,
            _,
        ) => StoreError::Io(Box::new(error)),
        (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => {
            StoreError::ReadOnly(Box::new(error))
        }
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
            StoreError::Corrupt(Box::new(error))
        }
        _ => StoreError::Refused(Box::new(error)),
    }
}

/// A stored word that no version of tilld wrote.
#[derive(Debug, thiserror::Error)]
#[error("column `{column}` holds `{found}`")]
pub(super) struct Unreadable {
    /// The column.
    pub(super) column: String,
    /// What it holds.
    pub(super) found: String,
}
