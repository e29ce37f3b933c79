//! Where the access token lies and where it is taken from.
//!
//! `login` writes it to `STATE_DIR/secret/credentials` and nowhere else. A token is bound to the origin that issued it:
//! towards any other it is refused here, before a request is made. The old login stands until the new one is on disk.

mod shop;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::address::is_loopback_url;
use crate::client::private_file::{self, FileError};
use crate::invoice::moment::Moment;
use crate::secret::{Hidden, Secret};
use crate::wire::json;
use crate::wire::login::SANDBOX_TOKEN;

/// The environment variable with an access token (contract 4.2). For one-shot commands; the daemon refuses it.
pub(crate) const ENV_TOKEN: &str = "SERVICE_TOKEN";
/// The name of the systemd credential that holds an access token.
pub(crate) const SYSTEMD_NAME: &str = "access-token";
/// Bytes the rehearsal writes: more than any credentials file has.
const REHEARSAL: usize = 8 * 1024;

/// A login as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    /// The secret Bearer token of one shop.
    pub token: Secret,
    /// The shop's name as the service gave it; may be empty.
    pub shop_name: String,
    /// The origin that issued the token, such as `https://pay.example`.
    pub origin: String,
    /// When it was stored, by our clock, in milliseconds since 1970.
    pub stored_ms: i64,
}

/// Where an access token comes from, in the order they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenSource {
    /// The variable `SERVICE_TOKEN`.
    Environment,
    /// The credentials file.
    File,
    /// A systemd credential.
    SystemdCredential,
}

/// An access token and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The token.
    pub token: Secret,
    /// Where it comes from.
    pub source: TokenSource,
    /// When a login stored it, by our clock, in milliseconds since 1970; `None` for what no login stored.
    pub stored_ms: Option<i64>,
}

/// What the credentials file remembers of a login besides the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    /// The shop's name as the service gave it; may be empty.
    pub shop_name: String,
    /// The origin that issued the token.
    pub origin: String,
    /// When it was stored, by our clock, in milliseconds since 1970.
    pub stored_ms: i64,
}

/// The places a token may lie, apart from the credentials file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    /// The value of `SERVICE_TOKEN`, given by one-shot commands only.
    pub env_token: Option<Secret>,
    /// `$CREDENTIALS_DIRECTORY`.
    pub credentials_dir: Option<PathBuf>,
}

/// What is wrong with the credentials.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    /// The file, its directory or its mode.
    #[error(transparent)]
    File(#[from] FileError),
    /// Not what `login` writes.
    #[error("`{}` is not a credentials file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// A token that is empty, after one trailing newline was taken off (A20).
    #[error("the access token in {place} is empty")]
    Empty {
        /// The variable or path.
        place: String,
    },
    /// The token was issued by another service than the configured one.
    #[error("the stored login is for `{issued_by}`, the configured service is `{configured}`")]
    OtherOrigin {
        /// The origin that issued the token.
        issued_by: String,
        /// The origin the configuration names.
        configured: String,
    },
    /// A token of tilld's sandbox, which is good for a service on this machine alone.
    #[error(
        "the access token in {place} is one of tilld's sandbox, and the configured service is `{configured}`"
    )]
    OfSandbox {
        /// The variable or path.
        place: String,
        /// The origin the configuration names.
        configured: String,
    },
}

impl CredentialsError {
    /// True when owner or mode are the trouble, as opposed to content.
    pub(crate) fn is_permission(&self) -> bool {
        match self {
            Self::File(FileError::Permissions { .. } | FileError::Owner { .. }) => true,
            Self::File(FileError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::PermissionDenied
            }
            Self::File(FileError::NotAFile { .. } | FileError::TooLarge { .. })
            | Self::Unreadable { .. }
            | Self::Empty { .. }
            | Self::OtherOrigin { .. }
            | Self::OfSandbox { .. } => false,
        }
    }

