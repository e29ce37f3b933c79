//! `--verify` judges a merchant's script: a good one passes, and each of those that cost money is told what is wrong with it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use super::{broken, json, out, run, talk};

/// Hands an order over once, and only what was paid as it was agreed.
const GOOD: &str = r#"#!/bin/sh
[ "$TILLD_OUTCOME" = paid ] || exit 0
if mkdir "SHIPPED/$TILLD_ORDER_ID" 2>/dev/null; then echo "handed over $TILLD_ORDER_ID"; fi
"#;

/// Trusts that it is run once.
const TWICE: &str = r#"#!/bin/sh
[ "$TILLD_OUTCOME" = paid ] || exit 0
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
    let told = broken(&json(&output)).concat().join(" ");
    assert!(told.contains("exit 3"), "{told}");
}
