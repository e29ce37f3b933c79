//! `--verify` judges a merchant's script: a good one passes, and each of those that cost money is told what is wrong with it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use super::{NAMES, broken, json, out, run, talk};

/// Hands an order over once, and only what was paid as it was agreed.
const GOOD: &str = r#"#!/bin/sh
[ "$TILLD_OUTCOME" = paid ] || exit 0
if mkdir "SHIPPED/$TILLD_ORDER_ID" 2>/dev/null; then echo "handed over $TILLD_ORDER_ID"; fi
"#;

/// Trusts that it is run once.
const TWICE: &str = r#"#!/bin/sh
mkdir -p "SHIPPED/$TILLD_ORDER_ID"
echo "handed over $TILLD_ORDER_ID"
"#;

/// Trusts that whoever pays pays all.
const UNCHECKED: &str = r#"#!/bin/sh
if mkdir "SHIPPED/$TILLD_ORDER_ID" 2>/dev/null; then echo "handed over $TILLD_ORDER_ID"; fi
"#;

/// Fails, and prints what it was given.
const FAILS: &str = "#!/bin/sh\nenv\nexit 3\n";

fn judge(dir: &Path, script: &str, more: &[&str]) -> Output {
    let shipped = dir.join("shipped");
    fs::create_dir(&shipped).expect("made");
    let file = dir.join("fulfil.sh");
    let text = script.replace("SHIPPED", shipped.to_str().expect("UTF-8"));
    fs::write(&file, text).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
    // Meant from here, though it is run from elsewhere.
    let args = ["happy", "--seed", "3", "--verify", "./fulfil.sh"];
    run(dir, &[&args[..], more].concat())
}

/// A scenario without a step that matters, which leaves the world as these steps do.
fn leave(dir: &Path, steps: &str) {
    let text = format!(
        "summary = \"x\"\n[[step]]\nopen = {{ order = \"A-1\" }}\n[[step]]\npay = \"A-1\"\n[[step]]\nexpect = {{ order = \"A-1\", handed_over = 1 }}\n{steps}"
    );
    fs::write(dir.join("mine.toml"), text).expect("written");
}

/// Puts a script where it is run from.
fn put(dir: &Path, script: &str) {
    let shipped = dir.join("shipped");
    fs::create_dir_all(&shipped).expect("made");
    let text = script.replace("SHIPPED", shipped.to_str().expect("UTF-8"));
    fs::write(dir.join("fulfil.sh"), text).expect("written");
}

#[track_caller]
fn passes(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", talk(&output));
    said
}

#[track_caller]
fn is_told(script: &str, code: i32, wanted: &[[&str; 3]]) {
    let dir = tempfile::tempdir().expect("a directory");
    let output = judge(dir.path(), script, &["--json"]);
    let told = json(&output);
    let wanted: Vec<_> = wanted.iter().map(|row| row.map(str::to_owned)).collect();
    assert_eq!(broken(&told), wanted, "{told}");
    assert_eq!(output.status.code(), Some(code), "{}", talk(&output));
}

#[test]
fn a_good_script_passes() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = judge(dir.path(), GOOD, &[]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", talk(&output));
    for row in [
        "script: paid",
        "script: run twice",
        "script: paid twice",
        "script: paid less",
        "script: exit codes",
        "script: time",
        "script: output",
        "script: secrets shown",
    ] {
        assert!(said.contains(row), "{row}: {said}");
    }
    assert!(
        said.contains("again: tilld sandbox run happy --seed 3 --verify ./fulfil.sh\n"),
        "{said}"
    );
}

#[test]
fn a_script_that_trusts_to_be_run_once_hands_over_twice() {
    is_told(
        TWICE,
        1,
        &[
            ["script: run twice", "goods once", "goods 2 times"],
            ["script: paid twice", "goods once", "goods 2 times"],
            ["script: paid less", "no goods", "goods once"],
        ],
    );
}

#[test]
fn a_script_that_does_not_look_at_the_amount_hands_over_too_much() {
    is_told(
        UNCHECKED,
        1,
        &[["script: paid less", "no goods", "goods once"]],
    );
}

#[test]
fn a_script_that_fails_and_prints_what_nobody_else_should_know() {
    is_told(
        FAILS,
        1,
        &[
            ["A-1 handed_over", "1", "0"],
            ["script: paid", "goods once", "no goods"],
            ["script: run twice", "goods once", "no goods"],
            ["script: paid twice", "goods once", "no goods"],
            ["script: exit codes", "0", "3"],
            ["script: secrets shown", "none", "a ref"],
        ],
    );
}

