//! Accidents of files under load, in an order and at moments that a seed draws: each of the three files, or the whole directory, is
//! removed, renamed, replaced, cut or written over. Relies on the real program; `TILLD_ACCIDENTS=500` is the long form.
//! What is at stake: an acknowledged notification that no ledger, no kept copy and no word of tilld knows of.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _, stderr};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Setup, World, dice, head, try_sql};

/// Accidents, unless `TILLD_ACCIDENTS` says otherwise: each once.
const ACCIDENTS: usize = 19;
/// What is not noticed within this time did no harm, or is found by the next start.
const NOTICED_WITHIN: Duration = Duration::from_millis(2_500);
/// A daemon that has noticed ends within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(4);
/// An accident comes within this time, milliseconds.
const WITHIN_MS: usize = 1_000;
/// Acknowledged before the accident, at least.
const BEFORE: usize = 20;

/// A page of SQLite, bytes.
const PAGE: u64 = 4_096;

const FILES: [&str; 3] = ["ledger.db", "ledger.db-wal", "ledger.db-shm"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Remove,
    Rename,
    Replace,
    Truncate,
    /// An early copy of the file is written over it.
    Overwrite,
    /// One page of it is written over with garbage.
    Garble,
    /// All three files are removed at once.
    Empty,
    /// The directory is renamed.
    Away,
}

impl Kind {
    /// What does something to one file, whichever it is.
    const EACH: [Self; 5] = [
        Self::Remove,
        Self::Rename,
        Self::Replace,
        Self::Truncate,
        Self::Overwrite,
    ];

    /// What has only another name or place is not destroyed.
    const fn destroys(self) -> bool {
        matches!(self, Self::Truncate | Self::Overwrite | Self::Garble)
    }
}

/// Each accident once, in an order of chance.
fn deck(dice: &mut dice::Dice) -> Vec<(&'static str, Kind)> {
    let each = FILES.map(|name| Kind::EACH.map(|kind| (name, kind)));
    let mut deck: Vec<_> = each.into_iter().flatten().collect();
    // A page inside the database is what a disk loses: nothing is promised of that.
    deck.extend([
        ("ledger.db-wal", Kind::Garble),
        ("ledger.db-shm", Kind::Garble),
    ]);
    deck.extend([("", Kind::Empty), ("", Kind::Away)]);
    for last in (1..deck.len()).rev() {
        deck.swap(last, dice.below(last + 1));
    }
    deck
}

/// What became of what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// All is in the ledger that the next start serves, and that is sound.
    Served,
    /// All is in a copy that was kept, or in the file that was renamed, and the start refused, named it, or said that the
    /// ledger is new.
    Kept,
    /// What the accident destroyed is missing, and the start said so: it refused, or counts what is missing.
    Told,
    /// It is missing without a word, or a damaged ledger is served.
    Lost,
}

#[test]
fn no_accident_of_a_file_loses_what_was_acknowledged_without_a_word() {
    let (accidents, seed) = (dice::count("TILLD_ACCIDENTS", ACCIDENTS), dice::seed());
    drop(writeln!(
        stderr(),
        "TILLD_SEED={seed} TILLD_ACCIDENTS={accidents}"
    ));
    let mut dice = dice::Dice::new(seed);
    let (mut ends, mut left) = (Vec::new(), Vec::new());
    for number in 0..accidents {
        if left.is_empty() {
            left = deck(&mut dice);
        }
        let (name, kind) = left.pop().expect("a deck");
        let after_ms = dice.below(WITHIN_MS);
        let (end, acks, missing) = accident(name, kind, &mut dice, after_ms);
        drop(writeln!(
            stderr(),
            "{number}: {name} {kind:?} after {after_ms} ms, {acks} acknowledged: {end:?}, {missing} missing"
        ));
        ends.push((end, name, kind));
    }
    let count = |wanted: End| ends.iter().filter(|(end, ..)| *end == wanted).count();
    drop(writeln!(
        stderr(),
        "served {}, kept {}, told {}, lost {}",
        count(End::Served),
        count(End::Kept),
        count(End::Told),
        count(End::Lost)
    ));
    assert_eq!(count(End::Lost), 0, "{ends:?}");
    // What only has another name or place is not destroyed, so nothing of it may be missing.
    let missing = ends
        .iter()
        .filter(|(end, _, kind)| *end == End::Told && !kind.destroys());
    assert_eq!(missing.count(), 0, "{ends:?}");
}

