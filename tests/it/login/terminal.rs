//! A login on a terminal: what stands where, in which width, and the code for a telephone (A35).

use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use super::stub::{granted, pending};
use super::{Scene, send};
use crate::harness::{PATIENCE, wait_until};

/// What begins a coloured line of a QR code.
const COLOUR: &str = "\u{1b}[30;107m";

/// A program on a terminal, and all that the terminal was sent.
struct Session {
    child: Child,
    sent: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Session {
    /// Starts `command` with its output on a new terminal of this size.
    fn start(mut command: Command, (columns, rows): (u16, u16), stdout_too: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let path = ptsname(&master, Vec::new()).expect("its name");
        let open = || {
            let path = path.to_str().expect("a path");
            File::options().read(true).write(true).open(path)
        };
        let slave = open().expect("its other end");
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).expect("a size");
        if stdout_too {
            command.stdout(slave.try_clone().expect("a copy"));
        } else {
            command.stdout(std::process::Stdio::null());
        }
        command.stderr(slave);
        let child = command.spawn().expect("tilld runs");
        // Its own copies of the other end: without them the terminal ends with the program.
        drop(command);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        let mut master = File::from(master);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            // At the end the terminal answers with an error.
            while let Ok(length @ 1..) = master.read(&mut piece) {
                let read = piece.get(..length).expect("what was read");
                kept.lock().expect("no panic there").extend(read);
            }
        });
        Self {
            child,
            sent,
            reader,
        }
    }

    fn shown(&self) -> String {
        let sent = self.sent.lock().expect("no panic there");
        String::from_utf8_lossy(&sent).replace("\r\n", "\n")
    }

    /// Waits for the end; its code and all that was shown.
    fn end(mut self) -> (i32, String) {
        let status = self.child.wait().expect("ends");
        while !self.reader.is_finished() {
            thread::yield_now();
        }
        (status.code().unwrap_or(-1), self.shown())
    }
}

/// The command as a person's terminal starts it.
fn login(scene: &Scene, args: &[&str], more: &[(&str, &str)]) -> Command {
    let mut command = scene.command(&[&["login"], args].concat());
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command.envs(more.iter().copied());
    command
}

/// A login that is granted, on a terminal of this size: all that was shown.
#[track_caller]
fn shown(scene: &Scene, size: (u16, u16), args: &[&str], more: &[(&str, &str)]) -> String {
    let (code, shown) = Session::start(login(scene, args, more), size, true).end();
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("nobody-sees"), "{shown}");
    shown
}

#[test]
fn address_and_code_stand_first_and_whole_on_a_narrow_terminal() {
    let scene = Scene::new(&[granted()]);
    let address = "https://cabinet.example/activate?code=ABCD-EFGH&shop=one-of-many";
    scene
        .service
        .start_with(&json!({ "verificationUrl": address }));
    let shown = shown(&scene, (40, 50), &[], &[]);
    assert!(
        shown.starts_with(&format!("{address}\nABCD-EFGH\nopen the address")),
        "too narrow for a QR code: {shown}"
    );
    assert!(shown.contains("waiting, 0:59 left") || shown.contains("waiting, 1:00 left"));
}

#[test]
fn a_terminal_that_can_shows_a_code_for_a_telephone() {
    let scene = Scene::new(&[granted()]);
    let first = "https://cabinet.example/activate?code=ABCD-EFGH\nABCD-EFGH\n";
    let coloured = shown(&scene, (80, 50), &[], &[]);
    assert!(
        coloured.starts_with(&format!("{first}{COLOUR}")),
        "{coloured}"
    );
    let lines: Vec<&str> = coloured
        .lines()
        .filter(|line| line.starts_with(COLOUR))
        .collect();
    assert!(lines.len() > 10, "{coloured}");
    assert!(
        lines.iter().all(|line| line.ends_with("\u{1b}[0m")),
        "{coloured}"
    );
    let plain = shown(&scene, (80, 50), &[], &[("NO_COLOR", "1")]);
    assert!(plain.starts_with(&format!("{first}█████")), "{plain}");
    assert!(!plain.contains(COLOUR), "{plain}");
    // No terminal for it, no room for it, no letters for it, no wish for it.
    for (size, args, more) in [
        ((36, 50), &[][..], ("LANG", "C.UTF-8")),
        ((80, 20), &[], ("LANG", "C.UTF-8")),
        ((80, 50), &[], ("LC_ALL", "C")),
        ((80, 50), &[], ("TERM", "dumb")),
        ((80, 50), &["--no-qr"], ("LANG", "C.UTF-8")),
    ] {
        let shown = shown(&scene, size, args, &[more]);
        assert!(
            shown.starts_with(&format!("{first}open")),
            "{more:?}: {shown}"
        );
        assert!(!shown.contains('█'), "{shown}");
    }
    let started = shown(&scene, (80, 50), &["--start"], &[]);
    assert!(started.contains(COLOUR), "{started}");
    let json = shown(&scene, (80, 50), &["--json"], &[]);
    assert!(!json.contains(['█', '\u{1b}']), "{json}");
}

#[test]
fn a_doubtful_address_gets_no_code() {
    let scene = Scene::new(&[granted()]);
    scene
        .service
        .start_with(&json!({ "verificationUrl": "https://evil.example/activate" }));
    let shown = shown(&scene, (80, 50), &[], &[]);
    assert!(
        shown.starts_with("warning: the address leads to"),
        "{shown}"
    );
    assert!(!shown.contains('█'), "{shown}");
}

/// `tilld login > file`: the address is in the file, and the person still sees it.
#[test]
fn whoever_sends_the_answer_into_a_file_still_sees_the_address() {
    let scene = Scene::new(&[granted()]);
    let session = Session::start(login(&scene, &[], &[]), (80, 50), false);
    let (code, shown) = session.end();
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.starts_with("https://cabinet.example/activate?code=ABCD-EFGH\nABCD-EFGH\n"),
        "{shown}"
    );
}

#[test]
fn the_time_left_is_shown_and_ctrl_c_leaves_the_old_login() {
    let scene = Scene::logged_in(&[pending()]);
    let old = scene.stored();
    let session = Session::start(login(&scene, &["--no-qr"], &[]), (40, 25), true);
    wait_until(PATIENCE, "the time to run", || {
        let shown = session.shown();
        let times = shown.split("\r\u{1b}[Kwaiting, ").skip(1);
        let times = times.filter_map(|rest| rest.split_once(" left"));
        let mut times: Vec<&str> = times.map(|(time, _)| time).collect();
        times.dedup();
        times.len() > 2
    });
    send(&session.child, Signal::INT);
    let (code, shown) = session.end();
    assert!(matches!(code, 1 | 14), "{shown}");
    assert!(
        shown.contains("\r\u{1b}[Kerror: the login was cancelled"),
        "{shown}"
    );
    assert_eq!(scene.stored(), old);
}