    /// True when there is no place for the file: the state directory is missing, is none, or is not for this user. As
    /// opposed to a file that others may read, and to a disk that fails.
    pub(crate) fn is_unfit_place(&self) -> bool {
        use std::io::ErrorKind::{
            AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
        };
        let Self::File(FileError::Io { source, .. }) = self else {
            return false;
        };
        matches!(
            source.kind(),
            AlreadyExists | NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem
        )
    }
}

/// The credentials file of one state directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
    hidden: Hidden,
}

impl Store {
    /// The store in `STATE_DIR/secret/`. Touches nothing.
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join("secret").join("credentials"),
            hidden: Hidden::default(),
        }
    }

    /// The same, which adds every token that it finds to those that are hidden.
    pub(crate) fn hiding(self, hidden: &Hidden) -> Self {
        let hidden = hidden.clone();
        Self { hidden, ..self }
    }

    /// The file's path, to be shown.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Loads the stored login. `None` when there is none.
    pub(crate) fn load(&self) -> Result<Option<Credentials>, CredentialsError> {
        let Some(bytes) = private_file::read(&self.path)? else {
            return Ok(None);
        };
        let object = json::object(&bytes).map_err(|_cause| self.unreadable())?;
        let field = |name: &str| object.get(name).and_then(Value::as_str);
        let token = field("token").ok_or_else(|| self.unreadable())?;
        let stored_at = field("stored_at").and_then(Moment::parse);
        Ok(Some(Credentials {
            token: trimmed(token, || format!("`{}`", self.path.display()))?,
            shop_name: field("shop_name").unwrap_or_default().to_owned(),
            origin: field("service")
                .ok_or_else(|| self.unreadable())?
                .to_owned(),
            stored_ms: stored_at.ok_or_else(|| self.unreadable())?.as_ms(),
        }))
    }

    /// Stores a login in place of the old one. Until it returns, and after an error, the old one stands.
    pub(crate) fn store(&self, credentials: &Credentials) -> Result<(), CredentialsError> {
        let document = json!({
            "token": credentials.token.expose(),
            "shop_name": credentials.shop_name,
            "service": credentials.origin,
            "stored_at": Moment::from_ms(credentials.stored_ms).to_string(),
        });
        let text = Secret::new(format!("{document}\n"));
        Ok(private_file::replace(&self.path, text.expose().as_bytes())?)
    }

    /// Shows that [`Store::store`] would succeed now: a token that was issued and cannot be stored is lost.
    pub(crate) fn check_writable(&self) -> Result<(), CredentialsError> {
        Ok(private_file::rehearse(&self.path, REHEARSAL)?)
    }

    /// Removes the stored login. False when there was none. The shop's name stays: the ledger's invoices are that shop's.
    pub(crate) fn remove(&self) -> Result<bool, CredentialsError> {
        // A file that cannot be read names no shop, and is removed all the same.
        if let Ok(Some(stored)) = self.load() {
            let known = json!({ "shop_name": stored.shop_name, "service": stored.origin });
            private_file::replace(&self.last_shop(), format!("{known}\n").as_bytes())?;
        }
        Ok(private_file::remove(&self.path)?)
    }

    /// The access token to use towards `origin`, from the first place that has one: `SERVICE_TOKEN`, the file, the systemd
    /// credential. `None` when no place has one. The first two places are never skipped because they are bad. A token of the
    /// sandbox is refused towards any service that is not on this machine.
    pub(crate) fn find(
        &self,
        elsewhere: &Elsewhere,
        origin: &str,
    ) -> Result<Option<Found>, CredentialsError> {
        let found = self.first(elsewhere, origin)?;
        if let Some(found) = &found {
            self.hidden.add(&found.token);
        }
        let of_sandbox = |found: &Found| found.token.expose().starts_with(SANDBOX_TOKEN);
        if !found.as_ref().is_some_and(of_sandbox) || is_loopback_url(origin) {
            return Ok(found);
        }
        let place = match found.map(|found| found.source) {
            Some(TokenSource::Environment) => format!("`{ENV_TOKEN}`"),
            Some(TokenSource::SystemdCredential) => {
                format!("the systemd credential `{SYSTEMD_NAME}`")
            }
            Some(TokenSource::File) | None => format!("`{}`", self.path.display()),
        };
        let configured = origin.to_owned();
        Err(CredentialsError::OfSandbox { place, configured })
    }

    fn first(
        &self,
        elsewhere: &Elsewhere,
        origin: &str,
    ) -> Result<Option<Found>, CredentialsError> {
        if let Some(token) = &elsewhere.env_token {
            let token = trimmed(token.expose(), || format!("`{ENV_TOKEN}`"))?;
            return Ok(Some(Found {
                token,
                source: TokenSource::Environment,
                stored_ms: None,
            }));
        }
        if let Some(stored) = self.load()? {
            let Credentials {
                token,
                origin: issued_by,
                stored_ms,
                ..
            } = stored;
            if issued_by != origin {
                return Err(CredentialsError::OtherOrigin {
                    issued_by,
                    configured: origin.to_owned(),
                });
            }
            return Ok(Some(Found {
                token,
                source: TokenSource::File,
                stored_ms: Some(stored_ms),
            }));
        }
        let token = elsewhere.systemd_token()?;
        Ok(token.map(|token| Found {
            token,
            source: TokenSource::SystemdCredential,
            stored_ms: None,
        }))
    }

    fn unreadable(&self) -> CredentialsError {
        CredentialsError::Unreadable {
            path: self.path.clone(),
        }
    }
}

