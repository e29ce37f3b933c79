//! tilld as a launcher, and the last step before a hook's program: a process that was split off from the launcher waits for
//! its order and becomes the program it names.
//!
//! The daemon starts itself with [`WORD`] ([`super::launcher`]). A daemon killed before it has sent an order closes the
//! pipe, and nothing runs. The program gets the three streams and nothing else that tilld was started with
//! ([`super::inherited`]).

use std::env;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::io::Errno;

use super::launcher::{self, Launcher, Role};
use super::order::Order;
use super::{format, inherited};
use crate::regular_file;

/// The word that makes tilld a launcher. Internal: no command, in no help text.
pub const WORD: &str = "__launch";

/// How the launcher's message begins when the program could not be started; the rest is the reason.
pub const COULD_NOT_START: &str = "tilld: could not start ";

/// Exit code when the program is there but may not or cannot be run, as shells have it.
pub const NOT_RUNNABLE: u8 = 126;

/// Exit code when there is no such program, as shells have it.
pub const NOT_FOUND: u8 = 127;

/// Exit code when the program could not be started for want of something: `EX_OSERR` of sysexits. A program's own 71 says
/// nothing as the launcher would.
pub const WANTING: u8 = 71;

/// Whether something failed for want of what may come back: processes, memory, descriptors, room.
pub(super) fn is_want(error: &io::Error) -> bool {
    let wants = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::NOBUFS,
    ];
    Errno::from_io_error(error).is_some_and(|errno| wants.contains(&errno))
}

/// Longest first line of a script that is read to explain a failed start; Linux itself reads 256 bytes.
const LONGEST_FIRST_LINE: u64 = 256;

/// Becomes the launcher when the arguments (the program's own name first) ask for it, `None` otherwise. Must be called
/// before anything else looks at arguments, environment or standard input, and while there is one thread. Does not return
/// where a program starts.
pub fn entry(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    if args.into_iter().nth(1)? != WORD {
        return None;
    }
    Some(run())
}

/// The launcher, and what is split off from it. Nobody hears what the launcher itself could say: its end is noticed.
pub(super) fn run() -> ExitCode {
    let bare = inherited::close_descriptors().and_then(|()| inherited::restore_signals());
    match bare.and_then(|()| launcher::serve()) {
        Ok(Role::Launcher) => ExitCode::SUCCESS,
        Ok(Role::Waiting) => {
            Order::receive(io::stdin()).map_or(ExitCode::SUCCESS, |order| become_program(&order))
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Becomes the program; returns when that cannot be.
fn become_program(order: &Order) -> ExitCode {
    let program = order.program.as_path();
    let shown = format!("`{}`", program.display());
    if let Err(refused) = check(program) {
        return failed(&shown, &refused, NOT_RUNNABLE);
    }
    if let Err(error) = env::set_current_dir(&order.dir) {
        let why = format!("its working directory cannot be entered: {error}");
        return failed(&shown, &why, NOT_RUNNABLE);
    }
    let mut command = Command::new(program);
    let variables = order.variables.iter().map(|(name, value)| (name, value));
    command.args(&order.args).env_clear().envs(variables);
    let error = command.exec();
    let code = match error.kind() {
        _ if is_want(&error) => WANTING,
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUNNABLE,
    };
    failed(&shown, &reason(program, &error), code)
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
    let (file, _) = regular_file::open(program).ok()?;
    file.take(LONGEST_FIRST_LINE).read_to_end(&mut head).ok()?;
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

/// The launcher of this program.
pub fn launcher() -> Launcher {
    Launcher::new(own_binary(), vec![WORD.into()])
}

/// The one that tests have.
#[cfg(test)]
pub(crate) fn stand_in() -> Launcher {
    let args = [
        "hook::launch::tests::stands_in_for_the_launcher",
        "--exact",
        "--ignored",
        "--test-threads=1",
    ];
    Launcher::new(own_binary(), args.map(OsString::from).to_vec())
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

    /// The launcher of other tests, which are another program than tilld: they start themselves with this one test.
    #[test]
    #[ignore = "is no test but a process that other tests start"]
    fn stands_in_for_the_launcher() {
        let end = run();
        assert_eq!(format!("{end:?}"), format!("{:?}", ExitCode::SUCCESS));
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
