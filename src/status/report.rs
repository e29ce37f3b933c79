//! What `status` knows, in the words of `--json`. Fields are only ever added and always there. Pure.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::FromCaller;
use super::login::StoredLogin;
use super::needs::{Known, needs};
use super::polling::{DueOfClass, Polling};
use super::reason::{Need, Reason};
use super::restored::Restored;
use super::storage::{self, Storage};
use super::unsorted::{Names, Unsorted};
use crate::config::{Presentations, Settings};
use crate::invoice::moment::Moment;
use crate::invoice::silence::Class;
use crate::ledger::{LOG_TRIED_BYTES, Overview, Tally};
use crate::parts::owed_names;
use crate::poller::standing::{LoginState, Standing};

/// How everything stands. Times are UTC with milliseconds. Whoever is told of it over the control socket reads it back: numbers
/// are never `flatten`ed, since exact ones cannot be read so.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) daemon_running: bool,
    /// It answers on its control socket; `None` where it was not tried.
    pub(crate) daemon_answers: Option<bool>,
    pub(crate) ledger: LedgerFile,
    pub(crate) login: StoredLogin,
    pub(crate) last_notification: Option<LastNotification>,
    pub(crate) presentation: Presentation,
    pub(crate) refusals_24h: Refusals,
    pub(crate) due: Due,
    pub(crate) polling: Polling,
    pub(crate) deliveries: Deliveries,
    pub(crate) attention: Vec<UnderAttention>,
    /// The counts of `attention` are of the newest invoices only: there are more.
    pub(crate) more_attention: bool,
    pub(crate) unsorted: Vec<Unsorted>,
    /// Further names, at least. A daemon of another version may not tell.
    #[serde(default)]
    pub(crate) more_unsorted: u64,
    /// The hooks that deliveries wait for though the config has none of the name.
    pub(crate) unknown_hooks: Vec<String>,
    pub(crate) restored: Option<Restored>,
    pub(crate) needs_person: bool,
    /// All that does, the most severe first.
    pub(crate) needs: Vec<Need>,
}

/// What is known beside ledger and settings.
pub(crate) struct Around {
    /// Milliseconds since 1970.
    pub(crate) now_ms: i64,
    pub(crate) daemon_running: bool,
    pub(crate) ledger: LedgerFile,
    pub(crate) storage: Storage,
    /// What files of the operator need: the listener's certificate, and hooks.
    pub(crate) files: Vec<Need>,
    pub(crate) caller: FromCaller,
    /// What a daemon last said of its polling.
    pub(crate) standing: Option<Standing>,
}

/// The ledger's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LedgerFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Of the log beside it.
    pub(crate) wal_bytes: u64,
    /// Since when it cannot be moved into the file, while it is worth telling.
    pub(crate) wal_held_since: Option<String>,
}

/// The newest accepted notification.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastNotification {
    pub(crate) at: String,
    pub(crate) order_id: String,
}

/// Where notifications carry their notify token.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Presentation {
    /// Where the last one did, in the config's words, while that is remembered. A pinned list remembers nothing, and what
    /// was remembered before it says nothing of the notifications since.
    pub(crate) last: Option<String>,
    /// The config says where, instead of `auto`.
    pub(crate) pinned: bool,
}

/// Refused notifications.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusals {
    pub(crate) count: u64,
    pub(crate) more: bool,
    pub(crate) commonest_reason: Option<String>,
    pub(crate) commonest_count: u64,
}

impl Refusals {
    /// How many.
    pub(crate) const fn all(&self) -> Count {
        Count {
            count: self.count,
            more: self.more,
        }
    }
}

/// Invoices that are due to be asked about.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Due {
    pub(crate) count: u64,
    pub(crate) more: bool,
    pub(crate) oldest_due_at: Option<String>,
    pub(crate) oldest_late_ms: Option<i64>,
    /// Of the same invoice.
    pub(crate) oldest_order_id: Option<String>,
    /// Since it was opened here.
    pub(crate) oldest_age_ms: Option<i64>,
    pub(crate) urgent: DueOfClass,
    pub(crate) young: DueOfClass,
    pub(crate) old: DueOfClass,
    /// Of those that a restore wants polled once.
    pub(crate) restored: DueOfClass,
}

impl Due {
    /// How many, of all classes.
    pub(crate) const fn all(&self) -> Count {
        Count {
            count: self.count,
            more: self.more,
        }
    }
}

/// Deliveries that are not done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Deliveries {
    pub(crate) waiting: Count,
    pub(crate) running: Count,
    pub(crate) held: Count,
    pub(crate) abandoned: Count,
}

/// A count that stops at a bound; `more` says that it did.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) count: u64,
    pub(crate) more: bool,
}

impl From<Tally> for Count {
    fn from(Tally { count, more }: Tally) -> Self {
        Self { count, more }
    }
}

/// Why invoices stand under attention, or what of the ledger's disk does: then there are no orders.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UnderAttention {
    pub(crate) reason: Reason,
    pub(crate) count: u64,
    /// The newest orders, a few.
    pub(crate) orders: Vec<String>,
    pub(crate) advice: Cow<'static, str>,
}

