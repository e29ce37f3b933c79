//! An answer that goes on: pieces that are written as they come, until whoever makes them ends it or the client leaves.
//!
//! Relies on [`Progress`] for the client's time to read each piece. Promises that a client that does not read holds no more
//! than [`PIECES`] of them and keeps nobody waiting: whoever makes them learns that it lags, and its connection is closed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::progress::Progress;

/// Pieces that wait for a client, at most.
pub(crate) const PIECES: usize = 64;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is in memory, so its size is known and its time bounded.
    Whole(Full<Bytes>),
    /// It goes on.
    Flowing(Flow),
}

/// The client's end of what is written as it comes.
#[derive(Debug)]
pub(crate) struct Flow {
    pieces: mpsc::Receiver<Bytes>,
    /// Set when the answer is handed over to the connection.
    progress: Option<Arc<Progress>>,
}

/// The maker's end. Dropping it ends the answer.
#[derive(Clone, Debug)]
pub(crate) struct Pieces(mpsc::Sender<Bytes>);

/// Why a piece was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// As many wait already as may.
    Lags,
    /// The client is gone.
    Gone,
}

impl Flow {
    /// Both ends.
    pub(crate) fn new() -> (Pieces, Self) {
        let (maker, pieces) = mpsc::channel(PIECES);
        let progress = None;
        (Pieces(maker), Self { pieces, progress })
    }

    pub(super) fn attach(&mut self, progress: Arc<Progress>) {
        self.progress = Some(progress);
    }
}

impl Pieces {
    /// Hands over the next piece. Never waits.
    pub(crate) fn offer(&self, piece: Bytes) -> Result<(), NotTaken> {
        self.0.try_send(piece).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotTaken::Lags,
            mpsc::error::TrySendError::Closed(_) => NotTaken::Gone,
        })
    }

    /// Hands over the next piece once there is room for it: for what is read from a file, page by page. False when the
    /// client is gone.
    pub(crate) async fn give(&self, piece: Bytes) -> bool {
        self.0.send(piece).await.is_ok()
    }

    /// Resolves when the client is gone.
    pub(crate) async fn gone(&self) {
        self.0.closed().await;
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(cx),
            Self::Flowing(flow) => {
                let piece = ready!(flow.pieces.poll_recv(cx));
                if let Some(progress) = &flow.progress {
                    match &piece {
                        Some(_) => progress.flows_on(),
                        None => progress.flowed_out(),
                    }
                }
                Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Flowing(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Flowing(_) => SizeHint::default(),
        }
    }
}

impl From<Bytes> for Answer {
    fn from(whole: Bytes) -> Self {
        Self::Whole(Full::new(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_lags_or_has_gone_is_told_to_the_maker_and_never_waited_for() {
        let (pieces, flow) = Flow::new();
        let piece = || Bytes::from_static(b"x");
        for _ in 0..PIECES {
            assert_eq!(pieces.offer(piece()), Ok(()));
        }
        assert_eq!(pieces.offer(piece()), Err(NotTaken::Lags));
        drop(flow);
        assert_eq!(pieces.offer(piece()), Err(NotTaken::Gone));
    }
}
