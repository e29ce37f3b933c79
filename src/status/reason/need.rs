//! What stands on the list of needs: a reason with its sentence and its advice. Relies on the reason's table for severity and end.
//! Pure; promises that every list shows the same sentence.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Reason;
use crate::answer::argv;
use crate::invoice::attention::{Attention, End, Severity};
use crate::invoice::moment::Moment;
use crate::ledger::{AttentionCount, LastAttempt, Lost, Missing, Undelivered, WrongClock};
use crate::poller::standing::LoginState;
use crate::status::measures::{number, span};
use crate::status::report::{Count, UnderAttention};
use crate::status::unsorted::Names;
use crate::telemetry::word;

/// One thing that needs an operator. Texts are not escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Need {
    /// Why. Several entries may share one.
    pub(crate) reason: Reason,
    /// What is so, in a sentence.
    pub(crate) told: String,
    /// What helps, a sentence or a line of the config each.
    pub(crate) advice: Vec<String>,
    /// The newest orders it is about, a few; none when it is about no order.
    pub(crate) orders: Vec<String>,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// How it ends.
    pub(crate) ends: End,
}

/// Unmapped names in one sentence.
const NAMED: usize = 5;

/// What to do when notifications do not arrive.
const WAY_IN: &str = "`tilld doctor` asks the public address from this machine; `tilld refusal list` shows what came and was refused";

/// What to do about a daemon that stands still.
const RESTART: &str =
    "`systemctl restart tilld` starts it again; `journalctl -u tilld` shows what it did last";

/// What to do about a certificate's end.
const RENEW: &str = "renew it: new files are taken up within 20 s";

impl Need {
    fn new(reason: Reason, told: impl Into<String>) -> Self {
        Self {
            reason,
            told: told.into(),
            advice: Vec::new(),
            orders: Vec::new(),
            severity: reason.severity(),
            ends: reason.end(),
        }
    }

