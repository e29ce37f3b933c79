//! A certificate and its key, from their files: read, judged, and nothing kept of what is wrong.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use secrecy::zeroize::Zeroizing;

use super::dates::ends_at_s;
use crate::clock;
use crate::regular_file::{self, Rule, Unfit};

/// Bytes of one file: a chain is some 5 KiB.
const MOST_BYTES: u64 = 1024 * 1024;
/// How long a renewal may take from one file to the other, seconds.
const RENEWED_WITHIN_S: i64 = 20;
/// Bits of a mode by which everybody may do something.
const EVERYBODY: u32 = 0o007;

/// Where they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and behind it those between it and the authority, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The user tilld runs as: the key is theirs, or root's.
    pub owner: u32,
}

/// Why a certificate is not used. Nothing of a file's content is in it.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("could not read `{}`", file.display())]
    Read {
        /// Which one.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Everybody may read or change the key.
    #[error("the key `{}` has the mode {mode:04o}: everybody on this machine could read it", file.display())]
    Exposed {
        /// The key's file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The key is another user's, who could read it and put another in its place.
    #[error("the key `{}` belongs to user {found}, neither to root nor to user {wanted}, whom tilld runs as", file.display())]
    Owner {
        /// The key's file.
        file: PathBuf,
        /// Its owner.
        found: u32,
        /// Whose it may be.
        wanted: u32,
    },
    /// A pipe, a device, a directory, or a file that is far too large.
    #[error("`{}` cannot be read: {why}", file.display())]
    Unfit {
        /// Which one.
        file: PathBuf,
        /// What it is.
        why: String,
    },
    /// A file holds something else.
    #[error("`{}` holds no {what} in PEM", file.display())]
    Nothing {
        /// Which one.
        file: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The key is of a kind that is not supported.
    #[error("the key `{}` is of no kind that TLS 1.2 or 1.3 takes", file.display())]
    Kind {
        /// The key's file.
        file: PathBuf,
    },
    /// The key belongs to another certificate.
    #[error("the key `{}` does not belong to the certificate `{}`", files.key.display(), files.certificate.display())]
    Mismatch {
        /// Both.
        files: CertificateFiles,
    },
    /// The certificate cannot be understood.
    #[error("the certificate `{}` could not be understood", file.display())]
    Garbled {
        /// Its file.
        file: PathBuf,
    },
    /// The certificate is over.
    #[error("the certificate `{}` ended at {ended_at}", file.display())]
    Over {
        /// Its file.
        file: PathBuf,
        /// When.
        ended_at: jiff::Timestamp,
    },
}

impl CertificateError {
    /// Whether this user may not look, who need not be the one tilld runs as.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether owner or mode are the trouble, as opposed to what lies there.
    pub fn is_ownership(&self) -> bool {
        self.is_closed() || matches!(self, Self::Exposed { .. } | Self::Owner { .. })
    }

    /// Whether it passes by itself: what was changed just now may be a renewal that is half done, and descriptors and memory
    /// come back. A file that is missing may never have been there.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Mismatch { files } => files.is_being_renewed(),
            Self::Nothing { file, .. } | Self::Garbled { file } => is_changed_just_now(file),
            Self::Read { file, source } => {
                let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
                let is_want = Errno::from_io_error(source).is_some_and(|no| wants.contains(&no));
                is_want || (self.is_closed() && is_changed_just_now(file))
            }
            Self::Exposed { .. }
            | Self::Owner { .. }
            | Self::Unfit { .. }
            | Self::Kind { .. }
            | Self::Over { .. } => false,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { file, source } if source.kind() == io::ErrorKind::PermissionDenied => {
                format!(
                    "let the group of tilld's user read `{}`, and enter the directories above it",
                    file.display()
                )
            }
            Self::Read { .. } => {
                "`listener.tls_certificate` and `listener.tls_key` must name files that are there".to_owned()
            }
            Self::Exposed { file, .. } => {
                format!("`chmod o= {}`, and let the group be tilld's", file.display())
            }
            Self::Owner { file, wanted, .. } => {
                format!("`chown {wanted} {}`", file.display())
            }
            Self::Nothing { .. } | Self::Garbled { .. } | Self::Unfit { .. } => {
                "`listener.tls_certificate` is the whole chain, such as `fullchain.pem`, `listener.tls_key` the key without \
                 a password, such as `privkey.pem`"
                    .to_owned()
            }
            Self::Kind { .. } => "make one of ECDSA P-256, or of RSA with 2048 bits or more".to_owned(),
            Self::Mismatch { .. } => {
                "take both from the same renewal; the file of the chain must begin with your own certificate".to_owned()
            }
            Self::Over { .. } => "renew it".to_owned(),
        }
    }
}