impl Report {
    pub(crate) fn new(overview: &Overview, settings: &Settings, around: Around) -> Self {
        // What a daemon noted that was killed since, or whose log is short again, stands no more.
        let held_now = around.daemon_running && around.ledger.wal_bytes >= LOG_TRIED_BYTES;
        // The daemon itself knows it first.
        let held = around.storage.health.log_held.as_ref();
        let held = held.or(overview.log_held.as_ref()).filter(|_| held_now);
        let polling = Polling::new(overview, settings, &around);
        let mut storage =
            storage::findings(&around.storage, &around.ledger, held, &settings.ledger);
        let is_news = |of: &UnderAttention| storage.iter().all(|own| own.reason != of.reason);
        let daemons: Vec<_> = around.caller.storage.into_iter().filter(is_news).collect();
        storage.splice(0..0, daemons);
        let stand: Vec<Reason> = storage.iter().map(|of| of.reason).collect();
        storage.retain(|of| !of.reason.worse().iter().any(|worse| stand.contains(worse)));
        let held_since = held.map(|held| time(held.since_ms));
        let invoices = overview.attention.iter().map(|of| UnderAttention {
            reason: Reason::Invoice(of.reason),
            count: of.count,
            orders: of.orders.clone(),
            advice: of.reason.advice().into(),
        });
        let invoices: Vec<_> = invoices.collect();
        // What the daemon serves by is the ledger's to know: whoever looks may have another config.
        let (owed, lists) = match &overview.served {
            Some(served) => (served.names.clone(), served.lists.clone()),
            None => (owed_names(settings), settings.statuses.lists()),
        };
        let unsorted = Names::of(overview, &lists);
        let mut unknown_hooks = overview.awaited.clone();
        unknown_hooks.retain(|name| !owed.contains(name));
        let oldest_ms = overview.oldest_due_ms;
        let commonest = overview.commonest_refusal.as_ref();
        let pinned = settings.listener.presentations != Presentations::Auto;
        let longest = overview.silent.longest.as_ref();
        let due_of = |class| DueOfClass::new(overview, class, around.now_ms);
        let due = Due {
            count: overview.due.count,
            more: overview.due.more,
            oldest_due_at: oldest_ms.map(time),
            oldest_late_ms: oldest_ms.map(|ms| around.now_ms.saturating_sub(ms)),
            oldest_order_id: longest.map(|longest| longest.order_id.clone()),
            oldest_age_ms: longest.map(|longest| around.now_ms.saturating_sub(longest.created_ms)),
            urgent: due_of(Class::Urgent),
            young: due_of(Class::Young),
            old: due_of(Class::Old),
            restored: due_of(Class::Restored),
        };
        let now_ms = around.now_ms;
        let has_unit_token = around.daemon_running && polling.login == LoginState::Good;
        let restored = Restored::of(overview);
        let needs = needs(Known {
            now_ms,
            daemon_running: around.daemon_running,
            answers: around.caller.answers.as_ref(),
            daemon: around.caller.daemon,
            overview,
            limits: &settings.attention,
            polling: &polling,
            held_restored: restored.as_ref().map(|restored| restored.held),
            unknown_hooks: &unknown_hooks,
            hooks: &settings.every_hook(),
            unsorted: &unsorted,
            storage: &storage,
            invoices: &invoices,
            files: around.files,
        });
        Self {
            daemon_running: around.daemon_running,
            daemon_answers: around.caller.answers.map(|answers| answers.is_ok()),
            ledger: LedgerFile {
                wal_held_since: held_since,
                ..around.ledger
            },
            login: around.caller.login.or_of_unit(has_unit_token),
            last_notification: last_notification(overview),
            presentation: Presentation {
                last: overview.presentation.clone().filter(|_| !pinned),
                pinned,
            },
            refusals_24h: Refusals {
                count: overview.refusals.count,
                more: overview.refusals.more,
                commonest_reason: commonest.map(|(reason, _)| reason.clone()),
                commonest_count: commonest.map_or(0, |(_, count)| *count),
            },
            due,
            deliveries: Deliveries {
                waiting: overview.waiting.into(),
                running: overview.running.into(),
                held: overview.held.into(),
                abandoned: overview.abandoned.into(),
            },
            polling,
            attention: storage.into_iter().chain(invoices).collect(),
            more_attention: overview.more_attention,
            unsorted: unsorted.shown,
            more_unsorted: unsorted.more,
            unknown_hooks,
            restored,
            needs_person: !needs.is_empty(),
            needs,
        }
    }
}

fn last_notification(overview: &Overview) -> Option<LastNotification> {
    let (at_ms, order_id) = overview.last_notification.clone()?;
    let at = time(at_ms);
    Some(LastNotification { at, order_id })
}

