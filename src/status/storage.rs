//! What of the ledger's file and its disk needs a person, as reasons for attention: each with what to do. Pure.

use super::report::{LedgerFile, UnderAttention};
use crate::config;
use crate::ledger::{HealthState, LogHeld};

/// With less room than this a person should know, bytes: what the log may take before it is told, and some.
pub(crate) const LOW_BYTES: u64 = 64 * 1024 * 1024;

const MIB: u64 = 1024 * 1024;

/// What is known of the file's surroundings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    /// Room for tilld's user on the file system, bytes; `None` where that cannot be asked.
    pub(crate) free_bytes: Option<u64>,
    /// The file system is mounted read-only.
    pub(crate) read_only: bool,
    /// The programs that read the ledger just now.
    pub(crate) readers: Vec<String>,
    /// How the writer of the daemon fares, for whoever asks in it.
    pub(crate) health: HealthState,
}

/// The reasons. `held` says that the log cannot be moved.
pub(super) fn reasons(
    storage: &Storage,
    file: &LedgerFile,
    held: Option<&LogHeld>,
    limits: &config::Ledger,
) -> Vec<UnderAttention> {
    let mut found = Vec::new();
    let mut add = |reason: &str, advice: String| {
        found.push(UnderAttention {
            reason: reason.to_owned(),
            count: 1,
            orders: Vec::new(),
            advice: advice.into(),
        });
    };
    if let Some((since_ms, reason)) = &storage.health.unstored {
        let since = super::report::time(*since_ms);
        add(
            "cannot_store",
            format!(
                "nothing is stored since {since}, and notifications are answered 503: {reason}; look at the disk of {}; it goes \
                 on by itself when that is mended",
                file.path
            ),
        );
    }
    if let Some(reason) = &storage.health.unreadable {
        add(
            "unreadable",
            format!(
                "an invoice cannot be read and is not asked about: {reason}; another program has written to {}: `tilld db check` \
                 looks it over, and a backup has the row as it was",
                file.path
            ),
        );
    }
    if storage.read_only {
        add(
            "read_only",
            format!(
                "the file system of {} is mounted read-only: mount it writable",
                file.path
            ),
        );
    }
    if let Some(free) = storage.free_bytes.filter(|free| *free < LOW_BYTES) {
        add(
            "disk_low",
            format!(
                "{} MiB are left on the file system of {}: make room",
                free / MIB,
                file.path
            ),
        );
    }
    if let Some(held) = held {
        let word = if storage.health.log_full || file.wal_bytes > limits.log_bound_bytes {
            "wal_full"
        } else if file.wal_bytes > limits.log_attention_bytes {
            "wal_large"
        } else {
            "wal_held"
        };
        add(word, told_log(storage, file, held, word));
    }
    found
}

fn told_log(storage: &Storage, file: &LedgerFile, held: &LogHeld, word: &str) -> String {
    let takes = file.wal_bytes.div_ceil(MIB);
    let since = super::report::time(held.since_ms);
    let refused = if word == "wal_full" {
        ", and notifications are answered 503"
    } else {
        ""
    };
    let advice = held.by.advice(&file.path, &storage.readers);
    format!(
        "the log takes {takes} MiB and cannot be moved into the ledger's file since {since}{refused}: {advice}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::around;
    use super::*;
    use crate::ledger::HeldBy;

    fn words(storage: &Storage, wal_bytes: u64, held: Option<&LogHeld>) -> Vec<String> {
        let file = LedgerFile {
            wal_bytes,
            ..around().ledger
        };
        let limits = config::Settings::default().ledger;
        let found = reasons(storage, &file, held, &limits);
        assert!(found.iter().all(|reason| !reason.advice.is_empty()));
        found.into_iter().map(|reason| reason.reason).collect()
    }

    #[test]
    fn each_trouble_has_its_word_and_a_sound_disk_none() {
        let sound = Storage {
            free_bytes: Some(LOW_BYTES),
            ..Storage::default()
        };
        assert!(words(&sound, 1, None).is_empty());
        let held = LogHeld {
            since_ms: 1_795_860_000_000,
            by: HeldBy::Reader,
        };
        for (wal_bytes, word) in [
            (5 * MIB, "wal_held"),
            (65 * MIB, "wal_large"),
            (1025 * MIB, "wal_full"),
        ] {
            assert_eq!(words(&sound, wal_bytes, Some(&held)), [word]);
        }
        let mut bad = Storage {
            free_bytes: Some(LOW_BYTES - 1),
            read_only: true,
            ..Storage::default()
        };
        bad.health.unstored = Some((0, "the disk is full".to_owned()));
        bad.health.unreadable = Some("no amount".to_owned());
        assert_eq!(
            words(&bad, 1, None),
            ["cannot_store", "unreadable", "read_only", "disk_low"]
        );
    }
}
