//! What the daemon has of a launcher that is slow, or that is asked for what nobody waits for any more.

use std::fs;
use std::future::poll_fn;
use std::io::{PipeWriter, pipe};
use std::pin::pin;
use std::task::Poll;

use rustix::process::{Signal, kill_process};
use tokio::time::timeout;

use super::*;
use crate::hook::launch::stand_in;

/// More than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Streams, and what keeps whoever has them waiting.
fn streams() -> ([OwnedFd; 3], PipeWriter) {
    let (its_stdin, stdin) = pipe().expect("a pipe");
    let its_stdout = its_stdin.try_clone().expect("a descriptor");
    let its_stderr = its_stdin.try_clone().expect("a descriptor");
    let streams = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
    (streams, stdin)
}

async fn until(fact: impl Fn() -> bool) {
    let look = async {
        while !fact() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, look).await.expect("it comes true");
}

/// That it ended well, and its end was heard.
async fn ended_well(mut process: Started) {
    let end = timeout(PATIENCE, process.exited()).await.expect("in time");
    assert!(
        matches!(end, Ended::So(End { status: 0, .. })),
        "it is {end:?}"
    );
}

/// The launcher that started it.
fn parent(of: &Started) -> Pid {
    let stat = fs::read_to_string(format!("/proc/{}/stat", of.pid.as_raw_pid()));
    let stat = stat.expect("it runs");
    let parent = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.split(' ').nth(1));
    let parent = parent.and_then(|parent| Pid::from_raw(parent.parse().ok()?));
    parent.expect("a parent")
}

/// Its first step: the wish is sent then, unless the launcher has to be waited for.
async fn first_step<T>(wish: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    poll_fn(|context| Poll::Ready(pin!(&mut *wish).poll(context))).await
}

/// Released unheard: those that run must not pay for it.
#[tokio::test]
async fn one_that_is_released_before_its_end_costs_nobody_else_his() {
    let launcher = stand_in();
    let ((its, stays), (others, ends)) = (streams(), streams());
    let running = launcher.start(its).await.expect("it starts");
    let released = launcher.start(others).await.expect("it starts");
    released.link.release(released.pid);
    drop(ends);
    // Comes behind the release.
    let (third, also_ends) = streams();
    let third = launcher.start(third).await.expect("it starts");
    drop(also_ends);
    ended_well(third).await;
    assert!(!running.link.is_gone(), "the launcher lives");
    drop(stays);
    ended_well(running).await;
}

/// An answer belongs to whoever wished for it, and a wish that was never sent has none.
#[tokio::test]
async fn a_wish_that_is_given_up_takes_nobodys_answer() {
    let launcher = stand_in();
    {
        let (given_up, _stdin) = streams();
        let mut wish = pin!(launcher.start(given_up));
        assert!(first_step(&mut wish).await.is_pending());
    }
    let (its, stdin) = streams();
    let started = launcher.start(its).await.expect("it starts");
    drop(stdin);
    ended_well(started).await;
}

/// A machine under load: what runs must not be lost since something else could not be started.
#[tokio::test]
async fn a_start_that_takes_too_long_fails_alone() {
    let patience = Duration::from_millis(300);
    let usual = stand_in();
    let shared = Arc::into_inner(usual.0).expect("nobody else has it");
    let (program, args) = (shared.program, shared.args);
    let launcher = Launcher::with_patience(program, args, patience, STUCK_AFTER);
    let (its, stdin) = streams();
    // Its own start may take as long as it will here.
    let running = loop {
        let its = its.each_ref().map(OwnedFd::try_clone);
        let its = its.map(|stream| stream.expect("a descriptor"));
        match launcher.start(its).await {
            Ok(running) => break running,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::TimedOut),
        }
    };
    drop(its);
    let stopped = parent(&running);
    kill_process(stopped, Signal::STOP).expect("stopped");
    for _ in 0..3 {
        let (others, _stdin) = streams();
        let error = launcher.start(others).await.expect_err("too late");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
    assert!(!running.link.is_gone(), "the launcher lives");
    kill_process(stopped, Signal::CONT).expect("goes on");
    let link = Arc::clone(&running.link);
    drop(stdin);
    ended_well(running).await;
    let (its, stdin) = streams();
    let next = launcher.start(its).await.expect("it starts");
    assert_eq!(parent(&next), stopped, "the same launcher");
    drop(stdin);
    ended_well(next).await;
    // Those that came too late have ended, and are reaped.
    until(|| link.is_idle()).await;
    until(|| launcher.is_resting()).await;
}

/// Whoever waited for it is gone by the time it has been answered, and its end was heard for him.
#[tokio::test]
async fn an_answer_that_is_never_taken_leaves_nothing_unreaped() {
    let launcher = stand_in();
    let (its, stdin) = streams();
    let other = launcher.start(its).await.expect("it starts");
    let link = Arc::clone(&other.link);
    drop(stdin);
    ended_well(other).await;
    let (its, stdin) = streams();
    {
        let mut wish = Box::pin(launcher.start(its));
        assert!(first_step(&mut wish).await.is_pending());
        drop(stdin);
        // Its end is told to the answer that lies there.
        until(|| {
            let state = link.state();
            !state.children.is_empty() && state.children.values().all(Option::is_none)
        })
        .await;
    }
    until(|| link.is_idle()).await;
    until(|| launcher.is_resting()).await;
}

/// Nobody lets it go on: what is to run next must not wait for a person.
#[tokio::test]
async fn a_launcher_that_is_stopped_for_good_is_replaced() {
    let shared = Arc::into_inner(stand_in().0).expect("nobody else has it");
    let (program, args) = (shared.program, shared.args);
    let (patience, stuck_after) = (Duration::from_millis(500), IDLE * 2);
    let launcher = Launcher::with_patience(program, args, patience, stuck_after);
    let begin = async || {
        loop {
            let (its, stdin) = streams();
            match launcher.start(its).await {
                Ok(started) => break (started, stdin),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                // Its wish was behind the one that nobody answered.
                Err(error) => assert_eq!(error.to_string(), "the launcher ended"),
            }
        }
    };
    let (mut first, _stdin) = timeout(PATIENCE, begin()).await.expect("in time");
    let stopped = parent(&first);
    kill_process(stopped, Signal::STOP).expect("stopped");
    let (next, stdin) = timeout(PATIENCE, begin()).await.expect("in time");
    assert_ne!(parent(&next), stopped);
    assert!(matches!(first.exited().await, Ended::Lost));
    drop(stdin);
    ended_well(next).await;
}
