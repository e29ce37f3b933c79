//! How much of requests' bodies one listener holds at once, whoever sends them. A body is counted from where it is more than
//! came with its head until nobody holds it any more; what came with the head lies in the connection's own buffer.
//!
//! Promises that a part is left to those who are known, whatever the others send, and that a body costs about its size, in
//! however small pieces it comes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::body::BodyError;

/// What is made room for at first, bytes; then twice as much each time.
const FIRST: usize = 64 * 1024;
/// The part of all that is left to the known: one of four.
const PARTS: usize = 4;

/// The bodies of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Bodies(Arc<Bound>);

#[derive(Debug)]
struct Bound {
    /// Bytes at once.
    all: usize,
    taken: AtomicUsize,
}

impl Bodies {
    /// So many bytes at once.
    pub(crate) fn within(all: usize) -> Self {
        let taken = AtomicUsize::new(0);
        Self(Arc::new(Bound { all, taken }))
    }

    /// As many as come: where the clients are few and known.
    pub(super) fn unbounded() -> Self {
        Self::within(usize::MAX)
    }

    fn take(&self, bytes: usize, is_known: bool) -> bool {
        let kept = if is_known { 0 } else { self.0.all / PARTS };
        let most = self.0.all - kept;
        let taken = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= most);
        let taking = self
            .0
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        taking.is_ok()
    }
}

/// A body that comes in pieces, in one buffer, and the room that it takes.
struct Gathered {
    bytes: Vec<u8>,
    /// What was taken for it.
    room: usize,
    bodies: Bodies,
}

impl AsRef<[u8]> for Gathered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.bodies.0.taken.fetch_sub(self.room, Ordering::Relaxed);
    }
}

impl Gathered {
    /// False when there is no room for this.
    fn grow(&mut self, room: usize, is_known: bool) -> bool {
        let more = room.saturating_sub(self.room);
        let grows = self.bodies.take(more, is_known);
        if grows {
            self.room += more;
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        grows
    }
}

/// Reads a body of at most `limit` bytes. Whether its sender is known is asked once, and only when there is no room for
/// others.
pub(super) async fn gather(
    mut incoming: Incoming,
    limit: usize,
    bodies: Bodies,
    is_known: impl Future<Output = bool>,
) -> Result<Bytes, BodyError> {
    let declared = incoming.size_hint().exact();
    let declared = declared.map_or(limit, |size| usize::try_from(size).unwrap_or(limit));
    let first = next(&mut incoming).await?;
    if incoming.is_end_stream() {
        // Nearly always all has come with the head: it is read where it lies.
        return within(first.len(), limit).map(|_size| first);
    }
    let mut whole = Gathered {
        bytes: Vec::new(),
        room: 0,
        bodies,
    };
    let (mut is_known, mut known) = (Some(is_known), false);
    let mut piece = first;
    while !piece.is_empty() {
        let size = within(whole.bytes.len() + piece.len(), limit)?;
        if size > whole.room {
            let room = size.max(FIRST).max(whole.room * 2).min(declared.max(size));
            if !whole.grow(room, known) {
                if let Some(is_known) = is_known.take() {
                    known = is_known.await;
                }
                if !whole.grow(room, known) {
                    return Err(BodyError::NoRoom);
                }
            }
        }
        whole.bytes.extend_from_slice(&piece);
        piece = next(&mut incoming).await?;
    }
    Ok(Bytes::from_owner(whole))
}

fn within(size: usize, limit: usize) -> Result<usize, BodyError> {
    (size <= limit).then_some(size).ok_or(BodyError::TooLarge)
}

/// The next piece; an empty one at the end.
async fn next(incoming: &mut Incoming) -> Result<Bytes, BodyError> {
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|_cause| BodyError::Broken)?;
        match frame.into_data() {
            Ok(piece) if !piece.is_empty() => return Ok(piece),
            // What stands behind the last piece is nobody's.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(Bytes::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_left_to_the_known_and_all_comes_back() {
        let bodies = Bodies::within(400);
        let gathered = || Gathered {
            bytes: Vec::new(),
            room: 0,
            bodies: bodies.clone(),
        };
        let (mut stranger, mut other, mut known) = (gathered(), gathered(), gathered());
        assert!(stranger.grow(250, false));
        assert!(!other.grow(51, false));
        assert!(known.grow(100, true));
        assert!(
            !other.grow(1, false),
            "the known take of what all may have, too"
        );
        assert!(known.grow(150, true));
        assert!(!known.grow(151, true));
        drop(stranger);
        assert!(other.grow(150, false));
        drop((known, other));
        assert!(gathered().grow(300, false));
    }
}
