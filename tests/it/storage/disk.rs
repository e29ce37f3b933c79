//! A small disk of its own under a state directory, to be filled and given room.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

/// A world whose state lies on a file system of its own.
pub(super) struct Disk {
    // Taken down first: it has files open there.
    pub(super) world: World,
    mount: Mount,
}

struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        if run("umount", &["-l", &self.0.to_string_lossy()]) {
            drop(fs::remove_dir_all(&self.0));
        }
    }
}

fn run(program: &str, args: &[&str]) -> bool {
    let output = Command::new(program).args(args).output();
    output.is_ok_and(|output| output.status.success())
}

/// Whether file systems may be mounted here.
pub(super) fn lacks() -> Option<&'static str> {
    let tried = run("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/mnt"]);
    (!tried).then_some("file systems may not be mounted here")
}

impl Disk {
    /// A logged-in world whose state directory is a disk of this size, with no daemon yet.
    pub(super) fn of(setup: Setup, size: &str) -> Self {
        let world = setup.not_served().start();
        let state = world.state_dir();
        let aside = world.dir().join("aside");
        fs::rename(&state, &aside).expect("moved aside");
        fs::create_dir(&state).expect("a place");
        let options = format!("size={size},mode=0750");
        let place = state.to_string_lossy().into_owned();
        assert!(run(
            "mount",
            &["-t", "tmpfs", "-o", &options, "tilld-test", &place]
        ));
        let mount = Mount(state);
        let from = format!("{}/.", aside.display());
        assert!(run("cp", &["-a", &from, &place]));
        fs::remove_dir_all(aside).expect("moved");
        Self { world, mount }
    }

    /// Mounts it anew with this option.
    pub(super) fn remount(&self, option: &str) {
        let option = format!("remount,{option}");
        assert!(run(
            "mount",
            &["-o", &option, &self.mount.0.to_string_lossy()]
        ));
    }

    /// Leaves no room on it.
    pub(super) fn fill(&self) -> PathBuf {
        let ballast = self.mount.0.join("ballast");
        fill(&ballast);
        ballast
    }
}

/// Writes until the disk has no room.
fn fill(file: &Path) {
    use std::io::Write as _;
    let mut ballast = fs::File::create(file).expect("a file");
    for size in [65_536, 4_096, 1] {
        while ballast.write_all(&vec![0; size]).is_ok() {}
    }
}

