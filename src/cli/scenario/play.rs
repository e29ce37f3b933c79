//! Plays a scenario once: its steps, then what must be so at the end of every one. Promises that whatever happens the daemon
//! is stopped, and the service with it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use super::book::Booked;
use super::draw;
use super::facts;
use super::format::{Act, Ends, Expect, Open, Repeat, Scenario, Step, Yes};
use super::judged::Script;
use super::report::{Played, Row, opened};
use super::scene::{self, Scene, Tilld};
use super::storm;
use crate::cli::stage::directory::Directory;
use crate::cli::stage::trouble::Trouble;
use crate::invoice::status::Outcome;
use crate::shutdown::Shutdown;
use crate::telemetry::chain;

/// Between two looks at the end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// After a storm all is right again within this: a service that was away is tried again after 5 s, then after 10 s.
const AFTER_STORM: Duration = Duration::from_secs(45);
/// Events that are read at once.
const MOST_EVENTS: u32 = 1_000;

/// Why there is nothing to tell of a run.
#[derive(Debug)]
pub(super) enum Ended {
    /// A person does not want to wait.
    Interrupted,
    /// It could not be set up.
    Trouble(Trouble),
}

/// Plays it.
pub(super) async fn play(
    scenario: &Scenario,
    directory: &Directory,
    seed: u64,
    script: Option<&Script>,
    stop: &Shutdown,
) -> Result<Played, Ended> {
    let opened = tokio::select! {
        biased;
        () = stop.requested() => return Err(Ended::Interrupted),
        opened = scene::open(directory, &scenario.settings, seed, script) => opened,
    };
    let (scene, tilld) = opened.map_err(Ended::Trouble)?;
    let mut player = Player {
        scene,
        tilld,
        seed,
        asked: BTreeMap::new(),
        had_storm: false,
        rows: Vec::new(),
        trace: Vec::new(),
    };
    let acted = tokio::select! {
        biased;
        () = stop.requested() => Err(Ended::Interrupted),
        () = player.all(scenario) => Ok(()),
    };
    let played = match acted {
        Ok(()) => {
            player.end().await;
            Ok(Played {
                seed,
                rows: player.rows,
                trace: player.trace,
            })
        }
        Err(ended) => {
            // How the stop went adds nothing to why it came to it.
            drop(player.tilld.stop().await);
            Err(ended)
        }
    };
    player.scene.sandbox.stop().await;
    played
}

struct Player<'d> {
    scene: Scene<'d>,
    tilld: Tilld<'d>,
    seed: u64,
    /// What was asked for each order.
    asked: BTreeMap<String, draw::Asked>,
    had_storm: bool,
    rows: Vec<Row>,
    trace: Vec<String>,
}

