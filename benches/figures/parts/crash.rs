//! Whether what was acknowledged is there after the daemon was killed in the middle of each kind of load. No figure of
//! speed: the one number is how many are missing, and any but 0 fails the bench.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tilld::bench::Stocked;

use super::Part;
use crate::load::{Heard, Pace, Plan, Sender};
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::crowd::Crowd;
use crate::subjects::daemon::Home;
use crate::subjects::service::Service;

/// The part.
pub(crate) const PART: Part = Part {
    name: "crash",
    what: "kill -9 in the middle of each load: acknowledged and missing",
    run,
};

/// Invoices that are notified of.
const STOCKED: u32 = 1_000;
/// Open invoices where polls go on as well, and how many of them are due.
const MANY: u32 = 100_000;
const DUE: u32 = 500;
/// More than any machine acknowledges.
const FLOOD: f64 = 150_000.0;
/// A daemon that acknowledges nothing for so long is killed all the same, and the bench fails.
const FIRST_WITHIN: Duration = Duration::from_secs(30);
/// How much longer a load goes on than the daemon lives, where the first answer comes at once.
const BEYOND: Duration = Duration::from_secs(1);

/// One kind of load.
struct Kind {
    name: &'static str,
    connections: usize,
    pace: Pace,
    is_polled: bool,
}

const fn kind(name: &'static str, connections: usize, pace: Pace) -> Kind {
    Kind {
        name,
        connections,
        pace,
        is_polled: false,
    }
}

const STEADY: Pace = Pace::Open {
    per_second: 1_000.0,
};

/// All of them.
const KINDS: [Kind; 6] = [
    kind("closed loop, 1 connection", 1, Pace::Closed),
    kind("closed loop, 64 connections", 64, Pace::Closed),
    kind("closed loop, 256 connections", 256, Pace::Closed),
    kind("1,000/s offered", 64, STEADY),
    kind("overload", 256, Pace::Open { per_second: FLOOD }),
    Kind {
        is_polled: true,
        ..kind("1,000/s offered, 500 polls beside", 64, STEADY)
    },
];

fn run(options: &Options, report: &mut Report) {
    let kills: &[u64] = match options.effort {
        Effort::Smoke => &[300],
        Effort::Quick => &[400],
        Effort::Full => &[300, 700, 1_500],
    };
    let service = Service::start(Duration::ZERO);
    let (mut acknowledged, mut cut_off) = (0, 0);
    for kind in &KINDS {
        for after_ms in kills {
            let after = Duration::from_millis(*after_ms);
            let (heard, missing) = if kind.is_polled {
                let crowd = Crowd::of(options, MANY);
                let shop = crowd.shop();
                shop.make_due(DUE, MANY);
                shop.close();
                let logged_in = service.log_in(&crowd.home);
                let before = service.answered();
                let stocked = crowd.take(STOCKED as usize);
                let ended = crash(options, &crowd.home, stocked, kind, after);
                drop(logged_in);
                assert!(service.answered() > before, "nothing was asked");
                ended
            } else {
                let directory = options.directory.join("crash");
                if directory.exists() {
                    fs::remove_dir_all(&directory).expect("an earlier one's");
                }
                let home = Home::make(&directory, "");
                let stocked = home.stock(STOCKED);
                let ended = crash(options, &home, stocked, kind, after);
                fs::remove_dir_all(&directory).expect("its own directory");
                ended
            };
            assert_eq!(missing, 0, "{}: acknowledged and missing", kind.name);
            acknowledged += heard.whole.acknowledged;
            cut_off += heard.whole.failed;
            #[expect(clippy::cast_precision_loss, reason = "0")]
            report.add(
                "crash.missing",
                "acknowledged and missing after kill -9",
                "",
                missing as f64,
            );
        }
    }
    report.bar("crash.missing", Bar::AtMost(0.0));
    report.notes.push(format!(
        "kill -9: {} times, in {} kinds of load; {acknowledged} acknowledged notifications are events of the reopened \
         ledger, {cut_off} requests were under way",
        KINDS.len() * kills.len(),
        KINDS.len()
    ));
}

/// Kills the daemon in the middle of a load, and starts it again. Gives what the load heard and how many of the acknowledged
/// are missing.
fn crash(
    options: &Options,
    home: &Home,
    stocked: Vec<Stocked>,
    kind: &Kind,
    after: Duration,
) -> (Heard, u64) {
    let references: Vec<String> = stocked.iter().map(|one| one.reference.clone()).collect();
    let mut sender = Sender::new(stocked, Home::path());
    let daemon = home.start(&options.daemon);
    let plan = Plan {
        connections: kind.connections,
        pace: kind.pace,
        warm: Duration::ZERO,
        run: 2 * after + BEYOND,
    };
    let address = daemon.address;
    let (acknowledged, first) = mpsc::channel();
    let heard = thread::scope(|scope| {
        scope.spawn(move || {
            // So that it is the load that is cut off, on a slow machine too, and not what is before it.
            let is_acknowledged = first.recv_timeout(FIRST_WITHIN).is_ok();
            thread::sleep(after);
            daemon.kill();
            assert!(is_acknowledged, "nothing was acknowledged");
        });
        let mut acknowledged = Some(acknowledged);
        sender.run_with(address, &plan, |answer| {
            if let Some(first) = acknowledged.take_if(|_| answer.status == 200) {
                first.send(()).expect("it waits for this");
            }
        })
    });
    assert!(
        heard.whole.acknowledged > 0,
        "{}: {:?}",
        kind.name,
        heard.whole
    );
    // It must come up by itself from what the crash left.
    home.start(&options.daemon).stop();
    let events = events(&home.ledger());
    let missing = references.iter().zip(sender.acknowledged());
    let missing = missing.map(|(reference, acknowledged)| {
        let stored = events.get(reference).copied().unwrap_or(0);
        acknowledged.saturating_sub(stored)
    });
    (heard, missing.sum())
}

/// Events that notifications made, by the ref of their invoice, of a ledger that is whole.
fn events(ledger: &Path) -> HashMap<String, u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(ledger, flags).expect("a ledger");
    let said: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("it can be read");
    assert_eq!(said, "ok", "the ledger is damaged");
    let mut statement = connection
        .prepare(
            "SELECT i.ref, count(*) FROM event e JOIN invoice i ON i.id = e.invoice \
             WHERE e.source = 'notification' GROUP BY i.id",
        )
        .expect("its schema");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
    rows.expect("read")
        .map(|row| {
            let (reference, count) = row.expect("read");
            (reference, count.unsigned_abs())
        })
        .collect()
}