/// One accident of a world of its own: how it ended, how many were acknowledged, how many are missing.
fn accident(name: &str, kind: Kind, dice: &mut dice::Dice, after_ms: usize) -> (End, usize, usize) {
    // As systemd gives it, so that a state directory that is away is noticed.
    let runtime = tempfile::tempdir().expect("a directory");
    let variable = format!("RUNTIME_DIRECTORY={}", runtime.path().display());
    let setup = Setup::new().quiet().sandbox(&["--pool=100"]);
    let mut world = setup.under(&["env", &variable]).start();
    world.is_sound = false;
    let orders: Vec<Issued> = (0..2).map(|at| world.create(&format!("A-{at}"))).collect();
    let early = world.dir().join("early");
    fs::create_dir(&early).expect("a directory");
    for name in FILES {
        fs::copy(world.state_dir().join(name), early.join(name)).expect("an early copy");
    }
    let acks = Mutex::new(BTreeSet::new());
    let (count, happened) = (AtomicUsize::new(0), OnceLock::new());
    let listen = world.listen();
    thread::scope(|scope| {
        for issued in &orders {
            let (acks, count, happened) = (&acks, &count, &happened);
            scope.spawn(move || {
                for word in send_until_refused(listen, issued, count, happened) {
                    acks.lock().expect("no panic there").insert(word);
                }
            });
        }
        let began = Instant::now();
        let wait = Duration::from_millis(u64::try_from(after_ms).expect("small"));
        while began.elapsed() < wait || count.load(Ordering::Relaxed) < BEFORE {
            thread::yield_now();
        }
        happen(&world, name, kind, &early, dice);
        happened.get_or_init(Instant::now);
    });
    let acks = acks.into_inner().expect("no panic there");
    if is_heard(listen) {
        world.stop_serve(PATIENCE);
    } else {
        world.serve_ends(PATIENCE);
    }
    let (end, missing) = judge(&mut world, &acks);
    (end, acks.len(), missing)
}

