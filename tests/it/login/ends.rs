//! How a login ends that yields no token: with a code of its own, and with the old login untouched.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use super::stub::{Say, granted, page, pending, says};
use super::{Scene, field, send, told};
use crate::harness::{PATIENCE, wait_until};

/// Every way a login can end, for one go as well as for two steps.
pub(super) fn ways() -> Vec<(Vec<Say>, i32)> {
    let (denied, gone) = (says(403, "access_denied"), says(400, "expired_token"));
    vec![
        (vec![denied.clone()], 12),
        (vec![gone.clone()], 13),
        (vec![Say::Lost, gone.clone()], 14),
        (vec![page(502), says(400, "invalid_grant")], 14),
        (vec![Say::Lost, pending(), gone], 13),
        (vec![Say::Lost, denied.clone()], 14),
        (vec![Say::Reset, denied.clone()], 14),
        (vec![Say::Lost, pending(), denied.clone()], 12),
        (vec![says(400, "odd")], 1),
        // Not the service's word, so no end.
        (vec![page(400), denied.clone()], 12),
        (vec![Say::Answer(302, String::new(), None)], 1),
        (vec![Say::Lost, Say::Answer(302, String::new(), None)], 14),
    ]
}

#[test]
fn each_end_of_a_login_has_its_code_and_leaves_the_old_one() {
    let scenes = ways().into_iter().map(|(polls, wanted)| {
        std::thread::spawn(move || {
            let scene = Scene::logged_in(&polls);
            let old = scene.stored();
            let (code, data, talk) = scene.run(&["login", "--json"]);
            assert_eq!(code, wanted, "{polls:?}: {talk}");
            let lines: Vec<Value> = data
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON lines"))
                .collect();
            let [started, ended] = lines.as_slice() else {
                panic!("{data}")
            };
            assert_eq!(field(started, "user_code"), "ABCD-EFGH");
            assert_eq!(field(ended, "code"), wanted);
            let hint = field(ended, "hint").as_str().expect("a text");
            assert!(hint.contains(" login` again"), "{hint}");
            assert_eq!(scene.stored(), old);
            assert!(!scene.request().exists());
        })
    });
    for scene in scenes.collect::<Vec<_>>() {
        scene.join().expect("as it should be");
    }
}

#[test]
fn a_code_nobody_confirms_expires_by_itself() {
    let scene = Scene::logged_in(&[pending()]);
    let old = scene.stored();
    scene
        .service
        .start_with(&serde_json::json!({ "expiresIn": 2 }));
    let (code, _, talk) = scene.run(&["login"]);
    assert_eq!((code, scene.stored()), (13, old), "{talk}");
}

