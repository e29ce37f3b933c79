//! The login in two steps: `--start` keeps the login request, `--finish` goes on with it. Time is let pass by dating the
//! kept request back, so nothing waits.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::stub::{DEVICE_CODE, Say, granted, page, pending, says};
use super::{Scene, TOKEN, ends, field, mode, send, told};
use crate::harness::{PATIENCE, wait_until};

impl Scene {
    /// The kept request.
    #[track_caller]
    fn kept(&self) -> Value {
        let text = std::fs::read_to_string(self.request()).expect("kept");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Changes a field of the kept request.
    #[track_caller]
    fn date(&self, name: &str, value: &Value) {
        let mut kept = self.kept();
        let before = kept.as_object_mut().expect("an object");
        assert!(before.insert(name.to_owned(), value.clone()).is_some());
        super::write_private(&self.request(), &kept.to_string());
    }

    /// As if the last question were long ago.
    #[track_caller]
    fn interval_passes(&self) {
        self.date("asked_at", &json!("2000-01-01T00:00:00.000Z"));
    }

    #[track_caller]
    fn begin(&self) -> Value {
        let (code, started) = self.json(&["login", "--start"]);
        assert_eq!(code, 0, "{started}");
        started
    }
}

/// A scene whose login is begun, with an interval that does not pass by itself within a test.
fn begun(polls: &[Say]) -> Scene {
    let scene = Scene::logged_in(polls);
    scene.service.start_with(&json!({ "interval": 50 }));
    scene.begin();
    scene
}

#[test]
fn two_steps_yield_the_token_and_leave_nothing_behind() {
    let scene = Scene::logged_in(&[pending(), granted()]);
    scene.service.start_with(&json!({ "interval": 50 }));
    let old = scene.stored();
    let started = scene.begin();
    for (name, wanted) in [
        ("state", json!("pending")),
        (
            "verification_url",
            json!("https://cabinet.example/activate?code=ABCD-EFGH"),
        ),
        ("user_code", json!("ABCD-EFGH")),
        ("expires_in_s", json!(60)),
        ("interval_s", json!(50)),
        ("warnings", json!([])),
        ("replaced", json!(false)),
    ] {
        assert_eq!(field(&started, name), &wanted, "{name}");
    }
    // The two steps name the same instant.
    assert_eq!(
        field(&started, "expires_at"),
        field(&scene.kept(), "expires_at")
    );
    assert_eq!(
        (mode(&scene.secret()), mode(&scene.request())),
        (0o700, 0o600)
    );
    assert_eq!(field(&scene.kept(), "device_code"), DEVICE_CODE);

    // Too early to ask.
    let (code, waits) = scene.json(&["login", "--finish"]);
    assert_eq!((code, field(&waits, "state")), (6, &json!("pending")));
    assert_eq!(field(&waits, "user_code"), "ABCD-EFGH");
    assert!(field(&waits, "expires_in_s").as_u64() <= Some(60));
    let next_s = field(&waits, "next_poll_in_s").as_u64();
    assert!((1..=50).contains(&next_s.expect("a number")), "{waits}");
    assert_eq!(scene.service.polled().len(), 0);

    scene.interval_passes();
    let (code, data, talk) = scene.run(&["login", "--finish"]);
    assert_eq!((code, data.as_str()), (6, ""), "{talk}");
    assert!(talk.contains("not confirmed yet"), "{talk}");
    assert_eq!((scene.service.polled().len(), scene.stored()), (1, old));

    scene.interval_passes();
    let (code, ended) = scene.json(&["login", "--finish"]);
    assert_eq!((code, field(&ended, "state")), (0, &json!("granted")));
    assert_eq!(scene.stored(), TOKEN);
    assert!(!scene.request().exists());

    let (code, ended) = scene.json(&["login", "--finish"]);
    assert_eq!((code, field(&ended, "code")), (3, &json!(3)));
    assert_eq!(scene.service.polled().len(), 2);
}

/// A34, word for word, and no question comes earlier than the interval as it has grown.
#[test]
fn the_long_sequence_logs_in_and_the_grown_interval_is_kept() {
    let sequence = [
        (pending(), 5_000, 5_000),
        (says(400, "slow_down"), 10_000, 10_000),
        (Say::Reset, 10_000, 10_000),
        (page(502), 10_000, 10_000),
        (
            Say::Answer(429, r#"{"error":"slow"}"#.to_owned(), Some(30)),
            10_000,
            30_000,
        ),
        (pending(), 10_000, 10_000),
    ];
    let mut polls: Vec<Say> = sequence.iter().map(|(say, ..)| say.clone()).collect();
    polls.push(granted());
    let scene = Scene::new(&polls);
    scene
        .service
        .start_with(&json!({ "interval": 5, "expiresIn": 600 }));
    scene.begin();
    for (number, (say, interval_ms, wait_ms)) in sequence.iter().enumerate() {
        scene.interval_passes();
        let (code, waits) = scene.json(&["login", "--finish"]);
        assert_eq!(code, 6, "{say:?}: {waits}");
        let kept = scene.kept();
        assert_eq!(field(&kept, "interval_ms"), interval_ms, "{say:?}");
        assert_eq!(field(&kept, "wait_ms"), wait_ms, "{say:?}");
        assert_eq!(scene.service.polled().len(), number + 1);
    }
    scene.interval_passes();
    let (code, ended) = scene.json(&["login", "--finish"]);
    assert_eq!(code, 0, "{ended}");
    assert_eq!(scene.stored(), TOKEN);
}

#[test]
fn finishing_waits_as_long_as_it_is_told_to() {
    let scene = Scene::new(&[pending(), granted()]);
    scene.begin();
    let (code, _, talk) = scene.run(&["login", "--finish", "--wait", "60"]);
    assert_eq!((code, scene.stored().as_str()), (0, TOKEN), "{talk}");

    let scene = Scene::new(&[pending()]);
    scene.begin();
    let (code, waits) = scene.json(&["login", "--finish", "--wait=3"]);
    assert_eq!((code, field(&waits, "state")), (6, &json!("pending")));
    assert!(scene.request().exists());
}

#[test]
fn each_final_end_has_its_code_and_removes_the_request() {
    for (polls, wanted) in ends::ways() {
        let scene = begun(&polls);
        let old = scene.stored();
        let mut code = 6;
        for _ in 0..polls.len() {
            assert_eq!(code, 6, "{polls:?}");
            scene.interval_passes();
            code = scene.run(&["login", "--finish"]).0;
        }
        assert_eq!(code, wanted, "{polls:?}");
        assert!(!scene.request().exists(), "{polls:?}");
        assert_eq!(
            (scene.stored(), scene.service.polled().len()),
            (old, polls.len())
        );
    }
}

#[test]
fn what_cannot_be_finished_says_why_and_asks_nobody() {
    // Not begun.
    let scene = Scene::new(&[granted()]);
    let (code, _, talk) = scene.run(&["login", "--finish"]);
    assert_eq!(code, 3, "{talk}");
    assert!(talk.contains(" login --start`"), "{talk}");
    // Run out.
    for (unheard, wanted) in [(false, 13), (true, 14)] {
        let scene = begun(&[granted()]);
        scene.date("unheard", &json!(unheard));
        scene.date("expires_at", &json!("2026-01-01T00:00:00Z"));
        let (code, _, talk) = scene.run(&["login", "--finish"]);
        assert_eq!((code, scene.service.polled().len()), (wanted, 0), "{talk}");
        assert!(!scene.request().exists());
        assert_eq!(scene.run(&["login", "--finish"]).0, 3);
    }
    // Begun elsewhere: the device code is not shown to another service.
    let scene = begun(&[granted()]);
    let other = Scene::new(&[granted()]);
    let mut command = scene.command_at(&["login", "--finish"], &other.service.url());
    let (code, _, talk) = told(&command.output().expect("tilld runs"));
    assert_eq!(code, 4, "{talk}");
    assert!(talk.contains(&scene.service.url()), "{talk}");
    assert!(other.service.polled().is_empty() && scene.request().exists());
    // Not a login request, and one that others may read.
    super::write_private(&scene.request(), "{}");
    let (code, _, talk) = scene.run(&["login", "--finish"]);
    assert!(
        code == 1 && talk.contains("is not a login request"),
        "{talk}"
    );
    scene.begin();
    let loose = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(scene.request(), loose).expect("our own");
    assert_eq!(scene.run(&["login", "--finish"]).0, 15);
    assert!(scene.service.polled().is_empty());
    for args in [
        &["login", "--start", "--finish"][..],
        &["login", "--wait=5"],
        &["login", "--finish", "--wait=-1"],
    ] {
        assert_eq!(scene.run(args).0, 2, "{args:?}");
    }
}

#[test]
fn a_new_beginning_takes_the_place_of_an_earlier_one() {
    let scene = begun(&[granted()]);
    scene
        .service
        .start_with(&json!({ "deviceCode": "dc_another-nobody-sees", "interval": 1 }));
    let started = scene.begin();
    assert_eq!(field(&started, "replaced"), true);
    assert_eq!(
        field(&scene.kept(), "device_code"),
        "dc_another-nobody-sees"
    );
    let (code, _, talk) = scene.run(&["login", "--start"]);
    assert!(
        code == 0 && talk.contains("given up for this one"),
        "{talk}"
    );
    // A login in one go needs no file, and leaves none.
    let (code, _, talk) = scene.run(&["login"]);
    assert!(
        code == 0 && talk.contains("given up for this login"),
        "{talk}"
    );
    assert!(!scene.request().exists());
    // A logout leaves nothing that would bring a login back.
    scene.begin();
    let (code, answer) = scene.json(&["logout"]);
    assert_eq!((code, field(&answer, "login_given_up")), (0, &json!(true)));
    assert!(!scene.request().exists());
}

#[test]
fn those_who_finish_at_once_ask_once() {
    let scene = begun(&[pending()]);
    scene.interval_passes();
    // Made before the first one runs: making one writes the config.
    let commands: Vec<_> = (0..4)
        .map(|_number| {
            let mut command = scene.command(&["login", "--finish"]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        })
        .collect();
    let spawn = |mut command: std::process::Command| command.spawn().expect("tilld runs");
    for mut child in commands.into_iter().map(spawn).collect::<Vec<_>>() {
        assert_eq!(child.wait().expect("ends").code(), Some(6));
    }
    assert_eq!(scene.service.polled().len(), 1);
}

#[test]
fn one_that_dies_while_asking_leaves_word_that_the_answer_is_not_known() {
    let scene = begun(&[Say::Silent]);
    scene.interval_passes();
    let mut command = scene.command(&["login", "--finish"]);
    command.env("TILLD_SERVICE__REQUEST_TIMEOUT_S", "60");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("tilld runs");
    wait_until(PATIENCE, "a poll", || !scene.service.polled().is_empty());
    send(&child, Signal::KILL);
    child.wait().expect("ends");
    // The next one keeps the interval, and says at the end what nobody knows.
    assert_eq!(scene.run(&["login", "--finish"]).0, 6);
    assert_eq!(scene.service.polled().len(), 1);
    scene.service.say(&[says(400, "expired_token")]);
    scene.interval_passes();
    let (code, _, talk) = scene.run(&["login", "--finish"]);
    assert_eq!(code, 14, "{talk}");
    assert!(talk.contains("revoke what is new there"), "{talk}");
}

#[test]
fn a_wish_to_stop_keeps_the_request() {
    let scene = begun(&[granted()]);
    let old = scene.stored();
    let mut command = scene.command(&["login", "--finish", "--wait=600"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Whether the wish comes before the wait or within it, the request and the old login stay.
    let child = command.spawn().expect("tilld runs");
    let pid = child.id();
    wait_until(PATIENCE, "signals to be heard", || hears(pid, Signal::INT));
    send(&child, Signal::INT);
    let (code, _, talk) = told(&child.wait_with_output().expect("ends"));
    assert_eq!((code, scene.stored()), (1, old), "{talk}");
    assert!(talk.contains(" login --finish` goes on"), "{talk}");
    assert!(scene.request().exists() && scene.service.polled().is_empty());
}

/// True when the process catches this signal.
fn hears(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
}
