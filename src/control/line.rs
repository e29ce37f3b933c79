//! The log's lines about the calls.
//!
//! One for each request with the client's credentials, as the kernel gave them, written when it ends: of those that open or ask
//! something, were refused, or whose client left before the answer at the usual level, of the others, which a page may make
//! every second, at `debug`. The query is not in it: it may hold what is nobody else's to know. Promises that a client cannot
//! fill the log: of a path there are [`LONGEST_PATH`] bytes, and of calls that opened nothing [`PER_SECOND`] lines a second;
//! how many had none is told.

use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};

use crate::http::Local;
use crate::telemetry::{LogRate, escape};

/// Bytes of a path.
const LONGEST_PATH: usize = 200;
/// Lines of calls that opened nothing, in a second.
const PER_SECOND: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// The rate of these lines.
pub(super) const fn rate() -> LogRate {
    LogRate::new(PER_SECOND, SECOND)
}

/// The line of one call, written when it is dropped.
pub(super) struct Line<'a> {
    lines: &'a LogRate,
    method: Method,
    path: String,
    peer: Local,
    /// `None` until there is an answer.
    status: Option<StatusCode>,
}

impl<'a> Line<'a> {
    pub(super) const fn new(lines: &'a LogRate, method: Method, path: String, peer: Local) -> Self {
        Self {
            lines,
            method,
            path,
            peer,
            status: None,
        }
    }

    pub(super) const fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Whether it is told at the usual level.
    fn is_told(&self) -> bool {
        let is_usual = match self.status {
            // What changed something has its line in any case.
            Some(StatusCode::CREATED | StatusCode::ACCEPTED) if self.method == Method::POST => {
                return true;
            }
            Some(status) => {
                !matches!(self.method, Method::GET | Method::HEAD) || status.as_u16() >= 400
            }
            None => true,
        };
        if !is_usual {
            return false;
        }
        let another = self.lines.turn(Instant::now());
        if let Some(left_out @ 1..) = another {
            tracing::info!(
                control.left_out = left_out,
                "{left_out} calls that opened nothing had no line: there were too many"
            );
        }
        another.is_some()
    }
}

/// What is told of a path.
fn short(path: &str) -> String {
    let end = path.floor_char_boundary(LONGEST_PATH);
    let (told, rest) = path.split_at(end);
    let more = if rest.is_empty() { "" } else { "…" };
    format!("{}{more}", escape(told))
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let path = short(&self.path);
        let (method, peer) = (&self.method, self.peer);
        let Local { uid, gid, pid } = peer;
        let ended = match self.status {
            Some(status) => format!("{}, for {peer}", status.as_u16()),
            None => format!("left before the answer, by {peer}"),
        };
        let status = self.status.map(|status| status.as_u16());
        if self.is_told() {
            tracing::info!(
                control.uid = uid,
                control.gid = gid,
                control.pid = pid,
                http.status = status,
                "{method} {path}: {ended}"
            );
        } else {
            tracing::debug!(
                control.uid = uid,
                control.gid = gid,
                control.pid = pid,
                http.status = status,
                "{method} {path}: {ended}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut() {
        assert_eq!(short("/v1/status"), "/v1/status");
        let long = format!("/{}", "я".repeat(500));
        let told = short(&long);
        assert!(told.len() <= LONGEST_PATH + "…".len(), "{told}");
        assert!(told.ends_with("я…"), "{told}");
    }
}
