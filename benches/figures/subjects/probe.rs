//! The disk alone: a block of 4 KiB that was written before is written again and synced by `fdatasync`, as often as it goes.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: [u8; 4_096] = [7; 4_096];

/// How long a write and its sync took, by rising length.
pub(crate) fn run(directory: &Path, count: usize) -> Vec<Duration> {
    let path = directory.join("probe");
    let file = File::create(&path).expect("a file");
    let once = || {
        let began = Instant::now();
        file.write_all_at(&BLOCK, 0).expect("written");
        file.sync_data().expect("synced");
        began.elapsed()
    };
    // The first makes the file longer, and its size has to be stored as well.
    once();
    let mut took: Vec<Duration> = (0..count).map(|_| once()).collect();
    took.sort_unstable();
    std::fs::remove_file(&path).expect("removed");
    took
}
