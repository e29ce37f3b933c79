//! R34, a clock that was wrong and is corrected: three hours ahead while scripts fail, corrected while the daemon runs and
//! while none does; and at 1970 while orders are paid.
//!
//! The control is a ledger that does not know when anything was planned, nor that its clock was wrong.

use std::time::{Duration, Instant};

use crate::figures::seconds;
use crate::harness::{Clock, PATIENCE, Setup, World, wait_until};
use crate::verdict::{Found, Verdict};

/// The first step of the schedule, and what the daemon may take to see that its clock was set.
const SOON: Duration = Duration::from_secs(2 + 16);
/// Orders in each part.
const ORDERS: usize = 5;

pub(crate) fn corrected() -> Verdict {
    let Some(clock) = Clock::find() else {
        let found =
            Found::new("", "").needs(false, "libfaketime is not there (Debian: `faketime`)");
        return Verdict::new(found);
    };
    let found = waits(&clock, false, false)
        .and(waits(&clock, true, false))
        .and(texts(&clock, false));
    Verdict::new(found)
        .control(
            "waits that do not say when they were planned",
            waits(&clock, true, true),
        )
        .control(
            "rows that do not say that their clock was wrong",
            texts(&clock, true),
        )
}

fn world(setup: Setup, clock: &Clock) -> World {
    let program = clock.program();
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    setup.under(&words).start()
}

/// Attempts that failed while the clock was ahead. `down`: it is corrected while no daemon runs.
fn waits(clock: &Clock, down: bool, is_wrong: bool) -> Found {
    clock.set("+3h");
    let setup =
        Setup::new()
            .set("outbox.schedule_s", "[0, 2, 36000]")
            .hook("fulfil", &["paid"], "exit 1");
    let mut world = world(setup, clock);
    for number in 0..ORDERS {
        world.pay(&format!("A-{number}"));
    }
    let attempts = |world: &World| world.value("SELECT count(*) FROM attempts");
    wait_until(PATIENCE, "the first attempts", || {
        attempts(&world) == ORDERS.to_string()
    });
    if down {
        world.stop_serve(PATIENCE);
    }
    if is_wrong {
        world
            .neighbour()
            .tamper("UPDATE delivery SET wait_ms = next_ms");
    }
    clock.set("+0");
    if down {
        world.start_serve();
    }
    let corrected = Instant::now();
    let all = (2 * ORDERS).to_string();
    while attempts(&world) != all && corrected.elapsed() <= SOON {
        std::thread::sleep(Duration::from_millis(50));
    }
    let made = attempts(&world).parse::<usize>().unwrap_or_default();
    let late = (2 * ORDERS).saturating_sub(made);
    let figure = format!(
        "{late} of {ORDERS} late, {} after",
        seconds(corrected.elapsed())
    );
    let when = if down { "down" } else { "running" };
    Found::new(format!("{ORDERS} attempts, corrected while {when}"), figure)
        .bar(late == 0, format!("{late} attempts still wait"))
}

/// Orders paid while the clock shows 1970.
fn texts(clock: &Clock, is_wrong: bool) -> Found {
    clock.set("+0");
    let setup = Setup::new()
        .set("retention.requisites_days", 1)
        .set("retention.raw_days", 1);
    let mut world = world(setup, clock);
    let issued: Vec<_> = (0..ORDERS)
        .map(|number| world.create(&format!("A-{number}")))
        .collect();
    world.stop_serve(PATIENCE);
    clock.set("@1970-01-01 00:00:10");
    world.start_serve();
    for issued in &issued {
        let paid = world.dictate(issued, "paid");
        world.tell_as_it_is(&paid);
    }
    let told = world
        .tilld(&["status", "--json"])
        .stdout
        .contains("\"clock\"");
    world.stop_serve(PATIENCE);
    if is_wrong {
        world.neighbour().tamper(
            "UPDATE invoice SET outcome_ms = 1735689600000, created_ms = 1735689600000, newest_ns = 0; \
             UPDATE event SET time_unsure = 0",
        );
    }
    clock.set("+0");
    world.start_serve();
    world.tilld(&["db", "prune"]);
    let kept = "SELECT count(*) FROM invoice WHERE requisites IS NOT NULL AND raw IS NOT NULL";
    let kept = world.value(kept).parse::<usize>().unwrap_or_default();
    let lost = ORDERS.saturating_sub(kept);
    let figure = format!(
        "texts lost {lost}; {}",
        if told { "told" } else { "not told" }
    );
    Found::new(format!("{ORDERS} orders paid in 1970"), figure)
        .bar(lost == 0, format!("{lost} orders lost their texts"))
        .bar(told, "no alert")
}
