//! The certificates senders are shown: the listener's own, read as the user tilld runs as would read it, and the one the public
//! address showed. One that ends is told a fortnight ahead, with its date; from then on no notification arrives.

use std::fs;
use std::path::Path;

use jiff::Timestamp;

use super::user::User;
use super::{ASK_AS, Finding};
use crate::clock;
use crate::config::Settings;
use crate::http::{Certificates, TOLD_AHEAD_S};
use crate::parts::certificate_files;
use crate::telemetry::chain;

const OWN: &str = "tls";
const PUBLIC: &str = "public_certificate";
const DAY_S: i64 = 24 * 3_600;

/// The listener's, when it has one.
pub(super) fn own(settings: &Settings, user: &User) -> Vec<Finding> {
    let Some(mut files) = certificate_files(&settings.listener) else {
        return Vec::new();
    };
    files.owner = user.uid;
    // Read by root or another member of the group it would look well.
    let trouble: Vec<Finding> = [&files.certificate, &files.key]
        .into_iter()
        .filter_map(|file| unreadable(file, user))
        .collect();
    if !trouble.is_empty() {
        return trouble;
    }
    let name = format!("the certificate `{}`", files.certificate.display());
    vec![match Certificates::load(files) {
        Ok(certificates) => judge(OWN, &name, certificates.ends_at(), now_s()),
        // The user tilld runs as may read them, as was just seen; whoever asks may not.
        Err(error) if error.is_closed() => Finding::warn(OWN, chain(&error)).hint(ASK_AS),
        Err(error) => Finding::fail(OWN, chain(&error)).hint(error.hint()),
    }]
}

/// The one that was shown at the public address, when that speaks TLS. One that ended was refused before.
pub(super) fn shown(base: &str, ends_at_s: Option<i64>) -> Option<Finding> {
    let ends_at = Timestamp::from_second(ends_at_s?).ok()?;
    let name = format!("the certificate that {base} shows");
    Some(judge(PUBLIC, &name, ends_at, now_s()))
}

/// What keeps the user from a file that is there; what is missing is told by whoever reads it.
fn unreadable(file: &Path, user: &User) -> Option<Finding> {
    let real = fs::canonicalize(file).ok()?;
    let about = fs::metadata(&real).ok()?;
    let told = match user.shut_out_by(&real) {
        Some(directory) => format!(
            "`{}` may not enter `{}`, where `{}` lies",
            user.name,
            directory.display(),
            real.display()
        ),
        None if user.rights(&about) & 4 == 0 => {
            format!("`{}` may not read `{}`", user.name, real.display())
        }
        None => return None,
    };
    Some(Finding::fail(OWN, told).hint(format!(
        "let the group of `{}` read the file, and enter the directories above it",
        user.name
    )))
}

fn judge(check: &'static str, name: &str, ends_at: Timestamp, now_s: i64) -> Finding {
    let left_s = ends_at.as_second().saturating_sub(now_s);
    let hint = "renew it, and look why that was not done by itself";
    if left_s <= 0 {
        let told = format!("{name} ended at {ends_at}: no sender takes it any more");
        return Finding::fail(check, told).hint(hint);
    }
    if left_s <= TOLD_AHEAD_S {
        let days = left_s / DAY_S;
        let told = format!("{name} ends in {days} days, at {ends_at}");
        return Finding::warn(check, told).hint(hint);
    }
    Finding::ok(check, format!("{name} holds until {ends_at}"))
}

fn now_s() -> i64 {
    clock::wall_ms() / 1_000
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::State;
    use super::*;

    #[test]
    fn an_end_is_told_a_fortnight_ahead() {
        let now_s = 1_795_860_120;
        for (left_s, state, part) in [
            (-1, State::Fail, "ended at 2026-11-28T10:01:59Z"),
            (0, State::Fail, "ended at"),
            (1, State::Warn, "in 0 days, at 2026-11-28T10:02:01Z"),
            (14 * DAY_S, State::Warn, "in 14 days"),
            (
                14 * DAY_S + 1,
                State::Ok,
                "holds until 2026-12-12T10:02:01Z",
            ),
        ] {
            let ends_at = Timestamp::from_second(now_s + left_s).expect("in range");
            let found = judge(OWN, "it", ends_at, now_s);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.told.contains(part), "{found:?}");
        }
        assert_eq!(shown("https://shop.example", None), None);
    }

    /// Root reads all, and so may a person of the key's group.
    #[test]
    fn files_that_the_daemons_user_may_not_read_are_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
        };
        let key = dir.path().join("own.key");
        fs::write(&key, "").expect("written");
        let shop = User {
            uid: 4_000_000_001,
            groups: Vec::new(),
            name: "shop".to_owned(),
        };
        let mut settings = Settings::default();
        settings.listener.tls_certificate = Some(key.clone());
        settings.listener.tls_key = Some(key.clone());
        mode(dir.path(), 0o700);
        let told = own(&settings, &shop);
        assert!(
            told.iter()
                .all(|found| found.told.contains("`shop` may not enter")),
            "{told:?}"
        );
        mode(dir.path(), 0o755);
        mode(&key, 0o640);
        let told = own(&settings, &shop);
        assert_eq!(told.len(), 2);
        assert!(
            told.iter()
                .all(|found| found.told.contains("`shop` may not read")
                    && found.state == State::Fail),
            "{told:?}"
        );
        assert_eq!(own(&Settings::default(), &shop), []);
    }
}