/// UTC with milliseconds.
pub(crate) fn time(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ledger::{HeldBy, LogHeld};

    /// What stands around a quiet ledger, at 2026-11-28T10:02:00.004Z.
    pub(crate) fn around() -> Around {
        let ledger = LedgerFile {
            path: "/var/lib/tilld/ledger.db".to_owned(),
            bytes: 139_264,
            wal_bytes: 4_152,
            wal_held_since: None,
        };
        Around {
            now_ms: 1_795_860_120_004,
            daemon_running: true,
            ledger,
            storage: Storage::default(),
            files: Vec::new(),
            caller: FromCaller::default(),
            standing: None,
        }
    }

    /// A quiet ledger beside these settings.
    pub(crate) fn report(overview: &Overview, settings: &Settings) -> Report {
        Report::new(overview, settings, around())
    }

    #[test]
    fn the_json_object_is_what_scripts_rely_on() {
        let quiet = report(&Overview::default(), &Settings::default());
        let told = serde_json::to_string(&quiet).expect("plain data");
        let read: Report = serde_json::from_str(&told).expect("as it was told");
        assert_eq!(serde_json::to_string(&read).expect("plain data"), told);
        assert_eq!(
            told,
            concat!(
                r#"{"daemon_running":true,"daemon_answers":null,"ledger":{"path":"/var/lib/tilld/ledger.db","bytes":139264,"wal_bytes":4152,"wal_held_since":null},"#,
                r#""login":{"state":"hidden"},"last_notification":null,"presentation":{"last":null,"pinned":false},"#,
                r#""refusals_24h":{"count":0,"more":false,"commonest_reason":null,"commonest_count":0},"#,
                r#""due":{"count":0,"more":false,"oldest_due_at":null,"oldest_late_ms":null,"#,
                r#""oldest_order_id":null,"oldest_age_ms":null,"#,
                r#""urgent":{"count":0,"more":false,"oldest_due_at":null,"oldest_late_ms":null},"#,
                r#""young":{"count":0,"more":false,"oldest_due_at":null,"oldest_late_ms":null},"#,
                r#""old":{"count":0,"more":false,"oldest_due_at":null,"oldest_late_ms":null},"#,
                r#""restored":{"count":0,"more":false,"oldest_due_at":null,"oldest_late_ms":null}},"#,
                r#""polling":{"requests_per_second":20,"requests_per_second_now":null,"at_once":4,"login":"unknown","login_since":null,"#,
                r#""outage_since":null,"outage_reason":null,"left_alone_until":null,"creates_left_alone_until":null,"#,
                r#""young_below_ms":1800000,"young":{"count":0,"more":false},"found_within_ms":55000},"#,
                r#""deliveries":{"waiting":{"count":0,"more":false},"running":{"count":0,"more":false},"#,
                r#""held":{"count":0,"more":false},"abandoned":{"count":0,"more":false}},"#,
                r#""attention":[],"more_attention":false,"unsorted":[],"more_unsorted":0,"unknown_hooks":[],"restored":null,"needs_person":false,"needs":[]}"#,
            )
        );
    }

    #[test]
    fn a_held_log_needs_a_person_while_a_daemon_has_one_that_is_long() {
        let overview = Overview {
            log_held: Some(LogHeld {
                since_ms: 1_795_860_000_000,
                by: HeldBy::Reader,
            }),
            ..Overview::default()
        };
        let told = |wal_bytes, daemon_running| {
            let ledger = LedgerFile {
                wal_bytes,
                ..around().ledger
            };
            let around = Around {
                daemon_running,
                ledger,
                ..around()
            };
            let told = Report::new(&overview, &Settings::default(), around);
            let has = |reason| told.needs.iter().any(|need| need.reason == reason);
            assert_eq!(has(Reason::WalHeld), told.ledger.wal_held_since.is_some());
            assert_eq!(has(Reason::Daemon), !daemon_running);
            told.ledger.wal_held_since
        };
        let since = Some("2026-11-28T10:00:00.000Z".to_owned());
        assert_eq!(told(LOG_TRIED_BYTES, true), since);
        assert_eq!(told(LOG_TRIED_BYTES - 1, true), None);
        assert_eq!(told(LOG_TRIED_BYTES, false), None);
    }

    #[test]
    fn a_place_remembered_before_another_was_pinned_is_not_told() {
        let overview = Overview {
            presentation: Some("bearer".to_owned()),
            ..Overview::default()
        };
        let mut settings = Settings::default();
        let told = report(&overview, &settings).presentation;
        assert_eq!((told.last.as_deref(), told.pinned), (Some("bearer"), false));
        settings.listener.presentations = Presentations::Only(vec!["query:token".to_owned()]);
        let told = report(&overview, &settings).presentation;
        assert_eq!((told.last, told.pinned), (None, true));
    }

    #[test]
    fn what_waits_for_a_person_is_said_by_each_alone() {
        let one = Tally {
            count: 1,
            more: false,
        };
        let settings = Settings::default();
        let base = Overview::default;
        for overview in [
            Overview {
                held: one,
                ..base()
            },
            Overview {
                abandoned: one,
                ..base()
            },
        ] {
            assert!(report(&overview, &settings).needs_person);
        }
        for overview in [
            Overview { due: one, ..base() },
            Overview {
                waiting: one,
                running: one,
                refusals: one,
                ..base()
            },
        ] {
            assert!(!report(&overview, &settings).needs_person);
        }
    }
}
