//! Places, run by run. Apart from them because a test needs a moment to begin with.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::outbox::places::{Places, Room};

const SECOND: Duration = Duration::from_secs(1);

/// Places of two hooks, by ordinary and slow ones.
fn places<K: Eq + Hash>(rooms: [(u32, u32); 2]) -> Places<K> {
    let room = |(ordinary, slow)| Room { ordinary, slow };
    Places::new(
        ["first", "second"]
            .map(Arc::from)
            .into_iter()
            .zip(rooms.map(room))
            .collect(),
    )
}

/// Any moment: only the time since matters.
fn start() -> Instant {
    Instant::now()
}

#[test]
fn a_hook_takes_no_place_of_another() {
    let (mut places, now) = (places([(2, 1), (3, 0)]), start());
    for run in ["a", "b"] {
        places.begin(run, 0, now);
    }
    assert_eq!((places.free(0, now), places.free(1, now)), (0, 3));
    places.begin("c", 1, now);
    assert_eq!((places.free(0, now), places.free(1, now)), (0, 2));
    places.end(&"a", now);
    assert_eq!((places.free(0, now), places.free(1, now)), (1, 2));
    assert_eq!(places.free(2, now), 0, "no such hook");
}

#[test]
fn who_lasts_makes_room_until_the_slow_places_are_full_too() {
    let (mut places, now) = (places([(2, 2), (2, 2)]), start());
    places.begin("a", 0, now);
    places.begin("b", 0, now + SECOND);
    let at = |seconds: u32| now + SECOND * seconds;
    assert_eq!(places.free(0, at(1)), 0);
    assert_eq!(places.next_move(at(1)), Some(at(2)));
    assert_eq!(places.free(0, at(2)), 1, "one moved");
    assert_eq!(places.next_move(at(2)), None, "nobody waits for a place");
    assert_eq!(places.free(0, at(3)), 2, "both moved");
    places.begin("c", 0, at(3));
    places.begin("d", 0, at(3));
    assert_eq!(places.free(0, at(3)), 0);
    // All four hang: there is nowhere to go.
    assert_eq!(places.free(0, at(99)), 0);
    assert_eq!(places.next_move(at(4)), None);
    assert_eq!(places.free(1, at(99)), 2);
    // A slow place that becomes free is taken by the next that lasts.
    places.end(&"a", now);
    assert_eq!(places.free(0, at(99)), 1);
    assert_eq!(places.free(0, at(4)), 0, "c and d have not lasted yet");
    assert_eq!(places.next_move(at(4)), Some(at(5)));
}

#[test]
fn without_slow_places_the_limit_is_hard() {
    let (mut places, now) = (places([(1, 0), (1, 1)]), start());
    places.begin("a", 0, now);
    assert_eq!(places.free(0, now + SECOND * 3600), 0);
    assert_eq!(places.next_move(now), None);
    places.end(&"a", now);
    places.end(&"a", now);
    assert_eq!(places.free(0, now), 1);
}

#[test]
fn what_was_left_running_takes_a_slow_place_and_counts_against_a_hard_limit() {
    let (mut places, now) = (places([(1, 1), (1, 0)]), start());
    places.find("old", "first", now);
    places.find("older", "second", now);
    assert_eq!((places.free(0, now), places.free(1, now)), (1, 0));
    places.find("more", "first", now);
    assert_eq!(places.free(0, now), 0);
}

/// Whatever begins as long as places are free, and however long it lasts: never more than both kinds together.
#[test]
fn no_hook_ever_runs_more_than_it_has_places() {
    let (mut places, now) = (places([(3, 2), (0, 0)]), start());
    let (mut running, mut next) = (Vec::new(), 0_u32);
    for step in 0..500_u32 {
        let at = now + Duration::from_millis(300) * step;
        // In any order and at any age, as far as that matters.
        if step % 7 > 3 && !running.is_empty() {
            let ended = running.swap_remove((step as usize * 13) % running.len());
            places.end(&ended, at);
        }
        for _ in 0..places.free(0, at) {
            places.begin(next, 0, at);
            running.push(next);
            next += 1;
        }
        assert!((3..=5).contains(&running.len()), "{running:?}");
    }
    assert!(next > 100);
}

/// Other hooks while some run: those that stay keep the places that their runs take.
#[test]
fn runs_keep_their_places_when_the_hooks_are_others() {
    let (mut places, now) = (places([(2, 0), (3, 0)]), start());
    places.begin("gone", 0, now);
    places.begin("stays", 1, now);
    // The second is the first from now on, and the second a new one.
    furnish(&mut places, ["second", "third"]);
    assert_eq!((places.free(0, now), places.free(1, now)), (1, 2));
    assert!(places.end(&"gone", now).is_none());
    assert!(places.end(&"stays", now).is_some());
    assert_eq!(places.free(0, now), 2);
}

/// A slip in the config, and its mending: what began before is running all the while.
#[test]
fn a_hook_that_is_back_finds_its_runs_in_their_places() {
    let (mut places, now) = (places([(2, 0), (2, 0)]), start());
    places.begin("ended", 0, now);
    places.begin("runs", 0, now);
    furnish(&mut places, ["frist", "second"]);
    assert_eq!((places.free(0, now), places.free(1, now)), (2, 2));
    assert!(places.end(&"ended", now).is_none());
    // Nobody's so far.
    places.find("old", "third", now);
    furnish(&mut places, ["second", "first"]);
    assert_eq!((places.free(0, now), places.free(1, now)), (2, 1));
    assert_eq!(places.end(&"runs", now), Some((1, Duration::ZERO)));
    furnish(&mut places, ["first", "third"]);
    assert_eq!((places.free(0, now), places.free(1, now)), (2, 1));
}

/// A program that may not be run holds up its own hook alone, for longer each time.
#[test]
fn a_closed_hook_has_no_place_and_no_other_is_closed() {
    let (mut places, mut now) = (places([(2, 0), (3, 0)]), start());
    let mut pauses = Vec::new();
    for time in 0..8 {
        assert_eq!(places.close(0, now), time == 0);
        assert!(!places.close(0, now), "once for all that fail together");
        assert_eq!((places.free(0, now), places.free(1, now)), (0, 3));
        let opens = places.next_move(now).expect("it opens");
        pauses.push((opens - now).as_secs());
        now = opens;
        assert_eq!(places.free(0, now), 2);
        assert_eq!(places.next_move(now), None);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert!(places.close(0, now + Duration::from_mins(1)), "long after");
    // Other settings may have put it right.
    furnish(&mut places, ["first", "second"]);
    assert_eq!(places.free(0, now), 2);
}

/// Goes on with hooks of these names, two places each.
fn furnish(places: &mut Places<&'static str>, names: [&str; 2]) {
    let (ordinary, slow) = (2, 0);
    let hooks = names.map(|name| (Arc::from(name), Room { ordinary, slow }));
    places.furnish_anew(hooks.to_vec(), |name| {
        names.iter().position(|own| *own == name)
    });
}
