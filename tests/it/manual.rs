//! Completions and manual pages as the programs meet them that read them: shells complete with the one, `mandoc` finds nothing
//! wrong with the other, and both name every command that `--help` lists.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::{skip, under_test};

fn tilld(args: &[&str]) -> Output {
    let mut command = Command::new(under_test());
    command.env_clear().args(args).output().expect("tilld runs")
}

/// What it prints, of a call that ends well.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let output = tilld(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What a program says to a text on its standard input; `None` when it is not installed.
fn read_by(program: &[&str], text: &str) -> Option<Output> {
    let (name, args) = program.split_first().expect("a program");
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    Some(child.wait_with_output().expect("it ends"))
}

/// Runs `program` with the completions of `shell` and `then` on its standard input, and gives what it prints.
#[track_caller]
fn completed(shell: &str, program: &[&str], then: &str) -> Option<String> {
    let script = printed(&["completions", shell]);
    let output = read_by(program, &format!("{script}\n{then}\n"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn bash_completes_commands_and_flags() {
    let ask = "COMP_WORDS=(tilld inv); COMP_CWORD=1; _tilld tilld inv tilld; echo \"${COMPREPLY[@]}\"
        COMP_WORDS=(tilld invoice wait --ti); COMP_CWORD=3; _tilld tilld --ti wait; echo \"${COMPREPLY[@]}\"";
    let told = completed("bash", &["bash", "--norc"], ask);
    assert_eq!(told.as_deref(), Some("invoice\n--timeout\n"));
}

#[test]
fn fish_completes_commands_and_flags() {
    let ask = "complete -C 'tilld inv'; complete -C 'tilld invoice wait --ti'";
    let Some(told) = completed("fish", &["fish", "--no-config"], ask) else {
        skip!("fish is not installed");
    };
    let words: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(words, ["invoice", "--timeout"], "{told}");
}

#[test]
fn zsh_understands_its_completions() {
    let script = printed(&["completions", "zsh"]);
    // The line by which zsh finds it in $fpath.
    assert!(script.starts_with("#compdef tilld\n"), "{script}");
    let Some(output) = read_by(&["zsh", "--no-rcs", "--no-exec"], &script) else {
        skip!("zsh is not installed");
    };
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let broken = read_by(&["zsh", "--no-rcs", "--no-exec"], &format!("{script}\nif"));
    assert!(!broken.expect("it was there").status.success());
}

/// All pages, in a directory of their own.
fn pages() -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().join("man1");
    let answer = printed(&["man", "--json", "--dir", pages.to_str().expect("UTF-8")]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let files = answer.get("files").and_then(Value::as_array);
    let files = files.expect("a list").iter();
    let files = files.map(|file| file.as_str().expect("a name").to_owned());
    let files = files.collect();
    (dir, files)
}

#[test]
fn every_command_has_a_page() {
    let (dir, files) = pages();
    let page = |file: &str| fs::read_to_string(dir.path().join("man1").join(file));
    let first = page("tilld.1").expect("the first page");
    let mut seen = 0;
    for file in &files {
        let text = page(file).expect("it was written");
        let below = text.split(".SH SUBCOMMANDS").nth(1).unwrap_or_default();
        let named = below.lines().filter_map(|line| line.strip_suffix("(1)"));
        for name in named {
            seen += 1;
            let name = format!("{}.1", name.replace('\\', ""));
            assert!(files.contains(&name), "{file} names {name}");
        }
    }
    // Each but the first is named by the one above it, and there are no others.
    assert_eq!(seen, files.len() - 1);
    assert_eq!(
        fs::read_dir(dir.path().join("man1")).expect("made").count(),
        files.len()
    );
    for told in ["/etc/tilld/config.toml", "ledger unusable"] {
        assert!(first.contains(told), "{told}");
    }
    // One alone is the same as in the directory.
    assert_eq!(printed(&["man"]), first);
    let create = page("tilld-invoice-create.1").expect("a page");
    assert_eq!(printed(&["man", "invoice", "create"]), create);
}

#[test]
fn the_pages_are_well_formed() {
    let (dir, files) = pages();
    let lint = |args: &[&str], text: &str| {
        let program = [&["mandoc", "-T", "lint", "-W", "error"], args].concat();
        read_by(&program, text).map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if lint(&[], ".TH x 1\n").is_none() {
        skip!("mandoc is not installed");
    }
    // An end without a beginning.
    let broken = lint(&[], ".TH x 1 \"\"\n.SH A\n.RE 7\n").expect("it was there");
    assert!(!broken.is_empty(), "it sees what is wrong");
    for file in files {
        let text = fs::read_to_string(dir.path().join("man1").join(&file)).expect("it was written");
        assert_eq!(lint(&[], &text).as_deref(), Some(""), "{file}");
    }
}

#[test]
fn what_it_has_no_page_or_script_for_is_refused() {
    for (args, told) in [
        (
            &["man", "invoice", "x\u{1b}"] as &[&str],
            "error: there is no command `invoice x\\u001b`\n",
        ),
        (&["man", "serve", "--dir", "/x"], "cannot be used with"),
        (&["completions", "tcsh"], "possible values: bash, zsh, fish"),
        (
            &["man", "--config", "/x"],
            "`man` takes no `--config`: it reads no settings and no ledger",
        ),
        (
            &["completions", "bash", "--socket", "/x"],
            "`completions` takes no `--socket`",
        ),
    ] {
        let output = tilld(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(told), "{args:?}: {said}");
    }
    let output = tilld(&["man", "--dir", "/proc/none"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("could not write pages into `/proc/none`"),
        "{said}"
    );
}
