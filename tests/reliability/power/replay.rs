//! Power losses, made of what was recorded: at a point of the record everything that was synced is on the disk, and of
//! what was written after a file's last sync nothing, all, or a random half, some of it torn at a sector. What is left is
//! opened as a ledger, and all that was acknowledged before that point must be in it.
//!
//! After a sync that failed the kernel takes what was under way for written, and a later sync of the same file says nothing of
//! it: it is as likely gone as not, for good, unless it is written again.
//!
//! Of the names that were made, linked and removed since the directory was last synced none, all, or a random half are on the
//! disk: a file may be missing, whatever was synced of it, and one that was removed be there again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::log::{Op, Record};
use crate::harness::dice::Dice;
use crate::load::Ack;
use crate::stored;

/// What a disk writes at once.
const SECTOR: usize = 512;

/// Files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What was found in all states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct States {
    pub(crate) played: usize,
    pub(crate) with_lost: usize,
    pub(crate) lost: usize,
    pub(crate) damaged: usize,
    /// Acknowledgements that were looked for, in all states together.
    pub(crate) looked_for: usize,
    /// Writes that were under way, in all states together.
    pub(crate) unsynced: usize,
}

/// Plays `states` power losses, from the files as they were when the record began.
pub(crate) fn play(
    before: &Files,
    records: &[Record],
    acks: &[Ack],
    states: usize,
    dice: &mut Dice,
) -> States {
    let mut acks = acks.to_vec();
    acks.sort_by_key(|ack| ack.at_ns);
    let mut points: Vec<usize> = (0..states).map(|_| dice.below(records.len()) + 1).collect();
    points.sort_unstable();
    let mut disk = Disk::new(before.clone());
    let mut found = States::default();
    let mut applied = 0;
    for point in points {
        for record in records.iter().take(point).skip(applied) {
            disk.record(record, dice);
        }
        applied = point;
        // What was acknowledged while the last of these was under way was so before the loss, too.
        let Some(last) = records.get(point - 1) else {
            continue;
        };
        found.unsynced += disk.pending.values().map(Vec::len).sum::<usize>();
        let due = acks.partition_point(|ack| ack.at_ns < last.at_ns);
        let due = acks.get(..due).unwrap_or_default();
        look(&disk.after_loss(dice), due, &mut found);
    }
    found
}

fn look(files: &Files, due: &[Ack], found: &mut States) {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    let dir = dir.expect("a directory");
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).expect("written");
    }
    found.played += 1;
    found.looked_for += due.len();
    match stored::statuses(&dir.path().join("ledger.db")) {
        Ok(stored) => {
            let lost = due.iter().filter(|ack| !stored.contains(&ack.status));
            let lost = lost.count();
            found.lost += lost;
            found.with_lost += usize::from(lost > 0);
        }
        Err(_damage) => found.damaged += 1,
    }
}

/// What is on the disk for good, and what is on its way there.
struct Disk<'a> {
    synced: Files,
    pending: BTreeMap<String, Vec<&'a Op>>,
    /// What became of names.
    names: Vec<Name>,
}

/// What became of a name, and may not be on the disk yet.
enum Name {
    Made(String),
    /// With what the file held.
    Removed(String, Vec<u8>),
}

impl<'a> Disk<'a> {
    fn new(synced: Files) -> Self {
        let pending = BTreeMap::new();
        let names = Vec::new();
        Self {
            synced,
            pending,
            names,
        }
    }

    fn record(&mut self, record: &'a Record, dice: &mut Dice) {
        let file = &record.file;
        match &record.op {
            Op::Sync => {
                let bytes = self.synced.entry(file.clone()).or_default();
                for op in self.pending.remove(file).unwrap_or_default() {
                    apply(bytes, op, usize::MAX);
                }
            }
            Op::Unsynced => {
                let bytes = self.synced.entry(file.clone()).or_default();
                for op in self.pending.remove(file).unwrap_or_default() {
                    if dice.below(2) == 0 {
                        apply(bytes, op, usize::MAX);
                    }
                }
            }
            Op::Remove => {
                let mut bytes = self.synced.remove(file).unwrap_or_default();
                for op in self.pending.remove(file).unwrap_or_default() {
                    apply(&mut bytes, op, usize::MAX);
                }
                self.names.push(Name::Removed(file.clone(), bytes));
            }
            Op::Make => {
                self.synced.insert(file.clone(), Vec::new());
                self.names.push(Name::Made(file.clone()));
            }
            Op::Link(from) => {
                let bytes = self.synced.get(from).cloned().unwrap_or_default();
                self.synced.insert(file.clone(), bytes);
                if let Some(ops) = self.pending.get(from).cloned() {
                    self.pending.insert(file.clone(), ops);
                }
                self.names.push(Name::Made(file.clone()));
            }
            Op::SyncNames => self.names.clear(),
            op @ (Op::Write { .. } | Op::Resize(_)) => {
                self.pending.entry(file.clone()).or_default().push(op);
            }
        }
    }

    fn after_loss(&self, dice: &mut Dice) -> Files {
        let mut files = self.synced.clone();
        for (file, ops) in &self.pending {
            let bytes = files.entry(file.clone()).or_default();
            let fate = dice.below(3);
            for op in ops {
                let kept = match fate {
                    0 => false,
                    1 => true,
                    _ => dice.below(2) == 0,
                };
                if !kept {
                    continue;
                }
                let sectors = match op {
                    Op::Write { data, .. } => data.len().div_ceil(SECTOR),
                    _ => 1,
                };
                let is_torn = fate == 2 && sectors > 1 && dice.below(3) == 0;
                let most = if is_torn {
                    (dice.below(sectors - 1) + 1) * SECTOR
                } else {
                    usize::MAX
                };
                apply(bytes, op, most);
            }
        }
        self.lose_names(&mut files, dice);
        files
    }

    fn lose_names(&self, files: &mut Files, dice: &mut Dice) {
        let (fate, mut never) = (dice.below(3), BTreeSet::new());
        for name in &self.names {
            if fate == 1 || (fate == 2 && dice.below(2) == 0) {
                continue;
            }
            match name {
                Name::Made(file) => {
                    files.remove(file);
                    never.insert(file);
                }
                // What never came to the disk cannot come back from it.
                Name::Removed(file, bytes) if !never.contains(file) => {
                    files.entry(file.clone()).or_insert_with(|| bytes.clone());
                }
                Name::Removed(..) => {}
            }
        }
    }
}

/// Does it to a file; of a write `most` bytes.
fn apply(bytes: &mut Vec<u8>, op: &Op, most: usize) {
    match op {
        Op::Write { offset, data } => {
            let part = data.get(..most.min(data.len())).unwrap_or_default();
            let end = offset + part.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            if let Some(place) = bytes.get_mut(*offset..end) {
                place.copy_from_slice(part);
            }
        }
        Op::Resize(length) => bytes.resize(*length, 0),
        _ => {}
    }
}
