//! The machine the figures come from: its name, whether it was left alone, and what it tells of a process. No figure means
//! anything without it.

pub(crate) mod gate;
pub(crate) mod process;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::options::Options;

/// What the figures were taken on, and with.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The processor's own name.
    pub(crate) cpu: String,
    /// Cores this process may use.
    pub(crate) cores: usize,
    /// All memory.
    pub(crate) memory_mib: u64,
    /// Its name and version.
    pub(crate) kernel: String,
    /// The kind of file system on which the ledgers are.
    pub(crate) file_system: String,
    /// Where that file system is memory, nothing that is synced goes anywhere.
    pub(crate) is_memory: bool,
    /// The compiler of this bench, which is the program's too unless `--daemon` named another.
    pub(crate) rustc: String,
    /// The program's own version.
    pub(crate) tilld: String,
}

impl Machine {
    /// Asks the machine.
    pub(crate) fn read(options: &Options) -> Self {
        let (file_system, is_memory) = file_system(&options.directory);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: cpu(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_mib: process::field(&meminfo, "MemTotal:").unwrap_or(0) / 1024,
            kernel: said("uname", &["-sr"]),
            file_system,
            is_memory,
            rustc: said("rustc", &["--version"]),
            tilld: said(&options.daemon, &["--version"]),
        }
    }

    /// It in a line.
    pub(crate) fn line(&self) -> String {
        let Self {
            cpu,
            cores,
            memory_mib,
            kernel,
            file_system,
            rustc,
            tilld,
            is_memory: _,
        } = self;
        let memory_gib = memory_mib.div_ceil(1024);
        let many = if *cores == 1 { "core" } else { "cores" };
        format!(
            "{cpu}, {cores} {many}, {memory_gib} GiB, {kernel}, {file_system}, {rustc}, {tilld}"
        )
    }
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| matches!(name.trim(), "model name" | "Model" | "Hardware"));
    name.map_or_else(
        || format!("a processor ({})", std::env::consts::ARCH),
        |(_, value)| value.trim().to_owned(),
    )
}

/// The kind of the file system that holds `directory`, or will, and whether it is memory.
fn file_system(directory: &Path) -> (String, bool) {
    let there = directory.ancestors().find_map(|it| it.canonicalize().ok());
    let there = there.unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut found = ("an unknown file system".to_owned(), false, 0);
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(place), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        // The kernel writes a blank as \040. The deepest place wins, and of two mounts on one the later.
        let place = place.replace("\\040", " ");
        if there.starts_with(&place) && place.len() >= found.2 {
            let is_memory = matches!(kind, "tmpfs" | "ramfs");
            found = (kind.to_owned(), is_memory, place.len());
        }
    }
    (found.0, found.1)
}

/// The first line a program says.
fn said(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> String {
    let program = program.as_ref();
    let name = Path::new(program).file_name().unwrap_or(program);
    let unknown = || format!("{} unknown", name.display());
    let Ok(output) = Command::new(program).args(args).output() else {
        return unknown();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().filter(|_| output.status.success());
    line.map_or_else(unknown, str::to_owned)
}
