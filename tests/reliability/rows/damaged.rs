//! R11, a ledger that is none, or not one of this version: refused at once, by name, with a way out, and left as it is.
//!
//! The control is a sound ledger: the same look must not find it refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, World};
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// The exit code of a ledger that cannot be served.
const REFUSED: i32 = 11;
/// From the start to the end.
const SOON: Duration = Duration::from_secs(2);
/// Bytes of a page.
const PAGE: usize = 4096;

type Damage = fn(&World, &Path, &[u8]);

const DAMAGES: [(&str, Damage); 6] = [
    ("empty", |_world, file, _bytes| {
        fs::write(file, "").expect("written");
    }),
    ("cut by a page", |_world, file, bytes| {
        let cut = bytes.get(..bytes.len() - PAGE).expect("several pages");
        fs::write(file, cut).expect("written");
    }),
    ("header changed", |_world, file, bytes| {
        let mut bytes = bytes.to_vec();
        if let Some(header) = bytes.get_mut(100..102) {
            header.fill(0xff);
        }
        fs::write(file, bytes).expect("written");
    }),
    ("foreign", |_world, file, _bytes| {
        fs::remove_file(file).expect("there");
        stored::foreign(file);
    }),
    ("of a newer schema", |world, _file, _bytes| {
        world.neighbour().tamper("PRAGMA user_version = 999");
    }),
    ("a directory", |_world, file, _bytes| {
        fs::remove_file(file).expect("there");
        fs::create_dir(file).expect("made");
    }),
];

/// How one start went.
struct Start {
    what: &'static str,
    code: i32,
    took: Duration,
    said: String,
    is_changed: bool,
}

pub(crate) fn refused() -> Verdict {
    let mut world = quiet().start();
    world.create("A-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let (state, file, side) = (
        world.state_dir(),
        world.ledger(),
        ["ledger.db-wal", "ledger.db-shm"],
    );
    let alone = || {
        for name in side {
            // A log that is not the file's own would be another damage.
            fs::remove_file(state.join(name)).unwrap_or_default();
        }
    };
    // Whoever opens it last moves the log into the file.
    drop(world.neighbour());
    let sound = fs::read(&file).expect("a ledger");
    let mut starts = Vec::new();
    for (what, damage) in DAMAGES {
        put_back(&file, &sound);
        alone();
        damage(&world, &file, &sound);
        alone();
        as_tilld_has_it(&file);
        let before = look(&file);
        let began = Instant::now();
        let ran = world.try_serve();
        starts.push(Start {
            what,
            code: ran.0,
            took: began.elapsed(),
            said: ran.1,
            is_changed: look(&file) != before,
        });
    }
    put_back(&file, &sound);
    alone();
    let began = Instant::now();
    let (code, said) = world.try_serve();
    let control = [Start {
        what: "sound",
        code,
        took: began.elapsed(),
        said,
        is_changed: false,
    }];
    Verdict::new(judged(&starts)).control("a sound ledger", judged(&control))
}

fn put_back(file: &Path, sound: &[u8]) {
    if file.is_dir() {
        fs::remove_dir(file).expect("empty");
    }
    fs::write(file, sound).expect("written");
    as_tilld_has_it(file);
}

/// With the mode tilld gives its files: another one would be another fault.
fn as_tilld_has_it(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).expect("ours");
}

/// All there is to see of the file: its bytes, or that it is a directory.
fn look(file: &Path) -> Option<Vec<u8>> {
    fs::read(file).ok()
}

fn judged(starts: &[Start]) -> Found {
    let refused = starts.iter().filter(|start| start.code == REFUSED).count();
    let changed = starts.iter().filter(|start| start.is_changed).count();
    let slowest = starts.iter().map(|start| start.took).max();
    let figure = format!(
        "refused {refused} of {}, in {} at most; files changed {changed}",
        starts.len(),
        crate::figures::seconds(slowest.unwrap_or_default())
    );
    let mut found = Found::new(format!("{} ledgers", starts.len()), figure);
    for start in starts {
        let Start {
            what,
            code,
            took,
            said,
            is_changed,
        } = start;
        let helps = said.contains("ledger.db") && said.contains("hint: ");
        found = found
            .bar(*code == REFUSED, format!("{what}: exit {code}"))
            .bar(*code != REFUSED || helps, format!("{what}: says `{said}`"))
            .bar(*took <= SOON, format!("{what}: took {took:?}"))
            .bar(!is_changed, format!("{what}: the file was changed"));
    }
    found
}

impl World {
    /// Starts the daemon: how it ended, or 0 when it serves. Then it is stopped.
    #[track_caller]
    fn try_serve(&mut self) -> (i32, String) {
        match self.try_start_serve() {
            Ok(()) => {
                let said = self.serve_log();
                (self.stop_serve(PATIENCE), said)
            }
            Err(ended) => ended,
        }
    }
}
