//! The release script refuses to make half a release: what it lacks is named, and nothing is built.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Runs it where `cargo` knows these commands of others, and gives what it says on stderr.
#[track_caller]
fn refused(known: &str, args: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let cargo = dir.path().join("cargo");
    let built = dir.path().join("built");
    let text = format!(
        "#!/bin/sh\ncase \" {known} \" in *\" $1 \"*) [ \"$2\" = --version ] && exit 0 ;; esac\n[ \"$1\" != build ] || touch '{}'\nexit 101\n",
        built.display()
    );
    fs::write(&cargo, text).expect("written");
    fs::set_permissions(&cargo, Permissions::from_mode(0o755)).expect("own file");
    let path = env::var("PATH").unwrap_or_default();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/release");
    let mut command = Command::new(script);
    command.args(args).arg(dir.path().join("files"));
    command.env("PATH", format!("{}:{path}", dir.path().display()));
    let output = command.output().expect("it is a program");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(!built.exists() && !dir.path().join("files").exists());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_release_lacks_nothing() {
    for (known, told) in [
        (
            "",
            "error: cargo-deb is missing: no package\nhint: cargo install cargo-deb --locked\n",
        ),
        (
            "deb",
            "error: cargo-cyclonedx is missing: no bill of materials\nhint: cargo install cargo-cyclonedx --locked\n",
        ),
    ] {
        assert_eq!(refused(known, &[]), told);
    }
    let said = refused("deb cyclonedx", &["--thrice"]);
    assert!(said.starts_with("error: unknown flag --thrice\n"), "{said}");
}
