//! The WAL and its index as bytes: whether each page that a checkpoint would move is the one that was committed.
//! Relies on the formats that SQLite documents, and on pages of 4,096 bytes. Promises to write nothing, and to keep every
//! lock that SQLite has on the index.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::Part;

/// The head of a WAL, the head of each page in it, and both together, bytes.
const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;
const FRAME_BYTES: usize = FRAME_HEAD_BYTES + 4_096;
/// The sums at the end of a frame's head, bytes.
const SUMS_BYTES: u64 = 8;
/// What is written to a disk at once, bytes.
const DISK_BLOCK_BYTES: u64 = 4_096;
/// Frames whose content is looked at, at most: more than come between two looks. A WAL that a read holds may be a hundred times
/// as long, and the writer waits for the look.
const CONTENT_MOST: u64 = 4_000;
/// Frames that are read at once.
const AT_ONCE: u64 = 32;

/// The index lies in blocks, each with the page of every frame and a hash table of them; the first begins with a head.
const BLOCK_BYTES: u64 = 32_768;
const TABLE_AT: u64 = 16_384;
const INDEX_HEAD_BYTES: usize = 136;
const FRAMES_OF_BLOCK: u64 = 4_096;
const FRAMES_OF_FIRST: u64 = FRAMES_OF_BLOCK - INDEX_HEAD_BYTES as u64 / 4;
const SLOTS: usize = 8_192;

/// Looks in all, while other programs move the WAL or begin it anew.
const LOOKS: usize = 4;

/// What a look brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Look {
    /// What would be moved is what was committed.
    Sound,
    /// It could not be looked at now. SQLite makes an index of two different heads anew by itself.
    Unsure,
    /// It is not: a page of this file was written over.
    Wrong(Part),
}

/// How closely it is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Closely {
    /// At each page's head, and at the content of those that one block of a disk can hold without a head: a sixth of the
    /// instructions of a notification would go into the content of all, and less than a page is rarely written over.
    Heads,
    /// At all of the newest [`CONTENT_MOST`] pages.
    Content,
}

/// Looks at the WAL of one ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Log {
    ledger: PathBuf,
    /// Never closed: SQLite's locks on the index would go with it.
    index: Arc<OnceLock<ManuallyDrop<File>>>,
}

impl Log {
    /// Of the ledger at this path.
    pub(in crate::ledger) fn new(ledger: &Path) -> Self {
        Self {
            ledger: ledger.to_owned(),
            index: Arc::default(),
        }
    }

    /// Looks at every page that is not in the database yet.
    pub(in crate::ledger) fn look(&self, closely: Closely) -> Look {
        let mut before = None;
        for _ in 0..LOOKS {
            let (head, wrong) = match self.look_once(closely) {
                Ok(Some(looked)) => looked,
                Ok(None) => continue,
                Err(short) if short.kind() == io::ErrorKind::UnexpectedEof => {
                    return Look::Wrong(Part::Index);
                }
                Err(_) => return Look::Unsure,
            };
            match wrong {
                None => return Look::Sound,
                // Nobody moved anything, or began the WAL anew, between two looks.
                Some(part) if before == Some((head.salts, head.moved)) => return Look::Wrong(part),
                Some(_) => before = Some((head.salts, head.moved)),
            }
        }
        Look::Unsure
    }

    /// The index's head with what is wrong by it; `None` while it is being written.
    fn look_once(&self, closely: Closely) -> io::Result<Option<(Head, Option<Part>)>> {
        let index = self.index()?;
        let Some(head) = Head::read(index)? else {
            return Ok(None);
        };
        let wrong = match head.unmoved() {
            None => Some(Part::Index),
            Some((from, to)) if from < to => self.compare(index, &head, from..to, closely)?,
            Some(_) => None,
        };
        Ok(Some((head, wrong)))
    }

    fn index(&self) -> io::Result<&File> {
        if let Some(file) = self.index.get() {
            return Ok(file);
        }
        let file = ManuallyDrop::new(File::open(Part::Index.of(&self.ledger))?);
        Ok(self.index.get_or_init(|| file))
    }