/// Notifies of ever new statuses until nobody listens any more, or it was long enough. Gives those that were acknowledged.
fn send_until_refused(
    listen: SocketAddr,
    issued: &Issued,
    count: &AtomicUsize,
    happened: &OnceLock<Instant>,
) -> Vec<String> {
    let (mut acks, mut last_ms) = (Vec::new(), 0);
    let mut since_trouble: Option<Instant> = None;
    for number in 0.. {
        let ms = jiff::Timestamp::now().as_millisecond().max(last_ms + 1);
        last_ms = ms;
        let at = jiff::Timestamp::from_millisecond(ms).expect("a time of today");
        let word = format!("w-{}-{number}", issued.order);
        let body = issued.with(&json!({ "status": word, "updatedAt": format!("{at:.3}") }));
        match notify(listen, issued, &body) {
            None => return acks,
            Some(200) => {
                acks.push(word);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Some(401) => panic!("401 to an authentic notification"),
            Some(_) => {
                since_trouble.get_or_insert_with(Instant::now);
            }
        }
        let is_over = since_trouble.map_or_else(
            || {
                happened
                    .get()
                    .is_some_and(|at| at.elapsed() > NOTICED_WITHIN)
            },
            |at| at.elapsed() > ENDS_WITHIN,
        );
        if is_over {
            return acks;
        }
    }
    acks
}

/// The status of the answer; `None` when nobody answers.
fn notify(listen: SocketAddr, issued: &Issued, body: &Value) -> Option<u16> {
    let body = body.to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Notification-Token", issued.token.as_str()),
        ("Connection", "close"),
    ];
    let target = World::target(&issued.reference);
    let head = head("shop.example", "POST", &target, &headers, Some(body.len()));
    let mut stream = TcpStream::connect(listen).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

fn is_heard(listen: SocketAddr) -> bool {
    TcpStream::connect(listen).is_ok()
}

fn happen(world: &World, name: &str, kind: Kind, early: &Path, dice: &mut dice::Dice) {
    let file = world.state_dir().join(name);
    let away = world.dir().join("away");
    match kind {
        Kind::Remove => fs::remove_file(file).expect("removed"),
        Kind::Rename => fs::rename(file, away).expect("renamed"),
        Kind::Replace => {
            let copy = world.dir().join("copy");
            fs::copy(&file, &copy).expect("copied");
            fs::rename(copy, file).expect("replaced");
        }
        Kind::Truncate => {
            let length = fs::metadata(&file).expect("there").len();
            let to = length * u64::try_from(dice.below(3)).expect("small") / 4;
            let file = OpenOptions::new().write(true).open(file);
            file.expect("opened").set_len(to).expect("cut");
        }
        Kind::Overwrite => {
            let early = fs::read(early.join(name)).expect("read");
            fs::write(file, early).expect("written over");
        }
        Kind::Garble => {
            let length = fs::metadata(&file).expect("there").len();
            let pages = usize::try_from(length / PAGE).expect("small").max(1);
            let at = u64::try_from(dice.below(pages)).expect("small") * PAGE;
            let garbage: Vec<u8> = (0..PAGE)
                .map(|_| u8::try_from(dice.below(256)).expect("a byte"))
                .collect();
            let file = OpenOptions::new().write(true).open(file).expect("opened");
            file.write_all_at(&garbage, at).expect("written over");
        }
        Kind::Empty => {
            for name in FILES {
                fs::remove_file(world.state_dir().join(name)).expect("removed");
            }
        }
        Kind::Away => fs::rename(world.state_dir(), away).expect("renamed"),
    }
}

/// Statuses that a ledger has; none when it cannot be read.
fn words(ledger: &Path) -> BTreeSet<String> {
    let rows = try_sql(ledger, "SELECT cause_status FROM event").unwrap_or_default();
    rows.into_iter().flatten().collect()
}

/// The files that may hold what was acknowledged beside the ledger.
fn others(world: &World) -> Vec<PathBuf> {
    let kept = fs::read_dir(world.state_dir()).into_iter().flatten();
    let kept = kept.map(|entry| entry.expect("an entry").path());
    let kept = kept.filter(|path| path.to_string_lossy().contains(".db.kept-"));
    let away = world.dir().join("away");
    let away = if away.is_dir() {
        away.join("ledger.db")
    } else {
        away
    };
    let is_ledger =
        |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3"));
    kept.chain([away]).filter(is_ledger).collect()
}

fn judge(world: &mut World, acks: &BTreeSet<String>) -> (End, usize) {
    let started = world.try_start_serve();
    let missing_of = |ledger: &Path| acks.difference(&words(ledger)).count();
    let others = others(world).into_iter();
    let others = others.map(|path| (missing_of(&path), path));
    let (elsewhere, place) = others.min().unzip();
    if let Err((code, log)) = started {
        assert_eq!(code, 11, "{log}");
        return match elsewhere {
            Some(0) => (End::Kept, 0),
            _ => (End::Told, elsewhere.unwrap_or(acks.len())),
        };
    }
    let missing = missing_of(&world.ledger());
    let status = world.tilld(&["status", "--json"]).json();
    let log = world.serve_log();
    world.stop_serve(PATIENCE);
    if missing == 0 {
        let checked = world.tilld(&["db", "check"]);
        let end = if checked.code == 0 {
            End::Served
        } else {
            End::Lost
        };
        return (end, 0);
    }
    let text = status.to_string();
    let is_new = text.contains("ledger_new");
    let told = is_new || text.contains("ledger_behind");
    // A new ledger cannot know where the files went that were renamed.
    let is_named = place.is_some_and(|place: PathBuf| {
        let place = place.to_string_lossy();
        is_new || text.contains(&*place) || log.contains(&*place)
    });
    match elsewhere {
        Some(0) if is_named => (End::Kept, missing),
        _ if told => (End::Told, missing),
        _ => (End::Lost, missing),
    }
}
