//! What is so of an order, by the ledger, the service's book and the goods; and whether it is what is expected.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::report::Row;
use super::scene::{HOOK, Scene};
use super::step::Expect;
use crate::cli::stage::trouble::Trouble;
use crate::ledger::{DeliveryRow, DeliveryState, ReadError, Reader, RefusalFilter};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Events of one order that are looked at.
const MOST_EVENTS: u32 = 1_000;
/// Refusals that are looked at.
const MOST_REFUSALS: u32 = 10_000;

/// A fact that is expected, and how it is found to be.
pub(super) type Compared = (&'static str, String, String);

impl Scene<'_> {
    /// Looks until all that is expected is so or the time is over. Gives the last look.
    pub(super) async fn look(&self, expect: &Expect) -> Result<Vec<Compared>, Trouble> {
        let until = Instant::now() + self.within;
        loop {
            let compared = self.compare(expect).await?;
            let holds = compared.iter().all(|(_, expected, seen)| expected == seen);
            if holds || Instant::now() >= until {
                return Ok(compared);
            }
            if self.is_in_vain(expect, &compared).await? {
                // The script may have ended since that look.
                return self.compare(expect).await;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Whether goods alone are missing, and the script that is judged will not be run for them any more.
    async fn is_in_vain(&self, expect: &Expect, compared: &[Compared]) -> Result<bool, Trouble> {
        let mut astray = compared
            .iter()
            .filter(|(_, expected, seen)| expected != seen);
        if self.script.is_none() || !astray.all(|(name, ..)| *name == "handed_over") {
            return Ok(false);
        }
        let (over, owed) = self.over(&expect.order).await?;
        Ok(over && owed > 0)
    }

    pub(super) async fn compare(&self, expect: &Expect) -> Result<Vec<Compared>, Trouble> {
        let order = expect.order.as_str();
        let mut compared = Vec::new();
        let rows = self.reader.invoices_of_order(order).await?;
        let invoices = rows.len();
        let row = rows.into_iter().next();
        let none = || "none".to_owned();
        if let Some(wanted) = &expect.outcome {
            let seen = row.as_ref().map(|row| row.outcome.to_string());
            compared.push(("outcome", wanted.clone(), seen.unwrap_or_else(none)));
        }
        if let Some(wanted) = &expect.found_by {
            let seen = row.as_ref().and_then(|row| row.found_by);
            let seen = seen.map(|source| source.as_str().to_owned());
            compared.push(("found_by", wanted.clone(), seen.unwrap_or_else(none)));
        }
        if let Some(wanted) = &expect.status {
            let seen = row.as_ref().and_then(|row| row.status.clone());
            compared.push(("status", wanted.clone(), seen.unwrap_or_else(none)));
        }
        let mut count = |name, wanted: u64, seen: usize| {
            compared.push((name, wanted.to_string(), seen.to_string()));
        };
        if let Some(wanted) = expect.invoices {
            count("invoices", wanted, invoices);
        }
        if let Some(wanted) = expect.events {
            let events = self.reader.events(Some(order), 0, MOST_EVENTS).await?;
            count("events", wanted, events.len());
        }
        if let Some(wanted) = expect.runs {
            count("runs", wanted, self.runs(order).await?);
        }
        if let Some(wanted) = expect.handed_over {
            count("handed_over", wanted, self.handed_over(order).await?);
        }
        if let Some(wanted) = expect.refusals {
            let all = RefusalFilter::default();
            let refusals = self.reader.refusals(all, MOST_REFUSALS).await?;
            let ours = |found: &Option<String>| found.as_deref() == Some(order);
            let seen = refusals.iter().filter(|row| ours(&row.order_id)).count();
            count("refusals", wanted, seen);
        }
        if let Some(wanted) = &expect.answer {
            let seen = self.booked(order).await?.answer;
            let seen = seen.as_ref().map_or_else(none, plain);
            compared.push(("answer", plain(wanted), seen));
        }
        Ok(compared)
    }

    /// Runs of the script for an order, those that began and were cut off included.
    async fn runs(&self, order: &str) -> Result<usize, Trouble> {
        let deliveries = deliveries(&self.reader, order).await?;
        let begun = deliveries.iter().map(|delivery| delivery.attempts);
        Ok(usize::try_from(begun.sum::<u32>()).unwrap_or(usize::MAX))
    }

    /// Whether nothing of an order is left to be run, and how much there was.
    pub(super) async fn over(&self, order: &str) -> Result<(bool, usize), ReadError> {
        let deliveries = deliveries(&self.reader, order).await?;
        let over = deliveries.iter().all(|delivery| match delivery.state {
            DeliveryState::Done | DeliveryState::Abandoned | DeliveryState::Held => true,
            DeliveryState::Waiting | DeliveryState::Running => false,
        });
        Ok((over, deliveries.len()))
    }
}

/// What is owed to the script for an order.
async fn deliveries(reader: &Reader, order: &str) -> Result<Vec<DeliveryRow>, ReadError> {
    let mut all = Vec::new();
    for event in reader.events(Some(order), 0, MOST_EVENTS).await? {
        let deliveries = reader.deliveries_of(&event.event_id).await?;
        all.extend(deliveries.into_iter().filter(|one| one.hook == HOOK));
    }
    Ok(all)
}

/// A text without its quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The rows of what was compared.
pub(super) fn rows(order: &str, compared: Vec<Compared>) -> Vec<Row> {
    let row = |(name, expected, seen)| Row::new(format!("{order} {name}"), expected, seen);
    compared.into_iter().map(row).collect()
}
