//! R10, readers: one that does not end while notifications come in, and those of another user, who may read and not write,
//! while the daemon runs, after it stopped and after it was killed.
//!
//! The controls are the same looks where they must fail: at the log while the reader is still there, and by a user outside
//! the group.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::harness::{PATIENCE, World, wait_until};
use crate::load::Load;
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Connections.
const SENDERS: usize = 16;
/// How long the reader reads, short and long, seconds.
const READS_S: (usize, usize) = (10, 120);
/// What the log takes at most while nothing stands in its way.
const USUAL_BYTES: u64 = 15 * 1024 * 1024;
/// An account without rights, and the group of the ledger's files, and one that is nobody's.
const NOBODY: &str = "--reuid=65534";
const GROUP: &str = "--regid=0";
const NO_GROUP: &str = "--regid=65534";

pub(crate) fn long_and_foreign(options: &Options) -> Verdict {
    let reads = options.effort.of(READS_S.0, READS_S.1);
    let mut world = quiet().start();
    let (meanwhile, after) = long(&world, reads);
    let found = foreign(&mut world, GROUP);
    Verdict::new(after.and(found))
        .control("the reader is still there", meanwhile)
        .control("outside the group", foreign(&mut world, NO_GROUP))
}

/// What is found of the log while somebody reads, and afterwards.
fn long(world: &World, reads_s: usize) -> (Found, Found) {
    let log = world.state_dir().join("ledger.db-wal");
    let bytes = || fs::metadata(&log).map_or(0, |about| about.len());
    let mut load = Load::open(world, SENDERS);
    let neighbour = world.neighbour();
    let length = Duration::from_secs(reads_s.try_into().expect("small"));
    let (heard, (most, told)) = load.during(|live| {
        live.one_more();
        neighbour.keep_reading();
        thread::sleep(length);
        let (most, told) = (bytes(), world.tilld(&["status"]).code == 16);
        neighbour.let_go();
        live.one_more();
        (most, told)
    });
    // It is moved and cut by the daemon itself; a shop goes on all the while.
    let (more, ()) = load.paced(Duration::from_millis(20), |_live| {
        let began = std::time::Instant::now();
        wait_until(PATIENCE * 2, "the log to be short", || {
            bytes() <= USUAL_BYTES || began.elapsed() > PATIENCE
        });
    });
    let after = bytes();
    let acks = [heard.acks, more.acks].concat();
    let lost = stored::lost(&world.ledger(), &acks);
    let found = |bytes: u64| {
        let figure = format!(
            "log {} KiB at most, {} KiB afterwards; lost {lost}",
            most / 1024,
            bytes / 1024
        );
        let told_it = if told { "told" } else { "not told" };
        let n = format!("read for {reads_s} s beside {} acks, {told_it}", acks.len());
        Found::new(n, figure)
            .bar(bytes <= USUAL_BYTES, format!("{bytes} bytes of log"))
            .bar(told, "`tilld status` does not tell")
            .bar(lost == 0, format!("{lost} acknowledged and gone"))
            .needs(most > USUAL_BYTES, "the reader was in nobody's way")
    };
    (found(most), found(after))
}

/// Reads as another user in each state of the daemon, with each program that is there; leaves the daemon as it was.
fn foreign(world: &mut World, group: &str) -> Found {
    let pass = fs::Permissions::from_mode(0o711);
    fs::set_permissions(world.dir(), pass).expect("ours");
    let (mut reads, mut failed) = (0, Vec::new());
    let mut read = |world: &World, state: &str| {
        for (program, arguments) in programs(world) {
            let mut command = Command::new("setpriv");
            command.args([NOBODY, group, "--clear-groups", program]);
            command
                .args(&arguments)
                .stdin(Stdio::null())
                .current_dir("/");
            let output = command.output().expect("setpriv");
            let said = String::from_utf8_lossy(&output.stdout);
            let number: Option<u32> = said.trim().parse().ok();
            reads += 1;
            if !output.status.success() || number.is_none_or(|number| number == 0) {
                let why = String::from_utf8_lossy(&output.stderr);
                let why = why.lines().last().unwrap_or_default();
                failed.push(format!("{program} while {state}: {said}{why}"));
            }
        }
    };
    read(world, "it runs");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    read(world, "stopped");
    world.start_serve();
    world.kill9_serve();
    read(world, "killed");
    world.start_serve();
    let figure = format!("readers failing {}", failed.len());
    Found::new(format!("{reads} foreign readers"), figure)
        .bar(failed.is_empty(), failed.join(", "))
        .needs(reads >= 9, "sqlite3, python3 or php is not there")
}

/// The programs that read, each with its arguments.
fn programs(world: &World) -> Vec<(&'static str, Vec<String>)> {
    let file = world.ledger().display().to_string();
    let query = "select count(*) from invoices";
    let python = format!(
        "import sqlite3; print(sqlite3.connect('file:{file}?mode=ro', uri=True).execute('{query}').fetchone()[0])"
    );
    let php = format!(
        "$l = new PDO('sqlite:{file}', null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => PDO::SQLITE_OPEN_READONLY]); \
         echo $l->query('{query}')->fetchColumn();"
    );
    let all = [
        (
            "/usr/bin/sqlite3",
            vec![format!("file:{file}?mode=ro"), query.to_owned()],
        ),
        ("/usr/bin/python3", vec!["-c".to_owned(), python]),
        ("/usr/bin/php", vec!["-r".to_owned(), php]),
    ];
    let there = all
        .into_iter()
        .filter(|(program, _)| fs::exists(program).unwrap_or_default());
    there.collect()
}
