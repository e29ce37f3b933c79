//! From the settings to the plain structs the rest of the program takes. Nothing here decides; ranges were checked when
//! the settings were loaded.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::client::proxy::Proxy;
use crate::client::{self, gate};
use crate::config::{PROXY_OF_ENVIRONMENT, Settings};
use crate::hook::abandonment::{self, ON_ABANDONED};
use crate::hook::launch;
use crate::hook::post::Target;
use crate::hook::process::{Program, Surroundings};
use crate::hook::{Selector, Subscription, UnknownSelector};
use crate::http::{CertificateError, CertificateFiles, Certificates, Limits};
use crate::invoice::silence::{Schedule, Step};
use crate::invoice::transition::Policy;
use crate::ledger::{
    Author, Bounds, Checkpoint, LogLimits, Network, Options, RUN_DIRECTORY, Restore, Rules,
};
use crate::listener::Trusted;
use crate::listener::presentation::{PlaceError, Presentations};
use crate::outbox::Action;
use crate::outbox::retry::longest_wait;
use crate::secret::Hidden;
use crate::{listener, opening, outbox, poller};

/// How long a one-shot command waits for another process's lock (design 5).
const COMMAND_BUSY: Duration = Duration::from_secs(15);

/// What the ledger acts on.
pub(crate) fn rules(settings: &Settings) -> Result<Rules, UnknownSelector> {
    let subscription = |hook: &crate::config::Hook| {
        let on: Result<Vec<Selector>, UnknownSelector> =
            hook.on.iter().map(|text| Selector::parse(text)).collect();
        on.map(|on| Subscription {
            hook: hook.name.clone(),
            on,
        })
    };
    Ok(Rules {
        author: Author::Daemon,
        policy: Policy {
            lists: settings.statuses.lists(),
            confirm_paid: settings.moves.confirm_paid,
        },
        schedule: schedule(settings),
        subscriptions: settings
            .hook
            .iter()
            .map(subscription)
            .collect::<Result<_, _>>()?,
        on_abandoned: settings.on_abandoned.is_some(),
        first_delay_ms: ms(settings
            .outbox
            .schedule_s
            .first()
            .copied()
            .unwrap_or_default()),
        longest_delay_ms: longest_delay_ms(&settings.outbox.schedule_s),
        // Known once the ledger is open.
        sorted_by: None,
        restore: Restore::default(),
    })
}

/// When silent invoices are due.
pub(crate) fn schedule(settings: &Settings) -> Schedule {
    let poller = &settings.poller;
    let step = |step: &crate::config::Step| Step {
        until_ms: ms(step.until_s),
        every_ms: ms(step.every_s),
    };
    Schedule {
        steps: poller.schedule.iter().map(step).collect(),
        after_expiry_ms: ms(poller.after_expiry_s),
        horizon_ms: ms(poller.horizon_s),
    }
}

/// How the daemon opens the ledger.
pub(crate) fn ledger_options(
    settings: &Settings,
    state_dir: PathBuf,
) -> Result<Options, UnknownSelector> {
    let ledger = &settings.ledger;
    Ok(Options {
        state_dir,
        busy_budget: Duration::from_millis(ledger.busy_budget_ms),
        queue: size(ledger.queue),
        batch: size(ledger.batch),
        checkpoint: match ledger.checkpoint {
            crate::config::Checkpoint::AfterAnswers => Checkpoint::AfterAnswers,
            crate::config::Checkpoint::InCommit => Checkpoint::InCommit,
        },
        log_limits: LogLimits {
            attention_bytes: ledger.log_attention_bytes,
            bound_bytes: ledger.log_bound_bytes,
        },
        network: if ledger.network {
            Network::Known
        } else {
            Network::Refused
        },
        bounds: Bounds {
            history_per_invoice: small(ledger.history_per_invoice),
            history_rows: small(ledger.history_rows),
            refusal_rows: small(ledger.refusal_rows),
        },
        rules: rules(settings)?,
    })
}