    fn helped_by(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    fn about(mut self, orders: &[String]) -> Self {
        self.orders = orders.to_vec();
        self
    }

    /// Deliveries were given up, the newest of them of these orders.
    pub(in crate::status) fn abandoned(abandoned: Count, orders: &[String]) -> Self {
        let of_orders = if orders.is_empty() {
            String::new()
        } else {
            format!(", order {}", orders.join(", "))
        };
        let told = format!("{}{of_orders}", deliveries(abandoned));
        Self::new(Reason::Abandoned, told).about(orders).helped_by(
            "`tilld delivery list --state abandoned` shows them; fix the script, then `tilld delivery retry EVENT`, or \
             `tilld ack ORDER`",
        )
    }

    /// The ledger cannot be read, so no list can be made of what it holds.
    pub(crate) fn cannot_read(why: &str) -> Self {
        Self::new(
            Reason::CannotRead,
            format!("the ledger cannot be read: {why}"),
        )
        .helped_by("look at its disk, and at what `tilld db check` says of it")
    }

    /// The listener's certificate cannot be used.
    pub(in crate::status) fn certificate_unusable(why: &str, help: String) -> Self {
        let told = format!(
            "the certificate of the listener cannot be used, and tilld would not start with it: {why}"
        );
        Self {
            severity: Severity::Critical,
            ..Self::new(Reason::Certificate, told).helped_by(help)
        }
    }

    /// It ended.
    pub(in crate::status) fn certificate_ended(file: &str, at: Moment) -> Self {
        let told = format!("the certificate `{file}` ended at {at}: no sender takes it");
        Self {
            severity: Severity::Critical,
            ..Self::new(Reason::Certificate, told).helped_by(RENEW)
        }
    }

    /// It ends soon.
    pub(in crate::status) fn certificate_ends(file: &str, days: i64, at: Moment) -> Self {
        let told = format!("the certificate `{file}` ends in {days} days, at {at}");
        Self::new(Reason::Certificate, told).helped_by(RENEW)
    }

    /// Others could change what a hook runs, so it is not run.
    pub(in crate::status) fn hook_exposed(hook: &str, how: &str, help: String) -> Self {
        let told = format!("hook {hook} is not run: {how}");
        Self::new(Reason::HookExposed, told).helped_by(help)
    }

    /// The machine's clock cannot be right.
    pub(in crate::status) fn wrong_clock(wrong: WrongClock) -> Self {
        let told = match wrong {
            WrongClock::NotSet => {
                "this machine's clock shows a time before 2025: it was never set".to_owned()
            }
            WrongClock::Behind { newest_ms } => format!(
                "this machine's clock is behind the newest event, which was recorded at {}",
                Moment::from_ms(newest_ms)
            ),
            WrongClock::Differs { ahead_ms } => {
                let way = if ahead_ms < 0 { "behind" } else { "ahead of" };
                let by_ms = ahead_ms.saturating_abs();
                format!(
                    "this machine's clock is {} {way} the service's",
                    span(by_ms)
                )
            }
        };
        Self::new(Reason::Clock, told).helped_by(
            "set the clock by NTP (`timedatectl set-ntp true`); the views mark what was dated meanwhile with `time_unsure`",
        )
    }

    /// No daemon runs.
    pub(in crate::status) fn daemon() -> Self {
        let told = "none runs, so no notification is heard, nothing is asked and no hook is run";
        Self::new(Reason::Daemon, told)
            .helped_by("`systemctl start tilld`, or `tilld serve`, starts one")
    }

    /// One runs, and does not answer.
    pub(in crate::status) fn silent_daemon(why: &str) -> Self {
        let told = format!("one runs, but it does not answer: {why}");
        Self::new(Reason::Daemon, told).helped_by(RESTART)
    }

    /// A part of it has not turned for so long.
    pub(crate) fn stalled(part: &str, for_s: u64) -> Self {
        let told = format!("{part} has stood still for {for_s} s");
        Self::new(Reason::Daemon, told).helped_by(RESTART)
    }

    /// Few descriptors are left.
    pub(in crate::status) fn descriptors_low(used: u64, limit: u64) -> Self {
        let told = format!("tilld has {used} files and sockets open, of {limit} that it may");
        Self::new(Reason::DescriptorsLow, told)
            .helped_by("raise `LimitNOFILE=` of the unit, or lower `listener.connections`")
    }

    /// Few threads and processes can still be started.
    pub(in crate::status) fn processes_low(used: u64, limit: u64, what: &str) -> Self {
        let told = format!("{used} threads and processes run, of {limit} that may");
        Self::new(Reason::ProcessesLow, told)
            .helped_by(format!("end some that are not needed, or raise {what}"))
    }

    /// Programs cannot be started for want of something, since then.
    pub(crate) fn starts_fail(since_ms: i64, why: &str) -> Self {
        let since = Moment::from_ms(since_ms);
        let told = format!("scripts wait, since none can be started since {since}: {why}");
        Self::new(Reason::StartsFail, told).helped_by(
            "tilld tries again every few seconds, and no attempt is used up: `df -i` shows inodes, `systemctl status` tasks",
        )
    }

    /// A Unix socket of tilld has lost its name, and could not be bound again.
    pub(crate) fn lost_socket(what: &str, path: &Path, why: &str) -> Self {
        let path = path.display();
        let told = format!("no client can connect to the {what} `{path}`: {why}");
        Self::new(Reason::Socket, told).helped_by(
            "remove what lies there: tilld binds it again within 5 s. A socket of systemd is made by \
             `systemctl restart tilld.socket tilld`",
        )
    }

    /// Deliveries are held. What may have run before a restore is not to be released all at once.
    pub(in crate::status) fn held(held: Count, restored: Option<Count>) -> Self {
        let all = deliveries(held);
        let list = "`tilld delivery list --state held` shows them";
        let Some(restored) = restored.filter(|restored| restored.count > 0) else {
            return Self::new(Reason::Held, all)
                .helped_by(format!("{list}, `tilld delivery release --all` runs them"));
        };
        let of_it = if number(restored) == number(held) {
            " that".to_owned()
        } else {
            format!(", {} of which", number(restored))
        };
        let told = format!("{all}{of_it} may have run before the ledger was put back");
        Self::new(Reason::Held, told).helped_by(format!(
            "{list}; look at what the shop has done, then `tilld delivery abandon --order ORDER` where it is done, \
             `tilld delivery release --order ORDER` where it is not"
        ))
    }

    /// Invoices need an operator for the same reason.
    pub(in crate::status) fn invoices(of: &UnderAttention, more: bool) -> Self {
        let invoices = if of.count == 1 { "invoice" } else { "invoices" };
        let at_least = if more { "at least " } else { "" };
        let named = u64::try_from(of.orders.len()).unwrap_or_default();
        let others = if of.count > named || more {
            " and others"
        } else {
            ""
        };
        let orders = of.orders.join(", ");
        let told = format!("{at_least}{} {invoices}, order {orders}{others}", of.count);
        Self::new(of.reason, told)
            .about(&of.orders)
            .helped_by(&*of.advice)
    }

    /// Nothing can be polled with the login.
    pub(in crate::status) fn login(state: LoginState, since: &str) -> Self {
        let why = state.sentence();
        let told = format!("{why} since {since}, so nothing is asked");
        Self::new(Reason::Login, told).helped_by(format!("run `{}`", argv::login()))
    }

    /// Events are missing, or the whole ledger before this one.
    pub(in crate::status) fn lost(lost: &Lost) -> Self {
        let (missing, at) = (lost.missing, Moment::from_ms(lost.at_ms));
        let (reason, told) = if lost.is_new {
            let before = lost.known_before();
            let told = format!("a new ledger was made at {at} where {before} was known");
            (Reason::LedgerNew, told)
        } else {
            let told = format!(
                "the ledger lacks at least {missing} events that were acknowledged, as was found at {at}"
            );
            (Reason::LedgerBehind, told)
        };
        Self::new(reason, told).helped_by(format!(
            "{}; where there is none, `tilld ack --all --reason {reason}`",
            lost.hint()
        ))
    }

    /// Events are without a delivery they were to have: these, and others where there are `more`.
    pub(in crate::status) fn missing(of: &[Missing], more: bool) -> Self {
        let named: Vec<String> = of
            .iter()
            .map(|one| {
                format!(
                    "event {} of order {} for hook {}",
                    one.seq, one.order_id, one.hook
                )
            })
            .collect();
        let others = if more { " and others" } else { "" };
        let told = format!(
            "no delivery stands for {}{others}, though the hook is owed it: another program wrote to the ledger",
            named.join(", ")
        );
        let mut orders: Vec<String> = of.iter().map(|one| one.order_id.clone()).collect();
        orders.dedup();
        Self::new(Reason::Missing, told).about(&orders).helped_by(
            "`tilld delivery replay EVENT --hook HOOK` makes it and runs the hook; where that is done already, \
             `tilld delivery abandon EVENT --hook HOOK`",
        )
    }

    /// So many changes in a row were found by polling alone.
    pub(in crate::status) fn polled(count: u64) -> Self {
        let told = format!(
            "the last {count} changes were found by asking, none was told by a notification"
        );
        Self::new(Reason::Polled, told).helped_by(WAY_IN)
    }

    /// Money went back.
    pub(crate) fn reversed(orders: &[String]) -> Self {
        let told = format!("money went back, order {}", orders.join(", "));
        Self::new(Reason::Reversed, told)
            .about(orders)
            .helped_by("look at what was handed over for it: `tilld explain ORDER` tells all")
    }

    /// No notification arrived for so long, milliseconds.
    pub(in crate::status) fn silent(for_ms: i64) -> Self {
        let told = format!("no notification was heard for {}", span(for_ms));
        Self::new(Reason::Silent, told).helped_by(WAY_IN)
    }

    /// Something of the ledger's file or disk; the sentence holds the advice.
    pub(in crate::status) fn storage(of: &UnderAttention) -> Self {
        Self::new(of.reason, of.advice.as_ref())
    }

    /// The service has given no answer for so long; what the last request met.
    pub(in crate::status) fn outage(for_ms: i64, reason: &str) -> Self {
        let told = format!(
            "the payment service has not answered for {}: {reason}",
            span(for_ms)
        );
        Self::new(Reason::Outage, told).helped_by(
            "until it does, payments are found by webhooks alone; `tilld doctor` tries `service.url` from this machine",
        )
    }

    /// A hook has not done for so long what it is owed; `orders`, the longest first, may be one more than is named.
    pub(in crate::status) fn undelivered(
        of: &Undelivered,
        for_ms: i64,
        mut orders: Vec<String>,
    ) -> Self {
        let more = orders.len() > AttentionCount::ORDERS_MOST;
        orders.truncate(AttentionCount::ORDERS_MOST);
        orders.dedup();
        let (hook, for_how_long) = (&of.hook, span(for_ms));
        let others = if more { " and more" } else { "" };
        let last = match &of.last {
            None => "it was not run yet".to_owned(),
            Some(LastAttempt { result, line: None }) => format!("its last run: {result}"),
            Some(LastAttempt {
                result,
                line: Some(line),
            }) => format!("its last run: {result}, {line}"),
        };
        let told = format!(
            "hook {hook} has not finished for {for_how_long}, order {}{others}; {last}",
            orders.join(", ")
        );
        Self::new(Reason::Undelivered, told).about(&orders).helped_by(
            "`tilld delivery list --state waiting` shows them; fix the script, then `tilld delivery retry EVENT`",
        )
    }

    /// Deliveries wait for a hook that is not configured.
    pub(in crate::status) fn unowned(hook: &str) -> Self {
        let told =
            format!("deliveries wait for hook {hook}, which is not configured, and are never run:");
        Self::new(Reason::Unowned, told).helped_by(format!(
            "configure it again and restart `serve`, or `tilld delivery abandon --all --hook {hook} --state waiting`"
        ))
    }

    /// Statuses that are not mapped, with the invoices that have one now: one thing to do.
    pub(in crate::status) fn unmapped(names: &Names, invoices: Option<Self>) -> Self {
        let unnamed = names.shown.len().saturating_sub(NAMED);
        let more = u64::try_from(unnamed).unwrap_or(u64::MAX) + names.more;
        let names = names.shown.iter().take(NAMED);
        let counted = names.clone().map(|name| {
            let events = if name.events == 1 { "event" } else { "events" };
            format!(
                "{} {events} with the status {}",
                name.events,
                word(&name.status)
            )
        });
        let mut counted: Vec<String> = counted.collect();
        match more {
            0 => {}
            1 => counted.push("1 more name".to_owned()),
            more => counted.push(format!("{more} more names")),
        }
        let stand = if counted.len() == 1 {
            "stands"
        } else {
            "stand"
        };
        let named = format!("{}, which {stand} on no list:", counted.join(", "));
        let lines = names.map(|name| name.line.clone());
        let Some(need) = invoices else {
            let need = Self::new(Reason::Invoice(Attention::UnsortedStatus), named);
            return Self {
                advice: lines.collect(),
                ..need
            };
        };
        Self {
            told: format!("{}; {named}", need.told),
            advice: lines.chain(need.advice).collect(),
            ..need
        }
    }
}

fn deliveries(count: Count) -> String {
    let plural = if count.count == 1 && !count.more {
        "delivery"
    } else {
        "deliveries"
    };
    format!("{} {plural}", number(count))
}
