//! Which process it was: boot id, pid and start time together name one process for good, since pids are used again.
//! Relies on Linux's `/proc`.

use std::fs::{self, File};
use std::io::Read as _;
use std::sync::OnceLock;

/// The fields that are read here, with the longest name and the longest numbers, end well before this.
const LONGEST_STAT: usize = 1024;

/// One process of one boot of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMark {
    /// `/proc/sys/kernel/random/boot_id` when the mark was taken.
    pub boot_id: String,
    /// The process id, in the pid namespace the mark was taken in.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks between boot and the start of the process.
    pub start_ticks: i64,
}

impl ProcessMark {
    /// The mark of a running process, `None` when there is none with this pid or it has ended and waits to be reaped.
    pub fn of(pid: i32) -> Option<Self> {
        // By one call: the line is no longer.
        let mut stat = [0; LONGEST_STAT];
        let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut stat).ok()?;
        // The name in it is any bytes: a script's is cut after 15 of them, through a letter of UTF-8 as well.
        let stat = String::from_utf8_lossy(stat.get(..length)?);
        // The command name stands in parentheses and may hold blanks and parentheses itself: count from its end.
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
        let state = fields.next()?;
        let start_ticks = fields.nth(18)?.parse().ok()?;
        (state != "Z" && state != "X").then(|| Self {
            boot_id: boot_id(),
            pid,
            start_ticks,
        })
    }

    /// The mark of this process.
    ///
    /// # Panics
    /// When `/proc` is not mounted: tilld could not tell its own children apart without it.
    pub fn own() -> Self {
        // Read once: the kernel adds up all threads for each reading.
        static OWN: OnceLock<ProcessMark> = OnceLock::new();
        let read = || {
            let pid = i32::try_from(std::process::id()).expect("a Linux pid fits 31 bits");
            Self::of(pid).expect("/proc is mounted and knows this process")
        };
        OWN.get_or_init(read).clone()
    }

    /// True while exactly this process runs.
    pub fn is_running(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// Read once: a process lives in one boot.
fn boot_id() -> String {
    static READ: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        text.unwrap_or_default().trim().to_owned()
    };
    READ.get_or_init(read).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_while_it_runs_and_not_after() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep starts");
        let mark = ProcessMark::of(i32::try_from(child.id()).expect("a pid")).expect("it runs");
        assert!(mark.is_running());
        let other = ProcessMark {
            start_ticks: mark.start_ticks + 1,
            ..mark.clone()
        };
        assert!(!other.is_running(), "another process with the same pid");
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(!mark.is_running());
    }

    #[test]
    fn own_mark_is_stable() {
        assert_eq!(ProcessMark::own(), ProcessMark::own());
    }
}