    /// Compares the frames behind these numbers with the index.
    fn compare(
        &self,
        index: &File,
        head: &Head,
        Range { start, end }: Range<u64>,
        closely: Closely,
    ) -> io::Result<Option<Part>> {
        let log = File::open(Part::Log.of(&self.ledger))?;
        let start = match closely {
            Closely::Content => start.max(end.saturating_sub(CONTENT_MOST)),
            Closely::Heads => start,
        };
        let Some(mut chain) = Chain::begin(&log, start)? else {
            return Ok(Some(Part::Log));
        };
        if chain.salts != head.salts {
            return Ok(Some(Part::Log));
        }
        let mut block: Option<Block> = None;
        let mut frames = Frames::new(&log, start, end);
        while let Some((number, frame)) = frames.next()? {
            let in_full = closely == Closely::Content || is_one_block(number);
            let Some(page) = chain.follow(frame, in_full) else {
                return Ok(Some(Part::Log));
            };
            let (at, place) = place(number);
            let there = match block.take().filter(|block| block.at == at) {
                Some(block) => block,
                None => Block::read(index, at)?,
            };
            if !there.has(place, page) {
                return Ok(Some(Part::Index));
            }
            block = Some(there);
        }
        Ok(if !frames.are_whole() {
            Some(Part::Log)
        } else if chain.sums != head.sums {
            Some(Part::Index)
        } else {
            None
        })
    }
}

/// True when a WAL has commits behind a page that is not what was written: SQLite would end before that page, and take what was
/// moved into the database since for older than it is.
pub(in crate::ledger) fn is_torn(ledger: &Path) -> io::Result<bool> {
    let log = File::open(Part::Log.of(ledger))?;
    let Some(mut chain) = Chain::begin(&log, 0)? else {
        return Ok(false);
    };
    let to = log.metadata()?.len().saturating_sub(HEAD_BYTES as u64) / FRAME_BYTES as u64;
    let (mut frames, mut follows) = (Frames::new(&log, 0, to), true);
    while let Some((_, frame)) = frames.next()? {
        follows = follows && chain.follow(frame, true).is_some();
        let is_commit = word(frame, 4) != Some(0);
        if !follows && is_commit && frame.get(8..16) == Some(&chain.salts) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The head of an index, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    frames: u32,
    moved: u32,
    sums: [u32; 2],
    salts: [u8; 8],
}

impl Head {
    /// `None` while its two copies differ.
    fn read(index: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; INDEX_HEAD_BYTES];
        index.read_exact_at(&mut bytes, 0)?;
        let native = |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        let native = |at: usize| native(at).map_or(0, u32::from_ne_bytes);
        if bytes.get(..48) != bytes.get(48..96) {
            return Ok(None);
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(bytes.get(32..40).unwrap_or(&[0; 8]));
        Ok(Some(Self {
            frames: native(16),
            moved: native(96),
            sums: [native(24), native(28)],
            salts,
        }))
    }

    /// What is not moved yet; `None` when more was moved than there is.
    const fn unmoved(self) -> Option<(u64, u64)> {
        if self.moved <= self.frames {
            Some((self.moved as u64, self.frames as u64))
        } else {
            None
        }
    }
}

/// One block of an index.
struct Block {
    at: u64,
    pages: Vec<u8>,
    table: Vec<u8>,
}

impl Block {
    fn read(index: &File, at: u64) -> io::Result<Self> {
        let mut pages = vec![0; usize::try_from(TABLE_AT).unwrap_or_default()];
        let mut table = vec![0; SLOTS * 2];
        index.read_exact_at(&mut pages, at * BLOCK_BYTES)?;
        index.read_exact_at(&mut table, at * BLOCK_BYTES + TABLE_AT)?;
        if at == 0 {
            pages.drain(..INDEX_HEAD_BYTES);
        }
        Ok(Self { at, pages, table })
    }

    /// True when the frame at this place has this page there, and is found by it.
    fn has(&self, place: u16, page: u32) -> bool {
        let at = (usize::from(place) - 1) * 4;
        let told = self.pages.get(at..at + 4);
        if told != Some(&page.to_ne_bytes()) {
            return false;
        }
        let mut slot = usize::try_from(page.wrapping_mul(383)).unwrap_or_default() % SLOTS;
        for _ in 0..SLOTS {
            let found = self.table.get(slot * 2..slot * 2 + 2);
            match found
                .and_then(|found| found.try_into().ok())
                .map(u16::from_ne_bytes)
            {
                Some(found) if found == place => return true,
                Some(0) | None => return false,
                Some(_) => slot = (slot + 1) % SLOTS,
            }
        }
        false
    }
}

/// The block of a frame, and its place there, from 1 on.
fn place(number: u64) -> (u64, u16) {
    let (block, place) = if number <= FRAMES_OF_FIRST {
        (0, number)
    } else {
        let behind = number - FRAMES_OF_FIRST - 1;
        (1 + behind / FRAMES_OF_BLOCK, 1 + behind % FRAMES_OF_BLOCK)
    };
    (block, u16::try_from(place).unwrap_or(u16::MAX))
}

/// Reads frames in their order.
struct Frames<'log> {
    log: &'log File,
    buffer: Vec<u8>,
    /// The frame at the buffer's beginning, and the place of the next one in it.
    first: u64,
    next: u64,
    to: u64,
}