impl Player<'_> {
    /// All steps, until one does not hold; then the script that is judged, and what comes of all orders.
    async fn all(&mut self, scenario: &Scenario) {
        for step in &scenario.steps {
            let rows = match self.step(step).await {
                Ok(rows) => rows,
                Err(trouble) => vec![Row::new(word(&step.act), "done", chain(&trouble))],
            };
            self.take(rows.into_iter().map(|row| row.of(step)));
            if !self.holds() {
                break;
            }
        }
        // A step may have failed for the script alone: what is wrong with it is told all the same.
        if self.scene.script.is_some() {
            self.trace.push("verify".to_owned());
            let rows = self.scene.judge(self.seed).await;
            self.take_or("the script judged", rows);
        }
        if !self.holds() {
            return;
        }
        if let Err(trouble) = self.settle().await {
            self.take_or("the orders", Err(trouble));
        }
    }

    fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    fn take(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            self.trace.push(row.line());
            self.rows.push(row);
        }
    }

    fn take_or(&mut self, what: &str, rows: Result<Vec<Row>, Trouble>) {
        match rows {
            Ok(rows) => self.take(rows),
            Err(trouble) => self.take([Row::new(what, "seen", chain(&trouble))]),
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Vec<Row>, Trouble> {
        let number = step.number;
        let told = |what: &str| format!("step {number}: {} {what}", word(&step.act));
        let happening = match &step.act {
            Act::Open(open) => return self.open(open, step).await,
            Act::Storm(wish) => {
                let drawn = draw::storm(self.seed, number, wish);
                self.trace
                    .push(told(&format!("of {} orders", drawn.orders.len())));
                let lines = storm::told(&drawn);
                self.trace
                    .extend(lines.into_iter().map(|line| format!("  {line}")));
                self.had_storm = true;
                for plan in &drawn.orders {
                    let asked = plan.asked.clone();
                    self.asked.insert(asked.order.clone(), asked);
                }
                storm::play(&self.scene, &mut self.tilld, wish, &drawn).await?;
                return Ok(Vec::new());
            }
            Act::Wait(expect) => {
                self.trace.push(told(&expect.order));
                return self.wait(expect).await;
            }
            Act::Expect(expect) => {
                self.trace.push(told(&expect.order));
                let compared = self.scene.look(expect).await?;
                return Ok(facts::rows(&expect.order, compared));
            }
            Act::Repeat(repeat) => {
                self.trace.push(told(&repeat.order));
                return self.repeat(repeat).await;
            }
            Act::Forge(order) => {
                self.trace.push(told(order));
                let status = self.scene.forge(order).await?;
                let what = format!("{order} forged");
                return Ok(vec![Row::new(what, "401", status.to_string())]);
            }
            Act::Pay(order) => (order, "paid"),
            Act::PayLess(order) => (order, "paid-less"),
            Act::PayMore(order) => (order, "paid-more"),
            Act::Cancel(order) => (order, "cancel"),
            Act::Expire(order) => (order, "expire"),
            Act::Refund(order) => (order, "refund"),
            plain => {
                let what = self.plain(plain).await?;
                self.trace.push(told(&what));
                return Ok(Vec::new());
            }
        };
        let (order, what) = happening;
        self.trace.push(told(order));
        self.scene.happen(order, what).await?;
        Ok(Vec::new())
    }

    /// Steps that are done and no more. Gives what is to be told of them.
    async fn plain(&mut self, act: &Act) -> Result<String, Trouble> {
        match act {
            Act::Lose(count) => {
                self.scene
                    .control("/faults", &json!({ "lose": count }))
                    .await?;
                Ok(count.to_string())
            }
            Act::Faults(asked) => {
                self.scene.control("/faults", asked).await?;
                Ok(asked.to_string())
            }
            Act::Pool(free) => {
                self.scene
                    .control("/pool", &json!({ "free": free }))
                    .await?;
                Ok(free.to_string())
            }
            Act::Poll(order) => {
                let asked = self.scene.remote.poll(order).await;
                let asked = asked.and_then(|asked| asked.failure.map_or(Ok(()), Err));
                asked.map_err(|failure| {
                    let found = failure.line().unwrap_or_default();
                    Trouble::otherwise(format!("an answer about order {order}"), found)
                })?;
                Ok(order.clone())
            }
            Act::Kill(Yes) => {
                self.tilld.down().await?;
                self.tilld.up().await?;
                Ok("and start again".to_owned())
            }
            Act::Down(Yes) => self.tilld.down().await.map(|()| String::new()),
            Act::Up(Yes) => self.tilld.up().await.map(|()| String::new()),
            Act::PauseMs(ms) => {
                sleep(Duration::from_millis(*ms)).await;
                Ok(ms.to_string())
            }
            Act::Open(_)
            | Act::Pay(_)
            | Act::PayLess(_)
            | Act::PayMore(_)
            | Act::Cancel(_)
            | Act::Expire(_)
            | Act::Refund(_)
            | Act::Repeat(_)
            | Act::Forge(_)
            | Act::Wait(_)
            | Act::Expect(_)
            | Act::Storm(_) => unreachable!("they are played where they are told"),
        }
    }

    async fn open(&mut self, open: &Open, step: &Step) -> Result<Vec<Row>, Trouble> {
        let drawn = || {
            let amount = open.amount.as_deref();
            draw::asked(self.seed, step.number, &open.order, amount, open.mode)
        };
        // What an order costs it costs however often it is asked for.
        let asked = self.asked.get(&open.order).cloned().unwrap_or_else(drawn);
        self.trace
            .push(format!("step {}: open {}", step.number, opened(&asked)));
        self.asked.insert(open.order.clone(), asked.clone());
        let ends = self.scene.open(&asked, open.another).await?;
        // An invoice that was opened as it should is nothing to tell of.
        if open.ends == Ends::Open && ends == Ends::Open {
            return Ok(Vec::new());
        }
        let what = format!("{} open", open.order);
        Ok(vec![Row::new(what, open.ends.word(), ends.word())])
    }

    async fn wait(&self, expect: &Expect) -> Result<Vec<Row>, Trouble> {
        let compared = self.scene.look(expect).await?;
        let rows = facts::rows(&expect.order, compared);
        // What came is nothing to tell of.
        Ok(rows.into_iter().filter(|row| !row.holds()).collect())
    }

    async fn repeat(&self, repeat: &Repeat) -> Result<Vec<Row>, Trouble> {
        let path = format!("/invoices/{}/notify", repeat.order);
        let sent = self
            .scene
            .control(&path, &json!({ "times": repeat.times }))
            .await?;
        let answers = sent.get("answers").and_then(Value::as_array);
        let mut words: Vec<String> = answers
            .into_iter()
            .flatten()
            .map(Value::to_string)
            .collect();
        words.sort();
        words.dedup();
        let what = format!("{} repeated", repeat.order);
        Ok(vec![Row::new(what, "200", words.join(", "))])
    }

    /// Waits until every invoice of the service's book stands in the ledger as it is, and no run is left. What comes of it is
    /// judged at the end.
    async fn settle(&mut self) -> Result<(), Trouble> {
        self.tilld.up().await?;
        let bound = if self.had_storm {
            AFTER_STORM
        } else {
            self.scene.within
        };
        let until = Instant::now() + bound;
        loop {
            let astray = self.astray().await?;
            let is_settled = astray.is_empty() && self.is_over().await?;
            if is_settled || Instant::now() >= until {
                return Ok(());
            }
            for order in astray.iter().filter(|_| self.had_storm) {
                // A payment that came late and was never told: an ended invoice is asked about after minutes, by a person at once.
                let asked = self.scene.remote.poll(order).await;
                tracing::debug!(?asked, "order {order} is asked about");
            }
            sleep(LOOK_EVERY).await;
        }
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
    fn truth(&self, booked: &Booked, agreed: Option<&str>) -> Outcome {
        let asked = self.asked.get(&booked.order);
        let asked = asked.map(|asked| asked.amount.as_str()).or(agreed);
        booked.truth(self.scene.sandbox.statuses(), asked.unwrap_or_default())
    }

    /// Orders that are in the ledger otherwise than in the service's book.
    async fn astray(&self) -> Result<Vec<String>, Trouble> {
        let mut astray = Vec::new();
        for booked in self.scene.book().await? {
            let row = self.scene.reader.find_invoice(&booked.id).await?;
            let agreed = row.as_ref().map(|row| row.amount_agreed.as_str());
            let truth = self.truth(&booked, agreed);
            if row.is_none_or(|row| row.outcome != truth) {
                astray.push(booked.order);
            }
        }
        astray.sort();
        Ok(astray)
    }

    /// What must be so at the end of every scenario, once tilld has stopped.
    async fn end(&mut self) {
        let stopped = self.tilld.stop().await;
        self.trace.push("end".to_owned());
        if self.holds() {
            let rows = self.last_rows().await;
            self.take_or("the end", rows);
        }
        let seen = stopped.map_or_else(|trouble| chain(&trouble), |()| "in order".to_owned());
        self.take([Row::new("tilld ends", "in order", seen)]);
    }

    async fn last_rows(&mut self) -> Result<Vec<Row>, Trouble> {
        let book = self.scene.book().await?;
        // How many invoices of an order are paid.
        let mut paid: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut wrong, mut lines) = (Vec::new(), Vec::new());
        for booked in &book {
            let row = self.scene.reader.find_invoice(&booked.id).await?;
            let agreed = row.as_ref().map(|row| row.amount_agreed.as_str());
            let truth = self.truth(booked, agreed);
            let seen = row.map_or_else(|| "unknown".to_owned(), |row| row.outcome.to_string());
            lines.push(format!("  {}: {seen}", booked.order));
            if seen != truth.to_string() {
                wrong.push(format!("{} {seen}, not {truth}", booked.order));
            }
            let count = paid.entry(&booked.order).or_default();
            // Money that went back was there once.
            *count += usize::from(matches!(truth, Outcome::Paid | Outcome::Reversed));
        }
        lines.sort();
        self.trace.extend(lines);
        let mut goods = Vec::new();
        for (order, paid) in &paid {
            // The script that is judged has its own rows for the orders that judge it.
            if !self.asked.contains_key(*order) {
                continue;
            }
            // The scenario's own script goes by the event. One of a merchant goes by the order.
            let wanted = if self.scene.script.is_some() {
                (*paid).min(1)
            } else {
                *paid
            };
            let found = self.scene.handed_over(order).await?;
            if found != wanted {
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

/// The step's key in the file.
const fn word(act: &Act) -> &'static str {
    match act {
        Act::Open(_) => "open",
        Act::Pay(_) => "pay",
        Act::PayLess(_) => "pay_less",
        Act::PayMore(_) => "pay_more",
        Act::Cancel(_) => "cancel",
        Act::Expire(_) => "expire",
        Act::Refund(_) => "refund",
        Act::Lose(_) => "lose",
        Act::Faults(_) => "faults",
        Act::Pool(_) => "pool",
        Act::Repeat(_) => "repeat",
        Act::Forge(_) => "forge",
        Act::Poll(_) => "poll",
        Act::Kill(_) => "kill",
        Act::Down(_) => "down",
        Act::Up(_) => "up",
        Act::PauseMs(_) => "pause_ms",
        Act::Wait(_) => "wait",
        Act::Expect(_) => "expect",
        Act::Storm(_) => "storm",
    }
}