/// A certificate that can be shown, and when it ends, in seconds since 1970.
pub(super) struct Usable {
    pub(super) certified: CertifiedKey,
    pub(super) ends_at_s: i64,
}

/// What tells that a file is another one than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl CertificateFiles {
    /// Reads both; says when the certificate ends, in seconds since 1970.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn judge(&self) -> Result<i64, CertificateError> {
        Ok(self.load()?.ends_at_s)
    }

    /// Reads and judges both.
    pub(super) fn load(&self) -> Result<Usable, CertificateError> {
        let text = read(&self.certificate, Rule::open(MOST_BYTES))?;
        let nothing = |file: &Path, what| CertificateError::Nothing {
            file: file.to_owned(),
            what,
        };
        // Of what is wrong in a file only that it is: an error of the reader shows lines.
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(|_shown| nothing(&self.certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(nothing(&self.certificate, "certificate"));
        }
        let garbled = || CertificateError::Garbled {
            file: self.certificate.clone(),
        };
        // Of its own one: behind it there may be one that is over and that nobody goes by any more.
        let own = chain.first().and_then(|der| ends_at_s(der));
        let ends_at_s = own.ok_or_else(garbled)?;
        let key = self.read_key()?;
        let key = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|_shown| nothing(&self.key, "private key"))?;
        let key = any_supported_type(&key).map_err(|_unknown| CertificateError::Kind {
            file: self.key.clone(),
        })?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) => Ok(Usable {
                certified,
                ends_at_s,
            }),
            Err(rustls::Error::InconsistentKeys(_)) => Err(CertificateError::Mismatch {
                files: self.clone(),
            }),
            Err(_other) => Err(garbled()),
        }
    }

    fn read_key(&self) -> Result<Zeroizing<Vec<u8>>, CertificateError> {
        let rule = Rule {
            owner: Some(self.owner),
            closed: EVERYBODY,
            largest: MOST_BYTES,
        };
        read(&self.key, rule)
    }

    /// Whether one of the two was changed just now: between, they do not fit.
    pub fn is_being_renewed(&self) -> bool {
        is_changed_just_now(&self.certificate) || is_changed_just_now(&self.key)
    }

    /// Both as they are now; of what is not there, nothing.
    pub(super) fn marks(&self) -> [Option<Mark>; 2] {
        [&self.certificate, &self.key].map(|file| {
            let found = fs::metadata(file).ok()?;
            Some(Mark {
                inode: found.ino(),
                bytes: found.len(),
                changed: (found.ctime(), found.ctime_nsec()),
            })
        })
    }
}

fn is_changed_just_now(file: &Path) -> bool {
    let now_s = clock::wall_ms() / 1_000;
    let changed = fs::metadata(file).map(|about| about.ctime());
    changed.is_ok_and(|at_s| (0..RENEWED_WITHIN_S).contains(&(now_s - at_s)))
}

fn read(path: &Path, rule: Rule) -> Result<Zeroizing<Vec<u8>>, CertificateError> {
    let file = path.to_owned();
    regular_file::read(path, rule).map_err(|unfit| match unfit {
        Unfit::Io(source) => CertificateError::Read { file, source },
        Unfit::Mode(mode) => CertificateError::Exposed { file, mode },
        Unfit::Owner { found, wanted } => CertificateError::Owner {
            file,
            found,
            wanted,
        },
        unfit @ (Unfit::Kind(_) | Unfit::TooLarge(_)) => {
            let why = unfit.to_string();
            CertificateError::Unfit { file, why }
        }
    })
}
