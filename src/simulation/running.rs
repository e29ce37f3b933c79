//! The outbox: claims, names, runs and ends as the real one does, with the ledger's claims and the real plan of retries.
//! The programs are dice; those of a daemon that died go on until they end.

use std::time::Duration;

use super::book::Child;
use super::daemon::Who;
use super::scenario::{SECOND, Temper};
use super::world::{Happens, Sabotage, World, say};
use crate::hook::abandonment::teller_of;
use crate::hook::process::Ending;
use crate::ledger::{
    After, AttemptRecord, Claimed, DeliveryKey, DeliveryState, Lane, LedgerCommand, Outlook,
    Running,
};
use crate::outbox::retry::{self, Count, Plan};
use crate::process_mark::ProcessMark;

/// The outbox looks at least this often.
pub(super) const SCAN_EVERY: i64 = 5 * SECOND;
/// How long a program may run.
const TIMEOUT: i64 = 30 * SECOND;
/// Between two tries to store the end of a run.
const STORE_AGAIN: i64 = SECOND;

/// A run of this daemon.
#[derive(Clone, Debug)]
pub(super) struct Run {
    claimed: Claimed,
    /// When it was claimed, virtual.
    claimed_at: i64,
    started_ms: i64,
    /// How it ended, until that is stored.
    end: Option<(AttemptRecord, After)>,
}

impl World {
    /// The gaps after failed attempts, as the daemon takes them from the settings.
    fn gaps(&self) -> Vec<Duration> {
        let gaps = self.scenario.settings.outbox.schedule_s.iter().skip(1);
        gaps.map(|gap| Duration::from_secs(*gap)).collect()
    }

