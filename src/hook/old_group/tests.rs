//! Real processes as a dead daemon leaves them: with and without their leader, stubborn ones, and strangers.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::hook::members::has_members;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);

/// A shell at the head of a group of its own. Its script says a word when it is where the test wants it.
fn left_behind(script: &str) -> (Child, ProcessMark) {
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let pid = i32::try_from(child.id()).expect("a pid");
    // Known also when it has ended already, since nobody has reaped it.
    let entry = Entry::of(pid).expect("readable").expect("unreaped");
    let mark = ProcessMark {
        pid,
        start_ticks: entry.start_ticks,
        ..ProcessMark::own()
    };
    let said = child.stdout.as_mut().expect("piped");
    said.read_exact(&mut [0]).expect("it says a word");
    (child, mark)
}

async fn settle(mark: &ProcessMark, patience: Duration, grace: Duration) {
    timeout(LONG, settle_old_child(mark, patience, grace))
        .await
        .expect("in time")
        .expect("watched");
}

#[tokio::test]
async fn a_leader_is_ended_with_its_descendants_even_stubborn_ones() {
    let script = "trap '' TERM; (trap '' TERM; echo; exec sleep 60) & wait; sleep 60";
    let (mut child, mark) = left_behind(script);
    settle(&mark, Duration::ZERO, SHORT).await;
    assert!(!mark.is_running() && !has_members(mark.pid));
    child.wait().expect("reaped");
}

#[tokio::test]
async fn descendants_whose_leader_died_are_waited_for() {
    for reaped in [false, true] {
        // The descendant holds the input, and ends with it.
        let (mut child, mark) = left_behind("exec 3<&0; (cat <&3 >/dev/null) & echo; exit 0");
        let input = child.stdin.take();
        while mark.is_running() {
            tokio::task::yield_now().await;
        }
        if reaped {
            child.wait().expect("reaped");
        }
        let early = timeout(SHORT, settle_old_child(&mark, LONG, LONG)).await;
        assert!(early.is_err(), "reaped {reaped}: its descendant runs");
        drop(input);
        settle(&mark, LONG, LONG).await;
        assert!(!has_members(mark.pid));
        child.wait().expect("reaped");
    }
}

#[tokio::test]
async fn descendants_whose_leader_died_are_ended_when_their_time_is_over() {
    let (mut child, mark) = left_behind("(trap '' TERM; echo; exec sleep 60) & exit 0");
    child.wait().expect("reaped");
    assert!(has_members(mark.pid));
    settle(&mark, Duration::ZERO, SHORT).await;
    assert!(!has_members(mark.pid));
}

#[tokio::test]
async fn what_ends_by_itself_is_not_signalled() {
    let (mut child, mark) = left_behind("echo; read line; exit 3");
    let input = child.stdin.take();
    let (settled, ()) = tokio::join!(settle_old_child(&mark, LONG, Duration::ZERO), async {
        drop(input);
    });
    settled.expect("watched");
    assert_eq!(child.wait().expect("reaped").code(), Some(3));
}

#[tokio::test]
async fn strangers_with_the_same_number_are_left_alone() {
    let (mut child, mark) = left_behind("sleep 60 & echo; wait");
    let strangers = [
        // The number was given out again: the leader that is there is another one.
        ProcessMark {
            start_ticks: mark.start_ticks - 1,
            ..mark.clone()
        },
        ProcessMark {
            start_ticks: mark.start_ticks + 1,
            ..mark.clone()
        },
        // Before a reboot.
        ProcessMark {
            boot_id: "another".to_owned(),
            ..mark.clone()
        },
        ProcessMark {
            pid: 0,
            ..mark.clone()
        },
        ProcessMark {
            pid: -1,
            ..mark.clone()
        },
    ];
    for stranger in &strangers {
        settle(stranger, Duration::ZERO, Duration::ZERO).await;
    }
    // An unreaped leader still tells whose group it is.
    child.kill().expect("killed");
    while mark.is_running() {
        tokio::task::yield_now().await;
    }
    for stranger in &strangers {
        settle(stranger, Duration::ZERO, Duration::ZERO).await;
    }
    assert!(has_members(mark.pid), "the sleeper was not touched");
    child.wait().expect("reaped");

    // Without a leader its time tells: who started before the run cannot be of it.
    let later = ProcessMark {
        start_ticks: i64::MAX,
        ..mark.clone()
    };
    settle(&later, Duration::ZERO, Duration::ZERO).await;
    assert!(has_members(mark.pid), "the sleeper was not touched");
    settle(&mark, Duration::ZERO, LONG).await;
    assert!(!has_members(mark.pid));
}

#[tokio::test]
async fn the_group_of_this_very_process_is_never_an_old_one() {
    let own = ProcessMark {
        pid: getpgrp().as_raw_pid(),
        start_ticks: 0,
        ..ProcessMark::own()
    };
    let left = left_of(&own).await.expect("watched");
    assert!(left.is_empty());
}
