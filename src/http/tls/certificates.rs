//! What is shown to a client, and how it is replaced while connections go on.
//!
//! Promises that a certificate is judged before it is shown, that a bad new one changes nothing and is told, and that its end
//! is told ahead. A session that is open keeps what it was opened with.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use tokio::time::{Duration, Instant, sleep};

use super::files::{CertificateError, CertificateFiles, Mark, Usable};
use crate::shutdown::Shutdown;
use crate::telemetry::LogRate;
use crate::{clock, telemetry};

/// How often it is looked whether the files are others: whoever renews need tell nobody.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long before its end a certificate is told of, seconds.
pub(crate) const TOLD_AHEAD_S: i64 = 14 * DAY_S;
/// How often that is.
const TELL_EVERY: Duration = Duration::from_hours(24);
const DAY_S: i64 = 24 * 3_600;

/// A certificate and its key, replaced as a whole. Cloned freely.
#[derive(Clone)]
pub struct Certificates(Arc<Inner>);

struct Inner {
    files: CertificateFiles,
    shown: Mutex<Shown>,
}

/// Held to look or to replace, never across an `.await`.
struct Shown {
    certified: Arc<CertifiedKey>,
    ends_at_s: i64,
    /// The files as they were when they were last read, whatever came of it.
    read: Marks,
    /// And when they were last looked at.
    seen: Marks,
}

type Marks = [Option<Mark>; 2];

impl Certificates {
    /// Reads them. One that is over is used all the same: a start that fails would stop the polls too, which need none.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn load(files: CertificateFiles) -> Result<Self, CertificateError> {
        let marks = files.marks();
        let Usable {
            certified,
            ends_at_s,
        } = files.load()?;
        Ok(Self(Arc::new(Inner {
            files,
            shown: Mutex::new(Shown {
                certified: Arc::new(certified),
                ends_at_s,
                read: marks,
                seen: marks,
            }),
        })))
    }

    /// Reads them again, and shows them from the next connection on. Says whether they are others than before.
    ///
    /// # Errors
    /// When they cannot be used, or are over: then those that were there stay.
    pub fn reload(&self) -> Result<bool, CertificateError> {
        let marks = self.0.files.marks();
        let read = self.0.files.load().and_then(|usable| {
            if usable.ends_at_s > now_s() {
                return Ok(usable);
            }
            Err(CertificateError::Over {
                file: self.0.files.certificate.clone(),
                ended_at: jiff::Timestamp::from_second(usable.ends_at_s).unwrap_or_default(),
            })
        });
        let mut shown = self.shown();
        (shown.read, shown.seen) = (marks, marks);
        let Usable {
            certified,
            ends_at_s,
        } = read?;
        let is_other = certified.cert != shown.certified.cert;
        shown.certified = Arc::new(certified);
        shown.ends_at_s = ends_at_s;
        Ok(is_other)
    }

    /// [`Self::reload`], told in the log.
    ///
    /// # Errors
    /// As there.
    pub fn reload_and_tell(&self) -> Result<(), CertificateError> {
        let file = self.0.files.certificate.display();
        match self.reload() {
            Ok(true) => {
                let ends_at = self.ends_at();
                tracing::info!(tls.ends_at = %ends_at, "the certificate `{file}` is shown from now on; it ends at {ends_at}");
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => {
                let reason = telemetry::chain(&error);
                tracing::error!(
                    hint = error.hint(),
                    "the certificate that was there is shown on, for the new one cannot be used: {reason}"
                );
                Err(error)
            }
        }
    }

    /// When the certificate ends.
    pub fn ends_at(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.shown().ends_at_s).unwrap_or_default()
    }

    /// What rustls serves with. It asks for the certificate at each handshake.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("`ring` has suites for both");
        let mut config = config
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// Looks whether the files are others, and tells of the end ahead, until the stop.
    pub(super) async fn keep_fresh(&self, shutdown: Shutdown) {
        let lines = LogRate::new(1, TELL_EVERY);
        loop {
            if lines.turn(Instant::now().into_std()).is_some() {
                self.tell_end();
            }
            tokio::select! {
                () = shutdown.requested() => return,
                () = sleep(LOOK_EVERY) => {}
            }
            self.look();
        }
    }

    /// Reads the files again when they are others than those that were read, and as they were at the last look: the two are
    /// replaced one after the other, and between that do not fit.
    fn look(&self) {
        let marks = self.0.files.marks();
        let mut shown = self.shown();
        let is_settled = marks == shown.seen;
        let is_other = marks != shown.read;
        shown.seen = marks;
        drop(shown);
        if is_other && is_settled {
            // Told where it is done.
            drop(self.reload_and_tell());
        }
    }

    fn tell_end(&self) {
        let left_s = self.shown().ends_at_s - now_s();
        let (file, ends_at) = (self.0.files.certificate.display(), self.ends_at());
        if left_s <= 0 {
            tracing::error!(tls.ends_at = %ends_at, "the certificate `{file}` ended at {ends_at}: no sender takes it any more");
        } else if left_s <= TOLD_AHEAD_S {
            let days = left_s / DAY_S;
            tracing::warn!(tls.ends_at = %ends_at, "the certificate `{file}` ends in {days} days, at {ends_at}");
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now_s() -> i64 {
    clock::wall_ms() / 1_000
}

impl ResolvesServerCert for Certificates {
    /// The one there is, whatever name the client asks for, or none.
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.shown().certified))
    }
}