    /// One look: what was left running, and what may be claimed.
    pub(super) fn scan(&mut self) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if daemon.scan_at != Some(self.now) {
            return;
        }
        daemon.scan_at = None;
        for left in self.left_running() {
            self.settle(left);
        }
        self.correct_waits();
        self.claim();
        self.plan_looks();
    }

    fn left_running(&self) -> Vec<Running> {
        let Some(daemon) = &self.daemon else {
            return Vec::new();
        };
        let mut running = self.store.running();
        if daemon.claiming {
            return Vec::new();
        }
        running.retain(|left| {
            !daemon.runs.contains_key(&left.key) && !daemon.settling.contains(&left.key)
        });
        running
    }

    /// Waits for the end of a program an earlier daemon left running.
    fn settle(&mut self, left: Running) {
        let life = self.life;
        let still = self.book.children.iter();
        let still = still.filter(|child| child.delivery == left.key && left.child.is_some());
        let until = still.map(|child| child.until).max().unwrap_or(self.now);
        let until = if self.sabotage == Sabotage::NoSettling {
            self.now
        } else {
            until
        };
        say!(
            self,
            "outbox",
            "delivery {} was left running, gone at {until}",
            left.key.0
        );
        if let Some(daemon) = &mut self.daemon {
            daemon.settling.insert(left.key);
            self.at(until, Happens::OldGone(life, left));
        }
    }

    /// It is gone: the delivery waits again.
    pub(super) fn old_gone(&mut self, left: &Running) {
        let (record, after) = (
            self.record(left.started_ms, &Ending::Interrupted),
            After::Interrupted,
        );
        let end = LedgerCommand::Finish(left.key, Box::new(record), after);
        self.hand_over(end, Who::OldEnd(left.key));
    }

    /// Its end is stored, or is found unstored by the next look.
    pub(super) fn old_ended(&mut self, key: DeliveryKey) {
        if let Some(daemon) = &mut self.daemon {
            daemon.settling.remove(&key);
        }
        self.scan_at(self.now);
    }

    /// What may begin, hook by hook: ordinary places alone, since what hangs is the matter of `outbox/places`.
    fn lanes(&self) -> Vec<Lane> {
        let settings = &self.scenario.settings;
        let most = u32::try_from(settings.outbox.concurrency).unwrap_or(u32::MAX);
        let runs = || self.daemon.iter().flat_map(|daemon| daemon.runs.values());
        let lane = |names: Vec<String>| {
            let busy = runs()
                .filter(|run| names.contains(&run.claimed.hook))
                .count();
            let want = most.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX));
            let children = Vec::new();
            Lane {
                names,
                want,
                children,
            }
        };
        let hooks = settings.hook.iter().map(|hook| vec![hook.name.clone()]);
        let tellers = settings
            .hook
            .iter()
            .filter_map(|hook| teller_of(&hook.name));
        hooks.chain([tellers.collect()]).map(lane).collect()
    }

    /// What a claim would find.
    fn outlook(&self) -> Outlook {
        let now_ms = self.wall_ms();
        let ahead = now_ms..=now_ms.saturating_add(self.rules.longest_delay_ms);
        self.store.outlook(&ahead, &self.lanes())
    }

    fn claim(&mut self) {
        let (lanes, now_ms, is_due) = (self.lanes(), self.wall_ms(), self.outlook().now);
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if daemon.claiming || !is_due {
            return;
        }
        daemon.claiming = true;
        let claim = LedgerCommand::Claim {
            claimant: daemon.mark.clone(),
            now_ms,
            lanes,
        };
        self.hand_over(claim, Who::Claim);
    }

    /// These may be run, once their programs are named.
    pub(super) fn claimed(&mut self, claimed: Vec<Claimed>) {
        if let Some(daemon) = &mut self.daemon {
            daemon.claiming = false;
        }
        for claimed in claimed {
            let (key, started_ms) = (claimed.key, self.wall_ms());
            say!(
                self,
                "outbox",
                "claims delivery {}: event {} for {}, attempt {}",
                key.0,
                claimed.event.seq,
                claimed.hook,
                claimed.attempt
            );
            let child = ProcessMark {
                boot_id: "simulation".to_owned(),
                pid: i32::try_from(self.book.counts.runs % 30_000).expect("small"),
                start_ticks: self.now,
            };
            if let Some(daemon) = &mut self.daemon {
                let run = Run {
                    claimed,
                    claimed_at: self.now,
                    started_ms,
                    end: None,
                };
                daemon.runs.insert(key, run);
            }
            self.hand_over(LedgerCommand::NameChild(key, child), Who::Name(key));
        }
        self.scan_at(self.now);
    }

    /// No claim could be stored: whatever stands as running is found by the next look.
    pub(super) fn not_claimed(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.claiming = false;
        }
    }

    /// The program is named in the ledger: it runs from now on.
    pub(super) fn begin(&mut self, key: DeliveryKey) {
        let Some(run) = self
            .daemon
            .as_ref()
            .and_then(|daemon| daemon.runs.get(&key))
        else {
            return;
        };
        let run = run.clone();
        self.check_run(&run.claimed, run.claimed_at);
        let took = match self.dice.between(0, 9) {
            0 => TIMEOUT,
            1 | 2 => self.dice.between(SECOND, TIMEOUT - 1),
            _ => self.dice.between(5, SECOND),
        };
        self.book.counts.runs += 1;
        self.book.children.push(Child {
            delivery: key,
            invoice: run.claimed.invoice.key,
            until: self.now + took,
        });
        self.after(took, Happens::ProgramEnds(self.life, key, run.started_ms));
    }

    /// Promises that must hold at the moment a program begins.
    fn check_run(&mut self, claimed: &Claimed, claimed_at: i64) {
        let (key, invoice) = (claimed.key, claimed.invoice.key);
        let now = self.now;
        let mut children = self.book.children.iter();
        if children.any(|other| other.invoice == invoice && other.until > now) {
            let why = format!(
                "never two runs at once: delivery {} of invoice {}",
                key.0, invoice.0
            );
            self.book.broken.push(why);
        }
        let earlier = self.store.deliveries().into_iter().find(|other| {
            other.seq < claimed.event.seq
                && other.order_id == claimed.event.order_id
                && other.hook == claimed.hook
                && matches!(other.state, DeliveryState::Waiting | DeliveryState::Running)
                && self.store.invoice_of(other.key) == Some(invoice)
                // Revived after this one was claimed, it waits for its end.
                && !self.is_operated_since(other, claimed_at)
        });
        if let Some(earlier) = earlier {
            let why = format!(
                "in event order: delivery {} before {}",
                key.0, earlier.key.0
            );
            self.book.broken.push(why);
        }
        if claimed.replay && !self.book.done.contains(&key) {
            let why = format!("a replay was done once: delivery {}", key.0);
            self.book.broken.push(why);
        }
        let ended = self.store.attempts(key).len();
        if ended + 1 != usize::try_from(claimed.attempt).unwrap_or(usize::MAX) {
            let why = format!("no gaps: attempt {} after {ended}", claimed.attempt);
            self.book.broken.push(why);
        }
    }

    /// The program could not be named: it never ran.
    pub(super) fn withdraw(&mut self, key: DeliveryKey) {
        self.end(key, &Ending::Interrupted);
    }

    /// A program ends, whether its daemon lives or not.
    pub(super) fn program_ends(&mut self, life: u64, key: DeliveryKey, started_ms: i64) {
        self.book.children.retain(|child| child.delivery != key);
        let ending = self.how_it_ended(key);
        if ending == Ending::Exited(0) {
            self.book.done.insert(key);
        }
        say!(
            self,
            "hook",
            "delivery {}, begun at {started_ms}: {ending}",
            key.0
        );
        if self.daemon.is_some() && self.life == life {
            self.end(key, &ending);
        }
    }

    /// By the hook's temper towards the order, and by how often it ran.
    fn how_it_ended(&mut self, key: DeliveryKey) -> Ending {
        let Some(row) = self.store.delivery(key) else {
            return Ending::Exited(1);
        };
        let order = row.order_id.rsplit('-').next().and_then(|n| n.parse().ok());
        let order: usize = order.expect("orders are numbered");
        let hooks = &self.scenario.settings.hook;
        let place = hooks.iter().position(|hook| hook.name == row.hook);
        let tempers = self.scenario.orders.get(order).map(|order| &order.tempers);
        let temper = tempers.and_then(|tempers| tempers.get(place?)).copied();
        let before = self.runs.entry((row.order_id, row.hook)).or_default();
        *before += 1;
        let failure = |world: &mut Self| match world.dice.between(0, 6) {
            0 => Ending::Exited(1),
            1 => Ending::Signalled(9),
            2 => Ending::TimedOut,
            // A hook may be an address as well.
            3 => Ending::NoAnswer("connection refused".to_owned()),
            4 => Ending::Answered {
                status: 500,
                retry_after: None,
            },
            5 => Ending::Answered {
                status: 429,
                retry_after: Some(Duration::from_secs(
                    world.dice.between(1, 600).unsigned_abs(),
                )),
            },
            _ => Ending::NotStarted("no such file".to_owned()),
        };
        match temper.unwrap_or(Temper::Good) {
            Temper::Fails(times) if *before <= times => failure(self),
            Temper::Asks(times) if *before <= times => Ending::Exited(75),
            Temper::Good | Temper::Fails(_) | Temper::Asks(_) => Ending::Exited(0),
            Temper::Hopeless if self.dice.between(0, 1) == 0 => Ending::Exited(65),
            Temper::Hopeless => Ending::Answered {
                status: 410,
                retry_after: None,
            },
            Temper::Dead => failure(self),
        }
    }

    fn record(&self, started_ms: i64, ending: &Ending) -> AttemptRecord {
        AttemptRecord {
            started_ms,
            ended_ms: self.wall_ms(),
            result: ending.to_string(),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// A run of ours ended: what follows is planned and stored.
    fn end(&mut self, key: DeliveryKey, ending: &Ending) {
        let random = self.dice.roll();
        let Some(run) = self
            .daemon
            .as_ref()
            .and_then(|daemon| daemon.runs.get(&key))
        else {
            return;
        };
        let count = Count {
            before: run.claimed.attempt.saturating_sub(1),
            failures: run.claimed.round_attempt.saturating_sub(1),
        };
        let record = self.record(run.started_ms, ending);
        let after = match retry::plan(ending, count, &self.gaps(), random, record.ended_ms) {
            Plan::Done => After::Done,
            Plan::Retry { at_ms } => After::Retry { at_ms },
            Plan::Postpone { at_ms } => After::Postponed { at_ms },
            Plan::Abandon => After::Abandoned,
            Plan::Interrupted => After::Interrupted,
        };
        if let After::Retry { at_ms } | After::Postponed { at_ms } = after {
            self.book.waits.insert(key, at_ms - record.ended_ms);
        }
        if let Some(daemon) = &mut self.daemon
            && let Some(run) = daemon.runs.get_mut(&key)
        {
            run.end = Some((record, after));
        }
        self.store_end(key);
    }

    /// Hands the end of a run to the writer, again and again until it is stored.
    pub(super) fn store_end(&mut self, key: DeliveryKey) {
        let run = self
            .daemon
            .as_ref()
            .and_then(|daemon| daemon.runs.get(&key));
        if let Some((record, after)) = run.and_then(|run| run.end.clone()) {
            let end = LedgerCommand::Finish(key, Box::new(record), after);
            self.hand_over(end, Who::End(key));
        }
    }

    /// The end could not be stored.
    pub(super) fn end_again(&mut self, key: DeliveryKey) {
        self.after(STORE_AGAIN, Happens::StoreEnd(self.life, key));
    }

    /// The end is stored.
    pub(super) fn ended(&mut self, key: DeliveryKey) {
        if let Some(daemon) = &mut self.daemon {
            daemon.runs.remove(&key);
        }
        self.scan_at(self.now);
    }

    /// Plans a look, unless an earlier one is planned.
    pub(super) fn scan_at(&mut self, at: i64) {
        let life = self.life;
        if let Some(daemon) = &mut self.daemon
            && daemon.scan_at.is_none_or(|planned| at < planned)
        {
            daemon.scan_at = Some(at);
            self.at(at, Happens::Scan(life));
        }
    }

    /// Plans the look at which something can be begun, when there is something.
    pub(super) fn plan_scan(&mut self) {
        let outlook = self.outlook();
        let soon = !self.left_running().is_empty() || outlook.now;
        if soon {
            let tick = self.now + SCAN_EVERY - self.now % SCAN_EVERY;
            self.scan_at(tick);
        }
        if let Some(next) = outlook.next_ms {
            let at = self.when_ms(next);
            self.scan_at(at);
        }
    }
}
