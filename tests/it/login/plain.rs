//! A login in one go, without a terminal.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::stub::{Say, granted, page, pending, says};
use super::{Scene, TOKEN, field, mode, told};

/// What every login shows first.
const SHOWN: &str = "https://cabinet.example/activate?code=ABCD-EFGH\nABCD-EFGH\n";

#[test]
fn a_login_shows_address_and_code_first_and_keeps_the_token_to_itself() {
    let scene = Scene::new(&[pending(), page(502), granted()]);
    // A looser file from elsewhere must not stay loose.
    std::fs::create_dir_all(scene.secret()).expect("made");
    std::fs::write(scene.file(), "old").expect("written");
    std::fs::set_permissions(scene.file(), PermissionsExt::from_mode(0o644)).expect("own file");

    let (code, data, talk) = scene.run(&["login"]);
    assert_eq!(code, 0, "{talk}");
    assert_eq!(
        data,
        format!("{SHOWN}logged in for shop Shop\\u001b[31m\\u202e\n")
    );
    assert!(!talk.contains("warning"), "{talk}");
    assert!(!talk.contains(['█', '\u{1b}', '\r']), "{talk}");
    assert!(talk.contains("502"), "trouble is said: {talk}");
    assert_eq!((mode(&scene.secret()), mode(&scene.file())), (0o700, 0o600));
    let files = std::fs::read_dir(scene.secret()).expect("a directory");
    assert_eq!(files.count(), 1);
    assert_eq!(scene.stored(), TOKEN);

    let (code, answer) = scene.json(&["whoami"]);
    assert_eq!(code, 0);
    assert_eq!(field(&answer, "source"), "file");
    assert_eq!(field(&answer, "service"), &json!(scene.service.url()));

    let (code, _, talk) = scene.run(&["logout"]);
    assert!(
        code == 0 && talk.contains("revoked in the cabinet"),
        "{talk}"
    );
    assert!(!scene.file().exists());
    assert_eq!(scene.run(&["whoami"]).0, 4);
}

/// A35: no browser, no clipboard, no terminal, and nothing that only looks for one.
#[test]
fn no_program_is_started_to_show_the_address() {
    let scene = Scene::new(&[granted()]);
    let traps = scene.home.path().join("bin");
    std::fs::create_dir(&traps).expect("made");
    let caught = scene.home.path().join("caught");
    for name in [
        "xdg-open",
        "sensible-browser",
        "www-browser",
        "firefox",
        "gio",
        "open",
        "xclip",
        "wl-copy",
    ] {
        let script = format!("#!/bin/sh\necho {name} >> '{}'\n", caught.display());
        let path = traps.join(name);
        std::fs::write(&path, script).expect("written");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("own file");
    }
    let mut command = scene.command(&["login"]);
    command.env("PATH", &traps).env("DISPLAY", ":0");
    command.env("BROWSER", traps.join("xdg-open"));
    let (code, data, talk) = told(&command.output().expect("tilld runs"));
    assert!(code == 0 && data.starts_with(SHOWN), "{data}{talk}");
    assert!(!caught.exists(), "{:?}", std::fs::read_to_string(&caught));
}

