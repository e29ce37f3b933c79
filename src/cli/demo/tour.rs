//! The guided tour of a demo that stays: stops with pages to open and commands to type. Pure text. Every command is one that
//! can be pasted into a shell as it is printed, in this order, once what its stop asks for on a page is done.

use serde_json::{Value, json};

use super::acts::LOST_ORDER;

/// What a tour leads through.
pub(super) struct Places {
    /// How a shell starts this program.
    pub(super) program: String,
    /// How a shell names the config.
    pub(super) config: String,
    /// How a shell names the log of the script for paid orders.
    pub(super) fulfilled: String,
    /// Address of the sandbox, without a slash at its end.
    pub(super) sandbox: String,
}

/// A tour.
pub(super) struct Tour {
    /// Makes `tilld` mean this program with this config, in a shell.
    setup: String,
    stops: Vec<Stop>,
}

struct Stop {
    title: &'static str,
    parts: Vec<Part>,
}

enum Part {
    /// Prose, in lines.
    Say(&'static str),
    /// A page.
    Open(String),
    /// A command, in lines.
    Run(String),
}

/// An order's invoice is opened so. Its options are on a line of their own: it is read at 80 columns.
fn create(order: &str, amount: &str) -> Part {
    let start = format!("tilld invoice create --order {order} --amount {amount}");
    Part::Run(format!("{start} \\\n  --currency RUB --method SBP"))
}

fn run(words: &str) -> Part {
    Part::Run(format!("tilld {words}"))
}

impl Tour {
    /// The tour through these places.
    pub(super) fn new(places: &Places) -> Self {
        let Places {
            program,
            config,
            fulfilled,
            sandbox,
        } = places;
        let cabinet = || Part::Open(format!("{sandbox}/cabinet"));
        let stops = vec![
            Stop {
                title: "What was just played",
                parts: vec![
                    Part::Say(
                        "Three orders: paid, paid without a notification, cancelled. The service's\nside is in the cabinet, tilld's in its ledger, with the reason for each step.",
                    ),
                    cabinet(),
                    run("invoice list"),
                    run(&format!("explain {LOST_ORDER}")),
                ],
            },
            Stop {
                title: "A customer pays on the payment page",
                parts: vec![
                    Part::Run(format!(
                        "tilld invoice create --order tour-1 --amount 150.00 \\\n  --currency RUB --method SBP --redirect \\\n  --success-url {sandbox}/ \\\n  --cancel-url {sandbox}/ \\\n  --error-url {sandbox}/"
                    )),
                    Part::Say(
                        "Open the address it prints, choose a method and press \"Paid\". The shop\nwaits meanwhile, and its script notes the order in a log:",
                    ),
                    run("invoice wait tour-1"),
                    Part::Say("A moment later the script is done:"),
                    Part::Run(format!("cat {fulfilled}")),
                ],
            },
            Stop {
                title: "A notification is lost",
                parts: vec![
                    create("tour-2", "99.00"),
                    Part::Say("Have those of order tour-2 \"never sent\", \"always\":"),
                    Part::Open(format!("{sandbox}/cabinet/faults?invoice=tour-2")),
                    Part::Say(
                        "Then open the invoice from the cabinet, its payment page from there, and\npress \"Paid\". tilld hears nothing, asks, and finds it in some seconds:",
                    ),
                    cabinet(),
                    run("invoice wait tour-2"),
                    run("explain tour-2"),
                ],
            },
            Stop {
                title: "A customer pays too little",
                parts: vec![
                    create("tour-3", "50.00"),
                    Part::Say("Press \"Paid too little\" on its payment page:"),
                    cabinet(),
                    Part::Say(
                        "That is no paid order, no script runs for it, and a person is wanted:",
                    ),
                    run("invoice show tour-3"),
                    Part::Say("A person may take the 49.00 that came for the price:"),
                    run("invoice accept-amount tour-3 --amount 49.00"),
                ],
            },
            Stop {
                title: "The token is revoked",
                parts: vec![
                    create("tour-4", "75.00"),
                    Part::Say("Revoke tilld's token in the cabinet:"),
                    cabinet(),
                    Part::Say(
                        "The daemon learns it when it asks for the open order, in some seconds.\nNotifications are heard all the same; what needs a person is said here:",
                    ),
                    run("status"),
                    Part::Say(
                        "Open the address that `login` prints, compare the code, confirm. The daemon\nhas the new token at once:",
                    ),
                    run("login"),
                    run("status"),
                ],
            },
            Stop {
                title: "All that can go wrong, at once",
                parts: vec![
                    Part::Say(
                        "Scenarios play such things by themselves, on a sandbox and a tilld of their\nown, each course of chance by its number; docs/scenarios.md has more:",
                    ),
                    Part::Run(format!(
                        "command {program} \\\n  sandbox run everything-at-once --seed 1"
                    )),
                ],
            },
            Stop {
                title: "The real service",
                parts: vec![Part::Say(
                    "A config of your own takes the place of this one: the service's address and\nyours, its words for paid, your script. docs/first-payment.md\nhas it, and config.example.toml every other setting.",
                )],
            },
        ];
        Self {
            setup: format!("tilld() {{\n  command {program} \\\n    --config {config} \"$@\"\n}}"),
            stops,
        }
    }

    /// As it is printed. What is to be typed stands six columns in.
    pub(super) fn text(&self) -> String {
        let mut text = "\nA tour, in a browser and another terminal. There, first of all, let `tilld` mean\nthis program with this config:\n\n".to_owned();
        typed(&mut text, &self.setup);
        for (number, stop) in (1_usize..).zip(&self.stops) {
            text.extend(["\n", &number.to_string(), ". ", stop.title, "\n"]);
            for part in &stop.parts {
                match part {
                    Part::Say(lines) => said(&mut text, lines),
                    Part::Open(address) => said(&mut text, &format!("> {address}")),
                    Part::Run(command) => typed(&mut text, command),
                }
            }
        }
        text
    }

    /// As JSON has it: each text and each command in one line.
    pub(super) fn json(&self) -> Value {
        let stops = self.stops.iter().map(|stop| {
            let parts = stop.parts.iter().map(|part| match part {
                Part::Say(lines) => json!({ "say": lines.replace('\n', " ") }),
                Part::Open(address) => json!({ "open": address }),
                Part::Run(command) => json!({ "run": command.replace(" \\\n ", "") }),
            });
            json!({ "title": stop.title, "parts": parts.collect::<Vec<_>>() })
        });
        json!({ "setup": self.setup, "stops": stops.collect::<Vec<_>>() })
    }
}

fn said(text: &mut String, lines: &str) {
    for line in lines.lines() {
        text.extend(["   ", line, "\n"]);
    }
}

fn typed(text: &mut String, lines: &str) {
    for line in lines.lines() {
        text.extend(["      ", line, "\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tour() -> Tour {
        Tour::new(&Places {
            program: "tilld".to_owned(),
            config: "/tmp/tilld-demo-AbCdEf/config.toml".to_owned(),
            fulfilled: "/tmp/tilld-demo-AbCdEf/fulfilled.log".to_owned(),
            sandbox: "http://127.0.0.1:65535".to_owned(),
        })
    }

    #[test]
    fn it_is_read_at_80_columns() {
        let text = tour().text();
        let wide: Vec<&str> = text
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }

    #[test]
    fn in_json_a_command_is_one_line() {
        let told = tour().json();
        let command = told.pointer("/stops/2/parts/0/run").and_then(Value::as_str);
        let wanted =
            "tilld invoice create --order tour-2 --amount 99.00 --currency RUB --method SBP";
        assert_eq!(command, Some(wanted));
    }
}
