//! An hour without a service, in virtual time, with five thousand open invoices and no notifications: what is asked
//! meanwhile, how soon everything is right again, and that the service is never asked more than it bears.
//!
//! Ten minutes of ordinary time; an hour in which connections are refused, time out, or meet a proxy's page, while one
//! invoice in ten changes at the service and the shop opens new ones by itself; then all answers come again, with one wish
//! to be left alone and one restart of the daemon among them.
//!
//! The real silence, classes, turns, door of the gate and ledger are played against the sandbox's state. Left out are HTTP,
//! SQLite, and the tasks that wait at the gate. Nothing sleeps, no thread is part of it, and a seed is one course of events.
//!
//! `cargo test --lib outage -- --nocapture` draws the requests per second over time and says when what was right again.

mod book;
mod checks;
mod course;
mod daemon;
mod plot;
mod request;
mod shelf;
mod till;
mod world;

use super::scenario::{MINUTE, SECOND};
use checks::Bounds;
use course::{BEGINS, Course, ENDS, Meets, RESTARTS, RETRY_AFTER};
use plot::{Mark, plot};
use world::World;

/// Plays a course a little beyond its last act and the time in which all must be right.
fn play(course: Course) -> (World, Bounds) {
    let mut world = World::new(course);
    let steps = &world.polling.schedule.steps;
    let young_every = steps.first().expect("the default has some").every_ms;
    let bounds = Bounds::of(&world.course, world.limits, young_every);
    world.run(ENDS + bounds.all.max(20 * MINUTE) + MINUTE);
    (world, bounds)
}

fn check(world: &World, bounds: Bounds) {
    checks::caps(world);
    checks::only_tries(world);
    checks::persons_first(world);
    checks::no_failure_of_its_own(world);
    checks::right_in_time(world, bounds);
    checks::left_alone(world);
}

#[test]
fn an_hour_without_a_service_is_made_up_for_within_the_cap() {
    let thirds = [Meets::Refusal, Meets::Silence, Meets::Page];
    let (world, bounds) = play(Course::of(1, thirds, 1));
    print(&told(&world, bounds));
    check(&world, bounds);
    checks::goes_on_after_the_restart(&world);
    // Well before the rest, or nothing would be said about who goes first.
    assert!(bounds.pressing * 10 < bounds.all, "{bounds:?}");
}

/// What ends an outage decides how its end is noticed: a request that finds nobody may hang for the client's patience.
#[test]
fn whatever_an_outage_looks_like_its_end_is_noticed() {
    let all = [Meets::Refusal, Meets::Silence, Meets::Page];
    for seed in 1..=6 {
        let mut thirds = all;
        thirds.rotate_left(usize::try_from(seed % 3).unwrap_or(0));
        let (world, bounds) = play(Course::of(seed, thirds, 20));
        check(&world, bounds);
    }
}

/// What happened, for people.
fn told(world: &World, bounds: Bounds) -> String {
    let book = &world.book;
    let pressing = world.course.pressing().filter_map(|number| {
        let key = world.keys.get(&number)?;
        book.answered_at.get(key).copied()
    });
    let pressing = pressing.max();
    let all = book.right_at.values().max().copied();
    let marks = [
        (Some(BEGINS), "the service gives no answers"),
        (Some(ENDS), "it is back"),
        (book.noticed(ENDS), "noticed"),
        (pressing, "the young and urgent ones are right"),
        (book.throttled, "it wants to be left alone for 30 s"),
        (Some(RESTARTS), "the daemon is restarted"),
        (all, "all are right"),
    ];
    let marks: Vec<Mark> = marks
        .into_iter()
        .filter_map(|(at, what)| Some(Mark { at: at?, what }))
        .collect();
    let times: Vec<i64> = book.requests.iter().map(|request| request.at).collect();
    let drawn = plot(
        &times,
        world.now,
        world.limits.polls_per_second.get(),
        &marks,
    );
    let tried = book.requests.iter();
    let tried = tried.filter(|request| (BEGINS..ENDS).contains(&request.at));
    let (least, most) = checks::tries(world);
    let after = |at: Option<i64>| at.map_or(0, |at| (at - ENDS) / SECOND);
    format!(
        "{drawn}\n{} requests in the outage, 2 of them persons' ({least} to {most} tries allowed)\n\
         after it: noticed within {} s (at most {}), the {} young and urgent ones right within {} s (at most {}),\n\
         all {} asked and right within {} s (at most {}); left alone for {} s in between",
        tried.count(),
        after(book.noticed(ENDS)),
        bounds.noticed / SECOND,
        world.course.pressing().count(),
        after(pressing),
        bounds.pressing / SECOND,
        world.course.invoices.len(),
        after(book.answered_at.values().max().copied().max(all)),
        bounds.all / SECOND,
        RETRY_AFTER / SECOND,
    )
}

#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
fn print(text: &str) {
    println!("\n{text}\n");
}