/// A script that writes to a database says nothing: the shop's own list counts.
#[test]
fn goods_are_counted_by_the_shops_own_list_where_there_is_one() {
    let silent = GOOD.replace(
        "; then echo \"handed over $TILLD_ORDER_ID\"; fi",
        "; then :; fi",
    );
    let dir = tempfile::tempdir().expect("a directory");
    let output = judge(dir.path(), &silent, &["--goods", "ls shipped"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        out(&output),
        talk(&output)
    );
    let dir = tempfile::tempdir().expect("a directory");
    let output = judge(dir.path(), &silent, &["--json"]);
    assert!(!broken(&json(&output)).is_empty());
    let dir = tempfile::tempdir().expect("a directory");
    let output = judge(dir.path(), &silent, &["--goods", "exit 3", "--json"]);
    let told = broken(&json(&output));
    let row = ["script: goods list", "exit 0", "exit 3"];
    assert!(
        !told.is_empty() && told.iter().all(|told| *told == row),
        "{told:?}"
    );
}

/// What a scenario has left must not be the script's fault.
#[test]
fn a_good_script_passes_in_every_scenario() {
    for name in NAMES {
        let dir = tempfile::tempdir().expect("a directory");
        put(dir.path(), GOOD);
        passes(
            dir.path(),
            &[name, "--seed", "1", "--verify", "sh fulfil.sh"],
        );
    }
}

#[test]
fn the_world_is_made_right_before_a_script_is_judged() {
    for left in [
        "[[step]]\ndown = true\n",
        "[[step]]\npool = 0\n",
        "[[step]]\nfaults = { api_status = { endpoint = \"create\", status = 500, times = true }, lose = 1000 }\n",
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        put(dir.path(), GOOD);
        leave(dir.path(), left);
        passes(
            dir.path(),
            &["mine.toml", "--seed", "1", "--verify", "sh fulfil.sh"],
        );
    }
}

/// As in a CI that plays one scenario after another with one database.
#[test]
fn a_script_that_remembers_passes_again_and_with_many_seeds() {
    let dir = tempfile::tempdir().expect("a directory");
    put(dir.path(), GOOD);
    let args = [
        "happy",
        "--seed",
        "1",
        "--verify",
        "sh fulfil.sh",
        "--trace",
    ];
    let first = passes(dir.path(), &args);
    assert_eq!(
        first,
        passes(dir.path(), &args),
        "the orders' plain names are told"
    );
    assert!(first.contains("A-1"), "{first}");
    let seeds = [
        "happy",
        "--seeds",
        "1..2",
        "--verify",
        "sh fulfil.sh",
        "--goods",
        "ls shipped",
    ];
    passes(dir.path(), &seeds);
    // What an earlier run handed over is nothing a script has done that does nothing.
    put(dir.path(), "#!/bin/sh\n");
    let idle = [
        "happy",
        "--seed",
        "1",
        "--verify",
        "sh fulfil.sh",
        "--goods",
        "ls shipped",
    ];
    assert_eq!(run(dir.path(), &idle).status.code(), Some(1));
}

#[test]
fn a_line_that_runs_nothing_is_refused_before_anything_starts() {
    let dir = tempfile::tempdir().expect("a directory");
    put(dir.path(), GOOD);
    for (line, word) in [
        ("", "php"),
        ("no-such-program x", "PATH"),
        ("./fulfil.sh", "chmod"),
    ] {
        let output = run(dir.path(), &["happy", "--verify", line]);
        assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
        assert!(talk(&output).contains(word), "{}", talk(&output));
    }
}

/// Whoever writes a script wants to know why it failed.
#[test]
fn what_a_script_that_fails_says_is_shown_without_secrets() {
    let script = "#!/bin/sh\necho no such table: goods >&2\nenv >&2\nexit 3\n";
    let dir = tempfile::tempdir().expect("a directory");
    put(dir.path(), script);
    let args = [
        "happy",
        "--seed",
        "1",
        "--verify",
        "sh fulfil.sh; c=$?; printf 'bad\\033[31m word\\n' >&2; exit $c",
    ];
    let said = out(&run(dir.path(), &args));
    assert!(
        said.contains("the script (exit 3) said last on stderr:\n"),
        "{said}"
    );
    assert!(
        said.contains("    bad") && !said.contains('\u{1b}'),
        "{said}"
    );
    assert!(said.contains("runs/*.err"), "{said}");
    let kept = dir.path().join("kept");
    fs::create_dir(&kept).expect("made");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o755)).expect("set");
    let kept_at = kept.to_str().expect("UTF-8");
    let said = out(&run(dir.path(), &[&args[..], &["--dir", kept_at]].concat()));
    let file = said
        .lines()
        .find_map(|line| line.strip_prefix("all of it: "));
    let all = fs::read_to_string(file.expect("told")).expect("kept");
    let state = all
        .lines()
        .find_map(|line| line.strip_prefix("TILLD_ORDER_ID="));
    assert!(all.contains("no such table") && state.is_some(), "{all}");
    for (name, mode) in [("config.toml", 0o600), ("runs", 0o700)] {
        let told = fs::metadata(kept.join(name)).expect("kept").permissions();
        assert_eq!(told.mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn a_script_that_prints_without_end_is_told_so_and_kept_short() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = GOOD.replace(
        "#!/bin/sh\n",
        "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\n",
    );
    put(dir.path(), &script);
    let kept = dir.path().join("kept");
    let kept_at = kept.to_str().expect("UTF-8");
    let args = [
        "happy",
        "--seed",
        "1",
        "--verify",
        "sh fulfil.sh",
        "--json",
        "--dir",
        kept_at,
    ];
    let told = json(&run(dir.path(), &args));
    let row = ["script: output", "below 256 KiB", "too much output"];
    assert_eq!(broken(&told), [row.map(str::to_owned)], "{told}");
    for entry in fs::read_dir(kept.join("runs")).expect("kept") {
        let size = entry.expect("read").metadata().expect("there").len();
        assert!(size <= 256 * 1024, "{size}");
    }
}

/// A program that the script starts and leaves behind with its output open holds nothing up.
#[test]
fn a_script_that_leaves_somebody_behind_passes() {
    let dir = tempfile::tempdir().expect("a directory");
    put(dir.path(), &format!("{GOOD}sleep 60 &\n"));
    passes(
        dir.path(),
        &["happy", "--seed", "1", "--verify", "sh fulfil.sh"],
    );
}

/// To say that a person must look is what the contract of hooks has an exit code for.
#[test]
fn a_script_may_give_an_amount_that_is_not_as_agreed_to_a_person() {
    let dir = tempfile::tempdir().expect("a directory");
    put(dir.path(), &GOOD.replace("exit 0", "exit 65"));
    passes(
        dir.path(),
        &["happy", "--seed", "1", "--verify", "sh fulfil.sh"],
    );
}
