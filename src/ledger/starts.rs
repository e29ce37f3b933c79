//! What a start knows of the ledger it finds: by the mark and the files' numbers it is the one that was served, or it is in
//! doubt and is read in full before it is served. Relies on the mark being kept while a ledger is open.
//! Promises that a ledger without a doubt costs a start three looks, and that a mix of files is never served.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::OpenError;
use super::files::{Alone, How, LogHead, Moved, Part, is_torn, lacks, log_head};
use super::mark::{Found, Mark, Restored};
use super::store::StoreError;
use super::{mark, sqlite};

/// A WAL that was begun anew has the next first salt; the mark may be so many behind.
const BEGUN_ANEW_MOST: u32 = 1_000;
/// A daemon that starts has made its files within this time, and one whose files are gone has ended.
const MADE_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks for them.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The name of copies that were kept when a daemon ended by an accident.
const KEPT: &str = ".kept-";
/// The name of files that `db restore` put aside.
const REPLACED: &str = ".replaced-";
/// The file in the runtime directory that remembers the ledger when the state directory does not.
const KNOWN: &str = "ledger.known";

/// The files of a ledger, as the mark remembers them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lying {
    /// The number of the database's file.
    pub(super) database: u64,
    /// So long it was at least, bytes, and whether the disk held all of it.
    #[serde(default)]
    pub(super) bytes: i64,
    #[serde(default)]
    pub(super) whole: bool,
    /// The number of the WAL's file, and its head.
    pub(super) log: u64,
    pub(super) head: LogHead,
    /// The last event that is known to be in the database without its WAL.
    pub(super) alone: i64,
}

/// What lies there at a start.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lies {
    database: u64,
    bytes: i64,
    whole: bool,
    /// `None` while there is no WAL, or an empty one.
    log: Option<(u64, LogHead)>,
    /// The WAL goes on behind a page that was written over.
    torn: bool,
    alone: Alone,
}

/// That a ledger was lost in whole or in part. Raises an alert until it is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// So many events are known to be missing.
    pub missing: i64,
    /// All of it is: this ledger was made new.
    pub is_new: bool,
    /// When that was found, milliseconds since 1970.
    pub at_ms: i64,
    /// The file that was served before, where `db restore` put it aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PathBuf>,
}

impl Lost {
    /// For a new ledger: which one was known before it.
    pub(crate) fn known_before(&self) -> String {
        match self.missing {
            0 => "another one".to_owned(),
            events => format!("one with {events} events"),
        }
    }

    /// What may bring the events back.
    pub(crate) fn hint(&self) -> String {
        let newer = "put a newer backup back with `tilld db restore FILE`";
        self.before.as_ref().map_or_else(
            || newer.to_owned(),
            |before| {
                let before = before.display();
                format!("{newer}; `{before}`, which was in its place, can be put back too")
            },
        )
    }
}

/// Why a ledger is to be read in full before it is served. What was never served by a tilld that keeps such a mark is.
fn doubt(found: &Found, lies: &Lies) -> Option<&'static str> {
    let Found::Mark(mark) = found else {
        return Some("nothing is known of it");
    };
    let Some(known) = &mark.files else {
        return Some("its files did not end as they were served");
    };
    if known.database != lies.database {
        return Some("it is another file than the one that was served");
    }
    if let Some((number, head)) = lies.log {
        if known.log != number {
            return Some("the log beside it is another file than the one that was served");
        }
        if !follows(known.head, head) {
            return Some("the log beside it has another content than was served");
        }
    }
    if lies.torn {
        return Some("a page of the log beside it was written over");
    }
    if lies.bytes < known.bytes || known.whole && !lies.whole {
        return Some("a part of the file was cut off");
    }
    match &lies.alone {
        Alone::At(now) if now.ledger != mark.ledger || now.event < known.alone => {
            Some("the file was written over")
        }
        Alone::Foreign => Some("the file was written over"),
        Alone::At(_) | Alone::Torn | Alone::Unknown => None,
    }
}

