//! What is depended on: each outside crate stands in Cargo.toml below the reason why it is there.

use std::fs;
use std::path::Path;

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
