//! The log lines of what was not stored, which strangers can cause at will: each kind now and then, with how many were left
//! out. Relies on [`LogRate`](crate::telemetry::LogRate) for the pace. Promises that no line has a ref, a token or a body in it.

use std::time::Instant;

use hyper::Uri;
use hyper::header::HeaderMap;

use super::trace::without_ref;
use super::{Book, Inner};
use crate::http::{Peer, Unserved};
use crate::ledger::InvoiceKey;

impl<B: Book> Inner<B> {
    pub(super) fn tell_refused(
        &self,
        invoice: Option<InvoiceKey>,
        reason: &'static str,
        peer: &str,
    ) {
        let now = Instant::now();
        if let Some(invoice) = invoice {
            if let Some(left_out) = self.refused_known.turn(now) {
                tracing::warn!(
                    invoice.key = invoice.0, refusal.reason = reason, refusal.left_out = left_out, http.peer = %peer,
                    "a notification for a known invoice was refused: {reason}; `tilld refusal list` says of which order{}",
                    beside(left_out)
                );
                return;
            }
        } else if let Some(left_out) = self.refused.turn(now) {
            tracing::info!(
                refusal.reason = reason, refusal.left_out = left_out, http.peer = %peer,
                "refused: {reason}{}", beside(left_out)
            );
            return;
        }
        tracing::debug!(refusal.reason = reason, http.peer = %peer, "refused: {reason}");
    }

    /// No refusal stands in the ledger for it: nothing was read that could be told of.
    pub(super) fn tell_unserved(&self, why: Unserved, peer: Peer) {
        let peer = peer.host();
        let what = match why {
            Unserved::AnswerUnread => {
                "a sender left its answers unread, and tilld closed the connection"
            }
            Unserved::BodiesFull => {
                "a request was answered 503: bodies that came meanwhile take all of `listener.bodies_limit_bytes` that is left"
            }
            Unserved::Ambiguous
            | Unserved::Malformed
            | Unserved::HeadTooLarge
            | Unserved::HeadTooSlow
            | Unserved::Evicted
            | Unserved::Full => {
                "a connection brought no request that can be read; a proxy in front of tilld may send such"
            }
        };
        let why = why.as_str();
        if let Some(left_out) = self.unserved.turn(Instant::now()) {
            tracing::info!(
                refusal.reason = why, refusal.left_out = left_out, http.peer = %peer,
                "{why}: {what}{}", beside(left_out)
            );
            return;
        }
        tracing::debug!(refusal.reason = why, http.peer = %peer, "closed or answered 503: {why}");
    }

    /// What a proxy made of the path is seen here alone (A14).
    pub(super) fn tell_astray(&self, target: &Uri, peer: Peer, headers: &HeaderMap) {
        let Some(left_out) = self.astray.turn(Instant::now()) else {
            return;
        };
        let public_path = &self.settings.public.path;
        let host = target.host().unwrap_or_default();
        let path = format!("{host}{}", target.path());
        let path = self.settings.hidden.without(&path);
        let (path, peer) = (without_ref(&path, public_path), self.sender(peer, headers));
        tracing::info!(
            http.path = path, refusal.left_out = left_out, http.peer = %peer,
            "a POST came to `{path}` and was answered 404: notifications are heard at `{public_path}/` and a ref, as \
             `listener.public_url` says; a proxy must hand the path on as it is{}",
            beside(left_out)
        );
    }
}

/// The end of a line that was not told each time.
fn beside(left_out: u64) -> String {
    match left_out {
        0 => String::new(),
        more => format!(" (and {more} more since the last such line)"),
    }
}