impl Elsewhere {
    /// What this process was given: `SERVICE_TOKEN` and `$CREDENTIALS_DIRECTORY`. For one-shot commands.
    pub(crate) fn of_one_shot() -> Self {
        Self {
            // A value that is no text becomes one that no header can carry: said so, rather than passed over.
            env_token: std::env::var_os(ENV_TOKEN)
                .map(|token| Secret::new(token.to_string_lossy().into_owned())),
            ..Self::of_daemon()
        }
    }

    /// What the daemon was given: `$CREDENTIALS_DIRECTORY` alone.
    pub(crate) fn of_daemon() -> Self {
        Self {
            env_token: None,
            credentials_dir: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
        }
    }

    /// The token systemd passes, if it does. Its mode is systemd's affair: an access list can show as group-readable.
    pub(crate) fn systemd_token(&self) -> Result<Option<Secret>, CredentialsError> {
        let Some(path) = self
            .credentials_dir
            .as_ref()
            .map(|dir| dir.join(SYSTEMD_NAME))
        else {
            return Ok(None);
        };
        let Some(bytes) = private_file::read_foreign(&path)? else {
            return Ok(None);
        };
        let place = || format!("`{}`", path.display());
        let text = std::str::from_utf8(&bytes)
            .map_err(|_cause| CredentialsError::Unreadable { path: path.clone() })?;
        trimmed(text, place).map(Some)
    }
}

