//! With `tilld-control.socket` it is systemd that listens: a call that comes before the daemon waits for it.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;

use serde_json::json;

use super::ask;
use crate::harness::{PATIENCE, Setup, skip, wait_for};

#[test]
fn a_call_waits_for_the_daemon_that_it_starts() {
    let activate = "systemd-socket-activate";
    if Command::new(activate).arg("--version").output().is_err() {
        skip!("{activate} is not installed");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("control.sock");
    let listen = format!("--listen={}", socket.display());
    let setup = Setup::new().quiet().not_served();
    let mut world = setup
        .set("control.socket", "\"/nowhere/control.sock\"")
        .under(&[activate, &listen, "--fdname=control"])
        .start();
    let shop = thread::spawn(move || {
        let stream = wait_for(PATIENCE, "somebody to listen", || {
            UnixStream::connect(&socket).ok()
        });
        ask(stream, "GET", "/v1/status", "")
    });
    world.start_serve();
    let (status, _, report) = shop.join().expect("an answer");
    assert_eq!(status, 200, "{report}");
    assert_eq!(report.get("daemon_running"), Some(&json!(true)));
}
