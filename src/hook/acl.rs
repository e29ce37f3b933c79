//! Whom the access list (POSIX ACL) of a file or directory lets write, as the kernel hands it out (`acl(5)`, `posix_acl_xattr.h`).
//!
//! Promises that what cannot be read is no list; those of other kinds, as NFS has them, are none.

use std::path::Path;

use rustix::fs::getxattr;

const NAME: &str = "system.posix_acl_access";
/// The largest value that an attribute may have.
const LONGEST: usize = 65_536;
/// The version, four bytes, stands before the entries.
const HEAD: usize = 4;
/// Tag, rights and number.
const ENTRY: usize = 8;
const WRITES: u16 = 2;

/// One who may write beside the owner and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// The group that the file belongs to.
    Owning,
    User(u32),
    Group(u32),
}

/// All of them; `None` where there is no list.
pub(super) fn writers(path: &Path) -> Option<Vec<Writer>> {
    let mut list = vec![0; LONGEST];
    let length = getxattr(path, NAME, &mut list[..]).ok()?;
    list.truncate(length);
    Some(read(&list))
}

fn read(list: &[u8]) -> Vec<Writer> {
    let entries = list.get(HEAD..).unwrap_or_default();
    let entries = entries.chunks_exact(ENTRY).filter_map(|entry| {
        let (&tag, rest) = entry.split_first_chunk()?;
        let (&rights, rest) = rest.split_first_chunk()?;
        let &number = rest.first_chunk()?;
        let may = u16::from_le_bytes(rights) & WRITES != 0;
        Some((u16::from_le_bytes(tag), may, u32::from_le_bytes(number)))
    });
    let writers = entries.filter(|(_, may, _)| *may);
    let writers = writers.filter_map(|(tag, _, number)| match tag {
        0x02 => Some(Writer::User(number)),
        0x04 => Some(Writer::Owning),
        0x08 => Some(Writer::Group(number)),
        // The owner, the mask, and all others: those are in the mode.
        _ => None,
    });
    writers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_may_write_are_read() {
        let mut list = vec![2, 0, 0, 0];
        for (tag, rights, number) in [
            (0x01_u16, 7_u16, u32::MAX),
            (0x02, 6, 1_001),
            (0x02, 5, 1_002),
            (0x04, 5, u32::MAX),
            (0x08, 2, 70_000),
            (0x10, 7, u32::MAX),
            (0x20, 5, u32::MAX),
        ] {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(number.to_le_bytes());
        }
        assert_eq!(read(&list), [Writer::User(1_001), Writer::Group(70_000)]);
        assert_eq!(read(&[]), []);
        assert_eq!(writers(Path::new("/no/such/file")), None);
    }
}