/// A34: what may pass is waited out, and `slow_down` adds its 5 seconds to every later wait.
#[test]
fn hiccups_do_not_end_a_login() {
    let scene = Scene::new(&[
        Say::Reset,
        page(502),
        Say::Answer(429, r#"{"error":"slow"}"#.to_owned(), Some(2)),
        Say::Silent,
        says(400, "slow_down"),
        granted(),
    ]);
    let mut command = scene.command(&["login"]);
    for time_out in ["REQUEST", "CONNECT"] {
        command.env(format!("TILLD_SERVICE__{time_out}_TIMEOUT_S"), "3");
    }
    let (code, _, talk) = told(&command.output().expect("tilld runs"));
    assert_eq!(code, 0, "{talk}");
    let polled = scene.service.polled();
    let gaps: Vec<u128> = polled
        .iter()
        .zip(polled.iter().skip(1))
        .map(|(one, next)| (*next - *one).as_millis())
        .collect();
    // Never earlier; how much later is the machine's affair.
    for (gap, at_least) in gaps.iter().zip([1_000, 1_000, 2_000, 1_000, 6_000]) {
        assert!(*gap + 20 >= at_least, "{gaps:?}");
    }
    assert_eq!(gaps.len(), 5, "{gaps:?}");
}

#[test]
fn an_interval_that_is_none_is_five_seconds_and_a_lifetime_that_is_none_ten_minutes() {
    let scene = Scene::new(&[pending()]);
    for fields in [
        json!({ "interval": 0, "expiresIn": 0 }),
        json!({ "interval": null, "expiresIn": null }),
    ] {
        scene.service.start_with(&fields);
        let (code, started) = scene.json(&["login", "--start"]);
        assert_eq!(code, 0);
        assert_eq!(field(&started, "interval_s"), 5);
        assert_eq!(field(&started, "expires_in_s"), 600);
    }
    scene
        .service
        .start_with(&json!({ "expiresIn": u64::MAX, "interval": 1 }));
    let (code, started) = scene.json(&["login", "--start"]);
    assert_eq!((code, field(&started, "expires_in_s")), (0, &json!(86_400)));
}

#[test]
fn the_cabinet_is_told_the_name_that_is_set() {
    let mut scene = Scene::new(&[pending()]);
    assert_eq!(scene.run(&["login", "--start"]).0, 0);
    scene.settings = "client_name = \"tilld of the \\\"corner\\\" shop\"".to_owned();
    assert_eq!(scene.run(&["login", "--start"]).0, 0);
    let names: Vec<Value> = scene
        .service
        .begun()
        .iter()
        .map(|body| field(body, "clientName").clone())
        .collect();
    let [default, set] = names.as_slice() else {
        panic!("{names:?}")
    };
    assert!(
        default
            .as_str()
            .is_some_and(|name| name.starts_with("tilld"))
    );
    assert_eq!(set, "tilld of the \"corner\" shop");
}

#[test]
fn a_doubtful_address_is_called_out_before_it_is_shown() {
    let scene = Scene::new(&[granted()]);
    for (address, doubt) in [
        (
            "http://cabinet.example/activate",
            "the address is not https",
        ),
        ("https://cabinet.example.evil/a", "`cabinet.example.evil`"),
        (
            "https://cabinet.example/\u{202e}a\u{1b}[2J",
            "cannot be seen",
        ),
    ] {
        scene
            .service
            .start_with(&json!({ "verificationUrl": address, "userCode": "AB\u{1b}[2J\nCD" }));
        // Both into one pipe: what comes first is what a terminal shows first.
        let mut command = std::process::Command::new("/bin/sh");
        let login = scene.command(&["login"]);
        command.args(["-c", "exec \"$@\" 2>&1", "sh"]);
        command.arg(login.get_program()).args(login.get_args());
        command.env_clear();
        let (code, data, _) = told(&command.output().expect("tilld runs"));
        let lines: Vec<&str> = data.lines().collect();
        let [warning, shown, user_code, ..] = lines.as_slice() else {
            panic!("{data}")
        };
        assert_eq!(code, 0, "{data}");
        assert!(
            warning.starts_with("warning: ") && data.contains(doubt),
            "{data}"
        );
        assert!(shown.starts_with(address.split('\u{202e}').next().expect("a part")));
        assert_eq!(*user_code, "AB\\u001b[2J\\nCD");
        assert!(!data.contains(['\u{1b}', '\u{202e}']), "{data}");
        let (_, started) = scene.json(&["login", "--start"]);
        let warnings = field(&started, "warnings").as_array().expect("a list");
        assert_eq!(warnings.len(), 1, "{started}");
    }
}
