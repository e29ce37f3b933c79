//! R06, a disk that is full and then has room: a small file system in memory under the state directory.
//!
//! The control is a daemon that takes a write that failed for a good one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::between::{Between, Wrong};
use crate::figures::{health, seconds, serves};
use crate::harness::{PATIENCE, World, request, wait_until};
use crate::load::Load;
use crate::options::Options;
use crate::rows::{quiet, told};
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Connections.
const SENDERS: usize = 8;
/// What is free at first, KiB; more than opening the invoices takes.
const FREE_KIB: usize = 1_000;
/// How long it stays full, short and long, seconds.
const FULL_S: (usize, usize) = (3, 60);
/// From room to the first 200.
const SOON: Duration = Duration::from_secs(5);
/// A full disk that is answered 200 for so long is not noticed.
const NOTICED: Duration = Duration::from_secs(10);

pub(crate) fn full(options: &Options) -> Verdict {
    let between = Between::build();
    let deaf = between.program(Some(Wrong::Deaf), None);
    let full_s = options.effort.of(FULL_S.0, FULL_S.1);
    Verdict::new(filled(full_s, &[]))
        .control("a failed write is taken for a good one", filled(1, &deaf))
}

/// A file system of its own, until it is dropped.
struct Small(PathBuf);

impl Small {
    #[track_caller]
    fn mount(place: &Path) -> Self {
        let kept = place.with_extension("kept");
        command("cp", &["-a"], &[place, &kept]);
        // For what lies there already, and for the invoices of the load.
        let size = format!("size={}k,mode=0750", FREE_KIB + 800);
        command("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], &[place]);
        let small = Self(place.to_owned());
        command("cp", &["-a"], &[&kept.join("."), place]);
        small
    }

    #[track_caller]
    fn grow(&self) {
        command("mount", &["-o", "remount,size=100m"], &[&self.0]);
    }

    fn free_kib(&self) -> u64 {
        let about = rustix::fs::statvfs(&self.0).expect("mounted");
        about.f_bavail * about.f_frsize / 1024
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Whoever is still there goes first; a lazy end waits for it.
        let mut command = Command::new("umount");
        drop(command.arg("--lazy").arg(&self.0).status());
    }
}

#[track_caller]
fn command(program: &str, words: &[&str], paths: &[&Path]) {
    let output = Command::new(program).args(words).args(paths).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
}

fn filled(full_s: usize, under: &[String]) -> Found {
    let (setup, admin) = told(quiet());
    let mut world = setup.not_served().start();
    let disk = Small::mount(&world.state_dir());
    world.under = under.to_vec();
    world.is_sound = under.is_empty();
    world.start_serve();
    let mut load = Load::open(&world, SENDERS);
    let pid = world.serve_pid();
    let (heard, (is_full, reads, red, to_200)) = load.during(|live| {
        let began = Instant::now();
        wait_until(PATIENCE, "the disk to be full", || {
            live.unavailable() > 0 || !serves(&world) || began.elapsed() > NOTICED
        });
        thread::sleep(Duration::from_secs(full_s.try_into().expect("small")));
        let is_full = disk.free_kib() < 200;
        let reads = serves(&world) && answers(&world);
        let red = health(admin) == Some(503);
        disk.grow();
        let to_200 = if live.unavailable() > 0 && serves(&world) {
            live.one_more()
        } else {
            Duration::MAX / 4
        };
        thread::sleep(Duration::from_secs(1));
        (is_full, reads, red, to_200)
    });
    let lives_on = serves(&world) && world.serve_pid() == pid;
    if serves(&world) {
        world.kill9_serve();
    } else {
        world.serve_ends(PATIENCE);
    }
    let lost = stored::lost(&world.ledger(), &heard.acks);
    let n = format!("{} acks, {} × 503", heard.acks.len(), heard.unavailable());
    let healed = if to_200 > PATIENCE {
        "never".to_owned()
    } else {
        seconds(to_200)
    };
    let told = if red { "red" } else { "not red" };
    let figure = format!("lost {lost}; `/healthz` {told}; first 200 after room {healed}");
    // The small disk is gone with the world's files on it: what is looked at afterwards lies there once more.
    let found = Found::new(n, figure)
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .bar(to_200 <= SOON, "did not go on in time")
        .bar(lives_on, "the daemon ended")
        .bar(red, "`/healthz` did not tell")
        .bar(reads, "nothing could be read meanwhile")
        .bar(heard.without_retry_after == 0, "503 without Retry-After")
        .needs(is_full, "the disk was not full")
        .needs(heard.acks.len() > SENDERS, "too little was acknowledged");
    drop(disk);
    found
}

/// The listener and a reader of the ledger answer while the disk is full.
fn answers(world: &World) -> bool {
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let look = request(world.listen(), "GET", &target, &[], "");
    look.status == 200 && world.tilld(&["invoice", "list", "--json"]).code == 0
}
