//! What systemd is told (`sd_notify(3)`), and how often it wants to hear that all goes on. Without `NOTIFY_SOCKET` nobody is
//! told anything.
//!
//! By our own hand since no crate at hand speaks to an abstract address, which containers' managers hand out (A43).

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The address of who is told.
const ADDRESS: &str = "NOTIFY_SOCKET";
/// Within this time, microseconds, a word that all goes on is wanted.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// By this process alone.
const WATCHED: &str = "WATCHDOG_PID";
/// Who listens takes a word at once; one that does not is not waited for.
const SENT_WITHIN: Duration = Duration::from_secs(1);

/// One thing that is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It serves. Also the end of a reload.
    Ready,
    /// The settings are being read again.
    Reloading,
    /// It stops.
    Stopping,
    /// All goes on.
    Alive,
    /// What `systemctl status` shows.
    Status(String),
    /// The start may go on so long from now on.
    MoreTime(Duration),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("READY=1"),
            Self::Reloading => {
                let now = clock_gettime(ClockId::Monotonic);
                let (seconds, micros) = (now.tv_sec, now.tv_nsec / 1_000);
                write!(f, "RELOADING=1\nMONOTONIC_USEC={seconds}{micros:06}")
            }
            Self::Stopping => f.write_str("STOPPING=1"),
            Self::Alive => f.write_str("WATCHDOG=1"),
            // One line: what follows it would be another word.
            Self::Status(text) => write!(f, "STATUS={}", text.replace('\n', " ")),
            Self::MoreTime(time) => write!(f, "EXTEND_TIMEOUT_USEC={}", time.as_micros()),
        }
    }
}

/// Tells all of it in one message. Trouble with it must not stop the daemon.
pub(super) fn tell(words: &[Word]) {
    let Some(address) = env::var_os(ADDRESS) else {
        return;
    };
    let mut message = String::new();
    for word in words {
        // Writing into a String cannot fail.
        writeln!(message, "{word}").unwrap_or_default();
    }
    if let Err(error) = send(&address, message.as_bytes()) {
        tracing::warn!(reason = %error, "systemd could not be told");
    }
}

/// Whether anybody is told.
pub(super) fn is_there() -> bool {
    env::var_os(ADDRESS).is_some()
}

/// Connected anew for each message, as the systemd that hears the next may be another process.
fn send(address: &OsStr, message: &[u8]) -> io::Result<()> {
    let bytes = address.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SENT_WITHIN))?;
    socket.send_to_addr(message, &address).map(drop)
}

/// Within which time systemd wants to hear that all goes on, if it does.
pub(super) fn watchdog() -> Option<Duration> {
    let number = |name: &str| env::var(name).ok();
    within(
        number(WATCHDOG).as_deref(),
        number(WATCHED).as_deref(),
        std::process::id(),
    )
}

fn within(usec: Option<&str>, pid: Option<&str>, own: u32) -> Option<Duration> {
    let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let usec: u64 = usec?.parse().ok()?;
    (is_ours && usec > 0).then(|| Duration::from_micros(usec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_ours_unless_it_names_another() {
        let second = Some(Duration::from_secs(1));
        for (usec, pid, wanted) in [
            (Some("1000000"), None, second),
            (Some("1000000"), Some("7"), second),
            (Some("1000000"), Some("8"), None),
            (Some("1000000"), Some("x"), None),
            (Some("0"), None, None),
            (Some("soon"), None, None),
            (None, Some("7"), None),
        ] {
            assert_eq!(within(usec, pid, 7), wanted, "{usec:?} {pid:?}");
        }
    }

    #[test]
    fn each_word_is_a_line() {
        for (word, line) in [
            (Word::Ready, "READY=1"),
            (Word::Alive, "WATCHDOG=1"),
            (Word::Status("a\nREADY=1".to_owned()), "STATUS=a READY=1"),
            (
                Word::MoreTime(Duration::from_secs(30)),
                "EXTEND_TIMEOUT_USEC=30000000",
            ),
        ] {
            assert_eq!(word.to_string(), line);
        }
        let reloading = Word::Reloading.to_string();
        let usec = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(
            usec.is_some_and(|usec| usec.parse::<u64>().is_ok()),
            "{reloading}"
        );
    }
}