/// True when the WAL with this head may be the other one, begun anew since.
const fn follows([_, before, _]: LogHead, [_, now, _]: LogHead) -> bool {
    now.wrapping_sub(before) <= BEGUN_ANEW_MOST
}

/// Looks at what lies there, and reads it in full where that is in doubt.
pub(super) fn check(ledger: &Path, found: &Found) -> Result<(), OpenError> {
    if let Some(why) = doubt(found, &look(ledger)) {
        check_in_full(ledger, why)?;
    }
    kept_ahead(ledger).map_or(Ok(()), |kept| {
        Err(OpenError::Behind {
            path: ledger.to_owned(),
            kept,
        })
    })
}

/// The newest copy that a daemon kept at its end, when the ledger lacks some of it. One that was put in place since by
/// `db restore` is meant to.
pub(super) fn kept_ahead(ledger: &Path) -> Option<PathBuf> {
    let kept = kept(ledger)?;
    let written = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let Alone::At(ended) = sqlite::alone(&kept) else {
        return None;
    };
    let now = sqlite::position_of(ledger).ok()?;
    let is_newer = written(&kept)? > written(ledger)?;
    let is_ahead = ended.ledger == now.ledger
        && mark::judge(&Found::Mark(ended), &now, false) == Some(Restored::Behind);
    (is_newer && is_ahead).then_some(kept)
}

/// A ledger that a daemon serves has its WAL and shared memory. Whoever opened it without them would make new ones, and
/// two processes would write by different logs.
pub(super) fn check_served(ledger: &Path) -> Result<(), OpenError> {
    let began = Instant::now();
    loop {
        let missing = [Part::Log, Part::Index]
            .into_iter()
            .find(|part| ledger.exists() && !part.of(ledger).exists());
        let Some(part) = missing else {
            return Ok(());
        };
        // A daemon that just starts makes them.
        if began.elapsed() > MADE_WITHIN {
            let how = How::Removed;
            return Err(OpenError::File {
                path: ledger.to_owned(),
                source: StoreError::Moved(Moved { part, how }),
            });
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Reads every page, reference and rule of a ledger. One of an older schema is brought up to date instead.
pub(super) fn check_in_full(ledger: &Path, why: &'static str) -> Result<(), OpenError> {
    tracing::info!("the ledger is checked in full before it is served: {why}");
    let findings = match sqlite::findings(ledger) {
        Err(OpenError::Older { .. }) => return Ok(()),
        findings => findings?,
    };
    findings.into_iter().next().map_or(Ok(()), |what| {
        Err(OpenError::Mixed {
            path: ledger.to_owned(),
            kept: kept(ledger),
            what,
        })
    })
}

fn look(ledger: &Path) -> Lies {
    let about = |part: Part| fs::metadata(part.of(ledger)).ok();
    let database = about(Part::Database);
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let extent = |about: &fs::Metadata| (number(about.len()), number(about.blocks()));
    let (bytes, blocks) = database.as_ref().map_or((0, 0), extent);
    Lies {
        database: database.map_or(0, |about| about.ino()),
        bytes,
        whole: !lacks(bytes, blocks),
        log: about(Part::Log)
            .filter(|about| about.len() > 0)
            .map(|about| (about.ino(), log_head(ledger))),
        torn: is_torn(ledger).unwrap_or_default(),
        alone: sqlite::alone(ledger),
    }
}

/// The newest copy that a daemon kept at its end.
pub(crate) fn kept(ledger: &Path) -> Option<PathBuf> {
    beside(ledger, KEPT).into_iter().max()
}

/// The database that `db restore` put aside last; where the mark knows which one was served, that one alone.
pub(super) fn replaced(ledger: &Path, known: Option<&Lying>) -> Option<PathBuf> {
    let was_served = |path: &PathBuf| {
        let number = || fs::metadata(path).ok().map(|about| about.ino());
        known.is_none_or(|known| number() == Some(known.database))
    };
    let all = beside(ledger, REPLACED).into_iter();
    all.filter(was_served).max()
}

/// Databases whose names are the ledger's with this and a time.
fn beside(ledger: &Path, end: &str) -> Vec<PathBuf> {
    let name = ledger.file_name().and_then(|name| name.to_str());
    let entries = ledger.parent().and_then(|parent| fs::read_dir(parent).ok());
    let Some((name, entries)) = name.zip(entries) else {
        return Vec::new();
    };
    let name = format!("{name}{end}");
    let is_one = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str());
        let time = file.and_then(|file| file.strip_prefix(&name));
        // A draft, a WAL and its index have more behind the time.
        time.is_some_and(|time| time.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = entries.flatten().map(|entry| entry.path());
    entries.filter(is_one).collect()
}

/// Where the runtime directory remembers it; `None` without one.
fn known() -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("RUNTIME_DIRECTORY")?).join(KNOWN))
}

