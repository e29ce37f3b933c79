//! The last step before a hook's program: tilld started once more, as a launcher that waits for one byte.
//!
//! A claim must name the process that will run the hook before that process may do anything, and a pid is known only
//! once there is a process. So the daemon starts itself with [`WORD`], stores the new process in the ledger, and only
//! then sends [`GO`]; `exec` keeps pid and start time. A daemon killed in between closes the pipe, and nothing runs.
//! The program gets the three streams and nothing else that tilld was started with ([`super::inherited`]).
//! Relies on the first byte being read without any buffer: what follows it is the program's own standard input.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::io::Errno;

use super::{format, inherited};

/// The word that makes tilld a launcher. Internal: no command, in no help text.
pub const WORD: &str = "__launch";

/// The byte that lets the program run.
pub const GO: u8 = b'G';

/// How the launcher's message begins when the program could not be started; the rest is the reason.
pub const COULD_NOT_START: &str = "tilld: could not start ";

/// Exit code when the program is there but may not or cannot be run, as shells have it.
pub const NOT_RUNNABLE: u8 = 126;

/// Exit code when there is no such program, as shells have it.
pub const NOT_FOUND: u8 = 127;

/// Longest first line of a script that is read to explain a failed start; Linux itself reads 256 bytes.
const LONGEST_FIRST_LINE: u64 = 256;

/// Becomes the launcher when the arguments (the program's own name first) ask for it, `None` otherwise. Must be called
/// before anything else looks at arguments, environment or standard input. Does not return when the program starts.
pub fn entry(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let Some(program) = args.next() else {
        return Some(failed("a program", "none was named", NOT_FOUND));
    };
    // While the daemon names this process in the ledger: it takes no time of the program's.
    let bare = inherited::close_descriptors().and_then(|()| inherited::restore_signals());
    if !is_let_go() {
        return Some(ExitCode::SUCCESS);
    }
    let shown = format!("`{}`", program.display());
    if let Err(error) = bare {
        let why = format!("could not let go of what tilld inherited: {error}");
        return Some(failed(&shown, &why, NOT_RUNNABLE));
    }
    if let Err(refused) = check(Path::new(&program)) {
        return Some(failed(&shown, &refused, NOT_RUNNABLE));
    }
    let error = Command::new(&program).args(args).exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUNNABLE,
    };
    Some(failed(&shown, &reason(Path::new(&program), &error), code))
}

/// Waits for the go byte. Anything else, the end of the pipe above all, means that nobody vouches for this run.
fn is_let_go() -> bool {
    let mut byte = [0; 1];
    loop {
        match rustix::io::read(io::stdin(), &mut byte) {
            Ok(1) => return byte == [GO],
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Looks, before there is anything to run it for, whether the program's file is one that will start.
///
/// # Errors
/// What a failed start would say.
pub fn foresee(program: &Path) -> Result<(), String> {
    check(program)?;
    let interpreter = interpreter(program).filter(|named| !named.is_empty());
    // One that is not absolute is looked for in the working directory, which is empty.
    let is_there = |named: &String| Path::new(named).is_absolute() && Path::new(named).exists();
    if interpreter.as_ref().is_none_or(is_there) {
        return Ok(());
    }
    let kernels = io::Error::from_raw_os_error(Errno::NOENT.raw_os_error());
    Err(reason(program, &kernels))
}

/// Refuses what `execvp` would do more than run the file: look it up in PATH, or hand a file it does not recognise to a shell.
fn check(program: &Path) -> Result<(), String> {
    if !program.is_absolute() {
        return Err("its path is not absolute".to_owned());
    }
    format::check(program)
}

/// Why a start failed, in words that name the file which is really missing.
fn reason(program: &Path, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound && program.exists() {
        let Some(interpreter) = interpreter(program) else {
            return format!("the loader it was built for is missing: {error}");
        };
        let hint = if interpreter.ends_with('\r') {
            " (its first line ends in a carriage return)"
        } else {
            ""
        };
        return format!(
            "its interpreter `{}` is missing{hint}: {error}",
            interpreter.escape_debug()
        );
    }
    error.to_string()
}

/// The interpreter a script names in its first line.
fn interpreter(program: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(program)
        .ok()?
        .take(LONGEST_FIRST_LINE)
        .read_to_end(&mut head)
        .ok()?;
    let line = head
        .split(|&byte| byte == b'\n')
        .next()?
        .strip_prefix(b"#!")?;
    let line = String::from_utf8_lossy(line);
    Some(
        line.trim_start_matches([' ', '\t'])
            .split([' ', '\t'])
            .next()?
            .to_owned(),
    )
}

/// Tells the daemon, through the hook's standard error, why nothing ran.
fn failed(program: &str, why: &str, code: u8) -> ExitCode {
    let message = format!("{COULD_NOT_START}{program}: {why}\n");
    // Nobody else is left to hear that standard error is closed, and the exit code says the same.
    match io::stderr().write_all(message.as_bytes()) {
        Ok(()) | Err(_) => ExitCode::from(code),
    }
}

/// The binary that runs now, even after the file was replaced or removed by an upgrade: the launcher to use.
pub fn own_binary() -> std::path::PathBuf {
    "/proc/self/exe".into()
}

/// The home directory hooks are given: that of the daemon's user, `/` when there is none.
pub fn home() -> std::path::PathBuf {
    env::home_dir()
        .filter(|home| home.is_absolute())
        .unwrap_or_else(|| "/".into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn other_arguments_are_not_the_launchers() {
        for args in [
            vec![],
            vec!["tilld"],
            vec!["tilld", "serve"],
            vec!["tilld", "serve", WORD],
        ] {
            assert!(entry(args.into_iter().map(OsString::from)).is_none());
        }
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let missing = || io::Error::from_raw_os_error(2);
        for (text, wanted) in [
            (
                "#!/no/such/perl -w\n",
                "its interpreter `/no/such/perl` is missing: ",
            ),
            (
                "#! /no/such/sh\n",
                "its interpreter `/no/such/sh` is missing: ",
            ),
            (
                "#!/bin/sh\r\ntrue\r\n",
                "its interpreter `/bin/sh\\r` is missing (its first line ends in a carriage",
            ),
            ("\x7fELF", "the loader it was built for is missing: "),
        ] {
            let path = dir.path().join("script");
            fs::write(&path, text).expect("written");
            let told = reason(&path, &missing());
            assert!(told.starts_with(wanted), "{text:?}: {told}");
            assert!(foresee(&path).is_err(), "{text:?}");
        }
        assert!(reason(&dir.path().join("absent"), &missing()).starts_with("No such file"));
    }

    #[test]
    fn no_shell_is_put_in_front_of_a_file_without_an_interpreter() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("script");
        for (text, good) in [
            ("echo hello\n", false),
            ("#!/bin/sh\n", true),
            ("\x7fELF\x02", false),
            ("", false),
        ] {
            fs::write(&path, text).expect("written");
            assert_eq!(check(&path).is_ok(), good, "{text:?}");
            assert_eq!(foresee(&path).is_ok(), good, "{text:?}");
        }
        assert!(check(Path::new("ship.sh")).is_err() && check(Path::new("./ship.sh")).is_err());
    }
}
