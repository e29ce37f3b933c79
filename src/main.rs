//! Hands over to [`tilld::run`]; everything else lives in the library, so that tests and benches can link it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilld::run()
}
