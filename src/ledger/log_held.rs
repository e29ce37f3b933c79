//! Why the ledger's log cannot be moved into its file, and what helps: one wording for the daemon's log and for `status`, and
//! the form in which the ledger remembers it. Pure.

use serde::{Deserialize, Serialize};

/// How the log stands, as the ledger remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogNote {
    /// Why it cannot be moved, when that is so.
    pub(super) held: Option<LogHeld>,
    /// When that was noted, milliseconds since 1970.
    pub(super) at_ms: i64,
}

/// The log cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHeld {
    /// Since when, milliseconds since 1970.
    pub since_ms: i64,
    /// What is in the way.
    pub by: HeldBy,
}

/// What keeps the log from being moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// A program that keeps a read transaction open.
    Reader,
    /// A command of tilld that reads for as long as the ledger is big (`reading.rs`).
    OwnCommand,
    /// There is no room for what is in the log.
    DiskFull,
    /// Writing the file failed, with what was said of it.
    Disk(String),
}

impl HeldBy {
    /// True while the disk is what is wrong, whoever reads.
    pub(super) const fn is_disk(&self) -> bool {
        match self {
            Self::DiskFull | Self::Disk(_) => true,
            Self::Reader | Self::OwnCommand => false,
        }
    }

    /// What it is and what a person does about it. `readers` are the programs that read just now, as far as that is known.
    pub(crate) fn advice(&self, ledger: &str, readers: &[String]) -> String {
        let named = if readers.is_empty() {
            String::new()
        } else {
            format!("{} read it just now; ", readers.join(", "))
        };
        match self {
            Self::Reader => format!(
                "end the program that keeps a read transaction open on it, for example a SELECT that is not read to its end; \
                 {named}`fuser -v {ledger}` names those that have it open"
            ),
            Self::OwnCommand => format!(
                "{named}`tilld db backup` or `tilld db check` is at work, and when it has ended the log is moved by itself; end \
                 it if that cannot be waited for"
            ),
            Self::DiskFull => format!(
                "the disk is full: make room on the file system of {ledger}, `df {ledger}` shows it; it is moved by itself then"
            ),
            Self::Disk(reason) => format!(
                "{reason}: look at the disk of {ledger} and how it is mounted, `dmesg` says what failed; it is moved by itself \
                 when that is fixed"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_no_program_for_a_failing_disk_is_not_told_to() {
        let readers = ["php (pid 7)".to_owned()];
        let told = |by: HeldBy| by.advice("/l/ledger.db", &readers);
        assert!(told(HeldBy::Reader).contains("php (pid 7) read it just now"));
        assert!(told(HeldBy::OwnCommand).contains("`tilld db backup`"));
        for (by, wanted) in [
            (HeldBy::DiskFull, "make room on the file system"),
            (
                HeldBy::Disk("the disk failed".to_owned()),
                "the disk failed: look at the disk",
            ),
        ] {
            let told = told(by);
            assert!(told.contains(wanted), "{told}");
            assert!(!told.contains("program") && !told.contains("php"), "{told}");
        }
    }
}
