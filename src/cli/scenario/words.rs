//! The line a merchant gives for a shell, before it is run: refused when it can be no program, and with the files it names here
//! made absolute, since a hook runs in a directory of its own. Knows as much of a shell's words as that needs; what a shell
//! makes something else of is left as it is.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::quoted;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::escape;

/// Between words.
const BETWEEN: &str = ";&|<>()";
/// A word with one of these is not what it looks like.
const SPECIAL: &str = "'\"\\$`*?[]#~={}!";

/// A word of the line: where it stands, and what it says when that is sure.
#[derive(Debug, PartialEq, Eq)]
struct Word<'l> {
    at: Range<usize>,
    says: Option<&'l str>,
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || BETWEEN.contains(c)
}

fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    // Where the word began, and the quote that is open.
    let (mut began, mut open) = (None, None);
    let ends = line.char_indices().chain([(line.len(), ' ')]);
    for (at, c) in ends {
        let is_end = at == line.len();
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) if !is_end => {}
            _ if is_between(c) => {
                if let Some(start) = began.take() {
                    words.push(word(line, start..at));
                }
            }
            _ => {
                began.get_or_insert(at);
                if c == '\'' || c == '"' {
                    open = Some(c);
                }
            }
        }
    }
    words
}

fn word(line: &str, at: Range<usize>) -> Word<'_> {
    let text = line.get(at.clone()).unwrap_or_default();
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let says = if let Some(inner) = within('\'') {
        (!inner.contains('\'')).then_some(inner)
    } else if let Some(inner) = within('"') {
        (!inner.contains(['"', '\\', '$', '`'])).then_some(inner)
    } else {
        (!text.contains(|c| SPECIAL.contains(c))).then_some(text)
    };
    Word { at, says }
}

/// The line with each file of `here` that it names made absolute. A first word without a slash is a command.
pub(super) fn from_anywhere(line: &str, here: &Path) -> String {
    let mut absolute = line.to_owned();
    for (number, Word { at, says }) in words(line).into_iter().enumerate().rev() {
        let Some(says) = says.filter(|says| !says.is_empty() && !says.starts_with('/')) else {
            continue;
        };
        let path = here.join(says);
        let is_command = number == 0 && !says.contains('/');
        if let Some(path) = path.to_str().filter(|_| !is_command && path.is_file()) {
            absolute.replace_range(at, &quoted(path));
        }
    }
    absolute
}

/// Refuses a line that runs nothing.
pub(super) fn look(flag: &str, line: &str, here: &Path) -> Result<(), Failure> {
    let refused = |error: String, hint: String| Err(Failure::new(Exit::Usage, error).hint(hint));
    let words = words(line);
    let Some(first) = words.first() else {
        let hint = "name your program as a shell runs it, as in `php fulfil.php`";
        return refused(format!("`--{flag}` names no command"), hint.to_owned());
    };
    let Some(program) = first.says else {
        return Ok(());
    };
    let shown = escape(program);
    if !program.contains('/') {
        if is_command(program) {
            return Ok(());
        }
        let hint = if here.join(program).is_file() {
            format!("a file in this directory is run as `./{shown}`")
        } else {
            "name a program of your PATH, or the path of a file".to_owned()
        };
        return refused(format!("`--{flag}`: there is no program `{shown}`"), hint);
    }
    match fs::metadata(here.join(program)) {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => Ok(()),
        Ok(file) if file.is_file() => refused(
            format!("`--{flag}`: `{shown}` is not executable"),
            format!("`chmod +x {shown}`, or name what runs it, as in `php {shown}`"),
        ),
        Ok(_) => refused(
            format!("`--{flag}`: `{shown}` is no file"),
            "name the path of a program".to_owned(),
        ),
        Err(error) => refused(
            format!("`--{flag}`: there is no program `{shown}`: {error}"),
            "a path is meant from the directory you are in".to_owned(),
        ),
    }
}

/// Whether a shell knows it: a program of its PATH, or a word of its own.
fn is_command(word: &str) -> bool {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "command -v -- \"$1\"", "sh", word]);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A shell that cannot be asked is told of when it is to run the line.
    shell.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> tempfile::TempDir {
        let here = tempfile::tempdir().expect("a directory");
        for name in ["v.py", "my own.sh", "run.sh"] {
            fs::write(here.path().join(name), "").expect("written");
        }
        fs::create_dir(here.path().join("shop")).expect("made");
        let run = here.path().join("run.sh");
        fs::set_permissions(run, fs::Permissions::from_mode(0o755)).expect("set");
        here
    }

    #[test]
    fn each_file_that_is_here_is_found_from_anywhere() {
        let here = here();
        let dir = here.path().to_str().expect("UTF-8");
        for (line, wanted) in [
            ("./run.sh", "DIR/./run.sh"),
            ("python3 v.py", "python3 DIR/v.py"),
            ("python3 v.py shop v", "python3 DIR/v.py shop v"),
            ("sh 'my own.sh' <v.py", "sh 'DIR/my own.sh' <DIR/v.py"),
            (
                "A=v.py sh \"my own.sh\"|tee",
                "A=v.py sh 'DIR/my own.sh'|tee",
            ),
            ("v.py", "v.py"),
            (
                "echo 'v.py' \"$v.py\" it\\'s",
                "echo DIR/v.py \"$v.py\" it\\'s",
            ),
            ("sh -c './run.sh v.py'", "sh -c './run.sh v.py'"),
            ("/bin/true 'open v.py", "/bin/true 'open v.py"),
            ("echo привет v.py", "echo привет DIR/v.py"),
        ] {
            let wanted = wanted.replace("DIR", dir);
            assert_eq!(from_anywhere(line, here.path()), wanted, "{line}");
        }
    }

    #[test]
    fn a_line_that_runs_nothing_is_refused_with_a_hint() {
        let here = here();
        for line in [
            "",
            "  ",
            "no-such-program x",
            "./none.sh",
            "v.py",
            "./v.py",
            "./shop",
        ] {
            let failure = look("verify", line, here.path()).expect_err(line);
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(failure.way_out().is_some(), "{line}");
        }
        for line in [
            "./run.sh",
            "sh v.py",
            "exit 3",
            "A=1 x",
            "\"$HOME/x\"",
            "if true; then :; fi",
        ] {
            assert!(look("goods", line, here.path()).is_ok(), "{line}");
        }
    }
}
