//! Every setting: its name, unit, default and the reason for it. Plain data; ranges are in `ranges`, rules that tie
//! settings together in `validate`, and `config.example.toml` says the same to the operator.
//!
//! Whole numbers are `u64` throughout, so that a number too large meets the range of its key and not a type's edge.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::invoice::status::StatusLists;
use crate::telemetry::{Format, Level};

use super::admin::{Admin, Attention};
use super::control::Control;
use super::hooks::{Hook, OnAbandoned, Outbox};
use super::presentations::Presentations;

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where the ledger and the secrets live: an absolute path. No default here, see [`super::state_dir`].
    pub state_dir: Option<PathBuf>,
    /// The name the cabinet shows at login, 1 to 64 characters. Default `tilld on HOST`.
    pub client_name: Option<String>,
    /// How much is logged. Default `info`: one line per event, delivery, start and stop.
    pub log_level: Level,
    /// How a log line is written. Default `text`.
    pub log_format: Format,
    /// The payment service.
    pub service: Service,
    /// The public listener.
    pub listener: Listener,
    /// The socket for the shop.
    pub control: Control,
    /// What the service's status names mean.
    pub statuses: Statuses,
    /// How claims are judged.
    pub moves: Moves,
    /// How silence is broken.
    pub poller: Poller,
    /// How hooks are run.
    pub outbox: Outbox,
    /// The hooks, in the order of the file. Default none.
    pub hook: Vec<Hook>,
    /// Who is told that a delivery was given up. Default nobody.
    pub on_abandoned: Option<OnAbandoned>,
    /// The ledger.
    pub ledger: Ledger,
    /// Where this machine may ask how tilld is.
    pub admin: Admin,
    /// Who is told when something needs a person.
    pub attention: Attention,
    /// For how long texts are kept.
    pub retention: Retention,
}

/// The word for `service.proxy` that leaves the choice to `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
pub const PROXY_OF_ENVIRONMENT: &str = "environment";

/// `[service]`: where the payment service is and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Service {
    /// The service base address. https, or http to loopback. No default: only the merchant knows it.
    pub url: Option<String>,
    /// The cabinet's address: a `verificationUrl` of another host is called out at login. No default.
    pub cabinet_url: Option<String>,
    /// Seconds for connecting. Default 5: a connection that takes longer will not serve.
    pub connect_timeout_s: u64,
    /// Seconds for a whole request. Default 30: opening an invoice may take the service a while, and a lost answer
    /// costs more than the wait.
    pub request_timeout_s: u64,
    /// Requests per second, creates and polls together. No default: creates are as fast as the service answers.
    pub requests_per_second: Option<u64>,
    /// The `startDeal` sent with a new invoice. Default true, as the contract's usage shows it.
    pub start_deal: bool,
    /// Lets `url` be plain http to a host that is not loopback. Default false: the access token would be readable on
    /// the way. For a private network that encrypts by itself.
    pub allow_plain_http: bool,
    /// The proxy towards the service: `http://HOST:PORT`, or `environment` for the usual variables. No default, and then
    /// no proxy is used whatever the variables say. A service on this machine is never asked through one.
    pub proxy: Option<String>,
    /// The shop's name as the service gives it at a login. No default: a login must be for the shop of the one before.
    pub shop: Option<String>,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            url: None,
            cabinet_url: None,
            connect_timeout_s: 5,
            request_timeout_s: 30,
            requests_per_second: None,
            start_deal: true,
            allow_plain_http: false,
            proxy: None,
            shop: None,
        }
    }
}

/// `[listener]`: where notifications arrive, and what one sender may cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listener {
    /// `IP:PORT` to listen on. Default `127.0.0.1:8480`: behind a proxy that ends TLS.
    pub listen: SocketAddr,
    /// The address the service reaches this listener at; the notificationUrl is `{public_url}/{ref}`. https, or http
    /// to loopback. No default: only the merchant knows it.
    pub public_url: Option<String>,
    /// Where a notification may carry its notify token. Default `auto`: the common places, each tried on its own.
    pub presentations: Presentations,
    /// The certificate with its chain, in PEM, an absolute path; with it the listener speaks TLS. No default: a proxy does.
    pub tls_certificate: Option<PathBuf>,
    /// Its private key, in PEM, an absolute path. No default.
    pub tls_key: Option<PathBuf>,
    /// Addresses and networks of proxies whose word on who sent a request is taken, for logs and refusals alone. Default
    /// none: anybody can claim anything.
    pub trusted_proxies: Vec<String>,
    /// Bytes of a body. Default 1 MiB: an invoice object is about 1 KiB, this leaves room for surprises.
    pub body_limit_bytes: u64,
    /// Bytes of bodies at once, of all senders together; a quarter is left to requests whose path names a known invoice.
    /// Default 16 MiB: with it a flood of the largest bodies leaves tilld below 64 MiB.
    pub bodies_limit_bytes: u64,
    /// Bytes of a request's head. Default 16 KiB, as common servers have it; hyper wants 8 KiB at least.
    pub header_limit_bytes: u64,
    /// Seconds for a request's head. Default 10.
    pub header_time_s: u64,
    /// Seconds for a body after its head. Default 10.
    pub body_time_s: u64,
    /// Seconds a sender may leave its answers unread, all of a connection together. Default 10.
    pub write_time_s: u64,
    /// Seconds a connection may stay idle between requests. Default 30.
    pub idle_time_s: u64,
    /// Connections at once; beyond them the slowest goes. Default 512: about 10 MiB when all are busy.
    pub connections: u64,
    /// Seconds given to open requests at a stop. Default 10.
    pub drain_s: u64,
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8480)),
            public_url: None,
            presentations: Presentations::Auto,
            tls_certificate: None,
            tls_key: None,
            trusted_proxies: Vec::new(),
            body_limit_bytes: 1_048_576,
            bodies_limit_bytes: 16 * 1_048_576,
            header_limit_bytes: 16_384,
            header_time_s: 10,
            body_time_s: 10,
            write_time_s: 10,
            idle_time_s: 30,
            connections: 512,
            drain_s: 10,
        }
    }
}

