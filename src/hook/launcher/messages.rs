//! What the daemon and its launcher say to each other, one short message at a time. Pure.

/// The bytes of every message, in both directions.
pub(super) const LENGTH: usize = 10;

/// What the daemon wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A process that waits for its order; its three streams come along as descriptors.
    Start,
    /// That a process which has ended be reaped: its number is nobody's concern any more.
    Release(i32),
}

/// What the launcher tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The process that was wished for waits, and leads a group of its own. Answers come in the order of the wishes.
    Started(i32),
    /// There is none; the kernel's reason.
    Refused(i32),
    /// A process has ended. It stays unreaped until it is released.
    Ended(i32, End),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hook) struct End {
    /// As `wait` has it.
    pub(in crate::hook) status: i32,
    /// True when nobody else was in its group any more.
    pub(in crate::hook) alone: bool,
}

const START: u8 = b'S';
const RELEASE: u8 = b'R';
const REFUSED: u8 = b'N';
const ENDED: u8 = b'E';

fn write(kind: u8, first: i32, second: i32, last: bool) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let fields = [kind].into_iter();
    let fields = fields
        .chain(first.to_le_bytes())
        .chain(second.to_le_bytes());
    for (byte, field) in bytes.iter_mut().zip(fields.chain([u8::from(last)])) {
        *byte = field;
    }
    bytes
}

fn read(bytes: &[u8]) -> Option<(u8, i32, i32, bool)> {
    let [kind, a, b, c, d, e, f, g, h, last] = *<&[u8; LENGTH]>::try_from(bytes).ok()?;
    let number = |bytes| i32::from_le_bytes(bytes);
    Some((kind, number([a, b, c, d]), number([e, f, g, h]), last != 0))
}

impl Wish {
    pub(super) fn write(self) -> [u8; LENGTH] {
        match self {
            Self::Start => write(START, 0, 0, false),
            Self::Release(pid) => write(RELEASE, pid, 0, false),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match read(bytes)? {
            (START, ..) => Some(Self::Start),
            (RELEASE, pid, ..) => Some(Self::Release(pid)),
            _ => None,
        }
    }
}

impl News {
    pub(super) fn write(self) -> [u8; LENGTH] {
        match self {
            Self::Started(pid) => write(START, pid, 0, false),
            Self::Refused(errno) => write(REFUSED, errno, 0, false),
            Self::Ended(pid, End { status, alone }) => write(ENDED, pid, status, alone),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match read(bytes)? {
            (START, pid, ..) => Some(Self::Started(pid)),
            (REFUSED, errno, ..) => Some(Self::Refused(errno)),
            (ENDED, pid, status, alone) => Some(Self::Ended(pid, End { status, alone })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for wish in [Wish::Start, Wish::Release(i32::MAX)] {
            assert_eq!(Wish::read(&wish.write()), Some(wish));
        }
        let ended = |status, alone| News::Ended(77, End { status, alone });
        for news in [
            News::Started(4_194_303),
            News::Refused(11),
            ended(0x2a00, true),
            ended(9, false),
        ] {
            assert_eq!(News::read(&news.write()), Some(news));
        }
        assert_eq!((Wish::read(b"S"), News::read(b"")), (None, None));
        assert_eq!(Wish::read(&ended(0, true).write()), None);
    }
}
