//! Readers of the ledger that are another user of its group, at every time (A25, A44, R10), and modes that are wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;

use crate::harness::{PATIENCE, Setup, World, skip};

/// Nobody's group: the readers' here.
const GROUP: u32 = 64_123;
const AS_READER: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=64123",
    "--clear-groups",
];

const PHP: &str = "$l = new PDO('sqlite:' . $argv[1], null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => \
  PDO::SQLITE_OPEN_READONLY, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]); \
  echo $l->query('select count(*) from events')->fetchColumn();";
const PYTHON: &str = "import sqlite3, sys; \
  l = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True, timeout=10); \
  print(l.execute('select count(*) from events').fetchone()[0], end='')";

fn works(command: &[&str]) -> bool {
    let [program, args @ ..] = command else {
        return false;
    };
    let output = Command::new(program).args(args).output();
    output.is_ok_and(|output| output.status.success())
}

/// The state directory is the readers' too; what is made in it stays so.
fn open_to_readers(world: &World) {
    let state = world.state_dir();
    fs::set_permissions(world.dir(), Permissions::from_mode(0o711)).expect("own directory");
    chown(&state, None, Some(GROUP)).expect("a group");
    fs::set_permissions(&state, Permissions::from_mode(0o2750)).expect("own directory");
}

/// What each of the programs reads as another user.
fn read(world: &World) -> Vec<String> {
    let ledger = world.ledger().to_string_lossy().into_owned();
    let count = "select count(*) from events";
    let programs: [&[&str]; 3] = [
        &["sqlite3", "-readonly", &ledger, count],
        &["php", "-r", PHP, "--", &ledger],
        &["/usr/bin/python3", "-c", PYTHON, &ledger],
    ];
    programs
        .iter()
        .map(|program| {
            let [first, rest @ ..] = AS_READER;
            let output = Command::new(first).args(rest).args(*program).output();
            let output = output.expect("setpriv runs");
            assert!(output.status.success(), "{program:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        })
        .collect()
}

#[test]
fn another_user_of_the_group_reads_the_newest_while_it_runs_after_a_stop_and_after_a_kill() {
    let needed: [&[&str]; 4] = [
        &["sqlite3", "--version"],
        &["php", "-r", "exit(extension_loaded('pdo_sqlite') ? 0 : 1);"],
        &["/usr/bin/python3", "-c", "import sqlite3"],
        &[
            "setpriv",
            "--reuid=65534",
            "--regid=64123",
            "--clear-groups",
            "true",
        ],
    ];
    if !needed.iter().all(|command| works(command)) {
        skip!("sqlite3, PHP with PDO, Python or setpriv is not there");
    }
    let mut world = Setup::new().quiet().not_served().start();
    open_to_readers(&world);
    world.start_serve();
    let tell = |world: &World, order: &str| {
        let paid = world.dictate(&world.create(order), "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    };
    tell(&world, "A-1");
    assert_eq!(read(&world), ["2", "2", "2"], "while it runs");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert_eq!(read(&world), ["2", "2", "2"], "after a stop");
    world.start_serve();
    tell(&world, "A-2");
    world.kill9_serve();
    assert_eq!(read(&world), ["4", "4", "4"], "after a kill");
    // Made with their modes, whatever was there before.
    for (file, wanted) in [
        ("", 0o2750),
        ("ledger.db", 0o640),
        ("ledger.db-wal", 0o640),
        ("ledger.db-shm", 0o640),
        ("ledger.mark", 0o640),
        ("secret", 0o2700),
        ("secret/ledger-key", 0o600),
        ("secret/credentials", 0o600),
    ] {
        let about = fs::metadata(world.state_dir().join(file)).expect("it is there");
        let mode = about.mode() & 0o7777;
        assert_eq!(mode & 0o777, wanted & 0o777, "{file}: {mode:o}");
    }
    // And who is not of the group reads nothing.
    let stranger = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "sqlite3",
        "-readonly",
    ];
    let ledger = world.ledger();
    let output = Command::new("setpriv")
        .args(stranger)
        .arg(ledger)
        .arg("select 1 from events")
        .output();
    assert!(!output.expect("setpriv runs").status.success());
}

#[test]
fn a_wrong_mode_or_owner_is_one_message_with_15_and_nothing_is_touched() {
    let mut world = Setup::new().quiet().start();
    world.create("A-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let state = world.state_dir();
    let is_root = fs::metadata(&state).expect("there").uid() == 0;
    for (file, right, wrong) in [
        ("", 0o750, 0o755),
        ("ledger.db", 0o640, 0o666),
        ("ledger.db-wal", 0o640, 0o644),
        ("ledger.mark", 0o640, 0o604),
        ("secret", 0o700, 0o750),
        ("secret/ledger-key", 0o600, 0o640),
    ] {
        let path = state.join(file);
        let path = if file.is_empty() { state.clone() } else { path };
        fs::set_permissions(&path, Permissions::from_mode(wrong)).expect("own file");
        let ran = world.tilld(&["serve"]).ends_with(15);
        let shown = path.display().to_string();
        assert!(
            ran.stderr
                .contains(&format!("`{shown}` has mode {wrong:04o}")),
            "{ran:?}"
        );
        assert!(ran.stderr.contains(&format!("{right:04o}")), "{ran:?}");
        assert!(ran.stderr.contains("hint: "), "{ran:?}");
        fs::set_permissions(&path, Permissions::from_mode(right)).expect("own file");
    }
    if is_root {
        let ledger = world.ledger();
        chown(&ledger, Some(65_534), None).expect("root may");
        let ran = world.tilld(&["serve"]).ends_with(15);
        let told = format!(
            "`{}` belongs to user 65534, and tilld runs as user 0",
            ledger.display()
        );
        assert!(ran.stderr.contains(&told), "{ran:?}");
        assert!(ran.stderr.contains("hint: `sudo chown 0 "), "{ran:?}");
        chown(&ledger, Some(0), None).expect("root may");
    }
    world.start_serve();
}
