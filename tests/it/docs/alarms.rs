//! The programs for alerts that docs/alarms.md gives to copy. What is at stake: an alert that nobody gets, and a program that says
//! it was delivered.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tilld::hook::payload::ALARM_VARIABLES;

use super::{block, column, docs, table};

#[test]
fn the_variables_are_those_the_program_gets() {
    let named = column(&table(&docs(), "alert variable"), 0);
    assert_eq!(named, ALARM_VARIABLES);
}

/// A program that keeps its arguments and its input beside itself, and ends so.
fn fake(dir: &Path, name: &str, code: u8) -> String {
    let path = dir.join(name);
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.args\"\ncat >\"$0.in\"\nexit {code}\n");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("ours");
    path.display().to_string()
}

fn run(dir: &Path, script: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", dir.display());
    Command::new("/bin/sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", path)
        .env("TILLD_ALERT", "outage")
        .env("TILLD_MESSAGE", "no answer; 100% of \"all\"")
        .env("TILLD_ADVICE", "look at it")
        .output()
        .expect("a shell")
}

#[test]
fn the_example_of_a_mail_sends_one_or_fails() {
    for code in [0, 75] {
        let dir = tempfile::tempdir().expect("a directory");
        let sendmail = fake(dir.path(), "sendmail", code);
        let script = block(&docs(), "alert-mail").replace("/usr/sbin/sendmail", &sendmail);
        let ran = run(dir.path(), &script);
        assert_eq!(ran.status.code(), Some(i32::from(code)), "{ran:?}");
        let sent = fs::read_to_string(dir.path().join("sendmail.in")).expect("sent");
        let (head, text) = sent.split_once("\n\n").expect("a head");
        assert!(
            head.contains("To: owner@shop.example\nSubject: tilld: outage\n"),
            "{head}"
        );
        assert_eq!(text, "no answer; 100% of \"all\"\n\nlook at it\n");
    }
}

#[test]
fn the_example_of_a_message_sends_one_or_fails_and_shows_nobody_the_token() {
    for code in [0, 22] {
        let dir = tempfile::tempdir().expect("a directory");
        fake(dir.path(), "curl", code);
        let token = dir.path().join("token");
        fs::write(&token, "123:secret\n").expect("written");
        let token = token.display().to_string();
        let script = block(&docs(), "alert-message").replace("/etc/tilld/telegram-token", &token);
        let ran = run(dir.path(), &script);
        assert_eq!(ran.status.code(), Some(i32::from(code)), "{ran:?}");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("kept");
        assert!(
            read("curl.in").contains("bot123:secret/sendMessage"),
            "{}",
            read("curl.in")
        );
        let arguments = read("curl.args");
        assert!(!arguments.contains("secret"), "{arguments}");
        assert!(
            arguments.contains("text=tilld: no answer; 100% of \"all\". look at it"),
            "{arguments}"
        );
    }
    // Without its token it sends nothing.
    let dir = tempfile::tempdir().expect("a directory");
    fake(dir.path(), "curl", 0);
    let script = block(&docs(), "alert-message").replace("/etc/tilld", "/no/such/place");
    let ran = run(dir.path(), &script);
    assert_ne!(ran.status.code(), Some(0), "{ran:?}");
}