/// A26. What is at stake: goods that are sent twice because the claim of a script could not be stored, and a daemon that needs
/// a hand when there is room again.
#[test]
fn a_full_disk_is_told_and_goods_are_handed_over_once_when_there_is_room() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let setup = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .set("ledger.busy_budget_ms", 500)
        .set("admin.listen", "\"127.0.0.1:0\"");
    let mut disk = Disk::of(setup, "8m");
    disk.world.start_serve();
    let world = &disk.world;
    let issued: Vec<_> = ["A-1", "A-2"].map(|order| world.create(order)).into();
    // Owed, and its script cannot be begun yet: the disk is full when its turn comes.
    let paid: Vec<_> = issued
        .iter()
        .map(|one| world.dictate(one, "paid"))
        .collect();
    let ballast = disk.fill();
    let mut refused = 0;
    for _ in 0..200 {
        let answer = world.tell_as_it_is(paid.first().expect("two"));
        match answer.status {
            503 => {
                assert!(answer.header("retry-after").is_some(), "{answer:?}");
                refused += 1;
            }
            // What the log's file had room for.
            status => assert_eq!(status, 200),
        }
        if refused == 3 {
            break;
        }
        grow(world, issued.first().expect("two"));
    }
    assert_eq!(refused, 3, "the disk is full");
    let needs = super::attention(world);
    assert!(needs.iter().any(|word| word == "disk_low"), "{needs:?}");
    assert!(needs.iter().any(|word| word == "cannot_store"), "{needs:?}");
    // Whoever asks hears it, and that he asked changes nothing of it.
    for path in ["/healthz", "/readyz", "/healthz"] {
        let told = crate::admin::get(world, path);
        assert_eq!(told.status, 503, "{told:?}");
        assert!(told.body.contains("the disk is full"), "{told:?}");
    }
    let needs = super::attention(world);
    assert!(needs.iter().any(|word| word == "cannot_store"), "{needs:?}");
    // Reading goes on, and the log is not filled with it.
    world.tilld(&["invoice", "show", "A-1"]).ends_with(0);
    // A copy that has no room is not begun: on this disk it would take what the ledger needs.
    let copy = world.state_dir().join("copy.db");
    let refused = world.tilld(&["db", "backup", &copy.to_string_lossy()]);
    let told = refused.ends_with(1).stderr;
    assert!(
        told.contains("are free there") && told.contains("hint: name a place"),
        "{told}"
    );
    let told = |what: &str| world.serve_log().matches(what).count();
    assert_eq!(told("the ledger cannot store: the disk is full"), 1);
    assert!(
        world
            .serve_log()
            .contains("hint: make room on the file system of")
    );
    let runs = world.hook_log("fulfil");
    assert!(runs.len() <= 1, "{runs:?}");
    // Whoever could not store something does not add a line each time.
    let log = world.serve_log();
    let loud = log
        .lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
    let loud: Vec<&str> = loud.collect();
    assert!(loud.len() <= 3, "{loud:#?}");

    fs::remove_file(ballast).expect("room");
    disk.remount("size=80m");
    for one in &paid {
        assert_eq!(world.tell_as_it_is(one).status, 200);
    }
    world.settle();
    let mut runs = world.hook_log("fulfil");
    runs.sort();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs.iter().all(|run| run.ends_with(" 1")), "{runs:?}");
    wait_until(PATIENCE, "nothing to need a person", || {
        super::attention(world).is_empty()
    });
    assert_eq!(told("the ledger stores again"), 1);
}

/// A change of status with a long document.
fn grow(world: &World, issued: &crate::harness::Issued) {
    let body = issued.with(&json!({ "status": "odd", "much": "x".repeat(100_000) }));
    let status = world.tell(issued, &body.to_string()).status;
    assert!(status == 200 || status == 503, "{status}");
}

#[test]
fn a_start_on_a_read_only_disk_ends_with_a_word_and_changes_nothing() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let disk = Disk::of(Setup::new().quiet(), "8m");
    disk.world.create("A-1");
    disk.remount("ro");
    let ran = disk.world.tilld(&["serve"]);
    // Not one of the codes after which nobody starts it again: the disk may be mounted right in a minute.
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("Read-only file system"), "{ran:?}");
    assert!(ran.stderr.contains("hint: "), "{ran:?}");
    disk.world.tilld(&["invoice", "show", "A-1"]).ends_with(0);
    let needs = super::attention(&disk.world);
    assert!(needs.iter().any(|word| word == "read_only"), "{needs:?}");
    disk.remount("rw");
    let needs = super::attention(&disk.world);
    assert!(needs.iter().all(|word| word != "read_only"), "{needs:?}");
}

