//! Where an access token is taken from, in which order, and what is said of each place (contract 4.2; A30).

use std::path::Path;

use serde_json::json;

use super::{Scene, field};
use crate::harness::{ACCESS_TOKEN, Heard, Service, Setup, World};

const FROM_VARIABLE: &str = "shop:from-the-variable-nobody-sees";
const FROM_SYSTEMD: &str = "shop:from-systemd-nobody-sees";

/// A directory as systemd passes it, with an access token in it.
fn credentials_dir(home: &Path) -> String {
    let dir = home.join("systemd");
    std::fs::create_dir_all(&dir).expect("made");
    std::fs::write(dir.join("access-token"), format!("{FROM_SYSTEMD}\n")).expect("written");
    dir.to_string_lossy().into_owned()
}

/// The token the last create came with, and the hint the 401 was answered with.
#[track_caller]
fn asked(world: &World, service: &Service, variables: &[(&str, &str)]) -> (String, String) {
    let before = service.heard().len();
    let args = [
        "invoice",
        "create",
        "--order=A-1",
        "--amount=1.00",
        "--currency=RUB",
        "--method=SBP",
    ];
    let ran = world.tilld_with(variables, &args);
    assert_eq!(ran.code, 4, "{ran:?}");
    let heard = service.heard();
    let headers = heard.get(before).map_or("", |heard| &heard.headers);
    let bearer = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(": Bearer ")?;
        name.eq_ignore_ascii_case("authorization").then_some(value)
    });
    let hint = ran
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("hint: "));
    (
        bearer.unwrap_or_default().to_owned(),
        hint.unwrap_or_default().to_owned(),
    )
}

#[test]
fn the_variable_outranks_the_file_and_the_file_the_credential_and_each_has_its_way_out() {
    let service = Service::start(|_heard: &Heard| (401, json!({ "error": "no" }).to_string()));
    let world = Setup::new().service(&service.url()).not_served().start();
    let dir = credentials_dir(world.dir());
    let systemd = ("CREDENTIALS_DIRECTORY", dir.as_str());
    let variable = ("SERVICE_TOKEN", FROM_VARIABLE);

    let (token, hint) = asked(&world, &service, &[]);
    assert!(
        token.is_empty() && hint.ends_with(" login`"),
        "{token} {hint}"
    );
    let (token, hint) = asked(&world, &service, &[systemd]);
    assert_eq!(token, FROM_SYSTEMD);
    assert!(
        hint.contains("replace the systemd credential") && hint.contains(" login`"),
        "{hint}"
    );
    let login = world.tilld(&["login"]);
    assert_eq!(login.code, 0, "{login:?}");
    let (token, hint) = asked(&world, &service, &[systemd]);
    assert_eq!(token, ACCESS_TOKEN);
    assert!(
        hint.starts_with("run `tilld") && hint.ends_with(" login`"),
        "{hint}"
    );
    let (token, hint) = asked(&world, &service, &[systemd, variable]);
    assert_eq!(token, FROM_VARIABLE);
    assert!(hint.contains("`SERVICE_TOKEN`"), "{hint}");
}

#[test]
fn whoami_names_the_place_and_logout_what_remains() {
    let scene = Scene::logged_in(&[super::stub::granted()]);
    let dir = credentials_dir(scene.home.path());
    let run = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = scene.command(args);
        command.envs(variables.iter().copied());
        super::told(&command.output().expect("tilld runs"))
    };
    let systemd = ("CREDENTIALS_DIRECTORY", dir.as_str());
    let variable = ("SERVICE_TOKEN", FROM_VARIABLE);
    let source = |variables: &[(&str, &str)]| {
        let (code, data, talk) = run(variables, &["whoami", "--json"]);
        assert_eq!(code, 0, "{talk}");
        let answer: serde_json::Value = serde_json::from_str(&data).expect("JSON");
        field(&answer, "source")
            .as_str()
            .expect("a text")
            .to_owned()
    };
    assert_eq!(source(&[systemd, variable]), "environment");
    assert_eq!(source(&[systemd]), "file");
    let (code, _, talk) = run(&[variable], &["login"]);
    assert!(code == 0 && talk.contains("outranks this login"), "{talk}");

    let (code, data, talk) = run(&[systemd, variable], &["logout"]);
    assert!(code == 0 && data.contains("removed"), "{data}{talk}");
    for told in [
        "a token remains in the variable `SERVICE_TOKEN`",
        "a token remains in the systemd credential `access-token`",
        "https://cabinet.example",
    ] {
        assert!(talk.contains(told), "{told}: {talk}");
    }
    assert_eq!(source(&[systemd]), "systemd_credential");
    let (code, data, _) = run(&[systemd], &["logout", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!((code, field(&answer, "removed")), (0, &json!(false)));
    let remains = field(&answer, "remains").as_array().expect("a list");
    assert_eq!(remains.len(), 1, "{answer}");
    let (_, _, talk) = run(&[], &["logout"]);
    assert!(!talk.contains("remains"), "{talk}");
}

#[test]
fn a_daemon_does_not_start_with_a_token_in_its_environment() {
    let scene = Scene::logged_in(&[super::stub::pending()]);
    let mut command = scene.command(&["serve"]);
    command.env("SERVICE_TOKEN", FROM_VARIABLE);
    let (code, _, talk) = super::told(&command.output().expect("tilld runs"));
    assert_eq!(code, 10, "{talk}");
    assert!(talk.contains("unset it"), "{talk}");
}

#[test]
fn a_login_for_another_service_is_not_used_here() {
    let scene = Scene::new(&[super::stub::pending()]);
    scene.store_for("shop-1:of-another-nobody-sees", "https://pay.example");
    let (code, _, talk) = scene.run(&["whoami"]);
    assert!(code == 0 && talk.contains("cannot be used there"), "{talk}");
    let (code, _, talk) = scene.run(&["whoami", "--check"]);
    assert!(code == 4 && talk.contains("https://pay.example"), "{talk}");
}
