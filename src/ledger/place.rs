//! Where the ledger may lie. A write-ahead log needs memory that all who open the file share, which a network file system
//! does not give (A28); and a ledger that is mounted alone has its side files somewhere else.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statfs, statx};

/// File systems whose files may be open on another machine at the same time, by the number the kernel gives them
/// (`statfs(2)`, `linux/magic.h`). What lies behind FUSE cannot be told, so it counts as one.
const NETWORK: [(u64, &str); 14] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x0bd0_0bd0, "Lustre"),
    (0x786f_4256, "a shared folder of VirtualBox"),
];

/// The network file system with this number, if it is one.
fn network(magic: u64) -> Option<&'static str> {
    // The kernel's numbers have 32 bits, and some machines extend the sign.
    let magic = magic & 0xffff_ffff;
    let found = NETWORK.iter().find(|(known, _)| *known == magic);
    found.map(|(_, name)| *name)
}

/// The network file system this lies on, if it does.
pub(super) fn network_of(path: &Path) -> Option<&'static str> {
    // What cannot be asked is for the next step to report.
    let about = statfs(path).ok()?;
    #[expect(
        clippy::cast_sign_loss,
        reason = "a number of 32 bits, whatever its type"
    )]
    network(about.f_type as u64)
}

/// True when something is mounted at this very file.
pub(super) fn is_mounted_alone(file: &Path) -> bool {
    let asked = statx(CWD, file, AtFlags::empty(), StatxFlags::TYPE);
    asked.is_ok_and(|about| {
        let told = about.stx_attributes_mask & about.stx_attributes;
        told.contains(StatxAttributes::MOUNT_ROOT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_machines_are_known_by_their_number() {
        for (magic, wanted) in [
            (0x6969, Some("NFS")),
            (0xff53_4d42, Some("CIFS")),
            (0xffff_ffff_ff53_4d42, Some("CIFS")),
            (0xfe53_4d42, Some("SMB2")),
            (0x0102_1997, Some("9P")),
            (0x6573_5546, Some("FUSE")),
            // ext4, xfs, btrfs, tmpfs, overlay, zfs, f2fs.
            (0xef53, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
            (0x2fc1_2fc1, None),
            (0xf2f5_2010, None),
        ] {
            assert_eq!(network(magic), wanted, "{magic:#x}");
        }
    }

    #[test]
    fn a_file_of_its_directory_is_not_mounted_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ledger.db");
        std::fs::write(&file, "").expect("written");
        assert!(!is_mounted_alone(&file));
        assert!(!is_mounted_alone(&directory.path().join("none")));
        assert!(is_mounted_alone(Path::new("/proc")));
    }
}
