//! Durable acknowledgements per second.

use std::time::Duration;

use crate::load::{Pace, Plan, Sender, check};
use crate::options::Options;
use crate::parts::Part;
use crate::report::Report;
use crate::subjects::daemon::Home;

/// The part.
pub(crate) const PART: Part = Part {
    name: "acks",
    what: "durable acknowledgements per second, closed loop",
    run,
};

/// Invoices that are notified of.
const INVOICES: u32 = 2_000;

fn run(options: &Options, report: &mut Report) {
    check();
    let directory = options.directory.join("acks");
    drop(std::fs::remove_dir_all(&directory));
    let home = Home::make(&directory, "");
    let mut sender = Sender::new(home.stock(INVOICES), Home::path());
    let daemon = home.start(&options.daemon);
    for connections in [1, 16, 64, 256] {
        let plan = Plan {
            connections,
            pace: Pace::Closed,
            warm: Duration::from_millis(200),
            run: Duration::from_secs(1),
        };
        let heard = sender.run(daemon.address, &plan);
        report.add(
            &format!("tilld.{connections}.rate"),
            "acknowledgements",
            "1/s",
            heard.rate(),
        );
    }
    daemon.stop();
}
