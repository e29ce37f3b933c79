//! Whether the machine is ours while something is measured. Other programs' work reaches every figure, so a slice begins
//! when the machine is quiet and is taken again when it was not left alone. A machine that never is quiet is measured all
//! the same, and the figure says so: waiting is bounded, and ratios survive what both sides meet.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::process::{TICK, cpu_with_descendants};

/// How long the machine is looked at before a slice: fifteen of the kernel's ticks on each core.
const LOOK_FOR: Duration = Duration::from_millis(150);
/// It is quiet with fewer cores than this at work.
const QUIET_BELOW_CORES: f64 = 0.3;
/// A slice is disturbed when others took more cores than this while it ran.
const FOREIGN_BELOW_CORES: f64 = 0.35;

/// How patient the gate is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    /// The longest wait for a quiet moment, before each try.
    pub(crate) wait: Duration,
    /// How often a slice is taken before a disturbed one is kept. At least 1.
    pub(crate) tries: u32,
}

/// What a slice gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice<T> {
    /// The slice's own.
    pub(crate) value: T,
    /// Whether others were at work while it ran.
    pub(crate) disturbed: bool,
}

impl Gate {
    /// No gate: for runs that ask whether it works at all.
    pub(crate) const OPEN: Self = Self {
        wait: Duration::ZERO,
        tries: 1,
    };

    /// Takes a slice in a quiet moment, and again while others disturb it.
    pub(crate) fn slice<T>(self, mut take: impl FnMut() -> T) -> Slice<T> {
        let mut tried = 0;
        loop {
            tried += 1;
            self.wait_for_quiet();
            let before = Busy::now();
            let value = take();
            let disturbed = before.foreign_until_now() > FOREIGN_BELOW_CORES;
            if !disturbed || tried >= self.tries {
                return Slice { value, disturbed };
            }
        }
    }

    fn wait_for_quiet(self) {
        let began = Instant::now();
        while began.elapsed() < self.wait {
            let before = Busy::now();
            thread::sleep(LOOK_FOR);
            if before.foreign_until_now() < QUIET_BELOW_CORES {
                return;
            }
        }
    }
}

/// What was at work up to an instant.
struct Busy {
    at: Instant,
    all: Duration,
    ours: Duration,
}

impl Busy {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").expect("it is mounted");
        let line = stat.lines().next().expect("all cores together");
        // user nice system idle iowait irq softirq steal; what follows is contained in these.
        let ticks: Vec<u32> = line
            .split_whitespace()
            .skip(1)
            .map(|word| u32::try_from(word.parse().unwrap_or(0_u64)).unwrap_or(u32::MAX))
            .collect();
        let of = |places: &[usize]| -> u32 {
            let there = places.iter().filter_map(|place| ticks.get(*place));
            there.copied().fold(0, u32::saturating_add)
        };
        Self {
            at: Instant::now(),
            all: TICK * of(&[0, 1, 2, 5, 6, 7]),
            ours: cpu_with_descendants(),
        }
    }

    /// Cores that others kept at work since.
    fn foreign_until_now(&self) -> f64 {
        let now = Self::now();
        let all = now.all.saturating_sub(self.all);
        // A child whose parent ended before it is nobody's here any more, and takes what it used with it.
        let ours = now.ours.saturating_sub(self.ours);
        let foreign = all.saturating_sub(ours);
        foreign.as_secs_f64() / now.at.duration_since(self.at).as_secs_f64()
    }
}
