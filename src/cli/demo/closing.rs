//! What the demo says at its end: the ledger's rows and the line to ask for them oneself; with `--stay`, where everything
//! is and a tour through it.

use std::path::Path;

use serde_json::{Value, json};

use super::tour::{Places, Tour};
use crate::cli::failure::Failure;
use crate::cli::output::{Output, print, print_json};
use crate::cli::stage::Stage;
use crate::cli::stage::directory::Directory;
use crate::invoice::observation::Source;
use crate::ledger::{
    AttemptRow, DeliveryRow, EventRow, FILE_NAME, Filter, InvoiceKey, InvoiceRow, Reader,
    RefusalFilter,
};

/// Rows of each kind that are shown. The demo makes fewer.
const MOST_ROWS: u32 = 100;
/// The question about invoices, as anybody may ask it.
const QUESTION: &str = "select order_id, status, outcome, found_by from invoices";
/// The name of a directory to keep the next demo in, where this one is not kept.
const NEXT_DIR: &str = "tilld-demo";

/// What the ledger says, the oldest first.
pub(super) struct Account {
    invoices: Vec<InvoiceRow>,
    events: Vec<EventRow>,
    deliveries: Vec<(DeliveryRow, Option<AttemptRow>)>,
    refusals: usize,
}

impl Account {
    /// Reads it.
    pub(super) async fn read(reader: &Reader) -> Result<Self, Failure> {
        let mut invoices = reader
            .list_invoices(Filter::All, InvoiceKey(i64::MAX), MOST_ROWS)
            .await?
            .rows;
        invoices.reverse();
        let mut deliveries = Vec::new();
        for delivery in reader
            .list_deliveries(None, MOST_ROWS)
            .await?
            .into_iter()
            .rev()
        {
            let last = reader.attempts(delivery.key).await?.pop();
            deliveries.push((delivery, last));
        }
        Ok(Self {
            invoices,
            events: reader.events(None, 0, MOST_ROWS).await?,
            deliveries,
            refusals: reader
                .refusals(RefusalFilter::default(), MOST_ROWS)
                .await?
                .len(),
        })
    }

    /// The rows under the names the views have for their columns.
    fn json(&self) -> Value {
        let invoice = |row: &InvoiceRow| {
            json!({
                "order_id": row.order_id, "invoice_id": row.invoice_id, "mode": row.mode.as_str(),
                "status": row.status, "outcome": row.outcome.as_str(), "amount_agreed": row.amount_agreed,
                "amount_reported": row.amount_reported, "currency": row.currency_agreed,
                "found_by": row.found_by.map(Source::as_str),
            })
        };
        let event = |row: &EventRow| {
            json!({
                "seq": row.seq, "event_id": row.event_id, "order_id": row.order_id, "kind": row.kind.as_str(),
                "status": row.status, "outcome": row.outcome.as_str(), "source": row.source.map(Source::as_str),
            })
        };
        let delivery = |(row, last): &(DeliveryRow, Option<AttemptRow>)| {
            json!({
                "event_id": row.event_id, "order_id": row.order_id, "hook": row.hook, "state": row.state.as_str(),
                "attempts": row.attempts, "result": last.as_ref().map(|attempt| &attempt.result),
            })
        };
        json!({
            "invoices": self.invoices.iter().map(invoice).collect::<Vec<_>>(),
            "events": self.events.iter().map(event).collect::<Vec<_>>(),
            "deliveries": self.deliveries.iter().map(delivery).collect::<Vec<_>>(),
            "refusals": self.refusals,
        })
    }

    fn print(&self, output: Output) -> Result<(), Failure> {
        let source = |source: Option<Source>| source.map_or("tilld", Source::as_str).to_owned();
        let invoices: Vec<[String; 6]> = self
            .invoices
            .iter()
            .map(|row| {
                [
                    row.order_id.clone(),
                    row.mode.as_str().to_owned(),
                    format!("{} {}", row.amount_agreed, row.currency_agreed),
                    row.status.clone().unwrap_or_default(),
                    row.outcome.to_string(),
                    source(row.found_by),
                ]
            })
            .collect();
        let headings = ["ORDER", "MODE", "AMOUNT", "STATUS", "OUTCOME", "FOUND BY"];
        say("\nThe ledger's invoices:\n")?;
        output.table(Some(headings), &invoices)?;
        let events: Vec<[String; 6]> = self
            .events
            .iter()
            .map(|row| {
                [
                    row.seq.to_string(),
                    row.order_id.clone(),
                    row.kind.to_string(),
                    row.status.clone().unwrap_or_default(),
                    source(row.source),
                    self.hooks_of(&row.event_id),
                ]
            })
            .collect();
        let headings = ["SEQ", "ORDER", "KIND", "STATUS", "SOURCE", "HOOK"];
        say("\nIts events, and the scripts that were run for them:\n")?;
        output.table(Some(headings), &events)?;
        say(&format!("\nRefused requests: {}\n", self.refusals))
    }

