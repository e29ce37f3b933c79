//! Who is in a process group, read from `/proc`: the one place that knows the fields of `/proc/PID/stat` for it.
//! Everything here blocks, and what it says may be over by the time it is read.

use std::fs;
use std::io;

use rustix::io::Errno;

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its process id.
    pub(super) pid: i32,
    /// False for one that has ended and waits to be reaped.
    pub(super) runs: bool,
    /// Its process group.
    pub(super) group: i32,
    /// Clock ticks between boot and its start.
    pub(super) start_ticks: i64,
}

impl Entry {
    /// The process with this id, reaped ones excepted. An error when that cannot be known.
    pub(super) fn of(pid: i32) -> io::Result<Option<Self>> {
        match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => Ok(Self::read(pid, &stat)),
            // The second is what reading says when it ended after the file was opened.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    || Errno::from_io_error(&error) == Some(Errno::SRCH) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The name stands before the fields, in parentheses, and may hold blanks and parentheses itself.
    fn read(pid: i32, stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let start_ticks = fields.nth(16)?.parse().ok()?;
        Some(Self {
            pid,
            runs: state != "Z" && state != "X",
            group,
            start_ticks,
        })
    }
}

/// The processes of a group that have not ended. Reads the whole process table: some milliseconds.
pub(super) fn members(group: i32) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")? {
        let name = process?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        found.extend(Entry::of(pid)?.filter(|entry| entry.runs && entry.group == group));
    }
    Ok(found)
}

/// True when a process that has not ended belongs to the group, or that cannot be known.
pub(super) fn has_members(group: i32) -> bool {
    members(group).map_or(true, |found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_mark::ProcessMark;

    #[test]
    fn the_fields_are_read_behind_any_name() {
        let rest = "0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9";
        let read = |text: &str| Entry::read(7, &format!("{text} {rest}"));
        let runs = Entry {
            pid: 7,
            runs: true,
            group: 42,
            start_ticks: 777,
        };
        assert_eq!(read("7 (a) Z 9 (b) S 1 42 42"), Some(runs));
        let ended = Entry {
            runs: false,
            ..runs
        };
        assert_eq!(read("7 (a b) Z 1 42 42"), Some(ended));
        assert_eq!(Entry::read(7, "7 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_found_as_its_mark_says_and_nobody_where_nobody_is() {
        let mark = ProcessMark::own();
        let own = Entry::of(mark.pid).expect("readable").expect("it runs");
        assert_eq!(own.start_ticks, mark.start_ticks);
        let found = members(own.group).expect("readable");
        assert!(found.iter().any(|entry| entry.pid == mark.pid));
        assert_eq!(Entry::of(i32::MAX).expect("readable"), None);
    }
}
