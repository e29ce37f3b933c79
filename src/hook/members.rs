//! Who is in a process group, read from `/proc`: the one place that knows the fields of `/proc/PID/stat` for it.
//! Everything here blocks, and what it says may be over by the time it is read.

use std::fs::{self, File};
use std::io::{self, Read as _};

use nix::unistd::{Pid, getpgid};
use rustix::io::Errno;

/// The fields that are read here, with the longest name and the longest numbers, end well before this.
const FIRST_BYTES: usize = 1024;

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
        match first_bytes(&format!("/proc/{pid}/stat")) {
            // A name is any bytes: Linux cuts it after 15 of them, through a letter of UTF-8 as well.
            Ok(stat) => Ok(Self::read(pid, &String::from_utf8_lossy(&stat))),
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

/// As much of a line of the process table as is needed, by one call.
fn first_bytes(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; FIRST_BYTES];
    let count = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// The processes of a group that have not ended. Goes through the whole process table, after every run: each is asked for
/// its group by one call, which costs a fiftieth of reading its line, and only the group's own lines are read.
pub(super) fn members(group: i32) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")? {
        let name = process?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if !may_belong(pid, group) {
            continue;
        }
        found.extend(Entry::of(pid)?.filter(|entry| entry.runs && entry.group == group));
    }
    Ok(found)
}

/// False for one that is known to be in another group, or gone. (Not rustix's call: a kernel's thread is in group 0, which
/// that one takes for impossible.)
fn may_belong(pid: i32, group: i32) -> bool {
    match getpgid(Some(Pid::from_raw(pid))) {
        Ok(own) => own.as_raw() == group,
        Err(nix::errno::Errno::ESRCH) => false,
        // A security module may refuse to tell; the table does not.
        Err(_) => true,
    }
}

/// True when a process that has not ended belongs to the group, or that cannot be known.
pub(super) fn has_members(group: i32) -> bool {
    members(group).map_or(true, |found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

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

    /// One program of such a name anywhere on the machine made every group look as if it could not be known.
    #[test]
    fn a_name_that_is_no_text_hides_nobody() {
        let script = "printf 'shi\\377p' > /proc/$$/comm; echo; read -r end";
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("sh starts");
        let mut byte = [0];
        let named = child.stdout.as_mut().expect("piped").read_exact(&mut byte);
        named.expect("it says that it has its name");
        let pid = i32::try_from(child.id()).expect("a pid");
        let entry = Entry::of(pid).expect("readable").expect("it runs");
        assert_eq!(members(pid).expect("readable"), [entry]);
        let mark = ProcessMark::of(pid).expect("it runs");
        assert!(mark.is_running() && mark.start_ticks == entry.start_ticks);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(!has_members(pid));
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