/// How far the ledger was that the runtime directory remembers.
pub(super) fn remembered() -> Option<Mark> {
    match mark::load(&known()?) {
        Found::Mark(mark) => Some(mark),
        Found::Nothing | Found::Damaged => None,
    }
}

/// Has the runtime directory remember it. A precaution: trouble with it is no reason not to serve.
pub(super) fn remember(now: &Mark) {
    let Some(path) = known() else {
        return;
    };
    let text = serde_json::to_vec(now).unwrap_or_default();
    let draft = path.with_added_extension("new");
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
    if let Err(error) = written {
        tracing::debug!(reason = %error, "the runtime directory does not remember the ledger");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_in_doubt_unless_it_is_what_was_served() {
        let mark = |files: Option<Lying>| Mark {
            ledger: "a".to_owned(),
            event: 9,
            files,
            ..Mark::nowhere()
        };
        let known = Lying {
            database: 1,
            bytes: 8,
            whole: true,
            log: 2,
            head: [3, 4, 5],
            alone: 6,
        };
        let at = |ledger: &str, event| {
            Alone::At(Mark {
                ledger: ledger.to_owned(),
                event,
                ..Mark::nowhere()
            })
        };
        let lies = |database, log, alone| Lies {
            database,
            bytes: 8,
            whole: true,
            log,
            torn: false,
            alone,
        };
        let log = |number, salt| Some((number, [0, salt, 0]));
        let sound = lies(1, log(2, 4), at("a", 9));
        let served = Found::Mark(mark(Some(known)));
        for (lies, doubted) in [
            (lies(1, log(2, 4), at("a", 6)), false),
            (lies(1, log(2, 9), at("a", 9)), false),
            (lies(1, None, at("a", 9)), false),
            (lies(1, log(2, 4), Alone::Torn), false),
            (lies(7, None, at("a", 9)), true),
            (lies(1, log(7, 4), at("a", 9)), true),
            (lies(1, log(2, 3), at("a", 9)), true),
            (lies(1, log(2, 5_000), at("a", 9)), true),
            (lies(1, log(2, 4), at("a", 5)), true),
            (lies(1, log(2, 4), at("b", 9)), true),
            (lies(1, log(2, 4), Alone::Foreign), true),
            (
                Lies {
                    bytes: 9,
                    ..sound.clone()
                },
                false,
            ),
            (
                Lies {
                    bytes: 7,
                    ..sound.clone()
                },
                true,
            ),
            (
                Lies {
                    whole: false,
                    ..sound.clone()
                },
                true,
            ),
            (
                Lies {
                    torn: true,
                    ..sound
                },
                true,
            ),
        ] {
            assert_eq!(doubt(&served, &lies).is_some(), doubted, "{lies:?}");
            for unknown in [Found::Nothing, Found::Damaged, Found::Mark(mark(None))] {
                assert!(doubt(&unknown, &lies).is_some(), "{unknown:?}");
            }
        }
    }
}
