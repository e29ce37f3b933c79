//! The settings as the operator meets them: what the real binary says and how it exits.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A value no output may repeat.
const VALUE: &str = "hunter2";

/// Settings that pass `serve --check`.
const GOOD: &str = "[service]\nurl = \"https://service.example\"\n[listener]\npublic_url = \"https://shop.example/n\"\n";

/// `tilld serve --check` in an environment of nothing but `variables`.
fn check(config: Option<&str>, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    command.env_clear().env("HOME", "/home/nobody");
    command.args(["serve", "--check"]).args(args);
    command.envs(variables.iter().copied());
    // Always named: a file in /etc would be read otherwise.
    let path = dir.path().join("config.toml");
    std::fs::write(&path, config.unwrap_or(GOOD)).expect("written");
    command.arg("--config").arg(&path);
    command.output().expect("tilld runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: stdout is no JSON; stderr: {}", stderr(output));
    })
}

/// Looks that tilld refused with exit code 10, said all of `told`, and did not show the value.
fn refused(output: &Output, told: &[&str]) {
    let talk = stderr(output);
    assert_eq!(output.status.code(), Some(10), "{talk}");
    for text in told {
        assert!(talk.contains(text), "`{text}` is missing in: {talk}");
    }
    let all = format!("{talk}{}", String::from_utf8_lossy(&output.stdout));
    assert!(!all.contains(VALUE), "the value shows: {all}");
}

