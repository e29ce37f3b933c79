//! Who reads the ledger: the processes that hold a read lock on the log's index, by what the kernel lists. Programs in other
//! containers are not listed, nor any where `/proc/locks` may not be read; then nobody is named.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The bytes of the index whose read lock a reading transaction holds, as SQLite's format of the log's index has them:
/// `WAL_READ_LOCK(0)` to `WAL_READ_LOCK(4)`.
const READ_LOCKS: std::ops::RangeInclusive<u64> = 123..=127;
/// Named at most.
const NAMED_MOST: usize = 5;
/// A program's name is no longer than this in the kernel; more is none.
const NAME_LONGEST: usize = 64;

/// The programs that read just now, for example `php (pid 4711)`; but not this process.
pub(crate) fn holders(ledger: &Path) -> Vec<String> {
    let mut index = ledger.as_os_str().to_owned();
    index.push("-shm");
    // Asked about, never opened: SQLite's locks go with the first descriptor that is closed.
    let Ok(about) = fs::metadata(&index) else {
        return Vec::new();
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pids = readers(&locks, about.ino(), std::process::id());
    pids.into_iter().map(named).collect()
}

fn named(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let shown = |c: &char| c.is_ascii_graphic();
    let name: String = name.chars().filter(shown).take(NAME_LONGEST).collect();
    if name.is_empty() {
        format!("pid {pid}")
    } else {
        format!("{name} (pid {pid})")
    }
}

/// The processes with a read lock there, each once.
fn readers(locks: &str, inode: u64, own: u32) -> Vec<u32> {
    let mut pids: Vec<u32> = locks
        .lines()
        .filter_map(|line| reader(line, inode))
        .filter(|pid| *pid != own)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids.truncate(NAMED_MOST);
    pids
}

/// `1: POSIX  ADVISORY  READ 4711 fe:01:1234 124 124`
fn reader(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let [kind, _advisory, access, pid, file, from, to] = std::array::from_fn(|_| words.next());
    if kind != Some("POSIX") || access != Some("READ") {
        return None;
    }
    let of_file = file?.rsplit(':').next()?.parse() == Ok(inode);
    let within = |byte: Option<&str>| {
        let byte = byte.and_then(|byte| byte.parse().ok());
        byte.is_some_and(|byte: u64| READ_LOCKS.contains(&byte))
    };
    if of_file && within(from) && within(to) {
        pid?.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_a_read_lock_of_the_index_is_named_once() {
        let locks = "\
1: POSIX  ADVISORY  READ 12 fe:01:77 128 128
2: POSIX  ADVISORY  READ 12 fe:01:77 124 124
3: POSIX  ADVISORY  READ 12 fe:01:77 125 125
3: -> POSIX  ADVISORY  WRITE 13 fe:01:77 124 124
4: POSIX  ADVISORY  READ 9 fe:01:77 127 127
5: POSIX  ADVISORY  WRITE 14 fe:01:77 124 124
6: POSIX  ADVISORY  READ 15 fe:01:78 124 124
7: OFDLCK ADVISORY  READ -1 fe:01:77 124 124
8: FLOCK  ADVISORY  WRITE 16 fe:01:77 0 EOF
9: POSIX  ADVISORY  READ 1 fe:01:77 124 124
";
        assert_eq!(readers(locks, 77, 1), [9, 12]);
        assert!(readers("", 77, 1).is_empty());
    }
}
