//! Seals notify tokens: what lies in the ledger file is useless without the key file beside it.
//!
//! ChaCha20-Poly1305 with a random 96-bit nonce, bound to the invoice's ref as additional data: a sealed token moved to
//! another invoice does not open. One key seals far fewer than 2^32 tokens, so random nonces are safe.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::entropy;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::notify_token::NotifyToken;
use crate::regular_file::{self, Rule, Unfit};
use crate::secret::Secret;

/// Most bytes of the key file. A key has 44.
const LARGEST: u64 = 1_024;

/// A sealed notify token: nonce, ciphertext and tag.
#[derive(Clone, Debug)]
pub struct Sealed(pub Vec<u8>);

/// Why the key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    /// It is there and cannot be read, or cannot be made.
    #[error("could not read or make key file `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is gone, and the ledger it belongs to is not.
    #[error("key file `{path}` is missing, and the notify tokens in the ledger are sealed with it")]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Others may read it.
    #[error("key file `{path}` has mode {found:04o}, but nobody else may read it: 0600 is wanted")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        found: u32,
    },
    /// Another user's.
    #[error("key file `{path}` belongs to user {found}, not to user {wanted}")]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// Whose it must be.
        wanted: u32,
    },
    /// A pipe, a device, a directory.
    #[error("key file `{path}` is {kind}, not a file")]
    NotAFile {
        /// Where it lies.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// It holds something else than a key.
    #[error("key file `{path}` does not hold a 256-bit key in base64")]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
}

impl KeyError {
    fn unfit(path: &Path, unfit: Unfit) -> Self {
        let path = path.to_owned();
        match unfit {
            Unfit::Io(source) => Self::File { path, source },
            Unfit::Kind(kind) => Self::NotAFile { path, kind },
            Unfit::Owner { found, wanted } => Self::Owner {
                path,
                found,
                wanted,
            },
            Unfit::Mode(found) => Self::Mode { path, found },
            Unfit::TooLarge(_) => Self::NotAKey { path },
        }
    }
}

/// The sealing key.
pub(super) struct Sealer(LessSafeKey);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// Reads the key file that belongs to an existing ledger.
    pub(super) fn load(path: &Path) -> Result<Self, KeyError> {
        if path.try_exists().is_ok_and(|there| !there) {
            return Err(KeyError::Gone {
                path: path.to_owned(),
            });
        }
        Self::load_or_make(path)
    }

    /// Reads the key file, or makes it (0600, durable before its first use) when there is none. The directory must
    /// exist. Of two processes that make it at once, one wins and both use the winner's.
    pub(super) fn load_or_make(path: &Path) -> Result<Self, KeyError> {
        let file = |source| KeyError::File {
            path: path.to_owned(),
            source,
        };
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            make(path).map_err(file)?;
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        let rule = Rule {
            owner: Some(fs::metadata(directory).map_err(file)?.uid()),
            closed: 0o077,
            largest: LARGEST,
        };
        let bytes = regular_file::read(path, rule).map_err(|unfit| KeyError::unfit(path, unfit))?;
        let not_a_key = || KeyError::NotAKey {
            path: path.to_owned(),
        };
        let bytes = STANDARD
            .decode(bytes.trim_ascii_end())
            .map_err(|_cause| not_a_key())?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_cause| not_a_key())?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals a token for the invoice with this ref.
    pub(super) fn seal(&self, token: &NotifyToken, reference: &InvoiceRef) -> Sealed {
        let nonce = entropy::bytes::<NONCE_LEN>();
        let mut text = token.secret().expose().as_bytes().to_vec();
        let bound = Aad::from(reference.as_str().as_bytes());
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut text)
            .expect("a token is far shorter than the cipher's limit");
        Sealed([nonce.as_slice(), &text].concat())
    }

    /// Opens a sealed token of this invoice. `None` when it was altered, moved from another invoice, or sealed with
    /// another key: then nothing authenticates for the invoice, and polling goes on.
    pub(super) fn open(&self, sealed: &Sealed, reference: &InvoiceRef) -> Option<NotifyToken> {
        let (nonce, text) = sealed.0.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let bound = Aad::from(reference.as_str().as_bytes());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, bound, &mut text).ok()?.len();
        // The very buffer it was opened in: no copy of a token is left behind.
        text.truncate(opened);
        NotifyToken::from_stored(String::from_utf8(text).ok()?)
    }
}

/// Writes a fresh key beside its place and links it there, so that the file is never seen half written and an existing
/// one is never replaced.
fn make(path: &Path) -> io::Result<()> {
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    // Left by a process of the same number that was killed in between.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    let key = Secret::new(STANDARD.encode(entropy::bytes::<32>()));
    let written = file
        .write_all(key.expose().as_bytes())
        .and_then(|()| file.sync_all());
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = fs::remove_file(&draft);
    linked.and(removed)?;
    path.parent()
        .map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(directory: &tempfile::TempDir) -> Sealer {
        Sealer::load_or_make(&directory.path().join("key")).expect("a key")
    }

    #[test]
    fn a_token_opens_for_its_own_invoice_with_its_own_key_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let (own, other) = (
            InvoiceRef::from_entropy([1; 16]),
            InvoiceRef::from_entropy([2; 16]),
        );
        let token = NotifyToken::from_entropy([3; 32]);
        let sealed = sealer(&directory).seal(&token, &own);
        let again = sealer(&directory);
        assert!(
            again
                .open(&sealed, &own)
                .is_some_and(|t| t.matches(token.secret().expose().as_bytes()))
        );
        assert!(again.open(&sealed, &other).is_none());
        let mut altered = sealed.clone();
        if let Some(byte) = altered.0.last_mut() {
            *byte ^= 1;
        }
        assert!(again.open(&altered, &own).is_none());
        let elsewhere = tempfile::tempdir().expect("a directory");
        assert!(sealer(&elsewhere).open(&sealed, &own).is_none());
        assert!(again.open(&Sealed(Vec::new()), &own).is_none());
    }

    #[test]
    fn the_key_file_is_private_or_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        sealer(&directory);
        assert_eq!(
            fs::metadata(&path).expect("it is there").mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
        assert!(matches!(
            Sealer::load_or_make(&path),
            Err(KeyError::Mode { found: 0o644, .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("tightened");
        fs::write(&path, "short").expect("written");
        assert!(matches!(
            Sealer::load_or_make(&path),
            Err(KeyError::NotAKey { .. })
        ));
        fs::remove_file(&path).expect("removed");
        assert!(matches!(Sealer::load(&path), Err(KeyError::Gone { .. })));
        // A draft left by a killed process of the same number is no hindrance.
        let draft = path.with_extension(format!("new-{}", std::process::id()));
        fs::write(&draft, "half").expect("written");
        Sealer::load_or_make(&path).expect("a new key");
    }
}