#[test]
fn good_settings_pass() {
    let output = check(None, &[], &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = answer(&output);
    assert_eq!(answer.get("listen"), Some(&Value::from("127.0.0.1:8480")));
    assert_eq!(
        answer.get("state_dir"),
        Some(&Value::from("/home/nobody/.local/state/tilld"))
    );
    let output = check(None, &[], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("https://shop.example/n"), "{text}");
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest_key() {
    let output = check(Some(&format!("listner = \"{VALUE}\"")), &[], &[]);
    refused(
        &output,
        &[
            "error: unknown key `listner`, set in `/",
            "config.toml`",
            "hint: the nearest known key is `listener`",
        ],
    );
    let output = check(None, &[("TILLD_SERVICE_URL", VALUE)], &[]);
    refused(
        &output,
        &[
            "set by the variable `TILLD_SERVICE_URL`",
            "`TILLD_SERVICE__URL`",
        ],
    );
}

#[test]
fn an_ill_typed_key_is_refused_with_its_place() {
    let file = format!("[outbox]\nconcurrency = \"{VALUE}\"");
    let told = [
        "`outbox.concurrency`, set in `/",
        "a whole number from 1 to 256",
    ];
    refused(&check(Some(&file), &[], &[]), &told);
    let variable = ("TILLD_OUTBOX__CONCURRENCY", VALUE);
    let told = ["set by the variable `TILLD_OUTBOX__CONCURRENCY`"];
    refused(&check(None, &[variable], &[]), &told);
    let told = ["`listener.listen`, set by the flag `--listen`"];
    refused(&check(None, &[], &["--listen", VALUE]), &told);
}

#[test]
fn an_unknown_presentation_is_refused_with_the_known_ones() {
    for (place, told) in [
        ("Bearer", "`Bearer` is no presentation"),
        (
            "hmac-sha256:X-Sign",
            "`hmac-sha256:X-Sign` is no presentation",
        ),
        ("header:", "`header:` is no presentation"),
    ] {
        let file = format!("{GOOD}presentations = [\"bearer\", \"{place}\"]\n");
        let known = "known are `header:NAME`, `bearer`, `basic-password`, `query:NAME`, `body:/json/pointer`, \
                     `hmac-sha256:header:NAME` and `standard-webhooks`";
        let all = [
            "could not read `listener.presentations`",
            told,
            known,
            "hint: ",
        ];
        refused(&check(Some(&file), &[], &[]), &all);
    }
    let file = format!("{GOOD}presentations = [\"header:X-A\", \"hmac-sha256:header:x-a\"]\n");
    let told = "`header:x-a` and `hmac-sha256:header:x-a` read the same header";
    refused(&check(Some(&file), &[], &[]), &[told]);
    let good = format!(
        "{GOOD}presentations = [\"basic-password\", \"hmac-sha256:header:X-A\", \"standard-webhooks\"]\n"
    );
    assert_eq!(check(Some(&good), &[], &[]).status.code(), Some(0));
}

#[test]
fn a_syntax_error_does_not_show_the_line() {
    let file = format!("[service]\nurl = {VALUE}");
    refused(&check(Some(&file), &[], &[]), &["at line 2, column 7"]);
}

#[test]
fn a_refusal_can_be_read_by_programs() {
    let output = check(Some(&format!("listner = \"{VALUE}\"")), &[], &["--json"]);
    refused(&output, &["error: ", "hint: "]);
    let answer = answer(&output);
    assert_eq!(answer.get("code"), Some(&Value::from(10)));
    for part in ["error", "hint"] {
        assert!(answer.get(part).is_some_and(Value::is_string), "{answer}");
    }
}

#[test]
fn a_flag_outranks_a_variable_and_a_variable_the_file() {
    let file = format!("{GOOD}listen = \"127.0.0.1:1\"\n");
    let variable = [("TILLD_LISTENER__LISTEN", "127.0.0.1:2")];
    let listens = |variables: &[(&str, &str)], args: &[&str]| {
        let output = check(Some(&file), variables, args);
        let listen = answer(&output).get("listen").cloned();
        listen.unwrap_or_default()
    };
    assert_eq!(listens(&[], &["--json"]), "127.0.0.1:1");
    assert_eq!(listens(&variable, &["--json"]), "127.0.0.1:2");
    let flag = ["--json", "--listen", "127.0.0.1:3"];
    assert_eq!(listens(&variable, &flag), "127.0.0.1:3");
}

#[test]
fn the_state_directory_follows_its_order() {
    let setting = ("TILLD_STATE_DIR", "/setting");
    let systemd = ("STATE_DIRECTORY", "/systemd");
    let state_dir = |variables: &[(&str, &str)], args: &[&str]| {
        let output = check(None, variables, args);
        let dir = answer(&output).get("state_dir").cloned();
        dir.unwrap_or_default()
    };
    assert_eq!(state_dir(&[setting], &["--json"]), "/setting");
    assert_eq!(state_dir(&[setting, systemd], &["--json"]), "/systemd");
    let flag = ["--json", "--state-dir", "/flag"];
    assert_eq!(state_dir(&[setting, systemd], &flag), "/flag");
    let two = [("STATE_DIRECTORY", "/a:/b")];
    refused(&check(None, &two, &[]), &["exactly one absolute path"]);
}

// A hook that calls tilld hands its own variables on; read as settings or refused as unknown, they would break the shop's
// scripts from within.
#[test]
fn a_hook_that_calls_tilld_works() {
    let reserved = tilld::config::reserved().map(|name| (name, VALUE));
    let output = check(None, &reserved.collect::<Vec<_>>(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn what_has_no_default_is_asked_for() {
    let output = check(Some(""), &[], &[]);
    refused(&output, &["`service.url` is not set", "TILLD_SERVICE__URL"]);
    let file = "[service]\nurl = \"https://service.example\"";
    refused(
        &check(Some(file), &[], &[]),
        &["`listener.public_url` is not set"],
    );
}

#[test]
fn a_hook_that_cannot_run_is_found_before_the_start() {
    let file = format!(
        "{GOOD}[[hook]]\nname = \"fulfil\"\non = [\"paid\"]\nrun = [\"/no/such/program\"]\n"
    );
    let told = ["hook `fulfil` cannot run `/no/such/program`: No such file"];
    refused(&check(Some(&file), &[], &[]), &told);
}

#[test]
fn the_daemon_takes_no_token_from_its_environment() {
    let told = [
        "`SERVICE_TOKEN`",
        "hint: unset it and run `tilld ",
        "login`",
    ];
    refused(&check(None, &[("SERVICE_TOKEN", VALUE)], &[]), &told);
}

#[test]
fn a_named_file_must_exist() {
    let output = Command::new(env!("CARGO_BIN_EXE_tilld"))
        .env_clear()
        .args(["--config", "/no/such/config.toml", "serve", "--check"])
        .output()
        .expect("tilld runs");
    refused(&output, &["`/no/such/config.toml`: No such file"]);
}

#[test]
fn the_example_passes_once_its_addresses_are_given() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("config.example.toml");
    let example = std::fs::read_to_string(example).expect("the example");
    let variables = [
        ("TILLD_SERVICE__URL", "https://service.example"),
        ("TILLD_LISTENER__PUBLIC_URL", "https://shop.example/n"),
    ];
    let output = check(Some(&example), &variables, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_command_line_that_is_not_understood_exits_2() {
    let output = check(None, &[], &["--no-such-flag"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_closed_pipe_is_a_normal_end() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_tilld"))
        .env_clear()
        .args(["serve", "--check", "--state-dir", "/x"])
        .env("TILLD_SERVICE__URL", "https://service.example")
        .env("TILLD_LISTENER__PUBLIC_URL", "https://shop.example/n")
        .stdout(Stdio::from(writer))
        .output()
        .expect("tilld runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
}