#[test]
fn a_wish_to_stop_leaves_the_old_login_and_says_so() {
    for signal in [Signal::INT, Signal::TERM] {
        let scene = Scene::logged_in(&[pending()]);
        let old = scene.stored();
        scene
            .service
            .start_with(&serde_json::json!({ "interval": 50 }));
        let mut command = scene.command(&["login"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("tilld runs");
        let mut talk = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        talk.read_line(&mut line).expect("a line");
        assert!(line.contains("confirm"), "{line}");
        send(&child, signal);
        let mut rest = String::new();
        talk.read_to_string(&mut rest).expect("text");
        assert_eq!(child.wait().expect("ends").code(), Some(1), "{rest}");
        assert!(rest.contains("cancelled"), "{rest}");
        assert!(
            rest.contains("the earlier login, if any, still stands"),
            "{rest}"
        );
        assert_eq!(scene.stored(), old);
    }
}

/// The answer to a question that is under way may be the token.
#[test]
fn a_wish_to_stop_while_asking_says_that_the_login_may_have_been_granted() {
    let scene = Scene::logged_in(&[Say::Silent]);
    let old = scene.stored();
    let mut command = scene.command(&["login"]);
    command.env("TILLD_SERVICE__REQUEST_TIMEOUT_S", "60");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("tilld runs");
    wait_until(PATIENCE, "a poll", || !scene.service.polled().is_empty());
    send(&child, Signal::INT);
    let (code, _, talk) = told(&child.wait_with_output().expect("ends"));
    assert_eq!((code, scene.stored()), (14, old), "{talk}");
    assert!(talk.contains("list of tokens"), "{talk}");
    assert!(talk.contains("may have granted it"), "{talk}");
}

#[test]
fn what_cannot_be_stored_is_found_before_the_code_is_asked_for() {
    for args in [&["login"][..], &["login", "--start"]] {
        let scene = Scene::new(&[granted()]);
        // A file where the directory should be stops any user, root too.
        std::fs::create_dir_all(scene.state_dir()).expect("made");
        std::fs::write(scene.secret(), "").expect("written");
        let (code, data, talk) = scene.run(args);
        assert_eq!((code, data.as_str()), (15, ""), "{talk}");
        assert!(talk.contains("could not prepare to store"), "{talk}");
        assert!(scene.service.begun().is_empty(), "nothing was asked for");
    }
}

#[test]
fn nobody_there_is_said_so() {
    let scene = Scene::new(&[pending()]);
    let nobody = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let mut command = scene.command_at(&["login"], &format!("http://{nobody}"));
    let (code, data, talk) = told(&command.output().expect("tilld runs"));
    assert_eq!((code, data.as_str()), (8, ""), "{talk}");
    assert!(talk.contains("could not connect"), "{talk}");
}

/// A login whose address nobody was shown must not end as if it were done.
#[test]
fn an_answer_nobody_reads_is_no_login() {
    let scene = Scene::new(&[granted()]);
    let mut command = std::process::Command::new("/bin/sh");
    let login = scene.command(&["login"]);
    command.args(["-c", "exec \"$@\" >/dev/full", "sh"]);
    command.arg(login.get_program()).args(login.get_args());
    command.env_clear();
    let (code, _, talk) = told(&command.output().expect("tilld runs"));
    assert_eq!(code, 1, "{talk}");
    assert!(talk.contains("could not show where to confirm"), "{talk}");
    assert!(scene.service.polled().is_empty() && !scene.file().exists());
}

/// A token that no header can carry would be stored in place of a good one, and each request after it would fail.
#[test]
fn a_token_that_cannot_be_sent_is_not_stored() {
    let token = |text: &str| {
        let body = serde_json::json!({ "token": text, "shopName": super::stub::SHOP });
        Say::Answer(200, body.to_string(), None)
    };
    for text in ["shop:nobody-sees\r\nX-Other: 1", "shop:nobody-sees\u{7f}"] {
        let scene = Scene::logged_in(&[token(text)]);
        let old = scene.stored();
        let (code, data, talk) = scene.run(&["login"]);
        assert_eq!((code, scene.stored()), (14, old.clone()), "{data}{talk}");
        assert!(talk.contains("revoke it in the cabinet"), "{talk}");
        let (code, _, talk) = scene.run(&["login", "--start"]);
        assert_eq!(code, 0, "{talk}");
        let (code, _, talk) = scene.run(&["login", "--finish", "--wait", "10"]);
        assert_eq!((code, scene.stored()), (14, old), "{talk}");
        assert!(!scene.request().exists());
    }
}

/// A terminal makes a link of it, and a program of the shop may.
#[test]
fn an_address_that_a_browser_would_run_is_no_login() {
    let scene = Scene::logged_in(&[granted()]);
    for address in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "cabinet.example",
    ] {
        scene
            .service
            .start_with(&serde_json::json!({ "verificationUrl": address }));
        for args in [&["login", "--json"][..], &["login", "--start", "--json"]] {
            let (code, data, talk) = scene.run(args);
            assert_eq!(code, 8, "{data}{talk}");
            assert!(
                !data.contains(address) && talk.contains("verificationUrl"),
                "{data}{talk}"
            );
        }
    }
    assert!(!scene.request().exists());
}
