//! What is said when a command is given wrongly, by the wrong user, or where it has no place: always an error, a way out
//! that can be typed as it stands, and an exit code; and what a sandbox leaves alone when it is started again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Signal, geteuid};
use serde_json::Value;

use crate::harness::{PATIENCE, Process, skip, wait_for};
use crate::shop::Shop;

/// The account without rights that every system has.
const NOBODY: u32 = 65_534;

#[test]
fn a_mistake_in_the_line_is_told_in_json_as_well() {
    let shop = Shop::new("");
    for args in [
        &["--json", "invoice", "lst"][..],
        &["invoice", "show", "--json"],
        &["sandbox", "--pool=x", "--json"],
    ] {
        let said = shop.tilld(args, 2);
        let lines = said.lines();
        let [answer] = lines.as_slice() else {
            panic!("not one line: {}", said.stdout);
        };
        assert_eq!(answer.get("code"), Some(&Value::from(2)), "{answer}");
        assert!(
            answer.get("error").is_some_and(Value::is_string),
            "{answer}"
        );
        said.told(&["error: "]);
    }
    let plain = shop.tilld(&["invoice", "show", "--", "--json", "--x"], 2);
    assert_eq!(plain.stdout, "");
}

#[test]
fn sandbox_and_demo_refuse_flags_they_have_no_use_for() {
    // Its commands carry `--config`.
    let shop = Shop::new("");
    for command in ["sandbox", "demo"] {
        let said = shop.tilld(&[command, "--json"], 2);
        said.told(&[&format!("`{command}` takes no `--config`"), "hint: "]);
        assert_eq!(said.lines().len(), 1);
        let mut bare = Command::new(env!("CARGO_BIN_EXE_tilld"));
        let output = bare.args([command, "--state-dir=/nonexistent"]).output();
        let output = output.expect("tilld runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(
            talk(&output).contains("takes no `--state-dir`"),
            "{output:?}"
        );
    }
}

#[test]
fn hints_carry_the_flags_that_were_given() {
    let shop = Shop::new("");
    let config = shop.state_dir().with_file_name("config.toml");
    let args = ["invoice", "create", "--order=1", "--amount=1"];
    let rest = [
        "--currency=RUB",
        "--method=SBP",
        "--state-dir",
        "/tmp/my shop",
    ];
    let mut command = shop.command(&args);
    let output = command.args(rest).env_remove("SERVICE_TOKEN").output();
    let output = output.expect("tilld runs");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let hint = format!(
        "hint: run `tilld --config {} --state-dir '/tmp/my shop' login`\n",
        config.display()
    );
    assert!(talk(&output).contains(&hint), "{output:?}");
}

#[test]
fn a_login_that_has_no_place_to_be_stored_asks_for_none() {
    let shop = Shop::new("");
    for place in ["/etc/passwd", "/etc/passwd/state"] {
        let said = shop.tilld(&["--state-dir", place, "login"], 15);
        said.told(&[
            "could not prepare to store the login",
            "hint: make the state",
        ]);
    }
}

#[test]
fn who_may_not_read_is_told_whose_the_ledger_is() {
    if !geteuid().is_root() {
        skip!("only root can become somebody else");
    }
    let shop = Shop::new("");
    shop.refused_invoice("1042");
    let state_dir = shop.state_dir();
    let home = state_dir.parent().expect("a directory above");
    fs::set_permissions(home, Permissions::from_mode(0o755)).expect("ours");
    let dir = state_dir.display();
    for rest in [&["invoice", "list"][..], &["invoice", "show", "it's"]] {
        let Some(output) = as_nobody(&state_dir, rest) else {
            skip!("others may not run this binary");
        };
        assert_eq!(output.status.code(), Some(15), "{output:?}");
        let said = talk(&output);
        let error = format!("error: could not read ledger `{dir}/ledger.db`: ");
        let hint = format!("\nhint: run `sudo -u root tilld --state-dir {dir} invoice ");
        assert!(said.contains(&error) && said.contains(&hint), "{said}");
    }
    let output = as_nobody(&state_dir, &["delivery", "retry", "1"]).expect("it ran before");
    let hint = format!("hint: run `sudo -u root tilld --state-dir {dir} delivery retry 1`\n");
    assert!(talk(&output).contains(&hint), "{output:?}");
}

/// Runs `tilld` as an account without rights; `None` where that account cannot even start it.
fn as_nobody(state_dir: &Path, args: &[&str]) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    command.env_clear().uid(NOBODY).gid(NOBODY);
    command.arg("--state-dir").arg(state_dir).args(args);
    command.output().ok()
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A sandbox on free ports that writes `config`, and what it said of itself; `None` when it ended instead.
fn sandbox(dir: &Path, name: &str, config: &Path) -> (Process, Option<Value>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    command.args(["--json", "sandbox", "--listen=127.0.0.1:0"]);
    command.arg("--control=127.0.0.1:0");
    command.arg("--write-config").arg(config);
    let mut process = Process::spawn(&mut command, dir, name);
    let said = wait_for(PATIENCE, "the sandbox to say where it is", || {
        let said = process.stdout();
        let line = said.split_once('\n').map(|(line, _)| line);
        let answer = line.and_then(|line| serde_json::from_str::<Value>(line).ok())?;
        Some(answer)
    });
    let runs = said.get("service").is_some() && process.ended().is_none();
    (process, runs.then_some(said))
}

#[test]
fn a_sandbox_started_again_makes_other_ids_and_keeps_what_was_edited() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("sandbox.toml");
    let seed = |said: &Value| said.get("seed").and_then(Value::as_u64);
    let (mut first, said) = sandbox(dir.path(), "first", &config);
    let first_seed = seed(&said.expect("it runs")).expect("a seed");
    first.signal(Signal::TERM);
    assert_eq!(first.wait(PATIENCE), 0);

    // Nobody touched the file: it follows the new addresses.
    let (mut second, said) = sandbox(dir.path(), "second", &config);
    let said = said.expect("it runs");
    assert_ne!(seed(&said), Some(first_seed));
    assert_eq!(said.get("config_kept"), Some(&Value::Bool(false)));
    let text = fs::read_to_string(&config).expect("written");
    let service = said.get("service").and_then(Value::as_str).expect("text");
    assert!(text.contains(service), "{text}");
    second.signal(Signal::TERM);
    assert_eq!(second.wait(PATIENCE), 0);

    let edited = format!("{text}\n[[hook]]\n");
    fs::write(&config, &edited).expect("ours");
    let (mut third, said) = sandbox(dir.path(), "third", &config);
    assert!(said.is_none(), "{said:?}");
    assert_eq!(third.wait(PATIENCE), 1);
    let talk = third.stderr();
    assert!(talk.contains("was edited since"), "{talk}");
    assert!(talk.contains("\nhint: set `url`"), "{talk}");
    assert_eq!(fs::read_to_string(&config).expect("there"), edited);
}
