//! Plays a scenario once: its steps, then what must be so at the end of every one. Promises that whatever happens the daemon
//! is stopped, and the service with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use super::draw;
use super::facts;
use super::judged::Script;
use super::mark::Mark;
use super::report::{Played, Row, opened};
use super::scene::{self, Scene, Tilld};
use super::step::{Act, Ends, Expect, Open, Repeat, Scenario, Settings, Step, Yes};
use super::storm;
use crate::answer::name::Kind;
use crate::cli::stage::directory::Directory;
use crate::cli::stage::trouble::Trouble;
use crate::invoice::status::Outcome;
use crate::sandbox::encode;
use crate::shutdown::Shutdown;
use crate::telemetry::chain;

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
    let script = script.map(Script::in_a_run);
    let mark = script.as_ref().map(|script| script.mark.clone());
    let mark = mark.unwrap_or_default();
    let scenario = mark.scenario(scenario);
    // Not cut short: a daemon that is about to start is one to be stopped in order, too.
    let opened = scene::open(directory, &scenario.settings, seed, script.as_ref()).await;
    let (scene, mut tilld) = match opened {
        Ok(opened) => opened,
        // A signal from a terminal reaches the daemon as well, and then it does not start.
        Err(_) if stop.is_requested() => return Err(Ended::Interrupted),
        Err(trouble) => return Err(Ended::Trouble(trouble)),
    };
    if stop.is_requested() {
        drop(tilld.stop().await);
        scene.sandbox.stop().await;
        return Err(Ended::Interrupted);
    }
    let mut player = Player {
        scene,
        tilld,
        seed,
        last: BTreeMap::new(),
        gone_back: BTreeSet::new(),
        still_for: still_for(&scenario.settings),
        kills: 0,
        is_brief: is_brief(&scenario.settings),
        asked: BTreeMap::new(),
        had_storm: false,
        rows: Vec::new(),
        words: Vec::new(),
        trace: Vec::new(),
        mark,
    };
    let acted = tokio::select! {
        biased;
        () = stop.requested() => Err(Ended::Interrupted),
        () = player.all(&scenario) => Ok(()),
    };
    let played = match acted {
        Ok(()) => {
            player.end().await;
            let went_through = player.went_through().await;
            Ok(player.played(went_through))
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

/// Whoever plays it.
pub(super) struct Player<'d> {
    /// Those who act and look.
    pub(super) scene: Scene<'d>,
    /// The daemon.
    pub(super) tilld: Tilld<'d>,
    seed: u64,
    /// What was expected last of orders that nothing happened to since: it must stay so.
    pub(super) last: BTreeMap<String, (Step, Expect)>,
    /// Ids of invoices whose money went back after they were paid exactly.
    pub(super) gone_back: BTreeSet<String>,
    /// A service that sends no more has been still for so long.
    pub(super) still_for: Duration,
    /// The customer is told at once where to pay, since the window may close by itself.
    is_brief: bool,
    /// How often a storm had tilld killed.
    pub(super) kills: usize,
    /// What was asked for each order.
    pub(super) asked: BTreeMap<String, draw::Asked>,
    /// So much went wrong that a person has invoices asked about at the end.
    pub(super) had_storm: bool,
    rows: Vec<Row>,
    /// What the script that is judged said last.
    words: Vec<String>,
    /// What was done, drawn and seen.
    pub(super) trace: Vec<String>,
    /// What the orders end in.
    mark: Mark,
}

impl Player<'_> {
    /// All steps, until one does not hold; then the script that is judged, and what comes of all orders.
    async fn all(&mut self, scenario: &Scenario) {
        for step in &scenario.steps {
            let rows = match self.step(step).await {
                Ok(rows) => rows,
                Err(trouble) => vec![instead(word(&step.act), "done", &trouble)],
            };
            self.take(rows.into_iter().map(|row| row.of(step)));
            if !self.holds() {
                break;
            }
        }
        // A step may have failed for the script alone: what is wrong with it is told all the same.
        if self.scene.script.is_some() {
            self.trace.push("verify".to_owned());
            let rows = match self.tilld.up().await {
                Ok(()) => self.scene.judge(self.seed).await,
                Err(trouble) => Err(trouble),
            };
            self.take_or("script: judged", rows);
            if !self.holds() {
                let words = self.scene.last_words().await;
                self.words = words.unwrap_or_else(|trouble| vec![chain(&trouble)]);
            }
        }
        if !self.holds() {
            return;
        }
        if let Err(trouble) = self.settle().await {
            self.take_or("the orders", Err(trouble));
        }
    }

    /// Whether all was as expected so far.
    pub(super) fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// Takes rows in, and has the trace tell them.
    pub(super) fn take(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            self.trace.push(row.line());
            self.rows.push(row);
        }
    }

    /// The same, or one row that says why there are none.
    pub(super) fn take_or(&mut self, what: &str, rows: Result<Vec<Row>, Trouble>) {
        match rows {
            Ok(rows) => self.take(rows),
            Err(trouble) => self.take([instead(what, "done", &trouble)]),
        }
    }

    /// What is told of it, with the orders' plain names.
    fn played(&self, went_through: Option<String>) -> Played {
        let plain = |text: &String| self.mark.plain(text);
        let row = |row: &Row| Row {
            what: plain(&row.what),
            expected: plain(&row.expected),
            seen: plain(&row.seen),
            ..row.clone()
        };
        Played {
            seed: self.seed,
            rows: self.rows.iter().map(row).collect(),
            words: self.words.iter().map(plain).collect(),
            trace: self.trace.iter().map(plain).collect(),
            went_through,
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Vec<Row>, Trouble> {
        let number = step.number;
        self.forget(&step.act);
        let told = |what: &str| format!("step {number}: {} {what}", word(&step.act));
        let happening = match &step.act {
            Act::Open(open) => return self.open(open, step).await,
            Act::Storm(wish) => {
                let mut drawn = draw::storm(self.seed, number, wish);
                for plan in &mut drawn.orders {
                    plan.asked.order = self.mark.order(&plan.asked.order);
                }
                self.trace
                    .push(told(&format!("of {} orders", drawn.orders.len())));
                let lines = storm::told(&drawn);
                self.trace
                    .extend(lines.into_iter().map(|line| format!("  {line}")));
                self.had_storm = true;
                self.kills += drawn
                    .rounds
                    .iter()
                    .map(|round| round.kills_ms.len())
                    .sum::<usize>();
                for plan in &drawn.orders {
                    let asked = plan.asked.clone();
                    self.asked.insert(asked.order.clone(), asked);
                }
                return storm::play(&self.scene, &mut self.tilld, wish, &drawn).await;
            }
            Act::Wait(expect) => {
                self.trace.push(told(&expect.order));
                return self.wait(expect).await;
            }
            Act::Expect(expect) => {
                self.trace.push(told(&expect.order));
                let compared = self.scene.look(expect).await?;
                self.last
                    .insert(expect.order.clone(), (step.clone(), expect.clone()));
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
                let seen = status.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
                return Ok(vec![Row::new(what, "401", seen)]);
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
        if what == "refund" {
            self.remember_money_of(order).await?;
        }
        let method = self.asked.get(order).map_or("SBP", |asked| asked.method);
        self.scene.happen_by(order, method, what).await?;
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
                let asked = self.scene.remote.poll(&Kind::Order.of(order)).await;
                let asked = asked.and_then(|asked| asked.failure.map_or(Ok(()), Err));
                asked.map_err(|failure| {
                    let found = failure.line();
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
        if self.is_brief && asked.is_redirect && ends == Ends::Open {
            self.scene.told_where(&asked.order, asked.method).await?;
        }
        // An invoice that was opened as it should is nothing to tell of.
        if open.ends == Ends::Open && ends == Ends::Open {
            return Ok(Vec::new());
        }
        let what = format!("{} open", open.order);
        Ok(vec![Row::new(what, open.ends.word(), ends.word())])
    }

    /// Leaves what was expected of orders that a step may change.
    fn forget(&mut self, act: &Act) {
        match act {
            Act::Open(Open { order, .. })
            | Act::Repeat(Repeat { order, .. })
            | Act::Pay(order)
            | Act::PayLess(order)
            | Act::PayMore(order)
            | Act::Cancel(order)
            | Act::Expire(order)
            | Act::Refund(order)
            | Act::Forge(order)
            | Act::Poll(order) => {
                self.last.remove(order);
            }
            // What was cut off is done again.
            Act::Kill(Yes) | Act::Down(Yes) | Act::Up(Yes) | Act::Storm(_) => self.last.clear(),
            Act::Lose(_)
            | Act::Faults(_)
            | Act::Pool(_)
            | Act::PauseMs(_)
            | Act::Wait(_)
            | Act::Expect(_) => {}
        }
    }

    /// Writes down that an order's invoice was paid exactly, before its money goes back.
    async fn remember_money_of(&mut self, order: &str) -> Result<(), Trouble> {
        let booked = self.scene.booked(order).await?;
        if self.truth(&booked, None) == Outcome::Paid {
            self.gone_back.insert(booked.id);
        }
        Ok(())
    }

    async fn wait(&self, expect: &Expect) -> Result<Vec<Row>, Trouble> {
        let compared = self.scene.look(expect).await?;
        let rows = facts::rows(&expect.order, compared);
        // What came is nothing to tell of.
        Ok(rows.into_iter().filter(|row| !row.holds()).collect())
    }

    async fn repeat(&self, repeat: &Repeat) -> Result<Vec<Row>, Trouble> {
        let path = format!("/invoices/{}/notify", encode(&repeat.order));
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
}

/// The row of what did not come to be.
fn instead(what: &str, wanted: &str, trouble: &Trouble) -> Row {
    match trouble {
        Trouble::Listing { expected, found } => Row::new("script: goods list", expected, found),
        Trouble::Otherwise { expected, found } => Row::new(what, expected, found),
        trouble => Row::new(what, wanted, chain(trouble)),
    }
}

/// A window that ends by itself within a scenario ends within this, s.
const BRIEF_S: u64 = 120;
/// Beside the time between two tries of a notification, one may be on its way for so long.
const ON_ITS_WAY: Duration = Duration::from_millis(150);

fn is_brief(settings: &Settings) -> bool {
    settings.window_s / u64::from(settings.speed.max(1)) <= BRIEF_S
}

fn still_for(settings: &Settings) -> Duration {
    let gap = settings.notify_retry_ms / u64::from(settings.speed.max(1));
    Duration::from_millis(gap) + ON_ITS_WAY
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
