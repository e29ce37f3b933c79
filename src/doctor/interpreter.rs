//! What runs a script in the end, and whether that makes machine code as it runs, which `MemoryDenyWriteExecute=` of the unit
//! forbids (A38). By the first lines of the files, as the kernel reads them, and the names of the programs; nothing is run.

use std::fs;
use std::path::PathBuf;

use crate::hook::executed::{
    DEEPEST, Interpreter, begins_so, first_line, in_path, is_env, wanted_of_env,
};

/// Programs that do not work without it, by how their names begin.
const JITS: [&str; 8] = [
    "node", "java", "dotnet", "luajit", "deno", "bun", "pypy", "pwsh",
];

/// How a program fares where no memory may be written and then run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// It makes none that we know of.
    None,
    /// It makes some, and this one does not work without.
    Made(PathBuf),
    /// PHP with its JIT turned on: it works, and says at each start that it has none.
    MadeByPhp(PathBuf),
}

/// Looks what a hook's command runs in the end.
pub(super) fn code_of(run: &[String]) -> Code {
    let Some((program, given)) = run.split_first() else {
        return Code::None;
    };
    let mut settings: Vec<String> = given.to_vec();
    let mut program = PathBuf::from(program);
    if is_env(&program) {
        let wanted = wanted_of_env(given.iter().map(String::as_str));
        let Some(found) = wanted.and_then(in_path) else {
            return Code::None;
        };
        program = found;
    }
    for _ in 0..DEEPEST {
        let line = first_line(&program).unwrap_or_default();
        let Some(asked) = Interpreter::of(&line) else {
            break;
        };
        settings.extend(line.split_whitespace().map(str::to_owned));
        let next = match asked.by_env {
            Some(wanted) => in_path(wanted),
            None => Some(PathBuf::from(asked.program)),
        };
        // One that is not there is told of where hooks are looked at.
        let Some(next) = next else {
            return Code::None;
        };
        program = next;
    }
    // `/usr/bin/java` leads to another name by some links, and that one may be the telling one, or this.
    let real = fs::canonicalize(&program).unwrap_or_else(|_gone| program.clone());
    let is = |begins: &str| begins_so(&program, begins) || begins_so(&real, begins);
    if JITS.iter().any(|name| is(name)) {
        return Code::Made(program);
    }
    let given: Vec<&str> = settings.iter().map(String::as_str).collect();
    if is("php") && has_php_jit(&given, &php_settings()) {
        return Code::MadeByPhp(program);
    }
    Code::None
}

/// The settings of PHP's command line, as Debian and others keep them. Those elsewhere are not seen.
fn php_settings() -> String {
    let mut files = vec![PathBuf::from("/etc/php.ini"), PathBuf::from("/etc/php.d")];
    let versions = fs::read_dir("/etc/php").into_iter().flatten().flatten();
    for version in versions {
        let cli = version.path().join("cli");
        files.extend([cli.join("php.ini"), cli.join("conf.d")]);
    }
    let mut all = String::new();
    for file in files {
        let mut texts = vec![file.clone()];
        if let Ok(listed) = fs::read_dir(&file) {
            texts = listed.flatten().map(|entry| entry.path()).collect();
            texts.sort();
        }
        for text in texts {
            // One that cannot be read sets nothing for whoever asks.
            all.push_str(&fs::read_to_string(text).unwrap_or_default());
            all.push('\n');
        }
    }
    all
}

/// Whether PHP's command line makes machine code: opcache is on for it, and there is room for code. What is given beside the
/// script goes before what the files say. Pure.
fn has_php_jit<'a>(given: &[&'a str], files: &'a str) -> bool {
    let value = |name: &str| {
        let set = |line: &'a str| {
            let line = line.trim();
            let line = line.strip_prefix("-d").unwrap_or(line);
            let (key, value) = line.split_once('=')?;
            let value = value.split(';').next().unwrap_or_default();
            (key.trim() == name).then(|| value.trim().trim_matches('"').to_ascii_lowercase())
        };
        let last = given.iter().copied().rev().find_map(set);
        last.or_else(|| files.lines().rev().find_map(set))
    };
    let is_on = |value: &str| matches!(value, "1" | "on" | "yes" | "true");
    let is_off = |value: &str| matches!(value, "0" | "off" | "no" | "disable");
    value("opcache.enable_cli").is_some_and(|value| is_on(&value))
        && value("opcache.jit_buffer_size").is_some_and(|room| !is_off(&room))
        && !value("opcache.jit").is_some_and(|value| is_off(&value))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn program(dir: &Path, name: &str, text: &str) -> String {
        let path = dir.join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        path.display().to_string()
    }

    #[test]
    fn what_makes_code_is_known_through_links_and_scripts() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        // Whatever is no script: the name is all there is to see.
        let node = program(dir, "node-22", "\u{7f}ELF");
        let nodemon = program(dir, "nodemon", "\u{7f}ELF");
        let sound = program(dir, "sound", "#!/bin/sh\n");
        let script = program(dir, "ship", &format!("#!{node} --enable-source-maps\n"));
        let over = program(dir, "over", &format!("#!{script}\n"));
        let link = dir.join("run-it");
        std::os::unix::fs::symlink(&node, &link).expect("linked");
        let link = link.display().to_string();
        // A script of that name says itself what runs it.
        let wrapper = program(dir, "java", "#!/bin/sh\n");
        let made = |path: &str| Code::Made(PathBuf::from(path));
        for (run, wanted) in [
            (vec![node.clone()], made(&node)),
            (vec![script], made(&node)),
            (vec![over], made(&node)),
            (vec![link.clone()], made(&link)),
            (vec![nodemon], Code::None),
            (vec![sound], Code::None),
            (vec![wrapper], Code::None),
            (vec!["/usr/bin/env".to_owned(), "sh".to_owned()], Code::None),
            (vec!["/no/such/node".to_owned()], made("/no/such/node")),
            (Vec::new(), Code::None),
        ] {
            assert_eq!(code_of(&run), wanted, "{run:?}");
        }
        for name in ["nodejs", "java17", "dotnet", "luajit-2.1", "pypy3"] {
            let known = JITS.iter().any(|jit| begins_so(Path::new(name), jit));
            assert!(known, "{name}");
        }
        assert!(!JITS.iter().any(|jit| begins_so(Path::new("javac"), jit)));
    }

    #[test]
    fn php_makes_code_when_it_is_told_to() {
        let on = "opcache.enable_cli = On\nopcache.jit_buffer_size=64M ; room\n";
        for (given, files, wanted) in [
            ("", "", false),
            (
                "",
                ";opcache.enable_cli=1\nopcache.jit_buffer_size=8M",
                false,
            ),
            ("", on, true),
            ("-dopcache.enable_cli=0", on, false),
            ("opcache.jit=off", on, false),
            ("", "opcache.enable_cli=1\nopcache.jit_buffer_size=0", false),
            (
                "-d opcache.enable_cli=1 -d opcache.jit_buffer_size=8M",
                "",
                true,
            ),
        ] {
            let given: Vec<&str> = given.split_whitespace().collect();
            let found = has_php_jit(&given, files);
            assert_eq!(found, wanted, "{given:?} {files}");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let php = program(dir.path(), "php8.2", "\u{7f}ELF");
        // Debian turns it off in a file.
        let first = format!(
            "#!{php} -dopcache.enable_cli=1 -dopcache.jit=on -dopcache.jit_buffer_size=8M\n"
        );
        let script = program(dir.path(), "ship", &first);
        assert_eq!(code_of(&[script]), Code::MadeByPhp(PathBuf::from(php)));
    }
}