impl<'log> Frames<'log> {
    /// `from + 1` to `to`.
    const fn new(log: &'log File, from: u64, to: u64) -> Self {
        Self {
            log,
            buffer: Vec::new(),
            first: from,
            next: from,
            to,
        }
    }

    /// The next one with its number; `None` behind the last, and where the file ends.
    fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        let there = |buffer: &Vec<u8>| (buffer.len() / FRAME_BYTES) as u64;
        if self.next - self.first >= there(&self.buffer) && self.next < self.to {
            self.first = self.next;
            let wanted = (self.to - self.next).min(AT_ONCE);
            self.buffer
                .resize(usize::try_from(wanted).unwrap_or_default() * FRAME_BYTES, 0);
            let read = read_at(self.log, &mut self.buffer, frame_at(self.next))?;
            self.buffer.truncate(read);
        }
        let at = usize::try_from(self.next - self.first).unwrap_or(usize::MAX);
        let frame = self.buffer.chunks_exact(FRAME_BYTES).nth(at);
        if frame.is_some() {
            self.next += 1;
        }
        Ok(frame.map(|frame| (self.next, frame)))
    }

    /// All were there.
    const fn are_whole(&self) -> bool {
        self.next == self.to
    }
}

/// True of a frame that a block of a disk can hold without what is looked at in its head: the block begins at its sums, or
/// behind them.
const fn is_one_block(number: u64) -> bool {
    let content = frame_at(number - 1) + FRAME_HEAD_BYTES as u64;
    content % DISK_BLOCK_BYTES <= SUMS_BYTES
}

/// Where the frame behind so many lies.
const fn frame_at(frames: u64) -> u64 {
    HEAD_BYTES as u64 + frames * FRAME_BYTES as u64
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// What each frame must follow: the sums of the one before it.
struct Chain {
    salts: [u8; 8],
    big_endian: bool,
    sums: [u32; 2],
}

impl Chain {
    /// Behind so many frames; `None` when the WAL has no head.
    fn begin(log: &File, frames: u64) -> io::Result<Option<Self>> {
        let mut head = [0; HEAD_BYTES];
        if read_at(log, &mut head, 0)? < HEAD_BYTES {
            return Ok(None);
        }
        let mut sums = head.get(24..32).map(<[u8]>::to_vec).unwrap_or_default();
        if frames > 0 && read_at(log, &mut sums, frame_at(frames - 1) + 16)? < sums.len() {
            return Ok(None);
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(head.get(16..24).unwrap_or(&[0; 8]));
        Ok(Some(Self {
            salts,
            big_endian: word(&head, 0).is_some_and(|magic| magic & 1 == 1),
            sums: [word(&sums, 0), word(&sums, 4)].map(Option::unwrap_or_default),
        }))
    }

    /// The page of a frame that follows; `None` of another. What is not looked at `in_full` has the sums that it says.
    fn follow(&mut self, frame: &[u8], in_full: bool) -> Option<u32> {
        let (head, page) = frame.split_at_checked(FRAME_HEAD_BYTES)?;
        if head.get(8..16)? != self.salts {
            return None;
        }
        let told = [word(head, 16)?, word(head, 20)?];
        if in_full {
            let sums = sum(self.big_endian, head.get(..8)?, self.sums);
            if sum(self.big_endian, page, sums) != told {
                return None;
            }
        }
        self.sums = told;
        word(head, 0)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(word))
}

/// SQLite's checksum of a WAL.
fn sum(big_endian: bool, bytes: &[u8], [mut one, mut two]: [u32; 2]) -> [u32; 2] {
    let (pairs, _) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in pairs {
        let (first, second) = if big_endian {
            (
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, g, h]),
            )
        } else {
            (
                u32::from_le_bytes([a, b, c, d]),
                u32::from_le_bytes([e, f, g, h]),
            )
        };
        one = one.wrapping_add(first).wrapping_add(two);
        two = two.wrapping_add(second).wrapping_add(one);
    }
    [one, two]
}
