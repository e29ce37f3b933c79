//! A process that the launcher started, as the daemon has hold of it: its end is noticed, and it stays unreaped until this
//! is dropped. Whoever drops it, and whenever: in the hands of its leader, or in an answer that nobody took.

use std::sync::Arc;

use rustix::process::Pid;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::Link;
use super::messages::End;

/// A process that has not been released. Dropping it lets it be reaped: at once when it has ended, else once it has.
#[derive(Debug)]
pub(in crate::hook) struct Started {
    pub(super) pid: Pid,
    pub(super) link: Arc<Link>,
    end: oneshot::Receiver<End>,
    ended: Option<Ended>,
}

/// What is known of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hook) enum Ended {
    /// It has ended and is unreaped.
    So(End),
    /// It is nobody's child any more, or was never ours to wait for: whether it has ended is unknown.
    Lost,
}

impl Started {
    pub(super) fn new(pid: Pid, link: Arc<Link>, end: oneshot::Receiver<End>) -> Self {
        let ended = None;
        Self {
            pid,
            link,
            end,
            ended,
        }
    }

    /// Its number, which is nobody else's while this is held and the end is not lost.
    pub(in crate::hook) fn pid(&self) -> Pid {
        self.pid
    }

    /// Resolves when it has ended, or its end is lost. May be dropped and called again.
    pub(in crate::hook) async fn exited(&mut self) -> Ended {
        if self.ended.is_none() {
            let end = (&mut self.end).await;
            self.ended = Some(end.map_or(Ended::Lost, Ended::So));
        }
        self.ended.unwrap_or(Ended::Lost)
    }

    /// Whether it has ended, as far as was heard.
    pub(in crate::hook) fn look(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.ended = match self.end.try_recv() {
                Ok(end) => Some(Ended::So(end)),
                Err(TryRecvError::Closed) => Some(Ended::Lost),
                Err(TryRecvError::Empty) => None,
            };
        }
        self.ended
    }

    /// True when nobody keeps its number from becoming another's.
    pub(in crate::hook) fn is_lost(&self) -> bool {
        self.ended == Some(Ended::Lost) || self.link.is_gone()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // From here on its end finds nobody who waits for it, and it is released then. One that came until now was taken for
        // heard, though nobody may have looked.
        self.end.close();
        if let Some(Ended::So(_)) = self.look() {
            self.link.release(self.pid);
        }
    }
}
