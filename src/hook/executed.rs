//! Which files a run executes: its program, what the first lines of scripts name, and the files that an interpreter is given. By
//! the first lines, as the kernel reads them, and the names of the programs; nothing is run.
//!
//! Relies on the file system as it is now. Promises to name each file that an interpreter is given, and each script or program
//! that any program is given; mere data of other programs is not named.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::process::PATH;
use crate::regular_file::{self, Unfit};

/// Longest first line that is read.
const FIRST_LINE: u64 = 4_096;
/// So many scripts may run each other; the kernel gives up at five.
pub(crate) const DEEPEST: usize = 5;
/// Programs that run what they are given, by how their names begin: `python` is `python3.11` too.
const INTERPRETERS: [&str; 30] = [
    "ash", "awk", "bash", "bun", "busybox", "csh", "dash", "deno", "dotnet", "doas", "env", "fish",
    "gawk", "java", "ksh", "lua", "nice", "node", "nohup", "perl", "php", "python", "pypy", "ruby",
    "runuser", "setpriv", "sh", "sudo", "timeout", "zsh",
];

/// What a first line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter<'a> {
    /// The program the kernel starts.
    pub(crate) program: &'a str,
    /// What `env` is to look for, when that is the program.
    pub(crate) by_env: Option<&'a str>,
}

impl<'a> Interpreter<'a> {
    /// Reads a first line; `None` when it is no `#!` with a program.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix("#!")?.split_whitespace();
        let program = words.next()?;
        let by_env = is_env(Path::new(program)).then(|| wanted_of_env(words));
        Some(Self {
            program,
            by_env: by_env.flatten(),
        })
    }
}

/// Whether it looks a program up, and runs that.
pub(crate) fn is_env(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "env")
}

/// `env -S` takes more words; the first that is neither a flag nor a variable is the program.
pub(crate) fn wanted_of_env<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words.find(|word| !word.starts_with('-') && !word.contains('='))
}

/// Where hooks find a program of this name.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let mut all = PATH.split(':').map(|dir| Path::new(dir).join(name));
    all.find(|path| path.exists())
}

