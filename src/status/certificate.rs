//! Whether the listener's certificate needs an operator: before its end, and when no start could use its files. Relies on
//! [`super::reason`] for the sentences; promises to leave alone what is being renewed.

use super::reason::Need;
use crate::clock::wall_ms;
use crate::config::Listener;
use crate::http::{CertificateError, CertificateFiles, TOLD_AHEAD_S};
use crate::invoice::moment::Moment;
use crate::parts::certificate_files;
use crate::telemetry::chain;

const DAY_MS: i64 = 24 * 3_600_000;

/// Looks at the files of the user with the number `owner`, whom tilld runs as. `owns` says that it is whoever looks: what is
/// closed to another one is no fault.
pub(super) fn look(heard: &Listener, (owner, owns): (u32, bool)) -> Option<Need> {
    let files = CertificateFiles {
        owner,
        ..certificate_files(heard)?
    };
    let judged = files.judge();
    if judged.is_err() && files.is_being_renewed() {
        return None;
    }
    told(&files, judged, (wall_ms(), owns))
}

/// Pure.
fn told(
    files: &CertificateFiles,
    judged: Result<i64, CertificateError>,
    (now_ms, owns): (i64, bool),
) -> Option<Need> {
    let file = files.certificate.display().to_string();
    let ends_ms = match judged {
        Ok(ends_at_s) => ends_at_s.saturating_mul(1_000),
        Err(closed) if closed.is_closed() && !owns => return None,
        Err(error) => return Some(Need::certificate_unusable(&chain(&error), error.hint())),
    };
    let (left_ms, ends_at) = (ends_ms.saturating_sub(now_ms), Moment::from_ms(ends_ms));
    if left_ms <= 0 {
        return Some(Need::certificate_ended(&file, ends_at));
    }
    let soon = left_ms <= TOLD_AHEAD_S * 1_000;
    soon.then(|| Need::certificate_ends(&file, left_ms / DAY_MS, ends_at))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn it_is_told_ahead_and_when_a_start_would_not_take_it() {
        let files = CertificateFiles {
            certificate: "/etc/tilld/tls/fullchain.pem".into(),
            key: "/etc/tilld/tls/privkey.pem".into(),
            owner: 0,
        };
        let said = |judged, owns| told(&files, judged, (0, owns)).map(|need| need.told);
        let ends = |days: i64| said(Ok(days * DAY_MS / 1_000), true).unwrap_or_default();
        assert_eq!(ends(15), "");
        assert!(ends(13).contains("ends in 13 days, at 1970-01-14T"));
        assert!(ends(0).contains("ended at 1970-01-01T"));
        let closed = || {
            Err(CertificateError::Read {
                file: files.key.clone(),
                source: io::ErrorKind::PermissionDenied.into(),
            })
        };
        assert!(said(closed(), true).is_some_and(|told| told.contains("privkey.pem")));
        assert_eq!(said(closed(), false), None);
    }
}
