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
use memmap2::MmapMut;

use super::body::BodyError;

/// What is made room for at first, bytes; then twice as much each time.
const FIRST: usize = 2 * 1024;
/// Up to here a body lies among other things in memory; few are larger, and what five hundred take there stays with the process.
const SMALL: usize = 4 * 1024;
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
    small: Vec<u8>,
    /// A large one lies in pages of its own, which the system has back at once: what is freed among others' pieces of memory
    /// stays with the process. They cost only as far as they are filled.
    pages: Option<MmapMut>,
    filled: usize,
    /// What was taken for it.
    room: usize,
    bodies: Bodies,
}

impl AsRef<[u8]> for Gathered {
    fn as_ref(&self) -> &[u8] {
        let pages = self
            .pages
            .as_ref()
            .and_then(|pages| pages.get(..self.filled));
        pages.unwrap_or(&self.small)
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.bodies.0.taken.fetch_sub(self.room, Ordering::Relaxed);
    }
}

impl Gathered {
    fn new(bodies: Bodies) -> Self {
        Self {
            small: Vec::new(),
            pages: None,
            filled: 0,
            room: 0,
            bodies,
        }
    }

    /// Makes room for this, of the most that it may become. False when there is none.
    fn grow(&mut self, room: usize, most: usize, is_known: bool) -> bool {
        let more = room.saturating_sub(self.room);
        if !self.bodies.take(more, is_known) {
            return false;
        }
        self.room += more;
        if room <= SMALL || self.pages.is_some() {
            return true;
        }
        let Ok(mut pages) = MmapMut::map_anon(most) else {
            return false;
        };
        if let Some(begin) = pages.get_mut(..self.small.len()) {
            begin.copy_from_slice(&self.small);
        }
        self.small = Vec::new();
        self.pages = Some(pages);
        true
    }

    /// Puts this behind the rest. There is room for it.
    fn push(&mut self, piece: &[u8]) {
        let end = self.filled + piece.len();
        match &mut self.pages {
            None => self.small.extend_from_slice(piece),
            Some(pages) => {
                if let Some(place) = pages.get_mut(self.filled..end) {
                    place.copy_from_slice(piece);
                }
            }
        }
        self.filled = end;
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
    let declared = declared.and_then(|size| usize::try_from(size).ok());
    // What says that it is large lies in its own pages from the beginning.
    let least = declared.map_or(FIRST, |size| if size > SMALL { SMALL + 1 } else { size });
    let declared = declared.unwrap_or(limit);
    let first = next(&mut incoming).await?;
    if incoming.is_end_stream() {
        // Nearly always all has come with the head: it is read where it lies.
        return within(first.len(), limit).map(|_size| first);
    }
    let mut whole = Gathered::new(bodies);
    let (mut is_known, mut known) = (Some(is_known), false);
    let mut piece = first;
    while !piece.is_empty() {
        let size = within(whole.filled + piece.len(), limit)?;
        if size > whole.room {
            let room = size.max(least).max(whole.room * 2).min(declared.max(size));
            if !whole.grow(room, declared.max(size), known) {
                if let Some(is_known) = is_known.take() {
                    known = is_known.await;
                }
                if !whole.grow(room, declared.max(size), known) {
                    return Err(BodyError::NoRoom);
                }
            }
        }
        whole.push(&piece);
        // Given back before the next is waited for, which comes into the same buffer then.
        drop(piece);
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
        let gathered = || Gathered::new(bodies.clone());
        let (mut stranger, mut other, mut known) = (gathered(), gathered(), gathered());
        assert!(stranger.grow(250, 400, false));
        assert!(!other.grow(51, 400, false));
        assert!(known.grow(100, 400, true));
        assert!(
            !other.grow(1, 400, false),
            "the known take of what all may have, too"
        );
        assert!(known.grow(150, 400, true));
        assert!(!known.grow(151, 400, true));
        drop(stranger);
        assert!(other.grow(150, 400, false));
        drop((known, other));
        assert!(gathered().grow(300, 400, false));
    }

    #[test]
    fn a_body_is_whole_wherever_it_lies() {
        let bodies = Bodies::within(4 * SMALL);
        let mut whole = Gathered::new(bodies);
        let (mut wanted, most) = (Vec::new(), 2 * SMALL + 7);
        let pieces = [
            (b'a', 1),
            (b'b', SMALL - 1),
            (b'c', 1),
            (b'd', SMALL),
            (b'e', 6),
        ];
        for piece in pieces.map(|(byte, size)| vec![byte; size]) {
            let size = wanted.len() + piece.len();
            assert!(whole.grow(size, most, true));
            whole.push(&piece);
            wanted.extend(piece);
            assert_eq!(whole.as_ref(), wanted);
        }
    }
}
