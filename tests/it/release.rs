//! The release script refuses to make half a release: what it lacks is named, and nothing is built. What it makes is the same
//! wherever it is made, and it says so only when it is.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::skip;

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

/// What stands in for cargo: a build is a program of this machine, a package is that program, and with `DIFFERS` also where it was
/// built, as one whose paths are not mapped away.
const CARGO: &str = r#"#!/bin/sh
set -eu
[ "${2:-}" != --version ] || exit 0
echo "$1" >>"$ASKED"
case $1 in
build) mkdir -p "$CARGO_TARGET_DIR/release" && cp /bin/true "$CARGO_TARGET_DIR/release/tilld" ;;
deb)
    while [ "$1" != -o ]; do shift; done
    cp "$CARGO_TARGET_DIR/release/tilld" "$2/tilld_0.1.0-1_amd64.deb"
    [ -z "${DIFFERS:-}" ] || pwd >>"$2/tilld_0.1.0-1_amd64.deb"
    ;;
cyclonedx) printf '{"ref":"path+file://%s#0.1.0"}' "$PWD" >tilld-release.json ;;
esac
"#;

/// A tree of its own with one commit, in which a release can be made in a moment.
struct Tree(tempfile::TempDir);

impl Tree {
    #[track_caller]
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().expect("a directory"));
        let from = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(tree.root().join("packaging")).expect("made");
        for file in [
            "packaging/release",
            "packaging/deb",
            "config.example.toml",
            ".gitignore",
        ] {
            fs::copy(from.join(file), tree.root().join(file)).expect("copied");
        }
        tree.write(
            "Cargo.toml",
            "[package]\nname = \"tilld\"\nversion = \"0.1.0\"\n",
        );
        tree.write("CHANGELOG.md", "# Changelog\n\n## [0.1.0]\n");
        let bin = tree.0.path().join("bin");
        fs::create_dir(&bin).expect("made");
        fs::write(bin.join("cargo"), CARGO).expect("written");
        fs::set_permissions(bin.join("cargo"), Permissions::from_mode(0o755)).expect("own file");
        tree.git(&["init", "--quiet"]);
        tree.commit();
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("tree")
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.root().join(file), text).expect("written");
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@tilld.invalid"]);
        let ran = command.args(args).current_dir(self.root()).output();
        let ran = ran.expect("git");
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).expect("text")
    }

    #[track_caller]
    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "x"]);
    }

    /// Makes a release of it, with these arguments.
    fn release(&self, args: &[&str], differs: bool) -> Output {
        let path = env::var("PATH").unwrap_or_default();
        let bin = self.0.path().join("bin");
        let mut command = Command::new(self.root().join("packaging/release"));
        command.args(args).env("ASKED", self.0.path().join("asked"));
        command.env("PATH", format!("{}:{path}", bin.display()));
        if differs {
            command.env("DIFFERS", "1");
        }
        command.output().expect("it is a program")
    }

    /// It refuses with this, and builds nothing.
    #[track_caller]
    fn refuses(&self, args: &[&str], told: &str) {
        let ran = self.release(args, false);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{ran:?}");
        assert!(
            said.starts_with("error: ") && said.contains(told) && said.contains("\nhint: "),
            "{said}"
        );
        assert!(!self.0.path().join("asked").exists(), "{said}");
    }
}

fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok()
}

#[test]
fn a_release_is_of_a_commit_with_its_changes_told_and_goes_into_a_new_directory() {
    if !has_git() {
        skip!("git is not installed");
    }
    let tree = Tree::new();
    let other = tree.0.path().join("other");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("own"), "mine").expect("written");
    tree.refuses(&[&other.display().to_string()], "other is not empty");
    assert_eq!(fs::read(other.join("own")).expect("it stays"), b"mine");
    tree.write("new", "");
    tree.refuses(&[], "the tree differs from its commit");
    tree.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n");
    tree.commit();
    tree.refuses(&[], "CHANGELOG.md has no section [0.1.0]");
}

#[test]
fn a_release_names_no_place_of_this_machine_and_is_built_twice_when_asked() {
    if !has_git() {
        skip!("git is not installed");
    }
    let tree = Tree::new();
    let files = tree.root().join("target/release-files");
    // What an earlier release left there goes.
    fs::create_dir_all(&files).expect("made");
    fs::write(files.join("old"), "").expect("written");
    let ran = tree.release(&["--twice"], false);
    assert!(ran.status.success(), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        said.ends_with("built twice: the same to the byte\n"),
        "{said}"
    );
    let sums = fs::read_to_string(files.join("SHA256SUMS")).expect("sums");
    let names: Vec<&str> = sums
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    let made = ["tilld", "tilld-0.1.0.cdx.json", "tilld_0.1.0-1_amd64.deb"];
    assert_eq!(names, made);
    assert!(said.contains(&sums), "{said}");
    assert_eq!(fs::read_dir(&files).expect("there").count(), made.len() + 1);
    let materials = fs::read_to_string(files.join("tilld-0.1.0.cdx.json")).expect("materials");
    assert_eq!(materials, r#"{"ref":"path+file:///build#0.1.0"}"#);

    let ran = tree.release(&["--twice"], true);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    assert!(
        String::from_utf8_lossy(&ran.stderr).contains("the second build differs from the first"),
        "{ran:?}"
    );
    // The second tree is gone, whatever came of it.
    assert_eq!(tree.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(tree.git(&["status", "--porcelain"]), "");
}