/// How a one-shot command opens the ledger: it has more patience than somebody who waits for an answer.
pub(crate) fn command_ledger_options(
    settings: &Settings,
    state_dir: PathBuf,
) -> Result<Options, UnknownSelector> {
    let daemons = ledger_options(settings, state_dir)?;
    Ok(Options {
        busy_budget: COMMAND_BUSY,
        checkpoint: Checkpoint::WhenShort,
        rules: Rules {
            author: Author::Command,
            ..daemons.rules
        },
        ..daemons
    })
}

/// How the service is reached. `base_url` was required and checked by the caller.
pub(crate) fn client_settings(settings: &Settings, base_url: String) -> client::Settings {
    client::Settings {
        base_url,
        connect_timeout: Duration::from_secs(settings.service.connect_timeout_s),
        request_timeout: Duration::from_secs(settings.service.request_timeout_s),
        allow_plain_http: settings.service.allow_plain_http,
        proxy: match settings.service.proxy.as_deref() {
            None => Proxy::Straight,
            Some(PROXY_OF_ENVIRONMENT) => Proxy::Environment,
            Some(url) => Proxy::At(url.to_owned()),
        },
    }
}

/// How notifications are heard. `public_url` was required and checked by the caller.
pub(crate) fn listener_settings(
    settings: &Settings,
    public_url: &str,
) -> Result<listener::Settings, ListenerError> {
    let heard = &settings.listener;
    let presentations = match &heard.presentations {
        crate::config::Presentations::Auto => Presentations::auto(),
        crate::config::Presentations::Only(names) => Presentations::only(names)?,
    };
    let limits = Limits {
        header_bytes: size(heard.header_limit_bytes),
        body_bytes: size(heard.body_limit_bytes),
        header_time: Duration::from_secs(heard.header_time_s),
        body_time: Duration::from_secs(heard.body_time_s),
        write_time: Duration::from_secs(heard.write_time_s),
        idle_time: Duration::from_secs(heard.idle_time_s),
        connections: size(heard.connections),
        // Its senders come again anyway; the one that has been without a whole request for longest makes room.
        full_time: None,
    };
    Ok(listener::Settings {
        public: listener::route::PublicAddress::of(public_url),
        presentations,
        certificates: certificates(heard)?,
        trusted: trusted(heard),
        limits,
        bodies_bytes: size(heard.bodies_limit_bytes),
        drain: Duration::from_secs(heard.drain_s),
        heard: Arc::default(),
        hidden: Hidden::default(),
    })
}

