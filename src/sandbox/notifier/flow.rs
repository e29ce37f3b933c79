//! A body as it comes over a bad line: cut off in the middle, or in pieces with pauses. Its length is told as it should
//! have been.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::sandbox::state::faults::Flow;

/// Pieces of a slow body.
const PIECES: usize = 8;
/// Between two of them. All of them take 1.4 s, which no receiver may take amiss.
const PAUSE: Duration = Duration::from_millis(200);

/// The connection closes here.
#[derive(Debug)]
pub(super) struct CutOff;

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cut off on purpose")
    }
}

impl std::error::Error for CutOff {}

/// What is still to come.
pub(super) struct Told {
    left: Bytes,
    piece: usize,
    is_cut: bool,
    pause: Option<Pin<Box<Sleep>>>,
    length: u64,
}

impl Told {
    /// This text, on such a line.
    pub(super) fn new(text: String, flow: Flow) -> Self {
        let text = Bytes::from(text);
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let (left, piece) = match flow {
            Flow::Whole => (text.clone(), text.len()),
            Flow::Torn => (text.slice(..text.len() / 2), text.len()),
            Flow::Slow => (text.clone(), text.len() / PIECES),
        };
        Self {
            left,
            piece: piece.max(1),
            is_cut: flow == Flow::Torn,
            pause: None,
            length,
        }
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        if self.left.is_empty() {
            return Poll::Ready(self.is_cut.then_some(Err(CutOff)));
        }
        let size = self.piece.min(self.left.len());
        let piece = self.left.split_to(size);
        if !self.left.is_empty() || self.is_cut {
            // What was given is on its way before the next piece, or the end, comes.
            self.pause = Some(Box::pin(sleep(PAUSE)));
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && !self.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn come(flow: Flow) -> (String, bool) {
        let mut body = Told::new("0123456789".repeat(10), flow);
        let mut text = String::new();
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => {
                    let data = frame.into_data().unwrap_or_default();
                    text.push_str(&String::from_utf8_lossy(&data));
                }
                Err(CutOff) => return (text, true),
            }
        }
        (text, false)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_whole_or_is_cut_in_its_middle() {
        let whole = "0123456789".repeat(10);
        assert_eq!(come(Flow::Whole).await, (whole.clone(), false));
        assert_eq!(come(Flow::Slow).await, (whole.clone(), false));
        assert_eq!(come(Flow::Torn).await, ("0123456789".repeat(5), true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_takes_its_time() {
        let begun = tokio::time::Instant::now();
        drop(come(Flow::Slow).await);
        assert!(begun.elapsed() >= Duration::from_millis(1_400));
    }
}
