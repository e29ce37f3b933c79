//! A login request that outlives the process that began it: `STATE_DIR/secret/login-request`, 0600, with the device code in
//! it. `login --start` writes it, `login --finish` goes on with it, and every final end removes it.
//!
//! It is bound to the origin that gave the device code, as a stored token is. Each question is noted before it is asked,
//! under the lock of the directory: however many processes finish one login, and however often, together they keep the
//! interval; and a process that dies while asking leaves the note that its answer is not known.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::LONGEST;
use crate::client::private_file::{self, Change, FileError};
use crate::invoice::moment::Moment;
use crate::secret::Secret;
use crate::wire::json::{self, Object, text};
use crate::wire::login::LoginStarted;

/// A login request, and how far asking about it came.
#[derive(Clone, Debug)]
pub(crate) struct LoginRequest {
    pub(super) device_code: Secret,
    /// For the merchant to compare.
    pub(crate) user_code: String,
    /// For the merchant to open.
    pub(crate) verification_url: String,
    /// The origin that gave the device code.
    pub(crate) origin: String,
    /// When the code's life ends, by our clock, in milliseconds since 1970.
    pub(crate) expires_ms: i64,
    /// The time between two questions, as it has grown.
    pub(super) interval: Duration,
    /// When the last question was noted, or the request made, by our clock, in milliseconds since 1970.
    asked_ms: i64,
    /// How long to wait from then on.
    wait: Duration,
    /// A question was asked whose answer is not known.
    pub(super) unheard: bool,
}

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The file, its directory or its mode.
    #[error(transparent)]
    File(#[from] FileError),
    /// Not what `login --start` writes.
    #[error("`{}` is not a login request", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// What to do about a login request now.
#[derive(Debug)]
pub(super) enum Turn {
    /// There is none, or another one took its place.
    Gone,
    /// Its life is over.
    RunOut(LoginRequest),
    /// Wait so long, then look again.
    Early(LoginRequest, Duration),
    /// The question is noted: ask it.
    Ask(LoginRequest),
}

impl LoginRequest {
    /// A request the service has just answered.
    pub(crate) fn begun(started: &LoginStarted, origin: String, now_ms: i64) -> Self {
        let interval = Duration::from_secs(started.interval_s).min(LONGEST);
        let life = Duration::from_secs(started.expires_in_s).min(LONGEST);
        Self {
            device_code: started.device_code.clone(),
            user_code: started.user_code.clone(),
            verification_url: started.verification_url.clone(),
            origin,
            expires_ms: now_ms.saturating_add(millis(life)),
            interval,
            asked_ms: now_ms,
            wait: interval,
            unheard: false,
        }
    }

    /// What is left of the code's life. A clock that went back makes it no longer than any code lives.
    pub(crate) fn left(&self, now_ms: i64) -> Duration {
        until(self.expires_ms, now_ms).min(LONGEST)
    }

    /// How long to wait before the next question. A clock that went back makes it no longer than it was meant to be.
    pub(crate) fn pause(&self, now_ms: i64) -> Duration {
        until(self.asked_ms.saturating_add(millis(self.wait)), now_ms).min(self.wait)
    }

    fn is_same(&self, other: &Secret) -> bool {
        self.device_code.expose() == other.expose()
    }

    fn read(object: &Object) -> Option<Self> {
        let word = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let at = |name: &str| Some(Moment::parse(&word(name)?)?.as_ms());
        let time = |name: &str| {
            let ms = text(object.get(name))?.parse().ok()?;
            Some(Duration::from_millis(ms).min(LONGEST))
        };
        Some(Self {
            device_code: Secret::new(word("device_code")?),
            user_code: word("user_code")?,
            verification_url: word("verification_url")?,
            origin: word("service")?,
            expires_ms: at("expires_at")?,
            interval: time("interval_ms")?,
            asked_ms: at("asked_at")?,
            wait: time("wait_ms")?,
            unheard: object.get("unheard").and_then(Value::as_bool)?,
        })
    }

    fn to_text(&self) -> Secret {
        let document = json!({
            "device_code": self.device_code.expose(),
            "user_code": self.user_code,
            "verification_url": self.verification_url,
            "service": self.origin,
            "expires_at": Moment::from_ms(self.expires_ms).to_string(),
            "interval_ms": millis(self.interval),
            "asked_at": Moment::from_ms(self.asked_ms).to_string(),
            "wait_ms": millis(self.wait),
            "unheard": self.unheard,
        });
        Secret::new(format!("{document}\n"))
    }
}

/// The login request of one state directory.
#[derive(Clone, Debug)]
pub(crate) struct RequestStore {
    path: PathBuf,
}

impl RequestStore {
    /// The store in `STATE_DIR/secret/`. Touches nothing.
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join("secret").join("login-request"),
        }
    }

    #[cfg(test)]
    fn path(&self) -> &Path {
        &self.path
    }

    /// Loads the request. `None` when no login is begun.
    pub(crate) fn load(&self) -> Result<Option<LoginRequest>, RequestError> {
        private_file::read(&self.path)?
            .map(|bytes| self.read(&bytes))
            .transpose()
    }

    /// Keeps a request in the place of an earlier one. True when there was one.
    pub(crate) fn begin(&self, request: &LoginRequest) -> Result<bool, RequestError> {
        // Whatever lies there, readable or not, makes room.
        let replaced = self.path.exists();
        private_file::replace(&self.path, request.to_text().expose().as_bytes())?;
        Ok(replaced)
    }

    /// Removes the request, whichever it is. False when there was none.
    pub(crate) fn discard(&self) -> Result<bool, RequestError> {
        Ok(private_file::remove(&self.path)?)
    }

    /// Removes this request, but not one that took its place.
    pub(crate) fn end_of(&self, request: &LoginRequest) -> Result<(), RequestError> {
        self.end(&request.device_code)
    }

    pub(super) fn end(&self, device_code: &Secret) -> Result<(), RequestError> {
        self.on(device_code, |_request| ((), Some(Change::Remove)))
            .map(drop)
    }

    /// Takes the turn to ask, if it is time: notes the question before it is asked.
    pub(super) fn turn(&self, device_code: &Secret, now_ms: i64) -> Result<Turn, RequestError> {
        let turn = self.on(device_code, |request| {
            if request.left(now_ms).is_zero() {
                return (Turn::RunOut(request), None);
            }
            let pause = request.pause(now_ms);
            if !pause.is_zero() {
                return (Turn::Early(request, pause), None);
            }
            let noted = LoginRequest {
                asked_ms: now_ms,
                wait: request.interval,
                unheard: true,
                ..request.clone()
            };
            (Turn::Ask(request), Some(Change::Replace(noted.to_text())))
        })?;
        Ok(turn.unwrap_or(Turn::Gone))
    }

    /// Notes what an answer changed: the interval, the wait from now on, and whether an answer is still not known.
    pub(super) fn heard(
        &self,
        device_code: &Secret,
        now_ms: i64,
        (interval, wait, unheard): (Duration, Duration, bool),
    ) -> Result<(), RequestError> {
        self.on(device_code, |request| {
            let heard = LoginRequest {
                interval: interval.max(request.interval),
                asked_ms: now_ms,
                wait,
                unheard,
                ..request
            };
            ((), Some(Change::Replace(heard.to_text())))
        })
        .map(drop)
    }

    /// Decides about the request with this device code while nobody else may. `None` when it is not there any more.
    fn on<T>(
        &self,
        device_code: &Secret,
        decide: impl FnOnce(LoginRequest) -> (T, Option<Change>),
    ) -> Result<Option<T>, RequestError> {
        private_file::change(&self.path, |old| {
            let request = old.map(|bytes| self.read(&bytes)).transpose()?;
            Ok(match request.filter(|found| found.is_same(device_code)) {
                Some(request) => {
                    let (answer, change) = decide(request);
                    (Some(answer), change.unwrap_or(Change::Keep))
                }
                None => (None, Change::Keep),
            })
        })
    }

    fn read(&self, bytes: &[u8]) -> Result<LoginRequest, RequestError> {
        json::object(bytes)
            .ok()
            .as_ref()
            .and_then(LoginRequest::read)
            .ok_or_else(|| RequestError::Unreadable {
                path: self.path.clone(),
            })
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn until(at_ms: i64, now_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: i64 = 1_764_324_120_123;

    fn request(interval_s: u64, expires_in_s: u64) -> LoginRequest {
        let started = LoginStarted {
            device_code: Secret::new("dc_secret-code"),
            user_code: "ABCD-EFGH".into(),
            verification_url: "https://cabinet.example/activate?code=ABCD-EFGH".into(),
            expires_in_s,
            interval_s,
        };
        LoginRequest::begun(&started, "https://pay.example".into(), NOW)
    }

    #[test]
    fn turns_keep_the_interval_whoever_takes_them() {
        let home = tempfile::tempdir().expect("a directory");
        let (one, other) = (
            RequestStore::new(home.path()),
            RequestStore::new(home.path()),
        );
        let code = Secret::new("dc_secret-code");
        assert!(!one.begin(&request(5, 600)).expect("kept"));
        let early = one.turn(&code, NOW + 4_999).expect("readable");
        assert!(matches!(early, Turn::Early(_, pause) if pause == Duration::from_millis(1)));
        let asked = one.turn(&code, NOW + 5_000).expect("readable");
        assert!(matches!(asked, Turn::Ask(request) if !request.unheard));
        // The same moment, another process: the question is noted already, and its answer is not known.
        let early = other.turn(&code, NOW + 5_000).expect("readable");
        assert!(
            matches!(early, Turn::Early(request, pause) if request.unheard && pause == Duration::from_secs(5))
        );
        let slower = (Duration::from_secs(10), Duration::from_secs(30), false);
        one.heard(&code, NOW + 5_100, slower).expect("noted");
        let kept = other.load().expect("readable").expect("there");
        assert_eq!(
            (kept.interval, kept.pause(NOW + 5_100), kept.unheard),
            (Duration::from_secs(10), Duration::from_secs(30), false)
        );
        assert!(!format!("{kept:?}").contains("secret-code"));
        let over = one.turn(&code, NOW + 600_000).expect("readable");
        assert!(matches!(over, Turn::RunOut(_)));
    }

    #[test]
    fn another_request_is_neither_asked_about_nor_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let store = RequestStore::new(home.path());
        let earlier = Secret::new("dc_earlier");
        assert!(matches!(store.turn(&earlier, NOW), Ok(Turn::Gone)));
        store.begin(&request(5, 600)).expect("kept");
        assert!(matches!(store.turn(&earlier, NOW + 9_000), Ok(Turn::Gone)));
        store.end(&earlier).expect("nothing to do");
        assert!(store.load().expect("readable").is_some());
        store.end(&Secret::new("dc_secret-code")).expect("removed");
        assert!(store.load().expect("readable").is_none());
    }

    #[test]
    fn a_clock_that_jumps_makes_no_wait_longer_than_it_was_meant_to_be() {
        let request = request(5, u64::MAX);
        assert_eq!(request.pause(NOW - 3_600_000), Duration::from_secs(5));
        assert_eq!(request.left(NOW - 3_600_000), LONGEST);
        assert_eq!(request.pause(NOW + 3_600_000), Duration::ZERO);
        assert_eq!(request.left(i64::MAX), Duration::ZERO);
    }

    #[test]
    fn what_is_no_login_request_is_an_error_and_not_a_missing_one() {
        let home = tempfile::tempdir().expect("a directory");
        let store = RequestStore::new(home.path());
        store.begin(&request(5, 600)).expect("kept");
        for text in [
            "",
            "{}",
            "dc_secret-code",
            r#"{"device_code":"dc_secret-code"}"#,
        ] {
            fs::write(store.path(), text).expect("written");
            let refused = store.load().expect_err(text);
            assert!(matches!(refused, RequestError::Unreadable { .. }), "{text}");
            assert!(!format!("{refused:?}{refused}").contains("secret-code"));
        }
        fs::set_permissions(store.path(), Permissions::from_mode(0o644)).expect("own file");
        assert!(matches!(store.load(), Err(RequestError::File(_))));
        // A new beginning needs nothing of the old one.
        assert!(store.begin(&request(5, 600)).expect("kept"));
        assert!(store.load().expect("readable").is_some());
        let mode = fs::metadata(store.path()).expect("there").permissions();
        assert_eq!(mode.mode() & 0o7777, 0o600);
    }
}
