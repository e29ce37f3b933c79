//! The launcher in the real binary: one byte lets the program run, in the same process and with the rest of its input.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Starts the launcher, gives it `input` and closes the pipe.
fn launch(program: &str, args: &[&str], input: &[u8]) -> (u32, Output) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    command
        .arg("__launch")
        .arg(program)
        .args(args)
        .env_clear()
        .env("ONLY", "this");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tilld starts");
    let pid = child.id();
    // A launcher that gave up does not read on.
    drop(child.stdin.take().expect("piped").write_all(input));
    (pid, child.wait_with_output().expect("it ends"))
}

#[test]
fn without_the_byte_nothing_runs() {
    for input in [&b""[..], b"x", b"\n", b"{\"schema\":1}"] {
        let (_, output) = launch("/bin/sh", &["-c", "echo ran"], input);
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{input:?}"
        );
    }
}

#[test]
fn the_program_takes_over_process_input_environment_and_arguments() {
    let script =
        "echo $$; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=; printf '<%s>\\n' \"$@\"; cat; exit 42";
    let (pid, output) = launch(
        "/bin/sh",
        &["-c", script, "sh", "a b", "--x", "$(id)", ""],
        b"G{\"a\":1}\nGG",
    );
    let wanted = format!("{pid}\nONLY=this\n<a b>\n<--x>\n<$(id)>\n<>\n{{\"a\":1}}\nGG");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    assert_eq!(output.status.code(), Some(42));
}

#[test]
fn the_program_starts_with_the_usual_signals() {
    let (_, output) = launch("/bin/sh", &["-c", "kill -PIPE $$; echo ignored"], b"G");
    assert_eq!(output.status.signal(), Some(13), "{output:?}");
}

#[test]
fn what_cannot_start_says_why_in_the_words_of_a_shell() {
    let dir = tempfile::tempdir().expect("a directory");
    // Written by another process: a file that one of ours has open for writing, if only in a child about to start
    // another program, cannot be run.
    let file = |name: &str, text: &str, mode: &str| {
        let path = dir.path().join(name);
        let mut shell = Command::new("/bin/sh");
        shell
            .args([
                "-c",
                "printf %s \"$1\" > \"$2\" && chmod \"$3\" \"$2\"",
                "sh",
                text,
            ])
            .arg(&path)
            .arg(mode);
        assert!(shell.status().expect("sh starts").success());
        path
    };
    let check = |path: &Path, code: i32, why: &str| {
        let (_, output) = launch(path.to_str().expect("UTF-8"), &[], b"G{}\n");
        let told = String::from_utf8_lossy(&output.stderr);
        let wanted = format!("tilld: could not start `{}`: {why}", path.display());
        assert!(told.starts_with(&wanted) && told.ends_with('\n'), "{told}");
        assert_eq!(output.status.code(), Some(code), "{told}");
    };
    check(
        &dir.path().join("absent"),
        127,
        "No such file or directory (os error 2)",
    );
    check(Path::new("ship.sh"), 126, "its path is not absolute");
    check(dir.path(), 126, "Permission denied (os error 13)");
    check(
        &file("plain", "#!/bin/sh\n", "644"),
        126,
        "Permission denied (os error 13)",
    );
    check(
        &file("bare", "echo hello\n", "755"),
        126,
        "it is no program and has no `#!` line",
    );
    check(
        &file("crlf", "#!/bin/sh\r\n", "755"),
        127,
        "its interpreter `/bin/sh\\r` is missing (its first line ends in",
    );
    check(
        &file("lost", "#!/no/perl -w\n", "755"),
        127,
        "its interpreter `/no/perl` is missing: No such file",
    );
}
