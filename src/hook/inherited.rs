//! What a launcher got from whoever started tilld and a hook must not get: descriptors beyond the three streams (a shell's
//! `7>file`, a socket handed over by a supervisor), and signals that are ignored (`nohup`, a shell's `&`) or blocked, which
//! `exec` would hand on. Relies on running in the launcher alone, with one thread, where nothing else holds a descriptor,
//! and once, before anything is split off from it.
//! The SIGPIPE that every Rust program ignores is reset by the standard library when it starts the program.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use nix::sys::signal::SigSet;
use rustix::process::Signal;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// The first descriptor that is no standard stream.
const BEYOND_STREAMS: RawFd = 3;

/// The last signal that is no real-time signal.
const LAST_USUAL: i32 = 31;

/// Closes every descriptor but the standard streams.
pub(super) fn close_descriptors() -> io::Result<()> {
    // Listed to the end before the first is closed: one of them is the listing itself, and closed again by then.
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|fd| *fd >= BEYOND_STREAMS) {
        // The listing is not open any more; and Linux closes a descriptor whatever it says about it.
        nix::unistd::close(descriptor).unwrap_or_default();
    }
    Ok(())
}

/// Makes every signal mean to any program that is started from here on what it usually means.
pub(super) fn restore_signals() -> io::Result<()> {
    unblock_signals()?;
    let ignored = ignored(&fs::read_to_string("/proc/self/status")?);
    if ignored.is_empty() {
        return Ok(());
    }
    // A signal that is caught is a usual one again after `exec`, and catching can be had without `unsafe`.
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    for number in ignored {
        // Those that must not be caught (SIGSEGV, SIGILL, SIGFPE) are left as they are.
        drop(signal(SignalKind::from_raw(number)));
    }
    Ok(())
}

/// Keeps every signal away but those that nobody can: what is sent to tilld and all its children is not for the launcher.
pub(super) fn block_signals() -> io::Result<()> {
    Ok(SigSet::all().thread_set_mask()?)
}

/// Lets every signal through.
pub(super) fn unblock_signals() -> io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}

/// The numbers of the ignored signals in the text of `/proc/self/status`, but for SIGPIPE. Real-time signals are left out:
/// nobody ignores them but the C library, whose own two it lets every child ignore until `exec`.
fn ignored(status: &str) -> Vec<i32> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    (1..=LAST_USUAL)
        .filter(|number| mask >> (number - 1) & 1 == 1 && *number != Signal::PIPE.as_raw())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        for (mask, wanted) in [
            ("0000000000001000", vec![]),
            ("0000000000001007", vec![1, 2, 3]),
            ("0000000180001000", vec![]),
            ("0000000040001000", vec![31]),
            ("nonsense", vec![]),
        ] {
            let status = format!("Name:\tSigIgn:\nSigBlk:\tffff\nSigIgn:\t{mask}\nSigCgt:\t1\n");
            assert_eq!(ignored(&status), wanted, "{mask}");
        }
        assert_eq!(ignored(""), Vec::<i32>::new());
    }
}
