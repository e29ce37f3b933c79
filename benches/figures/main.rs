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

use std::process::ExitCode;

use machine::Machine;
use options::Options;
use report::Report;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
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
    let machine = Machine::read(&options);
    println!("{}", machine.line());
    let mut report = Report::default();
    for part in parts::ALL {
        if options.wants(part.name) {
            println!("{}: {}", part.name, part.what);
            (part.run)(&options, &mut report);
        }
    }
    ExitCode::SUCCESS
}
