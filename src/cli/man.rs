//! `tilld man`: the manual pages, one for tilld and one for each command, as `git` has them: `tilld.1`, `tilld-invoice.1`,
//! `tilld-invoice-create.1`. Made of the description that parses the command line and prints `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use serde_json::json;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{print, print_json, talk};

/// What only the first page tells, in the language of manual pages.
const FILES: &str = r".SH FILES
.TP
\fI/etc/tilld/config.toml\fR
Settings. Each is described in the file itself, and in \fIconfig.example.toml\fR beside it in the documentation.
.TP
\fI/var/lib/tilld\fR
The ledger and the secrets of the tilld that systemd runs.
.TP
\fI/run/tilld/control.sock\fR
The control socket, for the shop.
";

/// Which page, or where to all of them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The command the page is of, as `invoice create` [default: tilld itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write all pages into DIR, which is made when it is missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// One page.
struct Page {
    /// `tilld-invoice-create.1`
    file: String,
    text: Vec<u8>,
}

/// Runs `man`.
pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let json = context.output.json();
    let mut whole = super::described().disable_help_subcommand(true);
    // Gives each command below its full name.
    whole.build();
    if let Some(dir) = &args.dir {
        let mut pages = Vec::new();
        collect(&whole, &mut pages).map_err(Failure::from_write)?;
        write(dir, &pages).map_err(|error| {
            Failure::new(Exit::Error, error)
                .context(format!("could not write pages into `{}`", dir.display()))
        })?;
        let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        if json {
            print_json(&json!({ "dir": dir, "files": files }))?;
        } else {
            talk(&format!("{} pages are in {}", files.len(), dir.display()));
        }
        return Ok(Exit::Ok);
    }
    let mut wanted = &whole;
    for name in &args.command {
        wanted = wanted
            .find_subcommand(name)
            .ok_or_else(|| unknown(&args.command))?;
    }
    let page = page(wanted).map_err(Failure::from_write)?;
    let text = String::from_utf8_lossy(&page.text);
    if json {
        print_json(&json!({ "file": page.file, "text": text }))?;
    } else {
        print(&text)?;
    }
    Ok(Exit::Ok)
}

fn unknown(command: &[String]) -> Failure {
    let command = super::output::escape(&command.join(" ")).into_owned();
    Failure::new(Exit::Usage, format!("there is no command `{command}`"))
        .hint("`tilld --help` lists the commands")
}

/// The pages of a command and of all below it.
fn collect(command: &Command, pages: &mut Vec<Page>) -> io::Result<()> {
    pages.push(page(command)?);
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        collect(below, pages)?;
    }
    Ok(())
}

fn page(command: &Command) -> io::Result<Page> {
    let is_first = command
        .get_display_name()
        .is_none_or(|name| name == "tilld");
    let page = Man::new(command.clone());
    let mut text = title(&page.get_filename());
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    if command.get_after_help().is_some() || command.get_after_long_help().is_some() {
        // Its name for what stands below a help text, which are exit codes for the most part.
        let mut below = Vec::new();
        page.render_extra_section(&mut below)?;
        let below = String::from_utf8_lossy(&below).replace(".SH EXTRA", ".SH NOTES");
        text.extend_from_slice(below.as_bytes());
    }
    if is_first {
        text.extend_from_slice(FILES.as_bytes());
    }
    let file = page.get_filename();
    Ok(Page { file, text })
}

/// The head of a page. Without a date: the same version makes the same page.
fn title(file: &str) -> Vec<u8> {
    let name = file.trim_end_matches(".1");
    let version = env!("CARGO_PKG_VERSION");
    format!(".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH {name} 1 \"\" \"tilld {version}\" tilld\n")
        .into_bytes()
}

fn write(dir: &Path, pages: &[Page]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for page in pages {
        fs::write(dir.join(&page.file), &page.text)?;
    }
    Ok(())
}
