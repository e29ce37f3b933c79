//! What is depended on: each outside crate stands in Cargo.toml below the reason why it is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Dependencies of a manifest that no comment stands above.
fn without_reason(manifest: &str) -> Vec<&str> {
    let (mut found, mut is_list, mut before) = (Vec::new(), false, "");
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            is_list = line.ends_with("dependencies]");
        } else if is_list && !line.starts_with('#') && !line.is_empty() {
            // A reason says more than a name.
            let is_told = before.starts_with("# ") && before.split(' ').count() > 2;
            found.extend((!is_told).then_some(line));
        }
        before = line;
    }
    found
}

#[test]
fn each_dependency_has_its_reason() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("Cargo.toml");
    assert!(manifest.contains("[dev-dependencies]"));
    assert_eq!(without_reason(&manifest), [""; 0]);
}

#[test]
fn a_dependency_without_a_reason_is_found() {
    let planted = "[dependencies]\n# For a reason.\na = \"1\"\nb = \"1\"\n\n# c\nc = \"1\"\n\
                   [dev-dependencies]\nd = \"1\"\n[lints.rust]\ne = \"warn\"\n";
    let found = without_reason(planted);
    assert_eq!(found, ["b = \"1\"", "c = \"1\"", "d = \"1\""]);
}

/// README's two commands share every dependency: what only tests need changes no feature of what the program is built with.
#[test]
fn tests_change_no_feature_of_a_dependency() {
    let tree = |edges: &str| -> BTreeSet<String> {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command.args([
            "tree",
            "--locked",
            "--offline",
            "--prefix=none",
            "-f={p} {f}",
        ]);
        let output = command.arg(format!("--edges={edges}")).output();
        let output = output.expect("cargo runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect()
    };
    let (program, with_tests) = (tree("normal,build"), tree("normal,build,dev"));
    assert!(program.len() > 100, "{program:?}");
    let changed: Vec<&String> = program.difference(&with_tests).collect();
    assert!(changed.is_empty(), "compiled twice: {changed:?}");
}