    fn hooks_of(&self, event_id: &str) -> String {
        let of_it = self
            .deliveries
            .iter()
            .filter(|(row, _)| row.event_id == event_id);
        let told = of_it.map(|(row, last)| {
            let result = last.as_ref().map_or("not run", |attempt| &attempt.result);
            format!("{}: {} ({result})", row.hook, row.state.as_str())
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Where things are while everything keeps running, and a tour through them.
pub(super) struct Around {
    pages: [(&'static str, String); 5],
    config: String,
    tour: Tour,
}

impl Around {
    /// Looks where everything is.
    pub(super) fn of(stage: &Stage<'_>) -> Self {
        let config = stage.directory.config();
        let program = std::env::args_os().next().unwrap_or_else(|| "tilld".into());
        let cabinet = format!("{}/cabinet", stage.sandbox.cabinet_url());
        Self {
            pages: [
                ("service", stage.sandbox.url()),
                ("faults", format!("{cabinet}/faults")),
                ("cabinet", cabinet),
                ("control", format!("{}/state", stage.sandbox.control_url())),
                ("listener", format!("http://{}/n", stage.daemon.listen())),
            ],
            tour: Tour::new(&Places {
                program: quoted(&program.to_string_lossy()),
                config: quoted_path(&config),
                fulfilled: quoted_path(&stage.directory.fulfilled()),
                sandbox: stage.sandbox.url(),
            }),
            config: config.display().to_string(),
        }
    }

    fn json(&self) -> Value {
        let pages: serde_json::Map<String, Value> = self
            .pages
            .iter()
            .map(|(name, address)| ((*name).to_owned(), address.as_str().into()))
            .collect();
        json!({ "pages": pages, "config": self.config, "tour": self.tour.json() })
    }

    fn print(&self, output: Output, directory: &Directory) -> Result<(), Failure> {
        say("\nEverything keeps running:\n")?;
        let pages: Vec<(&str, String)> = self
            .pages
            .iter()
            .map(|(name, address)| (*name, address.clone()))
            .chain([("log", directory.serve_log().display().to_string())])
            .collect();
        output.pairs(&pages)?;
        say(&self.tour.text())?;
        say(if directory.is_kept() {
            "\nCtrl-C stops everything; the directory stays\n"
        } else {
            "\nCtrl-C stops everything and removes the directory\n"
        })
    }
}

/// Prints what the ledger says, how to ask it, and with `--stay` what is around.
pub(super) fn print_all(
    output: Output,
    directory: &Directory,
    account: &Account,
    around: Option<&Around>,
) -> Result<(), Failure> {
    let stays = directory.is_kept() || around.is_some();
    let next = Path::new(NEXT_DIR);
    let home = if stays { directory.path() } else { next };
    let ledger = quoted_path(&home.join("state").join(FILE_NAME));
    if output.json() {
        return print_json(&json!({
            "ok": true,
            "dir": if stays { Some(directory.path().to_string_lossy()) } else { None },
            "sqlite3": format!("sqlite3 -readonly {ledger} \"{QUESTION}\""),
            "ledger": account.json(),
            "stay": around.map(Around::json),
        }));
    }
    account.print(output)?;
    if stays {
        say("\nTo ask it yourself:\n")?;
    } else {
        say("\nThis ledger is gone now. To keep one and ask it yourself:\n")?;
        say(&format!("  tilld demo --dir {NEXT_DIR}\n"))?;
    }
    say(&format!(
        "  sqlite3 -readonly {ledger} \\\n    \"{QUESTION}\"\n"
    ))?;
    match around {
        Some(around) => around.print(output, directory),
        None => Ok(()),
    }
}

fn say(text: &str) -> Result<(), Failure> {
    print(text)
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("/tmp/tilld-demo-1/state"), "/tmp/tilld-demo-1/state");
        assert_eq!(quoted("/tmp/my shop's"), "'/tmp/my shop'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
