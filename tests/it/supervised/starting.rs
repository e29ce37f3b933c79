//! When it counts as ready: once notifications are heard and stored, however the service is, and however long that took (A43).

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::{Faults, Systemd};
use crate::harness::{PATIENCE, Process, Setup, skip, wait_until};

#[test]
fn a_long_start_asks_for_more_time_and_is_not_ready_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let (systemd, faults) = (Systemd::at(dir.path()), Faults::new());
    faults.play("hold-start");
    let mut world = Setup::new()
        .quiet()
        .under(&["env", &systemd.variable, &faults.variable()])
        .not_served()
        .start();
    thread::scope(|scope| {
        scope.spawn(|| {
            let first = systemd.hears("");
            assert!(first.contains("STATUS=opening the ledger"), "{first}");
            if systemd.next(Duration::from_secs(5)).is_some_and(|next| {
                assert!(next.contains("EXTEND_TIMEOUT_USEC=30000000"), "{next}");
                true
            }) {
                faults.end("hold-start");
            }
        });
        world.start_serve();
    });
    if !faults.is_played("hold-start") {
        skip!("this build has no faults to play");
    }
    let ready = systemd.hears("READY=1");
    let serves = format!("STATUS=serves on {}", world.listen());
    assert!(ready.contains(&serves), "{ready}");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let stops = systemd.hears("STOPPING=1");
    assert!(stops.contains("STATUS=stops, within"), "{stops}");
}

/// `EXTEND_TIMEOUT_USEC` puts off the end of a stop as well.
#[test]
fn who_wishes_it_to_stop_is_not_put_off_by_a_long_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let (systemd, faults) = (Systemd::at(dir.path()), Faults::new());
    faults.play("hold-start");
    let world = Setup::new().quiet().not_served().start();
    let under = ["env", &systemd.variable, &faults.variable()];
    let mut serve = world.start_under(&under, &["serve"]);
    systemd.hears("STATUS=opening the ledger");
    serve.signal(Signal::TERM);
    let plays = |serve: &Process| serve.stderr().contains("faults are played from");
    wait_until(PATIENCE, "it to be held, or to end", || {
        plays(&serve) || serve.ended().is_some()
    });
    if !plays(&serve) {
        skip!("this build has no faults to play");
    }
    let heard = systemd.next(PATIENCE).unwrap_or_default();
    assert!(heard.starts_with("STATUS=SIGTERM was heard"), "{heard}");
    // The first wish for more time would come a second after the start.
    let more = systemd.listens_for(Duration::from_millis(1_500));
    assert_eq!(more, [""; 0]);
    faults.end("hold-start");
    assert_eq!(serve.wait(PATIENCE), 0);
    systemd.hears("STOPPING=1");
}

/// Its socket takes connections already, and it answers none before it is ready.
#[test]
fn a_start_that_takes_long_is_not_called_a_daemon_that_stands_still() {
    let faults = Faults::new();
    let mut world = Setup::new().quiet().start();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    faults.play("hold-start");
    let mut serve = world.start_under(&["env", &faults.variable()], &["serve"]);
    let plays = |serve: &Process| serve.stderr().contains("faults are played from");
    wait_until(PATIENCE, "it to be held, or to be ready", || {
        plays(&serve) || serve.stderr().contains("tilld serves on")
    });
    if plays(&serve) {
        let status = world.tilld(&["status"]).ends_with(0).stdout;
        assert!(status.contains("daemon         running\n"), "{status}");
    }
    let is_played = plays(&serve);
    faults.end("hold-start");
    serve.signal(Signal::TERM);
    assert_eq!(serve.wait(PATIENCE), 0);
    if !is_played {
        skip!("this build has no faults to play");
    }
}

#[test]
fn it_is_ready_although_the_service_does_not_answer() {
    let systemd = Systemd::without_a_path();
    let world = Setup::new()
        // Nobody listens there.
        .service("http://127.0.0.1:9")
        .under(&["env", &systemd.variable])
        .start();
    systemd.hears("READY=1");
    let refused = world.notify("AAAAAAAAAAAAAAAAAAAAAA", &[], "{}");
    assert_eq!(refused.status / 100, 4, "{refused:?}");
    wait_until(PATIENCE, "the refusal", || {
        world.value("SELECT count(*) FROM refusal") == "1"
    });
}
