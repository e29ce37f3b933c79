//! What the recorder wrote: every write, change of length and sync of the ledger's files, and what became of their names, in
//! their order.

use std::fs;
use std::path::Path;

/// Bytes before a record's path; `preload.c` says what they are.
const HEAD: usize = 24;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Write {
        offset: usize,
        data: Vec<u8>,
    },
    Resize(usize),
    Sync,
    /// A sync that failed.
    Unsynced,
    Remove,
    /// A name that was not there.
    Make,
    /// One more name, of a file with this one.
    Link(String),
    /// All names that were made and removed before are on the disk.
    SyncNames,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) op: Op,
    /// The file's name, without its directory.
    pub(crate) file: String,
    /// When, nanoseconds since 1970.
    pub(crate) at_ns: u128,
}

impl Record {
    /// A file beside the ledger that SQLite makes anew after a crash.
    fn is_shared_memory(&self) -> bool {
        self.file.ends_with("-shm")
    }

    pub(crate) fn is_log(&self) -> bool {
        self.file.ends_with("-wal")
    }
}

/// All records of a file. What the daemon's end cut off is left out.
#[track_caller]
pub(crate) fn read(path: &Path) -> Vec<Record> {
    let bytes = fs::read(path).expect("the recorder wrote");
    let (mut records, mut rest) = (Vec::new(), bytes.as_slice());
    while let Some((record, after)) = next(rest) {
        rest = after;
        if !record.is_shared_memory() {
            records.push(record);
        }
    }
    records
}

fn next(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let [op, path_bytes, ..] = head else {
        return None;
    };
    let word =
        |at: usize| -> Option<u64> { Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?)) };
    let length = u32::from_le_bytes(*head.get(4..)?.first_chunk()?);
    let (offset, at_ns) = (usize::try_from(word(8)?).ok()?, u128::from(word(16)?));
    let (path, rest) = rest.split_at_checked(usize::from(*path_bytes))?;
    let path = String::from_utf8_lossy(path);
    let file = path.rsplit('/').next()?.to_owned();
    let (op, rest) = match op {
        b'W' => {
            let (data, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            let data = data.to_vec();
            (Op::Write { offset, data }, rest)
        }
        b'T' => (Op::Resize(offset), rest),
        b'S' => (Op::Sync, rest),
        b'F' => (Op::Unsynced, rest),
        b'U' => (Op::Remove, rest),
        b'C' => (Op::Make, rest),
        b'L' => {
            let (from, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            let from = String::from_utf8_lossy(from);
            (Op::Link(from.rsplit('/').next()?.to_owned()), rest)
        }
        b'D' => (Op::SyncNames, rest),
        _ => return None,
    };
    Some((Record { op, file, at_ns }, rest))
}

/// The same as a daemon with `synchronous=NORMAL` would leave it: of the log's syncs only those before it is moved into the
/// ledger's file, and none for a commit.
pub(crate) fn as_normal(records: &[Record]) -> Vec<Record> {
    let is_needed = |at: usize| {
        let mut after = records.iter().skip(at + 1);
        let write = after.find(|record| matches!(record.op, Op::Write { .. }));
        write.is_some_and(|write| !write.is_log())
    };
    let kept = records
        .iter()
        .enumerate()
        .filter(|(at, record)| record.op != Op::Sync || !record.is_log() || is_needed(*at));
    kept.map(|(_, record)| record.clone()).collect()
}

/// The same as a daemon would leave it that syncs no directory.
pub(crate) fn without_names(records: &[Record]) -> Vec<Record> {
    let kept = records.iter().filter(|record| record.op != Op::SyncNames);
    kept.cloned().collect()
}
