//! A merchant's own script, judged: `--verify` has it run as the hook for paid orders, by the real outbox, in the situations
//! that cost merchants money. What it handed over is read from what it says, or from what the merchant's own program says.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::draw;
use super::goods;
use super::mark::Mark;
use super::report::Row;
use super::runs;
use super::scene::Scene;
use super::step::{Ends, Mode};
use super::words;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stage::trouble::Trouble;
use crate::invoice::event::EventKind;

/// The events the script is run for: paid, paid with another amount, and paid again, as by a shop that has one script for all.
pub(super) const ON: [EventKind; 3] = [
    EventKind::Paid,
    EventKind::Mismatch,
    EventKind::SecondPayment,
];
/// It has so long.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// All its runs are over by then: three attempts that each take all their time, and some more.
const ALL_RUNS: Duration = Duration::from_secs(40);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How a line begins by which a script says that it handed an order over.
const SAYS: &str = "handed over ";
/// Requisites that are free while it is judged: enough.
const FREE: u64 = 500;
/// The word after which the scenario's draws for these orders go: no step has it.
const STEP: usize = usize::MAX;
/// The orders the script is judged by.
const PAID: &str = "verify-paid";
const AGAIN: &str = "verify-again";
const TWO: &str = "verify-two";
const LESS: &str = "verify-less";

/// The script, and how its goods are counted.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// What a shell runs.
    command: String,
    /// What a shell runs to list the orders that were handed over. Without it the script's own lines count.
    goods: Option<String>,
    /// What the orders of the run end in.
    pub(super) mark: Mark,
}

impl Script {
    /// What a merchant gives, to be run from anywhere: it runs in a directory of its own, as in production, so that a file
    /// that is meant from here is named by its whole path.
    pub(super) fn new(command: &str, goods: Option<&str>) -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Error, error).context("could not tell the present directory")
        })?;
        words::look("verify", command, &here)?;
        if let Some(goods) = goods {
            words::look("goods", goods, &here)?;
        }
        Ok(Self {
            command: words::from_anywhere(command, &here),
            goods: goods.map(str::to_owned),
            mark: Mark::default(),
        })
    }

    /// The same in one run.
    pub(super) fn in_a_run(&self) -> Self {
        Self {
            mark: Mark::new(),
            ..self.clone()
        }
    }

    /// What the witness is told.
    pub(super) fn witnessed(&self, runs: String) -> [String; 3] {
        [runs, self.command.clone(), self.mark.order(AGAIN)]
    }
}

impl Scene<'_> {
    /// How often an order's goods were handed over.
    pub(super) async fn handed_over(&self, order: &str) -> Result<usize, Trouble> {
        match self.script {
            Some(Script {
                goods: Some(goods), ..
            }) => {
                let listed = goods::listed(goods).await?;
                Ok(listed.lines().filter(|line| line.trim() == order).count())
            }
            Some(Script { goods: None, .. }) => {
                runs::count_said(&self.directory.runs(), &format!("{SAYS}{order}"))
            }
            None => {
                let path = self.directory.fulfilled();
                let log = match fs::read_to_string(&path) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                    read => read.map_err(|source| Trouble::File { path, source })?,
                };
                let start = format!("order={order} ");
                Ok(log.lines().filter(|line| line.starts_with(&start)).count())
            }
        }
    }

    /// The world as it is without a scenario: the service answers, tells all, and has a place to pay to.
    async fn make_right(&self) -> Result<(), Trouble> {
        self.control("/faults", &json!({ "reset": true })).await?;
        self.control("/pool", &json!({ "free": FREE })).await?;
        Ok(())
    }

    /// Judges the script. tilld must run.
    pub(super) async fn judge(&self, seed: u64) -> Result<Vec<Row>, Trouble> {
        self.make_right().await?;
        let mark = self.script.map(|script| script.mark.clone());
        let mark = mark.unwrap_or_default();
        let [paid, again, two, less] = [PAID, AGAIN, TWO, LESS].map(|order| mark.order(order));
        for order in [&paid, &again, &two, &less] {
            // The scenario may have left tilld as it is after the service gave no answers: it tries again only after a while.
            let asked = draw::asked(seed, STEP, order, None, Mode::H2h);
            self.open_surely(&asked).await?;
        }
        for (order, what) in [
            (&paid, "paid"),
            (&again, "paid"),
            (&two, "paid"),
            (&less, "paid-less"),
        ] {
            self.happen(order, what).await?;
        }
        // Paid before: else the second invoice is opened while the order is paid, which is answered otherwise.
        let mut rows: Vec<Row> = self.all_over(&[(&two, 1)]).await?.into_iter().collect();
        let asked = draw::asked(seed, STEP, &two, None, Mode::H2h);
        let ends = self.open(&asked, true).await?;
        if ends != Ends::Open {
            return Err(Trouble::otherwise(
                "a second invoice for an order",
                ends.word(),
            ));
        }
        self.happen(&two, "paid").await?;
        let orders = [(&paid, 1), (&again, 1), (&two, 2), (&less, 1)];
        rows.extend(self.all_over(&orders).await?);
        for (order, what, wanted) in [
            (&paid, "script: paid", 1),
            (&again, "script: run twice", 1),
            (&two, "script: paid twice", 1),
            (&less, "script: paid less", 0),
        ] {
            let seen = self.handed_over(order).await?;
            rows.push(Row::new(what, goods(wanted), goods(seen)));
        }
        rows.extend(self.manners().await?);
        Ok(rows)
    }

    /// Waits until no run is left: each of the four has had its events, and the script has been run for them. Gives a row when
    /// that does not come.
    async fn all_over(&self, orders: &[(&String, usize)]) -> Result<Option<Row>, Trouble> {
        let until = Instant::now() + ALL_RUNS;
        loop {
            let mut open = 0;
            for (order, events) in orders {
                let (over, owed) = self.over(order).await?;
                open += usize::from(!over || owed < *events);
            }
            if open == 0 {
                return Ok(None);
            }
            if Instant::now() >= until {
                let expected = format!("over within {} s", ALL_RUNS.as_secs());
                let seen = format!("{open} orders not");
                return Ok(Some(Row::new("script: runs", expected, seen)));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn goods(count: usize) -> String {
    match count {
        0 => "no goods".to_owned(),
        1 => "goods once".to_owned(),
        count => format!("goods {count} times"),
    }
}