/// `[statuses]`: the service's status names, sorted. Names are compared to the letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Statuses {
    /// Names that mean still to be paid. Default `new`, the only name the contract shows.
    pub open: Vec<String>,
    /// Names that mean paid. Default none: a guess would fulfil real orders.
    pub paid: Vec<String>,
    /// Names that mean it will not be paid. Default none.
    pub failed: Vec<String>,
    /// Names that mean the money went back. Default none.
    pub reversed: Vec<String>,
}

impl Default for Statuses {
    fn default() -> Self {
        let StatusLists {
            open,
            paid,
            failed,
            reversed,
        } = StatusLists::default();
        Self {
            open,
            paid,
            failed,
            reversed,
        }
    }
}

impl Statuses {
    /// The lists as `invoice` judges by them.
    pub fn lists(&self) -> StatusLists {
        StatusLists {
            open: self.open.clone(),
            paid: self.paid.clone(),
            failed: self.failed.clone(),
            reversed: self.reversed.clone(),
        }
    }
}

/// `[moves]`: how claims are judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Moves {
    /// A notification that says paid is in doubt until a poll agrees. Default false; for shops that trust no push.
    pub confirm_paid: bool,
}

/// `[poller]`: when a silent invoice is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Poller {
    /// Seconds between two looks at what is due; divides 60. Default 5.
    pub cadence_s: u64,
    /// How often a silent invoice is asked for, by its age. Default: every 50 s in the first half hour, then 5 min up to
    /// 2 h, 30 min up to a day, 4 h from then on. With the default cadence and the first pace a lost notification of an invoice
    /// younger than half an hour is found within 60 s, for up to 300 such invoices (A06); of more, evenly later.
    pub schedule: Vec<Step>,
    /// Seconds after `expireAt` at which one poll is made. Default 5: late enough for the service to have noticed.
    pub after_expiry_s: u64,
    /// Seconds after expiry, or after creation where there is none, at which an open invoice is given up as
    /// `unresolved`, once an answer of the service is dated so too. Default 72 h.
    pub horizon_s: u64,
    /// Polls per second at most. Default 20: the pace begins at 5 and follows the service's answers, whose limits are not
    /// published.
    pub requests_per_second: u64,
    /// Polls at once. Default 4.
    pub concurrency: u64,
}

impl Default for Poller {
    fn default() -> Self {
        Self {
            cadence_s: 5,
            schedule: vec![
                Step::new(1800, 50),
                Step::new(7200, 300),
                Step::new(86_400, 1800),
                Step::new(259_200, 14_400),
            ],
            after_expiry_s: 5,
            horizon_s: 259_200,
            requests_per_second: 20,
            concurrency: 4,
        }
    }
}

/// One step of the poller's schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Up to this age of the invoice, in seconds.
    pub until_s: u64,
    /// Seconds from one poll to the next.
    pub every_s: u64,
}

impl Step {
    /// Up to the age `until_s`, a poll every `every_s`.
    pub const fn new(until_s: u64, every_s: u64) -> Self {
        Self { until_s, every_s }
    }
}