/// Why notifications cannot be heard.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenerError {
    /// A presentation is unknown.
    #[error("could not read `listener.presentations`")]
    Presentation(#[from] PlaceError),
    /// A certificate or its key cannot be used.
    #[error("could not use the certificate of the listener")]
    Certificate(#[from] CertificateError),
}

/// What the listener shows of itself over TLS; that one file goes with the other was checked.
fn certificates(heard: &crate::config::Listener) -> Result<Option<Certificates>, CertificateError> {
    certificate_files(heard).map(Certificates::load).transpose()
}

/// Where certificate and key lie, when the listener speaks TLS itself, for the user that this process runs as.
pub(crate) fn certificate_files(heard: &crate::config::Listener) -> Option<CertificateFiles> {
    Some(CertificateFiles {
        certificate: heard.tls_certificate.clone()?,
        key: heard.tls_key.clone()?,
        owner: rustix::process::geteuid().as_raw(),
    })
}

fn trusted(heard: &crate::config::Listener) -> Trusted {
    let networks = heard.trusted_proxies.iter();
    let networks: Vec<crate::config::Network> = networks
        .filter_map(|text| crate::config::Network::parse(text))
        .collect();
    if networks.is_empty() {
        return Trusted::default();
    }
    Trusted::these(move |peer| networks.iter().any(|network| network.holds(peer)))
}

/// How silence is broken.
pub(crate) fn poller_settings(settings: &Settings) -> poller::Settings {
    poller::Settings {
        schedule: schedule(settings),
        cadence: Duration::from_secs(settings.poller.cadence_s),
        at_once: size(settings.poller.concurrency),
        per_second: gate_limits(settings).fastest_polls(),
    }
}

/// How much the service is asked.
pub(crate) fn gate_limits(settings: &Settings) -> gate::Limits {
    gate::Limits {
        per_second: settings.service.requests_per_second.map(at_least_one),
        polls_per_second: at_least_one(settings.poller.requests_per_second),
        polls_at_once: at_least_one(settings.poller.concurrency),
    }
}

/// How hooks are run.
pub(crate) fn outbox_settings(settings: &Settings, state_dir: &Path) -> outbox::Settings {
    let outbox = &settings.outbox;
    outbox::Settings {
        hooks: settings
            .every_hook()
            .iter()
            .filter_map(|hook| {
                Some(outbox::Hook {
                    answers_to: answers_to(&hook.name, &settings.hook),
                    ..hook_action(hook, outbox)?
                })
            })
            .collect(),
        // The first gap stands before the first attempt and is dated by the ledger.
        schedule: outbox
            .schedule_s
            .iter()
            .skip(1)
            .map(|gap| Duration::from_secs(*gap))
            .collect(),
        longest_delay_ms: longest_delay_ms(&outbox.schedule_s),
        drain: Duration::from_secs(outbox.drain_s),
        surroundings: Surroundings {
            launcher: launch::launcher(),
            work_dir: state_dir.join(RUN_DIRECTORY),
            home: launch::home(),
        },
        runs: Arc::new(outbox::Runs::of(
            settings.every_hook().into_iter().map(|hook| hook.name),
        )),
        earlier: outbox::Earlier::default(),
    }
}

/// A hook with what it does; `None` is impossible for settings that were checked, which have a program or an address for
/// each hook.
pub(crate) fn hook_action(
    hook: &crate::config::Hook,
    outbox: &crate::config::Outbox,
) -> Option<outbox::Hook> {
    let timeout = Duration::from_secs(hook.timeout_s);
    let action = if let Some(address) = &hook.post {
        let secret_file = hook.secret_file.clone()?;
        Action::Post(Target::new(address, secret_file, timeout))
    } else {
        let (path, args) = hook.run.split_first()?;
        Action::Run(Program {
            path: path.into(),
            args: args.to_vec(),
            timeout,
            grace: Duration::from_secs(outbox.grace_s),
        })
    };
    Some(outbox::Hook {
        name: hook.name.clone(),
        action,
        answers_to: vec![hook.name.clone()],
        room: room(hook, outbox),
    })
}

/// The names of the deliveries that are owed to some hook of the config.
pub(crate) fn owed_names(settings: &Settings) -> Vec<String> {
    let hooks = settings.every_hook();
    let names = hooks
        .iter()
        .flat_map(|hook| answers_to(&hook.name, &settings.hook));
    names.collect()
}

/// The names of the deliveries that are owed to a hook: its own, or of who is told that hooks gave up, one for each of them.
fn answers_to(name: &str, hooks: &[crate::config::Hook]) -> Vec<String> {
    if name != ON_ABANDONED {
        return vec![name.to_owned()];
    }
    hooks
        .iter()
        .filter_map(|hook| abandonment::teller_of(&hook.name))
        .collect()
}

/// A hook's places. A limit of its own is a hard one: nothing runs beside it.
fn room(hook: &crate::config::Hook, outbox: &crate::config::Outbox) -> outbox::Room {
    match hook.concurrency {
        Some(most) => outbox::Room {
            ordinary: small(most),
            slow: 0,
        },
        None => outbox::Room {
            ordinary: small(outbox.concurrency),
            slow: small(outbox.slow_concurrency),
        },
    }
}

/// How invoices are opened. `public_url` was required and checked by the caller.
pub(crate) fn opening_settings(settings: &Settings, public_url: &str) -> opening::Settings {
    opening::Settings {
        public_url: public_url.trim_end_matches('/').to_owned(),
        request_timeout: Duration::from_secs(settings.service.request_timeout_s),
        start_deal: settings.service.start_deal,
        window_ms: ms(settings.poller.horizon_s),
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn at_least_one(count: u64) -> NonZeroU32 {
    NonZeroU32::new(small(count)).unwrap_or(NonZeroU32::MIN)
}

fn longest_delay_ms(schedule_s: &[u64]) -> i64 {
    let schedule: Vec<Duration> = schedule_s
        .iter()
        .copied()
        .map(Duration::from_secs)
        .collect();
    i64::try_from(longest_wait(&schedule).as_millis()).unwrap_or(i64::MAX)
}

fn ms(seconds: u64) -> i64 {
    i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000)
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
