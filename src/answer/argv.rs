//! The command line of this process as a person would type it again, for hints. A daemon's hints are read by its clients: theirs
//! name whom to become, and the state directory. Relies on this: no secret is ever given in an argument.

use std::ffi::OsString;
use std::path::Path;

use super::account::Account;

/// The flags of every command that say which tilld is meant; each takes a value.
const WHERE: [&str; 2] = [CONFIG, STATE_DIR];
const CONFIG: &str = "--config";
const STATE_DIR: &str = "--state-dir";
/// The other flag of every command that takes a value.
const SOCKET: &str = "--socket";
/// The command that is a daemon.
const DAEMON: &str = "serve";

/// This command, to be run again.
pub(crate) fn again() -> String {
    again_of(std::env::args_os())
}

/// This command with another value of a flag, to be run next: of a list, what lies behind what was shown.
pub(crate) fn next(flag: &str, value: &str) -> String {
    next_of(std::env::args_os(), flag, value)
}

/// `tilld login` for the config and state directory that this command was given; by a daemon, as its user.
pub(crate) fn login() -> String {
    if !is_daemon(std::env::args_os()) {
        return own_login();
    }
    let given = std::env::var_os("STATE_DIRECTORY");
    let given = given.as_deref().map(Path::new);
    daemons_login_of(std::env::args_os(), given, &Account::runner().for_sudo())
}

/// The same for whoever typed this command, be it a daemon's.
pub(crate) fn own_login() -> String {
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

fn next_of(args: impl Iterator<Item = OsString>, flag: &str, value: &str) -> String {
    let mut words = Vec::new();
    let mut args = args.skip(1);
    while let Some(arg) = args.next() {
        let arg = arg.to_string_lossy();
        if arg == flag {
            args.next();
        } else if arg != "--"
            && arg
                .strip_prefix(flag)
                .is_none_or(|rest| !rest.starts_with('='))
        {
            words.push(quoted(&arg));
        }
    }
    // In one word: a ref may begin with a hyphen.
    words.push(quoted(&format!("{flag}={value}")));
    joined(words.into_iter())
}

fn login_of(args: impl Iterator<Item = OsString>) -> String {
    let given = given(args).into_iter();
    let kept = given.flat_map(|(name, value)| [name.to_owned(), quoted(&value)]);
    joined(kept.chain(["login".to_owned()]))
}

/// Whoever reads it may be in another directory than the daemon, and has not its variables: systemd's `$STATE_DIRECTORY` is said
/// unless a flag goes before it.
fn daemons_login_of(
    args: impl Iterator<Item = OsString>,
    state_directory: Option<&Path>,
    owner: &str,
) -> String {
    let mut given = given(args);
    if let Some(path) = state_directory
        && given.iter().all(|(name, _)| *name != STATE_DIR)
    {
        given.push((STATE_DIR, path.display().to_string()));
    }
    let kept = given.into_iter().flat_map(|(name, value)| {
        let whole = std::path::absolute(&value).map(|path| path.display().to_string());
        [name.to_owned(), quoted(&whole.unwrap_or(value))]
    });
    let line = joined(kept.chain(["login".to_owned()]));
    format!("sudo -u {owner} {line}")
}

/// What says which tilld is meant, in its order.
fn given(args: impl Iterator<Item = OsString>) -> Vec<(&'static str, String)> {
    let mut args = flags(args).map(|arg| arg.to_string_lossy().into_owned());
    let mut given = Vec::new();
    while let Some(arg) = args.next() {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        let Some(&known) = WHERE.iter().find(|known| **known == name) else {
            continue;
        };
        given.extend(value.or_else(|| args.next()).map(|value| (known, value)));
    }
    given
}

/// Whether the command is [`DAEMON`]: the first word that is neither a flag nor the value of one.
fn is_daemon(args: impl Iterator<Item = OsString>) -> bool {
    let mut args = flags(args);
    while let Some(arg) = args.next() {
        if arg == CONFIG || arg == STATE_DIR || arg == SOCKET {
            args.next();
        } else if !arg.as_encoded_bytes().starts_with(b"-") {
            return arg == DAEMON;
        }
    }
    false
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
    fn the_next_page_has_the_flags_of_this_one_and_goes_on_behind_it() {
        for words in [
            ["tilld", "event", "list", "--after", "7", "--order=it's"].as_slice(),
            &["tilld", "event", "list", "--order=it's", "--after=7"],
            &["tilld", "event", "list", "--order=it's", "--"],
        ] {
            assert_eq!(
                next_of(line(words), "--after", "9"),
                r"tilld event list '--order=it'\''s' --after=9"
            );
        }
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
            "tilld --config a.toml --state-dir '/var/lib/my shop' login"
        );
        assert_eq!(
            login_of(line(&["tilld", "invoice", "show", "--", "--config", "x"])),
            "tilld login"
        );
    }

    #[test]
    fn a_daemons_login_names_whom_to_become_and_where() {
        let serve = |words: &[&str]| {
            let words = [&["tilld"], words].concat();
            assert!(is_daemon(line(&words)), "{words:?}");
            let units = Some(Path::new("/var/lib/tilld"));
            daemons_login_of(line(&words), units, "tilld")
        };
        assert_eq!(
            serve(&["serve"]),
            "sudo -u tilld tilld --state-dir /var/lib/tilld login"
        );
        assert_eq!(
            serve(&[
                "--config",
                "/etc/a.toml",
                "--json",
                "serve",
                "--state-dir=/s"
            ]),
            "sudo -u tilld tilld --config /etc/a.toml --state-dir /s login"
        );
        let relative = daemons_login_of(line(&["tilld", "--config=a.toml", "serve"]), None, "me");
        assert!(
            relative.starts_with("sudo -u me tilld --config /"),
            "{relative}"
        );
        for words in [
            &["tilld", "--state-dir", "serve", "login"] as &[&str],
            &["tilld", "--socket", "serve", "status"],
            &["tilld", "invoice", "show", "serve"],
            &["tilld", "--json"],
        ] {
            assert!(!is_daemon(line(words)), "{words:?}");
        }
    }
}
