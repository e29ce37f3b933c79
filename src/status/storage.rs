//! What of the ledger's file and its disk needs an operator, with its sentences. Pure; relies on [`super::reason`] for the words.
//! Promises one reason for the WAL: the worst that stands.

use super::reason::Reason;
use super::report::{LedgerFile, UnderAttention, time};
use crate::config;
use crate::ledger::{HealthState, LogHeld};

/// With less room than this a person should know, bytes: what the log may take before it is told, and some.
pub(crate) const LOW_BYTES: u64 = 64 * 1024 * 1024;

/// With fewer files to be made a person should know: each run of a script makes two, and others use the disk as well.
pub(crate) const LOW_INODES: u64 = 1_000;

/// What is known of the file's surroundings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    /// What the file lies on.
    pub(crate) disk: Disk,
    /// The programs that read the ledger just now.
    pub(crate) readers: Vec<String>,
    /// How the writer of the daemon fares, for whoever asks in it.
    pub(crate) health: HealthState,
}

/// What the file lies on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    /// Room for tilld's user on the file system, bytes; `None` where that cannot be asked.
    pub(crate) free_bytes: Option<u64>,
    /// Files that tilld's user can still make there; `None` where the file system has no such bound.
    pub(crate) free_inodes: Option<u64>,
    /// The file system is mounted read-only.
    pub(crate) read_only: bool,
}

/// What needs an operator. `held` says that the WAL cannot be moved.
pub(super) fn findings(
    storage: &Storage,
    file: &LedgerFile,
    held: Option<&LogHeld>,
    limits: &config::Ledger,
) -> Vec<UnderAttention> {
    let path = file.path.as_str();
    let health = &storage.health;
    let unstored = health.unstored.as_ref();
    let free_bytes = storage.disk.free_bytes.filter(|free| *free < LOW_BYTES);
    let free_inodes = storage.disk.free_inodes.filter(|free| *free < LOW_INODES);
    let found = [
        unstored.map(|(since_ms, why)| UnderAttention::cannot_store(*since_ms, why, path)),
        health
            .unreadable
            .as_ref()
            .map(|why| UnderAttention::unreadable(why, path)),
        storage
            .disk
            .read_only
            .then(|| UnderAttention::read_only(path)),
        free_bytes.map(|free| UnderAttention::disk_low(free, path)),
        free_inodes.map(|free| UnderAttention::inodes_low(free, path)),
        held.map(|held| {
            let reason = if health.log_full || file.wal_bytes > limits.log_bound_bytes {
                Reason::WalFull
            } else if file.wal_bytes > limits.log_attention_bytes {
                Reason::WalLarge
            } else {
                Reason::WalHeld
            };
            UnderAttention::wal(reason, file, held, &storage.readers)
        }),
    ];
    found.into_iter().flatten().collect()
}

const MIB: u64 = 1024 * 1024;

/// Of the ledger's file and disk: the sentence holds the advice.
impl UnderAttention {
    fn of_storage(reason: Reason, sentence: String) -> Self {
        Self {
            reason,
            count: 1,
            orders: Vec::new(),
            advice: sentence.into(),
        }
    }

    /// The daemon's writer stores nothing since then, milliseconds since 1970.
    pub(super) fn cannot_store(since_ms: i64, why: &str, path: &str) -> Self {
        let since = time(since_ms);
        Self::of_storage(
            Reason::CannotStore,
            format!(
                "nothing is stored since {since}, and notifications are answered 503: {why}; look at the disk of {path}; it goes \
                 on by itself when that is fixed"
            ),
        )
    }

    /// An invoice cannot be read.
    pub(super) fn unreadable(why: &str, path: &str) -> Self {
        Self::of_storage(
            Reason::Unreadable,
            format!(
                "an invoice cannot be read and is not asked about: {why}; another program has written to {path}: `tilld db check` \
                 looks it over, and a backup has the row as it was"
            ),
        )
    }

    /// The file system is mounted read-only.
    pub(super) fn read_only(path: &str) -> Self {
        let sentence = format!("the file system of {path} is mounted read-only: mount it writable");
        Self::of_storage(Reason::ReadOnly, sentence)
    }

    /// Little room is left.
    pub(super) fn disk_low(free_bytes: u64, path: &str) -> Self {
        let sentence = format!(
            "{} MiB are left on the file system of {path}: make room",
            free_bytes / MIB
        );
        Self::of_storage(Reason::DiskLow, sentence)
    }

    /// Few files can still be made.
    pub(super) fn inodes_low(free: u64, path: &str) -> Self {
        let sentence = format!(
            "{free} more files (inodes) can be made on the file system of {path}, and each run of a script needs some: remove \
             small files, `df -i` counts them"
        );
        Self::of_storage(Reason::InodesLow, sentence)
    }

    /// The WAL cannot be moved into the file. `readers` are the programs that read the ledger just now.
    pub(super) fn wal(
        reason: Reason,
        file: &LedgerFile,
        held: &LogHeld,
        readers: &[String],
    ) -> Self {
        let takes = file.wal_bytes.div_ceil(MIB);
        let since = time(held.since_ms);
        let refused = if reason.stops_storing() {
            ", and notifications are answered 503"
        } else {
            ""
        };
        let advice = held.by.advice(&file.path, readers);
        let sentence = format!(
            "the log takes {takes} MiB and cannot be moved into the ledger's file since {since}{refused}: {advice}"
        );
        Self::of_storage(reason, sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::around;
    use super::*;
    use crate::ledger::HeldBy;

    const MIB: u64 = 1024 * 1024;

    fn words(storage: &Storage, wal_bytes: u64, held: Option<&LogHeld>) -> Vec<Reason> {
        let file = LedgerFile {
            wal_bytes,
            ..around().ledger
        };
        let limits = config::Settings::default().ledger;
        let found = findings(storage, &file, held, &limits);
        assert!(found.iter().all(|reason| !reason.advice.is_empty()));
        found.into_iter().map(|reason| reason.reason).collect()
    }

    #[test]
    fn each_trouble_has_its_word_and_a_sound_disk_none() {
        let sound = Storage {
            disk: Disk {
                free_bytes: Some(LOW_BYTES),
                free_inodes: Some(LOW_INODES),
                read_only: false,
            },
            ..Storage::default()
        };
        assert!(words(&sound, 1, None).is_empty());
        let held = LogHeld {
            since_ms: 1_795_860_000_000,
            by: HeldBy::Reader,
        };
        for (wal_bytes, word) in [
            (5 * MIB, Reason::WalHeld),
            (65 * MIB, Reason::WalLarge),
            (1025 * MIB, Reason::WalFull),
        ] {
            assert_eq!(words(&sound, wal_bytes, Some(&held)), [word]);
        }
        let mut bad = Storage {
            disk: Disk {
                free_bytes: Some(LOW_BYTES - 1),
                free_inodes: Some(LOW_INODES - 1),
                read_only: true,
            },
            ..Storage::default()
        };
        bad.health.unstored = Some((0, "the disk is full".to_owned()));
        bad.health.unreadable = Some("no amount".to_owned());
        assert_eq!(
            words(&bad, 1, None),
            [
                Reason::CannotStore,
                Reason::Unreadable,
                Reason::ReadOnly,
                Reason::DiskLow,
                Reason::InodesLow
            ]
        );
    }
}
