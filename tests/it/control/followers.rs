//! Many followers at once: what each costs, and how soon the last of them is told.

use std::fs;
use std::io::{Write as _, stdout};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::client::Stream;
use crate::harness::{Setup, World, dice};

/// Followers, unless `TILLD_FOLLOWERS` says otherwise, or so many descriptors may not be open.
const FOLLOWERS: usize = 1000;
/// From the answer to a notification to the last follower's reading of its event: no figure of speed, which a busy machine and
/// a debug build have none of, but less than anybody would take for a standstill.
const TOLD_WITHIN: Duration = Duration::from_secs(15);
/// Events whose way is timed.
const ROUNDS: usize = 20;
/// What a follower may hold, bytes: its buffers, its queue and its tasks, which a debug build makes bigger.
const EACH: u64 = 96 * 1024;
/// Descriptors beside those of the followers.
const OTHERS: u64 = 1024;

fn resident(world: &World) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", world.serve_pid())).expect("it runs");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a line");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib * 1024
}

#[test]
fn many_followers_are_told_soon_and_cost_little() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit
        .maximum
        .map_or(u64::MAX, |most| most.saturating_sub(OTHERS));
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = dice::count("TILLD_FOLLOWERS", FOLLOWERS.min(most));
    let wanted = u64::try_from(count).expect("a count") + OTHERS;
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).expect("so many descriptors may be open");
    }
    let raise = format!("ulimit -n {wanted} && exec \"$@\"");
    let world = Setup::new()
        .quiet()
        .set("log_level", "\"info\"")
        .set("control.connections", 2 * (count + 50))
        .set("control.followers", count + 10)
        .under(&["/bin/sh", "-c", &raise, "sh"])
        .start();
    let issued = world.create("A-1");
    let socket = world.control_socket();
    // What the first ones make the daemon keep for good is not theirs.
    let mut first = Stream::follow(&socket, "/v1/events", &[]);
    world.another_event(&issued, 1);
    assert!(first.next().is_some());
    let before = resident(&world);
    let mut all: Vec<Stream> = (0..count)
        .map(|_| Stream::follow(&socket, "/v1/events?after=2", &[]))
        .collect();
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        world.another_event(&issued, round + 2);
        // It was committed before it was answered.
        let answered = Instant::now();
        for stream in &mut all {
            let told = stream.next().expect("an event");
            assert_eq!(
                told.data.get("status"),
                Some(&format!("step-{}", round + 2).into())
            );
        }
        times.push(answered.elapsed());
    }
    let each = resident(&world).saturating_sub(before) / u64::try_from(count).expect("a count");
    times.sort();
    let (median, worst) = (times.get(ROUNDS / 2), times.last());
    // A reader of the output may be gone.
    drop(writeln!(
        stdout(),
        "{count} followers: {each} bytes of memory each; from the answer to a notification to the last follower's reading \
         of its event {:.1?} in the median of {ROUNDS}, {:.1?} at worst",
        median.expect("some"),
        worst.expect("some")
    ));
    assert!(each < EACH, "{each}");
    assert!(worst.is_some_and(|worst| *worst < TOLD_WITHIN), "{worst:?}");
}
