//! The command line of this process as a person would type it again, for hints. Relies on this: no secret is ever given
//! in an argument.

use std::ffi::OsString;

/// The flags of every command that say which tilld is meant; each takes a value.
const WHERE: [&str; 2] = ["--config", "--state-dir"];

/// This command, to be run again.
pub(crate) fn again() -> String {
    again_of(std::env::args_os())
}

/// `tilld login` for the config and state directory that this command was given.
pub(crate) fn login() -> String {
    login_of(std::env::args_os())
}

/// True when this command was to answer in JSON, for mistakes that keep the line from being parsed.
pub(crate) fn wants_json() -> bool {
    flags(std::env::args_os()).any(|arg| arg == "--json")
}

/// What stands behind the program's name and before `--`.
fn flags(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    args.skip(1).take_while(|arg| arg != "--")
}

fn again_of(args: impl Iterator<Item = OsString>) -> String {
    let args = args.skip(1).map(|arg| quoted(&arg.to_string_lossy()));
    joined(args)
}

fn login_of(args: impl Iterator<Item = OsString>) -> String {
    let mut args = flags(args).map(|arg| arg.to_string_lossy().into_owned());
    let mut kept = Vec::new();
    while let Some(arg) = args.next() {
        let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
        if !WHERE.contains(&name) {
            continue;
        }
        let value = (name == arg).then(|| args.next()).flatten();
        kept.push(quoted(&arg));
        kept.extend(value.as_deref().map(quoted));
    }
    kept.push("login".to_owned());
    joined(kept.into_iter())
}

fn joined(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = std::iter::once("tilld".to_owned()).chain(words).collect();
    words.join(" ")
}

/// As a POSIX shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> impl Iterator<Item = OsString> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        words.into_iter()
    }

    #[test]
    fn a_line_is_repeated_so_that_a_shell_reads_the_same() {
        assert_eq!(
            again_of(line(&["/opt/tilld", "--config", "my shop.toml", "login"])),
            "tilld --config 'my shop.toml' login"
        );
        assert_eq!(
            again_of(line(&["tilld", "invoice", "show", "it's $5", ""])),
            r"tilld invoice show 'it'\''s $5' ''"
        );
    }

    #[test]
    fn a_login_keeps_what_says_which_tilld_is_meant() {
        assert_eq!(login_of(line(&["tilld", "whoami"])), "tilld login");
        assert_eq!(
            login_of(line(&[
                "tilld",
                "--config=a.toml",
                "invoice",
                "wait",
                "1042",
                "--json",
                "--state-dir",
                "/var/lib/my shop",
            ])),
            "tilld --config=a.toml --state-dir '/var/lib/my shop' login"
        );
        assert_eq!(
            login_of(line(&["tilld", "invoice", "show", "--", "--config", "x"])),
            "tilld login"
        );
    }
}
