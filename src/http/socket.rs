//! The socket as hyper sees it: it tells [`Progress`] what came and went, and closes so that a refusal is not lost.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use super::accept::{Next, Room, Stream};
use super::progress::Progress;

/// How much of an unread rest is thrown away before a refused connection is closed. More is a client that does not
/// listen; it may get a reset.
const LINGER_BYTES: usize = 64 * 1024;
/// Bytes of one read: half of hyper's smallest buffer, which it doubles after a read that filled it. The buffers of five hundred
/// connections stay with the process.
const READ_BYTES: u64 = 4 * 1024;

/// A connection's socket.
pub(super) struct Socket<I> {
    io: Take<I>,
    progress: Arc<Progress>,
    /// Rung when an answer is out: the connection could now make room for another.
    freed: Arc<Notify>,
    /// The client sends nothing more, which hyper has not heard yet.
    has_ended: bool,
    /// How often it is looked whether an answer that goes on is read: what lies with the system counts as out, and could lie
    /// there for ever.
    look_every: Duration,
    /// When that was done last; since when it goes on, at first.
    looked_at: Option<Instant>,
    /// It is being done: what is written waits until what was written before is read.
    looks: bool,
    /// Bytes written since everything was out.
    written: u64,
    shut: Shut,
}

#[derive(Clone, Copy)]
enum Shut {
    Open,
    /// Shut for writing; so many bytes may still be thrown away.
    Lingering(usize),
    Closed,
}

impl<I: AsyncRead> Socket<I> {
    pub(super) fn new(
        io: I,
        progress: Arc<Progress>,
        freed: Arc<Notify>,
        look_every: Duration,
    ) -> Self {
        Self {
            io: io.take(READ_BYTES),
            progress,
            freed,
            has_ended: false,
            look_every,
            looked_at: None,
            looks: false,
            written: 0,
            shut: Shut::Open,
        }
    }
}

impl<I: Stream> Socket<I> {
    /// From time to time has an answer that goes on wait for what was written of it before.
    fn look(&mut self) {
        if self.looks || !self.progress.is_flowing() {
            return;
        }
        let now = Instant::now();
        let is_due = |at: Instant| now.duration_since(at) >= self.look_every;
        match self.looked_at {
            Some(at) if is_due(at) => {
                self.looked_at = Some(now);
                self.looks = true;
                self.io.get_ref().room(Room::Least);
            }
            Some(_) => {}
            None => self.looked_at = Some(now),
        }
    }
}

impl<I> Socket<I> {
    fn count(&mut self, written: usize) {
        let written = u64::try_from(written).unwrap_or(u64::MAX);
        self.written = self.written.saturating_add(written);
    }
}

impl<I: Stream> AsyncRead for Socket<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        self.io.set_limit(READ_BYTES);
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        self.progress.received(read);
        // hyper, which is told to take the end of what is sent for the end of the client, hears of one that waits for its
        // answer when it has it.
        let only_waits = read.is_empty() && I::TELLS_LEAVING && self.progress.is_awaited();
        if only_waits && !self.io.get_ref().has_left() {
            self.has_ended = true;
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: Stream> AsyncWrite for Socket<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.look();
        let written = ready!(Pin::new(self.io.get_mut()).poll_write(cx, bytes))?;
        self.count(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.look();
        let written = ready!(Pin::new(self.io.get_mut()).poll_write_vectored(cx, slices))?;
        self.count(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.get_ref().is_write_vectored()
    }

    /// hyper flushes only when its own buffer is empty, so a flush that succeeds means that the whole answer is out. It does
    /// so each time the service was polled, too: here it is looked for a client that has ended, since hyper, told that one
    /// may shut its half, reads nothing while a request is with the service.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.progress.is_watched()
            && let Poll::Ready(next) = self.io.get_ref().poll_next(cx)
        {
            match next {
                Next::End => self.progress.received(&[]),
                Next::More => self.progress.sent_ahead(),
            }
        }
        ready!(Pin::new(self.io.get_mut()).poll_flush(cx))?;
        if self.looks {
            self.looks = false;
            self.io.get_ref().room(Room::Usual);
        }
        let written = std::mem::take(&mut self.written);
        if self.progress.flushed(written) {
            self.freed.notify_one();
            if self.has_ended {
                // hyper would not look by itself: nothing more comes in.
                self.has_ended = false;
                cx.waker().wake_by_ref();
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Shuts the writing side, then throws away what a refused client is still sending until it closes, within
    /// [`LINGER_BYTES`]; the time for it is kept by [`Progress::deadline`].
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if matches!(self.shut, Shut::Open) {
            ready!(Pin::new(self.io.get_mut()).poll_shutdown(cx))?;
            self.shut = if self.progress.lingers() {
                Shut::Lingering(LINGER_BYTES)
            } else {
                Shut::Closed
            };
        }
        while let Shut::Lingering(left) = self.shut {
            let mut space = [0; 4096];
            let mut buffer = ReadBuf::new(&mut space);
            ready!(Pin::new(self.io.get_mut()).poll_read(cx, &mut buffer))?;
            self.shut = match (buffer.filled().len(), left) {
                (0, _) => Shut::Closed,
                (read, left) if read >= left => Shut::Closed,
                (read, left) => Shut::Lingering(left - read),
            };
        }
        Poll::Ready(Ok(()))
    }
}