/// `[ledger]`: what is kept, and how long a busy file is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ledger {
    /// Milliseconds the daemon waits for a write lock held elsewhere before it answers 503. Default 5000: senders
    /// commonly wait 10 s.
    pub busy_budget_ms: u64,
    /// Observations kept for each invoice, beside those that made events. Default 200.
    pub history_per_invoice: u64,
    /// Observations kept in all. Default 100 000, about 150 MiB.
    pub history_rows: u64,
    /// Refused requests kept for known invoices, and as many others. Default 10 000.
    pub refusal_rows: u64,
    /// Commands waiting for the writer before 503 is answered. Default 4096: a few seconds of a fast disk's work.
    pub queue: u64,
    /// Notifications and other changes in one commit at most. Default 256: larger ones gain nothing and make everybody wait
    /// for the slowest; 1 commits each by itself, several times slower.
    pub batch: u64,
    /// When the log is moved into the file. Default `after_answers`.
    pub checkpoint: Checkpoint,
    /// Bytes of a log that cannot be moved beyond which a person should know. Default 64 MiB: no usual read is in the way for
    /// so long, and a disk has that.
    pub log_attention_bytes: u64,
    /// Bytes of a log that cannot be moved beyond which notifications are answered 503 instead of filling the disk. Default
    /// 1 GiB.
    pub log_bound_bytes: u64,
    /// Lets the ledger lie on a network file system. Default false: opened by two machines it is damaged.
    pub network: bool,
}

/// `[retention]`: for how many days what an order was about is kept after the invoice is over. Amounts, statuses, events and
/// deliveries are kept for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Days for requisites and payment page, 0 for ever. Default 180: a payment is disputed within about half a year, and
    /// whose account it went to is nobody's business after that.
    pub requisites_days: u64,
    /// Days for the service's raw documents, which have the requisites in them, and for what scripts wrote; 0 as long as the
    /// requisites. Default 90: they help to find out what went wrong, which is noticed within weeks, and take most of the room.
    pub raw_days: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            requisites_days: 180,
            raw_days: 90,
        }
    }
}

/// When the ledger's log is moved into its file, which takes as long as hundreds of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpoint {
    /// Behind the answers of a commit: nobody waits for it but the next batch.
    #[default]
    AfterAnswers,
    /// Within the commit that makes the log long, as SQLite does by itself: for comparison.
    InCommit,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            busy_budget_ms: 5000,
            history_per_invoice: 200,
            history_rows: 100_000,
            refusal_rows: 10_000,
            queue: 4096,
            batch: 256,
            checkpoint: Checkpoint::AfterAnswers,
            log_attention_bytes: 64 * 1_048_576,
            log_bound_bytes: 1_073_741_824,
            network: false,
        }
    }
}

/// Whole numbers by key, with the smallest and the largest allowed. Keys of rows stand without their position.
pub(super) fn ranges() -> BTreeMap<&'static str, (u64, u64)> {
    const DAY_S: u64 = 86_400;
    BTreeMap::from([
        ("service.connect_timeout_s", (1, 60)),
        ("service.request_timeout_s", (1, 300)),
        ("service.requests_per_second", (1, 1000)),
        ("listener.body_limit_bytes", (4096, 16 * 1_048_576)),
        ("listener.bodies_limit_bytes", (8192, 1_073_741_824)),
        ("listener.header_limit_bytes", (8192, 65_536)),
        ("listener.header_time_s", (1, 60)),
        ("listener.body_time_s", (1, 60)),
        ("listener.write_time_s", (1, 60)),
        ("listener.idle_time_s", (1, 3600)),
        ("listener.connections", (1, 10_000)),
        ("listener.drain_s", (0, 300)),
        ("control.connections", (1, 10_000)),
        ("control.followers", (1, 10_000)),
        ("poller.cadence_s", (1, 60)),
        ("poller.schedule.until_s", (1, 90 * DAY_S)),
        ("poller.schedule.every_s", (1, DAY_S)),
        ("poller.after_expiry_s", (0, 3600)),
        ("poller.horizon_s", (1, 90 * DAY_S)),
        ("poller.requests_per_second", (1, 100)),
        ("poller.concurrency", (1, 64)),
        ("outbox.concurrency", (1, 256)),
        ("outbox.slow_concurrency", (0, 256)),
        ("outbox.schedule_s", (0, 7 * DAY_S)),
        ("outbox.grace_s", (1, 300)),
        ("outbox.drain_s", (0, 3600)),
        ("hook.timeout_s", (1, 3600)),
        ("hook.undelivered_after_s", (0, 90 * DAY_S)),
        ("hook.concurrency", (1, 256)),
        ("on_abandoned.timeout_s", (1, 3600)),
        ("on_abandoned.undelivered_after_s", (0, 90 * DAY_S)),
        ("ledger.busy_budget_ms", (10, 60_000)),
        ("ledger.history_per_invoice", (10, 10_000)),
        ("ledger.history_rows", (100, 10_000_000)),
        ("ledger.refusal_rows", (100, 1_000_000)),
        ("ledger.queue", (16, 65_536)),
        ("ledger.batch", (1, 1024)),
        ("attention.timeout_s", (1, 3600)),
        ("attention.polled_in_a_row", (0, 1000)),
        ("attention.outage_after_s", (0, 90 * DAY_S)),
        ("attention.silent_after_s", (0, 90 * DAY_S)),
        ("ledger.log_attention_bytes", (16 * 1_048_576, 1 << 40)),
        ("ledger.log_bound_bytes", (32 * 1_048_576, 1 << 40)),
        ("retention.requisites_days", (0, 36_500)),
        ("retention.raw_days", (0, 36_500)),
    ])
}