/// Without the key.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("files", &self.0.files)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// Writes a new certificate and its key for so many days. False when there is no `openssl`, which a machine of ours has.
    fn issue(dir: &Path, name: &str, days: &str) -> bool {
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-subj", "/CN=shop.example", "-days", days])
            .arg("-out")
            .arg(dir.join(format!("{name}.pem")))
            .arg("-keyout")
            .arg(dir.join(format!("{name}.key")))
            .stderr(Stdio::null())
            .status();
        let Ok(made) = made else {
            let must = std::env::var_os("TILLD_NO_SKIP").is_some_and(|value| value == "1");
            assert!(!must, "may not be skipped: there is no openssl");
            return false;
        };
        assert!(made.success(), "issued");
        true
    }

    fn put(dir: &Path, name: &str, as_name: &str) {
        for end in ["pem", "key"] {
            let draft = dir.join("draft");
            fs::copy(dir.join(format!("{name}.{end}")), &draft).expect("copied");
            fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).expect("own file");
            fs::rename(&draft, dir.join(format!("{as_name}.{end}"))).expect("in place");
        }
    }

    /// Renewed by the files alone; half a renewal is waited out, and what cannot be used changes nothing.
    #[test]
    fn files_that_were_replaced_are_taken_up_once_they_are_settled() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        if !(issue(dir, "first", "10") && issue(dir, "second", "20")) {
            return;
        }
        put(dir, "first", "own");
        let files = CertificateFiles {
            certificate: dir.join("own.pem"),
            key: dir.join("own.key"),
            owner: 0,
        };
        let certificates = Certificates::load(files.clone()).expect("usable");
        let first = certificates.ends_at();
        assert!((9..=10).contains(&((first.as_second() - now_s()) / DAY_S)));
        certificates.look();
        certificates.look();
        assert_eq!(certificates.ends_at(), first);

        // The certificate before its key.
        fs::copy(dir.join("second.pem"), &files.certificate).expect("copied");
        certificates.look();
        assert!(matches!(
            certificates.reload(),
            Err(CertificateError::Mismatch { .. })
        ));
        put(dir, "second", "own");
        certificates.look();
        assert_eq!(certificates.ends_at(), first, "not yet settled");
        certificates.look();
        let second = certificates.ends_at();
        assert!(second > first);

        fs::write(&files.certificate, "nothing").expect("written");
        certificates.look();
        certificates.look();
        assert_eq!(certificates.ends_at(), second);
        assert!(matches!(
            certificates.reload(),
            Err(CertificateError::Nothing { .. })
        ));

        put(dir, "first", "own");
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).expect("own file");
        let exposed = certificates.reload().expect_err("everybody reads it");
        assert!(exposed.hint().contains("chmod o="));
    }
}
