//! The example of a variable, the first config and the list of presentations.

use std::process::{Command, Stdio};

use tilld::config::variable_of;
use tilld::listener::presentation::Presentations;

use super::{block, docs};

#[test]
fn the_example_of_a_variable_is_right() {
    let key = "listener.listen";
    let sentence = format!("`{key}` is `{}`", variable_of(key));
    assert!(docs().contains(&sentence), "{sentence}");
}

#[test]
fn the_first_config_is_one_that_tilld_takes() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("tilld.toml");
    // The script is the reader's own; any program stands for it.
    let config = block(&docs(), "config").replace("/usr/local/bin/fulfil", "/bin/true");
    assert!(config.contains("/bin/true"), "the config has a hook");
    std::fs::write(&file, config).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    command.env_clear().env("HOME", dir.path());
    command.args(["serve", "--check", "--config"]).arg(&file);
    let output = command.stdin(Stdio::null()).output().expect("tilld runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

#[test]
fn the_presentations_are_those_that_auto_tries_in_their_order() {
    let shown: Vec<String> = block(&docs(), "presentations")
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let pinned = Presentations::only(&shown).expect("places");
    assert_eq!(pinned.places(), Presentations::auto().places());
}
