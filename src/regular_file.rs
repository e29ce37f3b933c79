//! Files that others put there: settings, secrets, keys. Each is opened without waiting, judged by what was opened, and read up
//! to a bound, so that a pipe, a device or a huge file in its place costs a message and nothing else.
//!
//! Relies on nothing. Promises that nothing of a file's content stands in an error.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use secrecy::zeroize::Zeroizing;

/// What a file must be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Whose it must be, unless it is root's. `None` is anybody's.
    pub(crate) owner: Option<u32>,
    /// Bits of its mode that must not be set.
    pub(crate) closed: u32,
    /// Most bytes it may have.
    pub(crate) largest: u64,
}

impl Rule {
    /// A file that is not secret.
    pub(crate) const fn open(largest: u64) -> Self {
        Self {
            owner: None,
            closed: 0,
            largest,
        }
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    /// The operating system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Something else than a file.
    #[error("it is {0}, not a file")]
    Kind(&'static str),
    /// Another user's, who could read it and put another in its place.
    #[error("it belongs to user {found}, not to user {wanted}")]
    Owner {
        /// Its owner.
        found: u32,
        /// Whose it must be.
        wanted: u32,
    },
    /// Too many may read or change it.
    #[error("it has mode {0:04o}")]
    Mode(u32),
    /// Larger than anything that belongs there.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
}

impl Unfit {
    /// True when there is nothing at that path.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(cause) if cause.kind() == io::ErrorKind::NotFound)
    }

    /// The same as an error of the system, for who tells nothing apart.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(cause) => cause,
            other => io::Error::other(other),
        }
    }
}

/// Opens a file for reading. Whoever opens a pipe the usual way waits until somebody writes into it.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), Unfit> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path);
    let file = match opened {
        Err(cause) if cause.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(Unfit::Kind("a socket or a device"));
        }
        opened => opened?,
    };
    let about = file.metadata()?;
    match kind(about.file_type()) {
        None => Ok((file, about)),
        Some(kind) => Err(Unfit::Kind(kind)),
    }
}

/// Reads a file that keeps to the rule.
pub(crate) fn read(path: &Path, rule: Rule) -> Result<Zeroizing<Vec<u8>>, Unfit> {
    let (file, about) = open(path)?;
    if let Some(wanted) = rule.owner
        && ![wanted, 0].contains(&about.uid())
    {
        let found = about.uid();
        return Err(Unfit::Owner { found, wanted });
    }
    if about.mode() & rule.closed != 0 {
        return Err(Unfit::Mode(about.mode() & 0o7777));
    }
    if about.len() > rule.largest {
        return Err(Unfit::TooLarge(rule.largest));
    }
    // Large enough from the start: a buffer that grew would leave copies behind.
    let expected = usize::try_from(about.len()).unwrap_or_default();
    let mut bytes = Zeroizing::new(Vec::with_capacity(expected.saturating_add(64)));
    file.take(rule.largest.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read <= rule.largest) {
        Ok(bytes)
    } else {
        Err(Unfit::TooLarge(rule.largest))
    }
}

/// What it is instead of a file.
fn kind(found: FileType) -> Option<&'static str> {
    if found.is_file() {
        None
    } else if found.is_fifo() {
        Some("a pipe")
    } else if found.is_dir() {
        Some("a directory")
    } else {
        Some("a device")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType as Node, Mode, mknodat};

    use super::*;

    const RULE: Rule = Rule {
        owner: None,
        closed: 0o077,
        largest: 1_000,
    };

    #[test]
    fn only_a_small_file_of_the_right_owner_and_mode_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        let with = |bytes: usize, mode: u32, rule: Rule| {
            fs::write(&path, vec![b'x'; bytes]).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("own file");
            let read = read(&path, rule).map(|bytes| bytes.len());
            read.map_err(|error| error.to_string())
        };
        assert_eq!(with(1_000, 0o600, RULE), Ok(1_000));
        assert_eq!(with(0, 0o600, RULE), Ok(0));
        let told = |said: Result<usize, String>| said.expect_err("refused");
        assert_eq!(
            told(with(1_001, 0o600, RULE)),
            "it is larger than 1000 bytes"
        );
        assert_eq!(told(with(1, 0o640, RULE)), "it has mode 0640");
        let own = rustix::process::geteuid().as_raw();
        let of = |owner| Rule {
            owner: Some(owner),
            ..RULE
        };
        assert_eq!(with(1, 0o600, of(own)), Ok(1));
        if own != 0 {
            let wanted = format!("it belongs to user {own}, not to user 4000000001");
            assert_eq!(told(with(1, 0o600, of(4_000_000_001))), wanted);
        }
    }

    #[test]
    fn what_is_no_file_is_named_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        let mode = Mode::from_bits_truncate(0o600);
        mknodat(CWD, path("pipe"), Node::Fifo, mode, 0).expect("a pipe");
        let _socket = UnixListener::bind(path("socket")).expect("a socket");
        let told = |path: &Path| read(path, RULE).expect_err("refused").to_string();
        assert_eq!(told(&path("pipe")), "it is a pipe, not a file");
        assert_eq!(
            told(&path("socket")),
            "it is a socket or a device, not a file"
        );
        assert_eq!(told(dir.path()), "it is a directory, not a file");
        assert_eq!(told(Path::new("/dev/zero")), "it is a device, not a file");
        assert!(read(&path("gone"), RULE).expect_err("gone").is_missing());
    }
}
