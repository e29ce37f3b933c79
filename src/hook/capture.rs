//! What a hook wrote or answered: the first and the last part of a stream of any length, in bounded memory.
//! A program's stream relies on being told when to stop: a process that inherited the stream may keep it open for ever.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::task::AbortOnDropHandle;

use crate::shutdown::Shutdown;

/// Bytes kept from the beginning of a stream, and as many from its end: enough for a stack trace at either place.
pub(super) const KEPT_EACH: usize = 32 * 1024;

/// Bytes read at once, first: most programs say little or nothing, and many may wait.
const READ_FIRST: usize = 1024;

/// Bytes read at once of a program that says more: what a Linux pipe holds, so that one read empties it.
const READ_AT_ONCE: usize = 64 * 1024;

/// Head and tail of a stream, and how much lay between them.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Capture {
    /// Takes what was read next.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT_EACH - self.head.len()));
        self.head.extend_from_slice(head);
        let (passing, kept) = rest.split_at(rest.len().saturating_sub(KEPT_EACH));
        let overflow = (self.tail.len() + kept.len()).saturating_sub(KEPT_EACH);
        self.tail.drain(..overflow);
        self.tail.extend(kept);
        self.dropped = self
            .dropped
            .saturating_add((passing.len() + overflow) as u64);
    }

    /// The head and the tail, and between them how much was dropped.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.dropped > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes dropped]\n", self.dropped).as_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

/// A stream being read. Dropping it stops the reading.
#[derive(Debug)]
pub(super) struct Reading {
    task: AbortOnDropHandle<Capture>,
    enough: Shutdown,
    all: Option<Capture>,
}

impl Reading {
    /// Starts to read the reading end of a pipe.
    pub(super) fn start(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        let enough = Shutdown::new();
        let task = AbortOnDropHandle::new(tokio::spawn(read(pipe, enough.clone())));
        Ok(Self {
            task,
            enough,
            all: None,
        })
    }

    /// Resolves when every holder of the writing end has closed it. May be dropped and called again.
    pub(super) async fn ended(&mut self) {
        if self.all.is_none() {
            self.all = Some((&mut self.task).await.unwrap_or_default());
        }
    }

    /// What was written up to now, whoever still holds the writing end.
    pub(super) async fn take(mut self) -> Vec<u8> {
        self.enough.request();
        self.ended().await;
        self.all.unwrap_or_default().into_bytes()
    }
}

async fn read(mut pipe: pipe::Receiver, enough: Shutdown) -> Capture {
    let mut capture = Capture::default();
    let mut buffer = vec![0; READ_FIRST];
    loop {
        let read = tokio::select! {
            biased;
            () = enough.requested() => {
                // One last read is the whole content of the pipe: a writer that goes on must not hold us.
                buffer.resize(READ_AT_ONCE, 0);
                let last = pipe.try_read(&mut buffer).unwrap_or_default();
                capture.add(buffer.get(..last).unwrap_or_default());
                return capture;
            }
            read = pipe.read(&mut buffer) => read,
        };
        match read {
            // A read error of a pipe leaves nothing more to be had, as its end does.
            Ok(0) | Err(_) => return capture,
            Ok(count) => capture.add(buffer.get(..count).unwrap_or_default()),
        }
        if matches!(read, Ok(count) if count == buffer.len()) {
            buffer.resize(READ_AT_ONCE, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pieces: &[&[u8]]) -> Vec<u8> {
        let mut capture = Capture::default();
        for piece in pieces {
            capture.add(piece);
        }
        assert!(capture.head.len() <= KEPT_EACH && capture.tail.len() <= KEPT_EACH);
        capture.into_bytes()
    }

    #[test]
    fn short_output_is_kept_to_the_byte() {
        assert_eq!(captured(&[]), b"");
        assert_eq!(captured(&[b"a\0\xff", b"\x1b[2J"]), b"a\0\xff\x1b[2J");
        let exactly = vec![7; 2 * KEPT_EACH];
        assert_eq!(captured(&[&exactly]), exactly);
        let pieces: Vec<&[u8]> = exactly.chunks(1000).collect();
        assert_eq!(captured(&pieces), exactly);
    }

    #[test]
    fn of_long_output_both_ends_are_kept_and_the_gap_is_told() {
        let long: Vec<u8> = (0..10 * KEPT_EACH)
            .map(|n| u8::try_from(n % 251).expect("small"))
            .collect();
        let (head, rest) = long.split_at(KEPT_EACH);
        let (gap, tail) = rest.split_at(rest.len() - KEPT_EACH);
        let wanted = [
            head,
            format!("\n[{} bytes dropped]\n", gap.len()).as_bytes(),
            tail,
        ]
        .concat();
        for size in [1, 997, KEPT_EACH, long.len()] {
            let pieces: Vec<&[u8]> = long.chunks(size).collect();
            assert!(captured(&pieces) == wanted, "pieces of {size}");
        }
    }
}
