//! `tilld completions`: what a shell reads to complete commands, flags and their values. Made of the description that parses the
//! command line, so it names what there is and nothing else.

use clap_complete::{Shell, generate};
use serde_json::json;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{print, print_json};

/// The shells that are tried by a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Known {
    /// For /usr/share/bash-completion/completions/tilld, or `source <(tilld completions bash)`
    Bash,
    /// For a file `_tilld` in a directory of $fpath
    Zsh,
    /// For ~/.config/fish/completions/tilld.fish
    Fish,
}

/// Which shell.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell that is to read it
    shell: Known,
}

/// Runs `completions`.
pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let shell = match args.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut super::described(), "tilld", &mut script);
    let script = String::from_utf8_lossy(&script);
    if context.output.json() {
        print_json(&json!({ "shell": shell.to_string(), "script": script }))?;
    } else {
        print(&script)?;
    }
    Ok(Exit::Ok)
}
