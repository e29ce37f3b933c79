//! The figures: `cargo bench --bench figures`, with `--help` for its options.
//!
//! Each part measures one promise and adds what it found to the report; nothing is judged while it is measured. A figure is
//! a value per round, and what is to be compared is measured side by side in each round, so that a ratio is made pair by
//! pair and a noisy machine meets both. No time is asserted: a missed bar is shown, not failed. What does fail is untruth:
//! an acknowledgement without its row, a subject that was not what was started.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod load;
mod machine;
mod notice;
mod options;
mod parts;
mod report;
mod subjects;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use machine::Machine;
use options::{Effort, Options};
use report::Report;
use subjects::{inner, peers};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, server @ ..] = args.as_slice()
        && word == inner::WORD
    {
        inner::serve(server);
        return ExitCode::SUCCESS;
    }
    let options = match Options::read(args.into_iter()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            println!("{wrong}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    };
    report::check();
    let began = Instant::now();
    let machine = Machine::read(&options);
    println!("{}", machine.line());
    let mut report = Report::default();
    for part in parts::ALL {
        if options.wants(part.name) {
            println!("{}: {}", part.name, part.what);
            let began = Instant::now();
            report.begin(part.name);
            (part.run)(&options, &mut report);
            println!("  took {} s", began.elapsed().as_secs());
        }
    }
    subjects::crowd::clear(&options);
    let notes = notes(&options, &machine);
    report.notes.extend(notes.iter().cloned());
    report.notes.extend(peers::notes(&options));
    println!("\n{}", report::table::draw(&report));
    println!("{}", machine.line());
    let json = report::json::value(&options, &machine, &report);
    write("figures", &options.json, &format!("{json:#}\n"));
    // What the run as a whole lacks is said below the plot's title too: a picture goes its own ways.
    let about = [vec![machine.line()], notes].concat().join("; ");
    match report::plot::draw(&report.curves, &about) {
        Some(plot) => write("plot", &options.plot, &plot),
        None => println!("plot: none, no latency was measured against a rate"),
    }
    println!("took {} s in all", began.elapsed().as_secs());
    ExitCode::SUCCESS
}

/// What a reader must know of the run as a whole.
fn notes(options: &Options, machine: &Machine) -> Vec<String> {
    let mut notes = Vec::new();
    if !options.only.is_empty() {
        notes.push(format!("only these parts ran: {}", options.only.join(", ")));
    }
    if options.effort == Effort::Smoke {
        notes.push("a smoke run: it shows that all works, its figures mean nothing".to_owned());
    }
    if machine.is_memory {
        let kind = &machine.file_system;
        notes.push(format!(
            "the ledgers were on {kind}, which is memory: nothing was synced, these are the processor's limits"
        ));
    }
    notes
}

/// Writes a file and says where it is.
fn write(what: &str, path: &Path, text: &str) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("a directory");
    }
    fs::write(path, text).expect("written");
    println!("{what}: {}", path.display());
}