/// A daemon that systemd starts again and again until somebody has made room.
#[test]
fn a_start_on_a_full_disk_ends_with_a_hint_and_works_once_there_is_room() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let mut disk = Disk::of(Setup::new().quiet(), "8m");
    let mut issued = None;
    // Where nothing was ever stored, and where there is a ledger without a log beside it.
    for order in ["A-1", "A-2"] {
        let ballast = disk.fill();
        let mut serve = disk.world.start_tilld(&["serve"]);
        assert_eq!(serve.wait(PATIENCE), 1, "{}", serve.stderr());
        let said = serve.stderr();
        assert!(said.contains("hint: make room"), "{said}");
        fs::remove_file(ballast).expect("room");
        disk.world.start_serve();
        let one = disk.world.create(order);
        let paid = disk.world.dictate(&one, "paid");
        assert_eq!(disk.world.tell_as_it_is(&paid).status, 200);
        issued = Some(one);
        assert_eq!(disk.world.stop_serve(PATIENCE), 0);
        let neighbour = disk.world.neighbour();
        neighbour.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
        drop(neighbour);
        for log in ["db-wal", "db-shm"] {
            // Gone already, where this was the last program to have it open.
            drop(fs::remove_file(disk.world.ledger().with_extension(log)));
        }
    }
    // With its side files it starts, says so, and goes on by itself.
    disk.world.start_serve();
    assert_eq!(disk.world.stop_serve(PATIENCE), 0);
    let ballast = disk.fill();
    disk.world.start_serve();
    let issued = issued.expect("two");
    let much = json!({ "status": "odd", "much": "x".repeat(100_000) });
    let much = issued.with(&much).to_string();
    assert_eq!(disk.world.tell(&issued, &much).status, 503);
    fs::remove_file(ballast).expect("room");
    assert_eq!(disk.world.tell(&issued, &much).status, 200);
}

/// What is at stake: an alarm that cannot be raised because of what it is about, and a person who is told to end programs
/// when the disk is what is wrong.
#[test]
fn a_disk_that_becomes_full_is_told_by_the_alarm_and_the_log_is_said_to_want_room() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    // Its own directory is on the full disk, unless systemd gives another.
    for has_runtime_directory in [true, false] {
        tells_of_a_full_disk(has_runtime_directory);
    }
}

fn tells_of_a_full_disk(has_runtime_directory: bool) {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let at = |name: &str| elsewhere.path().join(name).display().to_string();
    let runtime = format!("RUNTIME_DIRECTORY={}", elsewhere.path().display());
    let under = ["env", &runtime];
    let under = if has_runtime_directory {
        &under[..]
    } else {
        &under[..1]
    };
    let note = format!("echo \"$TILLD_ALERT\" >>{}", at("told"));
    let setup = Setup::new()
        .quiet()
        .set("control.socket", format!("{:?}", at("control.sock")))
        .set("attention.run", format!("{:?}", ["/bin/sh", "-c", &note]))
        .under(under);
    let mut disk = Disk::of(setup, "24m");
    disk.world.start_serve();
    let world = &disk.world;
    let issued = world.create("A-1");
    // The log's file keeps its length when it is begun anew, so that it has room when nothing else has: as after a long one.
    let log = fs::OpenOptions::new()
        .append(true)
        .open(world.state_dir().join("ledger.db-wal"));
    let room = vec![0; 12 * 1024 * 1024];
    std::io::Write::write_all(&mut log.expect("there is one"), &room).expect("written");
    let neighbour = world.neighbour();
    let ballast = disk.fill();
    neighbour.lengthen_log(1_200);
    let waiting = world.dictate(&issued, "waiting");
    assert_eq!(world.tell_as_it_is(&waiting).status, 200);
    let mut needs = Vec::new();
    wait_until(PATIENCE, "the log to be told of", || {
        needs = super::attention(world);
        needs.iter().any(|word| word == "wal_held")
    });
    assert!(needs.iter().any(|word| word == "disk_low"), "{needs:?}");
    let people = world.tilld(&["status"]).ends_with(16).stdout;
    let told = people.lines().find(|line| line.contains("wal_held"));
    let told = told.unwrap_or_default();
    assert!(told.contains("the disk is full: make room"), "{people}");
    assert!(!told.contains("SELECT"), "{people}");
    wait_until(PATIENCE, "the program to be run", || {
        let told = fs::read_to_string(at("told")).unwrap_or_default();
        ["disk_low", "wal_held"]
            .iter()
            .all(|word| told.contains(word))
    });
    fs::remove_file(ballast).expect("room");
    disk.remount("size=120m");
    wait_until(PATIENCE, "nothing to need a person", || {
        super::attention(world).is_empty()
    });
}
