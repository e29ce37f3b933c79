//! A scenario of one's own: what is wrong with it is said before anything runs, and what it expects in vain is named with its
//! place.

use std::fs;

use serde_json::json;

use super::{broken, json, left, out, run, talk};

const HEAD: &str =
    "summary = \"mine\"\n\n[[step]]\nopen = { order = \"A-1\", amount = \"10.00\" }\n\n";

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("mine.toml");
    for (text, parts) in [
        ("sumary = \"x\"\n".to_owned(), ["mine.toml", "sumary"]),
        (
            format!("{HEAD}[[step]]\nexpct = 1\n"),
            ["line 6 (step 2)", "`expect`"],
        ),
        (
            format!("{HEAD}[[step]]\npay = \"A-2\"\n"),
            ["line 6 (step 2)", "`A-2`"],
        ),
        (
            format!("{HEAD}[[step]]\nexpect = {{ order = \"A-1\", outcom = \"paid\" }}\n"),
            ["line 6 (step 2)", "`outcom`"],
        ),
    ] {
        fs::write(&file, &text).expect("written");
        let output = run(dir.path(), &["mine.toml"]);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in parts.iter().chain(&["hint: "]) {
            assert!(said.contains(part), "{text}: {said}");
        }
        assert_eq!(out(&output), "");
    }
}

#[test]
fn a_scenario_that_is_not_there_is_answered_with_those_that_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = run(dir.path(), &["hapy"]);
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("happy, lost, twice"), "{said}");
    let output = run(dir.path(), &["./none.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("--list"), "{}", talk(&output));
}

#[test]
fn what_is_printed_is_a_scenario_that_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let printed = out(&run(dir.path(), &["cancelled", "--print"]));
    fs::write(dir.path().join("mine.toml"), printed).expect("written");
    let output = run(dir.path(), &["mine.toml", "--seed", "5"]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("\nok: mine.toml with seed 5\n"), "{said}");
    assert!(
        said.contains("\nagain: tilld sandbox run mine.toml --seed 5\n"),
        "{said}"
    );
    for line in said.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

/// The verdict must be able to be no: about what is not so, in the place where it stands.
#[test]
fn what_is_expected_in_vain_is_named_with_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!(
        "{HEAD}[settings]\nwithin_s = 1\n\n[[step]]\nexpect = {{ order = \"A-1\", outcome = \"paid\", handed_over = 1, refusals = 0 }}\n"
    );
    // A table of settings may not stand between steps.
    let text = text.replace("[settings]\nwithin_s = 1\n\n", "");
    let text = text.replace(
        "summary = \"mine\"\n",
        "summary = \"mine\"\nsettings = { within_s = 1 }\n",
    );
    fs::write(dir.path().join("mine.toml"), text).expect("written");
    let output = run(dir.path(), &["mine.toml", "--seed", "5", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told = json(&output);
    assert_eq!(told.get("ok"), Some(&json!(false)), "{told}");
    assert_eq!(
        broken(&told),
        [
            ["A-1 outcome", "paid", "open"].map(str::to_owned),
            ["A-1 handed_over", "1", "0"].map(str::to_owned),
        ]
    );
    assert_eq!(told.pointer("/rows/0/line"), Some(&json!(7)), "{told}");
    assert_eq!(told.pointer("/rows/0/step"), Some(&json!(2)), "{told}");
    let said = out(&run(dir.path(), &["mine.toml", "--seed", "5"]));
    let wanted = "not ok: line 7 (step 2): A-1 outcome: expected paid, seen open\n";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("\nnot ok: mine.toml with seed 5\n"), "{said}");
    assert_eq!(left(dir.path()), Vec::<String>::new());
    // With many seeds each is named, with the line that plays it again.
    let output = run(dir.path(), &["mine.toml", "--seeds", "8..9"]);
    assert_eq!(output.status.code(), Some(1));
    let said = out(&output);
    assert!(
        said.contains("not ok: mine.toml, 0 of 2 seeds hold, in "),
        "{said}"
    );
    assert!(
        said.contains("again: tilld sandbox run mine.toml --seed 8\n"),
        "{said}"
    );
}

#[test]
fn what_was_played_is_kept_where_that_is_wished_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let kept = dir.path().join("kept");
    let named = kept.to_str().expect("UTF-8");
    let output = run(dir.path(), &["happy", "--seed", "1", "--dir", named]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    for name in [
        "config.toml",
        "serve.log",
        "fulfilled.log",
        "state/ledger.db",
    ] {
        assert!(kept.join(name).exists(), "{name}");
    }
    let again = run(dir.path(), &["happy", "--seed", "1", "--dir", named]);
    assert_eq!(again.status.code(), Some(0), "{}", talk(&again));
    fs::remove_file(kept.join(".tilld-scenario")).expect("there");
    let foreign = run(dir.path(), &["happy", "--seed", "1", "--dir", named]);
    assert_eq!(foreign.status.code(), Some(1));
    assert!(
        talk(&foreign).contains("no directory of a scenario"),
        "{}",
        talk(&foreign)
    );
}