/// Takes one trailing newline off, as editors and `echo` put one there; what is empty then is an error (A20).
fn trimmed(text: &str, place: impl FnOnce() -> String) -> Result<Secret, CredentialsError> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        Err(CredentialsError::Empty { place: place() })
    } else {
        Ok(Secret::new(text))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ORIGIN: &str = "https://pay.example";

    fn credentials(token: &str) -> Credentials {
        Credentials {
            token: Secret::new(token),
            shop_name: "Лавка \"№1\"".into(),
            origin: ORIGIN.into(),
            stored_ms: 1_764_324_120_123,
        }
    }

    #[test]
    fn a_login_reads_back_and_shows_nothing() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::new(home.path());
        assert!(store.load().expect("no file").is_none());
        store.check_writable().expect("writable");
        assert!(
            store.load().expect("no file").is_none(),
            "the rehearsal stores nothing"
        );
        store
            .store(&credentials("shop:secret-token"))
            .expect("stored");
        let back = store.load().expect("readable").expect("stored");
        assert_eq!(
            (back.token.expose(), back.stored_ms),
            ("shop:secret-token", 1_764_324_120_123)
        );
        assert_eq!(back.shop_name, "Лавка \"№1\"");
        assert!(!format!("{back:?}").contains("secret-token"));
        assert!(store.remove().expect("removed"));
        assert!(store.load().expect("no file").is_none());
    }

    #[test]
    fn the_first_place_with_a_token_wins() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::new(home.path());
        let mut elsewhere = Elsewhere::default();
        let found = |elsewhere: &Elsewhere| {
            let found = store.find(elsewhere, ORIGIN).expect("no trouble");
            found.map(|found| (found.source, found.token.expose().to_owned()))
        };
        assert_eq!(found(&elsewhere), None);
        fs::write(home.path().join(SYSTEMD_NAME), "from-systemd\n").expect("written");
        elsewhere.credentials_dir = Some(home.path().to_owned());
        assert_eq!(
            found(&elsewhere),
            Some((TokenSource::SystemdCredential, "from-systemd".into()))
        );
        store.store(&credentials("from-file")).expect("stored");
        assert_eq!(
            found(&elsewhere),
            Some((TokenSource::File, "from-file".into()))
        );
        elsewhere.env_token = Some(Secret::new("from-env\n"));
        assert_eq!(
            found(&elsewhere),
            Some((TokenSource::Environment, "from-env".into()))
        );
    }

    #[test]
    fn a_token_is_not_shown_to_another_origin() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::new(home.path());
        store
            .store(&credentials("shop:secret-token"))
            .expect("stored");
        for other in [
            "https://pay.example:8443",
            "http://pay.example",
            "https://pay.example.evil",
        ] {
            let refused = store.find(&Elsewhere::default(), other).expect_err(other);
            assert!(
                matches!(refused, CredentialsError::OtherOrigin { .. }),
                "{other}"
            );
            assert!(!format!("{refused:?}{refused}").contains("secret-token"));
        }
    }

    /// Else a merchant who has proved the shop against the sandbox takes its token to the real service, and wonders.
    #[test]
    fn a_token_of_the_sandbox_goes_nowhere_but_to_this_machine() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::new(home.path());
        let token = format!("{SANDBOX_TOKEN}shop:secret-token");
        let elsewhere = Elsewhere {
            env_token: Some(Secret::new(token)),
            credentials_dir: None,
        };
        let refused = store.find(&elsewhere, ORIGIN).expect_err("refused");
        assert!(matches!(refused, CredentialsError::OfSandbox { .. }));
        let shown = format!("{refused:?}{refused}");
        assert!(shown.contains("SERVICE_TOKEN") && !shown.contains("secret-token"));
        for here in [
            "http://127.0.0.1:8490",
            "http://[::1]:1",
            "http://localhost",
        ] {
            let found = store.find(&elsewhere, here).expect("taken");
            assert!(found.is_some(), "{here}");
        }
    }

    #[test]
    fn an_empty_or_foreign_file_is_an_error_and_not_a_missing_login() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::new(home.path());
        for empty in ["", "\n", "\r\n"] {
            let elsewhere = Elsewhere {
                env_token: Some(Secret::new(empty)),
                credentials_dir: None,
            };
            let refused = store.find(&elsewhere, ORIGIN);
            assert!(
                matches!(refused, Err(CredentialsError::Empty { .. })),
                "{empty:?}"
            );
        }
        store.store(&credentials("x")).expect("stored");
        for (text, empty) in [
            ("", false),
            ("{}", false),
            ("shop:secret-token", false),
            (r#"{"token":"shop:secret-token"}"#, false),
            (
                r#"{"token":"\n","service":"https://pay.example","stored_at":"2026-01-01T00:00:00Z"}"#,
                true,
            ),
        ] {
            fs::write(store.path(), text).expect("written");
            let refused = store.load().expect_err(text);
            assert_eq!(
                matches!(refused, CredentialsError::Empty { .. }),
                empty,
                "{text}"
            );
            assert!(!format!("{refused:?}{refused}").contains("secret-token"));
        }
    }
}
