//! The end of a run: all is waited for, tilld is stopped, and then what must be so at the end of every scenario is looked at:
//! the ledger says what the service's book says, the goods of each paid order went out once, and no event is missing.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant, sleep};

use super::book::Booked;
use super::facts;
use super::play::Player;
use super::report::Row;
use crate::answer::name::Kind;
use crate::cli::stage::trouble::Trouble;
use crate::invoice::status::Outcome;
use crate::ledger::InvoiceRow;
use crate::telemetry::chain;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// After a storm all is right again within this: a service that was away is tried again after 5 s, then after 10 s.
const AFTER_STORM: Duration = Duration::from_secs(45);
/// Events that are read at once.
const MOST_EVENTS: u32 = 1_000;

/// How much was sent, and since when it is that much.
#[derive(Default)]
struct Stillness(Option<(usize, Instant)>);

/// True for a second payment of an order.
fn is_second(row: &InvoiceRow) -> bool {
    row.outcome == Outcome::SecondPayment && row.superseded.is_some()
}

impl Player<'_> {
    /// Waits until every invoice of the service's book stands in the ledger as it is, and no run is left. What comes of it is
    /// judged at the end.
    pub(super) async fn settle(&mut self) -> Result<(), Trouble> {
        self.tilld.up().await?;
        let bound = if self.had_storm {
            AFTER_STORM
        } else {
            self.scene.within
        };
        let until = Instant::now() + bound;
        let mut still = Stillness::default();
        loop {
            let astray = self.astray().await?;
            let is_settled = astray.is_empty() && self.is_over().await?;
            let is_settled = is_settled && self.is_still(&mut still).await?;
            if is_settled || Instant::now() >= until {
                return Ok(());
            }
            for order in astray.iter().filter(|_| self.had_storm) {
                // A payment that came late and was never told: an ended invoice is asked about after minutes, by a person at once.
                let asked = self.scene.remote.poll(&Kind::Order.of(order)).await;
                tracing::debug!(?asked, "order {order} is asked about");
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Whether no notification is on its way any more. Asked only where something that was expected must stay so.
    async fn is_still(&self, still: &mut Stillness) -> Result<bool, Trouble> {
        if self.last.is_empty() {
            return Ok(true);
        }
        let book = self.scene.book().await?;
        let sent: usize = book.iter().map(|one| one.attempts.len()).sum();
        let now = Instant::now();
        let since = match still.0 {
            Some((before, since)) if before == sent => since,
            Some(_) | None => now,
        };
        still.0 = Some((sent, since));
        Ok(!book.iter().any(Booked::waits) && now - since >= self.still_for)
    }

    /// Numbers that were as expected, and are so no more now that all is over.
    async fn look_again(&self) -> Result<Vec<Row>, Trouble> {
        let mut rows = Vec::new();
        for (step, expect) in self.last.values() {
            let counts = expect.counts();
            let compared = self.scene.compare(&counts).await?;
            let broken = facts::rows(&expect.order, compared)
                .into_iter()
                .filter(|row| !row.holds())
                .map(|row| Row {
                    what: format!("{} to the end", row.what),
                    ..row.of(step)
                });
            rows.extend(broken);
        }
        rows.sort_by_key(|row| row.place.map(|(_, number)| number));
        Ok(rows)
    }

    /// Whether no run of the script is left.
    async fn is_over(&self) -> Result<bool, Trouble> {
        for order in self.orders().await? {
            if !self.scene.over(&order).await?.0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The orders the service knows.
    async fn orders(&self) -> Result<Vec<String>, Trouble> {
        let mut orders: Vec<String> = self
            .scene
            .book()
            .await?
            .into_iter()
            .map(|one| one.order)
            .collect();
        orders.sort();
        orders.dedup();
        Ok(orders)
    }

    /// What an invoice of the service's book amounts to. The amount that was agreed is the one that was asked for.
    pub(super) fn truth(&self, booked: &Booked, agreed: Option<&str>) -> Outcome {
        let asked = self.asked.get(&booked.order);
        let asked = asked.map(|asked| asked.amount.as_str()).or(agreed);
        booked.truth(self.scene.sandbox.statuses(), asked.unwrap_or_default())
    }

    /// Whether the ledger's outcome is the one in the service's book. For whoever was never told of a payment, money that went
    /// back never came.
    fn fits(&self, booked: &Booked, truth: Outcome, row: &InvoiceRow) -> bool {
        let is_unheard = || !booked.told_paid(self.scene.sandbox.statuses());
        let never_came = truth == Outcome::Reversed && row.outcome == Outcome::Failed;
        // The service knows no orders: another invoice paid this one's.
        let is_second = is_second(row) && truth.has_money();
        row.outcome == truth || is_second || never_came && is_unheard()
    }

    /// Orders that are in the ledger otherwise than in the service's book.
    async fn astray(&self) -> Result<Vec<String>, Trouble> {
        let mut astray = Vec::new();
        for booked in self.scene.book().await? {
            let row = self.scene.reader.invoice_by_id(&booked.id).await?;
            let agreed = row.as_ref().map(|row| row.amount_agreed.as_str());
            let truth = self.truth(&booked, agreed);
            if row.is_none_or(|row| !self.fits(&booked, truth, &row)) {
                astray.push(booked.order);
            }
        }
        astray.sort();
        Ok(astray)
    }

    /// What must be so at the end of every scenario, once tilld has stopped.
    pub(super) async fn end(&mut self) {
        let stopped = self.tilld.stop().await;
        self.trace.push("end".to_owned());
        if self.holds() {
            // Only now: refusals are written in bundles, the last of them when tilld stops.
            let rows = self.look_again().await;
            self.take_or("the orders", rows);
            let rows = self.last_rows().await;
            self.take_or("the end", rows);
        }
        let seen = stopped.map_or_else(|trouble| chain(&trouble), |()| "in order".to_owned());
        self.take([Row::new("tilld ends", "in order", seen)]);
    }

    async fn last_rows(&mut self) -> Result<Vec<Row>, Trouble> {
        let book = self.scene.book().await?;
        // How many invoices of an order are paid: at least, and at most.
        let mut paid: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let (mut wrong, mut lines) = (Vec::new(), Vec::new());
        for booked in &book {
            let row = self.scene.reader.invoice_by_id(&booked.id).await?;
            let agreed = row.as_ref().map(|row| row.amount_agreed.as_str());
            let truth = self.truth(booked, agreed);
            let fits = row
                .as_ref()
                .is_some_and(|row| self.fits(booked, truth, row));
            let second = row.as_ref().is_some_and(is_second);
            let seen = row.map_or_else(|| "unknown".to_owned(), |row| row.outcome.to_string());
            lines.push(format!("  {}: {seen}", booked.order));
            if !fits {
                wrong.push(format!("{} {seen}, not {truth}", booked.order));
            }
            let (least, most) = paid.entry(&booked.order).or_default();
            if second {
                continue;
            }
            let was_paid = truth == Outcome::Reversed && self.gone_back.contains(&booked.id);
            // Money that went back was there once. Whether tilld came to know of it in time is another thing.
            let statuses = self.scene.sandbox.statuses();
            *least += usize::from(truth == Outcome::Paid || was_paid && booked.told_paid(statuses));
            *most += usize::from(truth == Outcome::Paid || was_paid);
        }
        lines.sort();
        self.trace.extend(lines);
        let mut goods = Vec::new();
        for (order, (least, most)) in &paid {
            // The script that is judged has its own rows for the orders that judge it.
            if !self.asked.contains_key(*order) {
                continue;
            }
            // The scenario's own script goes by the event. One of a merchant goes by the order.
            let limit = if self.scene.script.is_some() {
                1
            } else {
                usize::MAX
            };
            let (least, most) = ((*least).min(limit), (*most).min(limit));
            let found = self.scene.handed_over(order).await?;
            if !(least..=most).contains(&found) {
                let wanted = if found < least { least } else { most };
                goods.push(format!("{order} {found} times, not {wanted}"));
            }
        }
        let row = |what: &str, good: &str, bad: Vec<String>| {
            let seen = if bad.is_empty() {
                good.to_owned()
            } else {
                bad.join("; ")
            };
            Row::new(what, good, seen)
        };
        Ok(vec![
            row("outcomes", "the service's", wrong),
            row("goods", "once for each paid", goods),
            row("events", "without a gap", self.gaps().await?),
        ])
    }

    /// What a storm did, in a line: its rows alone do not show how much went wrong.
    pub(super) async fn went_through(&self) -> Option<String> {
        if !self.had_storm {
            return None;
        }
        let book = self.scene.book().await.ok()?;
        let statuses = self.scene.sandbox.statuses();
        let paid = book.iter().filter(|one| statuses.is_paid(&one.status));
        let faults: usize = book.iter().map(Booked::faults).sum();
        Some(format!(
            "{} orders opened, {} paid, {faults} notifications gone wrong, {} kills",
            book.len(),
            paid.count(),
            self.kills
        ))
    }

    /// Numbers that are missing among the events.
    async fn gaps(&self) -> Result<Vec<String>, Trouble> {
        let (mut gaps, mut last) = (Vec::new(), 0);
        loop {
            let events = self.scene.reader.events(None, last, MOST_EVENTS).await?;
            if events.is_empty() {
                return Ok(gaps);
            }
            for event in events {
                if event.seq != last + 1 {
                    gaps.push(format!("{} after {last}", event.seq));
                }
                last = event.seq;
            }
        }
    }
}