/// The first line of a file, without its end; at most 4 KiB.
pub(crate) fn first_line(file: &Path) -> io::Result<String> {
    let mut line = Vec::new();
    let (file, _) = regular_file::open(file).map_err(Unfit::into_io)?;
    let reader = BufReader::new(file.take(FIRST_LINE));
    reader.take(FIRST_LINE).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// `node`, `nodejs`, `node-22`, `java17`; not `nodemon`, which is a script, nor `javac`.
pub(crate) fn begins_so(program: &Path, name: &str) -> bool {
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    file.strip_prefix(name).is_some_and(|rest| {
        rest.is_empty() || rest == "js" || !rest.starts_with(|first: char| first.is_alphabetic())
    })
}

/// The files that are executed when this is run, each by the path that names it, the program first.
pub(crate) fn files(program: &Path, args: &[String]) -> Vec<PathBuf> {
    let mut files = vec![program.to_owned()];
    if is_interpreter(program) {
        files.extend(args.iter().flat_map(|arg| given(arg)));
        let wanted = is_env(program).then(|| wanted_of_env(args.iter().map(String::as_str)));
        files.extend(wanted.flatten().and_then(in_path));
    } else {
        let given = args.iter().map(PathBuf::from);
        files.extend(given.filter(|path| path.is_absolute() && may_be_run(path)));
    }
    let mut at = 0;
    let most = files.len() * DEEPEST;
    while let Some(line) = files.get(at).map(|file| first_line(file))
        && at < most
    {
        // One that cannot be read is left to the start of the program.
        let line = line.unwrap_or_default();
        if let Some(asked) = Interpreter::of(&line) {
            let all = [
                Some(PathBuf::from(asked.program)),
                asked.by_env.and_then(in_path),
            ];
            let words = line.split_whitespace().skip(1);
            for file in all.into_iter().flatten().chain(words.flat_map(given)) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        at += 1;
    }
    files
}

/// The files that an argument names: by itself, behind a flag (`-f/srv/x.php`, `--require=/srv/x.js`), or, in a line of several
/// words (`sh -c`, `env -S`), those that may be run: what else stands there is mere data.
fn given(arg: &str) -> Vec<PathBuf> {
    if arg.contains(char::is_whitespace) {
        let words = arg
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', ';', '(', ')']));
        let paths = words
            .filter(|word| word.starts_with('/'))
            .map(PathBuf::from);
        return paths.filter(|path| may_be_run(path)).collect();
    }
    let behind_flag = || arg.get(2..).filter(|_| arg.starts_with('-'));
    let behind_name = || arg.split_once('=').map(|(_, value)| value);
    let found = [Some(arg), behind_flag(), behind_name()];
    let mut found = found.into_iter().flatten();
    let path = found.find(|path| path.starts_with('/')).map(PathBuf::from);
    path.into_iter().filter(|path| path.is_file()).collect()
}

/// A script, or a file that may be executed.
fn may_be_run(path: &Path) -> bool {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file);
    about.is_some_and(|about| {
        about.mode() & 0o111 != 0 || first_line(path).is_ok_and(|line| line.starts_with("#!"))
    })
}

/// By its name, or the one that its links lead to.
fn is_interpreter(program: &Path) -> bool {
    let real = fs::canonicalize(program).unwrap_or_default();
    let mut names = INTERPRETERS.iter();
    names.any(|name| begins_so(program, name) || begins_so(&real, name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_first_line_names_what_runs_the_script() {
        for (line, wanted) in [
            ("#!/bin/sh -eu", Some(("/bin/sh", None))),
            ("#! /usr/bin/env node", Some(("/usr/bin/env", Some("node")))),
            (
                "#!/usr/bin/env -S A=1 node --jitless",
                Some(("/usr/bin/env", Some("node"))),
            ),
            ("#!/usr/bin/env", Some(("/usr/bin/env", None))),
            ("#!", None),
            ("\u{7f}ELF", None),
        ] {
            let found = Interpreter::of(line).map(|found| (found.program, found.by_env));
            assert_eq!(found, wanted, "{line}");
        }
    }

    #[test]
    fn data_is_no_program_and_what_an_interpreter_is_given_is_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let data = file("data", "text");
        let more = file("more", "text");
        let tool = file("tool", "\u{7f}ELF");
        let php = file("php8.2", "\u{7f}ELF");
        let other = dir.path().join("other").display().to_string();
        symlink(&php, &other).expect("linked");
        let script = file("script", &format!("#!{php} -q\n"));
        let over = file("over", &format!("#!{script}\n"));
        let (in_flag, flagged) = (format!("-f{data}"), format!("--require={more}"));
        let line = format!("'{script}' {data} >/dev/null 2>> /dev/null; /bin");
        let by_env = file("by-env", "#!/usr/bin/env -S sh -e\n");
        let (env, sh) = ("/usr/bin/env", in_path("sh").expect("one is there"));
        let sh = sh.to_str().expect("UTF-8");
        for (run, wanted) in [
            (vec![&*tool, &data], vec![&*tool]),
            (vec![&*tool, &script], vec![&*tool, &script, &php]),
            (vec![&php, &in_flag, &flagged], vec![&php, &data, &more]),
            (vec![&php, "-c", &line, "/dev/null"], vec![&php, &script]),
            (
                vec![&php, &data, "/no/such", "-x", &more],
                vec![&php, &data, &more],
            ),
            (vec![&other, &data], vec![&other, &data]),
            (vec![&script, &data], vec![&script, &php]),
            (vec![&over], vec![&over, &script, &php]),
            (vec![&by_env], vec![&by_env, env, sh]),
            (
                vec![env, "A=1", "sh", &script],
                vec![env, &script, sh, &php],
            ),
        ] {
            let args: Vec<String> = run.iter().skip(1).map(|&arg| arg.to_owned()).collect();
            let found = files(Path::new(run.first().expect("a program")), &args);
            let wanted: Vec<PathBuf> = wanted.iter().map(PathBuf::from).collect();
            assert_eq!(found, wanted, "{run:?}");
        }
    }
}
