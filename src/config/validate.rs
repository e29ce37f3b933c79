//! Ranges and the rules that tie settings together. After it the rest of the program takes settings as they are.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use figment::value::Value;
use url::{Host, Url};

use super::error::{Error, Origin};
use super::hooks::{Hook, ON_ABANDONED, OnAbandoned};
use super::keys::{Shape, join, known};
use super::networks::Network;
use super::presentations::Presentations;
use super::settings::{Listener, PROXY_OF_ENVIRONMENT, Settings, ranges};
use crate::hook::{SELECTABLE, Selector};

/// Tells where a key was set.
type OriginOf<'a> = &'a dyn Fn(&str) -> Origin;

/// Longest `client_name`, in characters: the cabinet shows it in one line.
const LONGEST_CLIENT_NAME: usize = 64;
/// Longest hook name, in characters. It stands in every row of the ledger that belongs to the hook.
const LONGEST_HOOK_NAME: usize = 64;
/// Most hooks. Each event is matched against all of them in the commit.
const MOST_HOOKS: usize = 64;
/// Most steps of a schedule: enough for any, and small enough to be looked through for every invoice.
const MOST_STEPS: usize = 32;
/// Most places a notify token is looked for. Each costs work before the sender is known.
const MOST_PRESENTATIONS: usize = 16;
/// Longest place, in bytes.
const LONGEST_PRESENTATION: usize = 256;
impl Settings {
    /// Judges all settings.
    pub(super) fn validate(&self, origin: OriginOf<'_>) -> Result<(), Error> {
        let value = Value::serialize(self).expect("settings are plain data");
        in_range("", "", &value, origin)?;
        self.rules().into_iter().try_for_each(|rule| match rule {
            (_, None) => Ok(()),
            (key, Some(rule)) => Err(refused(key, origin(key), rule)),
        })?;
        self.hook.iter().enumerate().try_for_each(|(place, hook)| {
            let earlier = self.hook.iter().take(place);
            let twice = earlier.clone().any(|other| other.name == hook.name);
            let rule = if twice {
                Some(("name", "must be unlike every other hook's name".to_owned()))
            } else {
                hook.rule()
            };
            rule.map_or(Ok(()), |(name, rule)| {
                let key = format!("hook[{}].{name}", place + 1);
                Err(refused(&key, origin("hook"), rule))
            })
        })?;
        let told = self.on_abandoned.as_ref().map(OnAbandoned::hook);
        let rule = told.and_then(|hook| hook.action_rule());
        rule.map_or(Ok(()), |(name, rule)| {
            let key = format!("{ON_ABANDONED}.{name}");
            Err(refused(&key, origin(ON_ABANDONED), rule))
        })
    }

    /// Keys that have rules beyond a range, each with the rule it breaks.
    fn rules(&self) -> Vec<(&'static str, Option<String>)> {
        let plain_http = self.service.allow_plain_http;
        let mut rules = vec![
            (
                "state_dir",
                self.state_dir
                    .as_deref()
                    .and_then(|path| broken(path.is_absolute(), "must be an absolute path")),
            ),
            (
                "client_name",
                self.client_name.as_deref().and_then(client_name_rule),
            ),
            (
                "service.url",
                address_rule(self.service.url.as_deref(), plain_http),
            ),
            (
                "service.cabinet_url",
                address_rule(self.service.cabinet_url.as_deref(), false),
            ),
            (
                "service.proxy",
                self.service.proxy.as_deref().and_then(proxy_rule),
            ),
            (
                "service.connect_timeout_s",
                broken(
                    self.service.connect_timeout_s <= self.service.request_timeout_s,
                    "must be at most `service.request_timeout_s`, which it is a part of",
                ),
            ),
            (
                "listener.public_url",
                address_rule(self.listener.public_url.as_deref(), false),
            ),
            (
                "listener.presentations",
                presentations_rule(&self.listener.presentations),
            ),
            (
                "listener.tls_certificate",
                tls_rule(
                    self.listener.tls_certificate.as_ref(),
                    self.listener.tls_key.as_ref(),
                    "listener.tls_key",
                ),
            ),
            (
                "listener.tls_key",
                tls_rule(
                    self.listener.tls_key.as_ref(),
                    self.listener.tls_certificate.as_ref(),
                    "listener.tls_certificate",
                ),
            ),
            (
                "listener.trusted_proxies",
                Network::rule(&self.listener.trusted_proxies),
            ),
            self.listener.bodies_rule(),
            ("statuses", self.statuses.lists().rule()),
            (
                "poller.cadence_s",
                broken(
                    60_u64.checked_rem(self.poller.cadence_s) == Some(0),
                    "must divide 60: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60",
                ),
            ),
            ("poller.schedule", self.schedule_rule()),
            (
                "outbox.schedule_s",
                broken(
                    (1..=MOST_STEPS).contains(&self.outbox.schedule_s.len()),
                    "must have 1 to 32 delays",
                ),
            ),
            (
                "hook",
                broken(self.hook.len() <= MOST_HOOKS, "must be at most 64 hooks"),
            ),
            (
                "ledger.history_per_invoice",
                broken(
                    self.ledger.history_per_invoice <= self.ledger.history_rows,
                    "must be at most `ledger.history_rows`",
                ),
            ),
            (
                "ledger.log_bound_bytes",
                broken(
                    self.ledger.log_bound_bytes > self.ledger.log_attention_bytes,
                    "must be more than `ledger.log_attention_bytes`",
                ),
            ),
        ];
        rules.extend(self.control.rules());
        rules.extend([self.admin.rule(), self.attention.rule()]);
        rules
    }

    fn schedule_rule(&self) -> Option<String> {
        let steps = &self.poller.schedule;
        if !(1..=MOST_STEPS).contains(&steps.len()) {
            return broken(false, "must have 1 to 32 steps");
        }
        let mut pairs = steps.iter().zip(steps.iter().skip(1));
        let place = pairs.position(|(earlier, later)| later.until_s <= earlier.until_s)?;
        Some(format!(
            "must have a later `until_s` in each step than in the one before: step {} has none",
            place + 2
        ))
    }
}

impl Hook {
    /// The key of this hook that breaks a rule, and the rule.
    fn rule(&self) -> Option<(&'static str, String)> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        let name =
            (1..=LONGEST_HOOK_NAME).contains(&self.name.len()) && self.name.chars().all(plain);
        let rules = [
            (
                "name",
                broken(name, "must be 1 to 64 of the characters `a-z 0-9 _ -`"),
            ),
            (
                "name",
                broken(
                    self.name != ON_ABANDONED,
                    "must not be `on_abandoned`, which is the hook under `[on_abandoned]`",
                ),
            ),
            ("on", self.on_rule()),
        ];
        let broken = rules
            .into_iter()
            .find_map(|(key, rule)| rule.map(|rule| (key, rule)));
        broken.or_else(|| self.action_rule())
    }

    /// Which of several words is none is told by its place: values stay out of the text.
    fn on_rule(&self) -> Option<String> {
        let unknown = self
            .on
            .iter()
            .position(|word| Selector::parse(word).is_err());
        let which = match unknown {
            Some(place) if self.on.len() > 1 => {
                format!(" and nothing else: entry {} is none", place + 1)
            }
            Some(_) => String::new(),
            None if self.on.is_empty() => String::new(),
            None => return None,
        };
        let kinds = SELECTABLE.map(|kind| format!("`{kind}`")).join(", ");
        Some(format!(
            "must list at least one of {kinds}, `status:NAME`, `*`{which}"
        ))
    }

    /// The key of what is run or posted to that breaks a rule, and the rule.
    fn action_rule(&self) -> Option<(&'static str, String)> {
        let Some(address) = &self.post else {
            let program = self
                .run
                .first()
                .is_some_and(|program| Path::new(program).is_absolute());
            let whole = self.run.iter().all(|part| !part.contains('\0'));
            let secret = broken(self.secret_file.is_none(), "goes with `post` only");
            let run = broken(
                program && whole,
                "must begin with the absolute path of a program, unless there is a `post`",
            );
            return run
                .map(|rule| ("run", rule))
                .or(secret.map(|rule| ("secret_file", rule)));
        };
        let secret = self.secret_file.as_deref().is_some_and(Path::is_absolute);
        let rules = [
            (
                "run",
                broken(
                    self.run.is_empty(),
                    "must not stand beside `post`: one hook, one way",
                ),
            ),
            ("post", post_rule(address)),
            (
                "secret_file",
                broken(
                    secret,
                    "must be the absolute path of the file with the secret that signs what is posted",
                ),
            ),
        ];
        rules
            .into_iter()
            .find_map(|(key, rule)| rule.map(|rule| (key, rule)))
    }
}

fn refused(key: &str, origin: Origin, rule: String) -> Error {
    let key = key.to_owned();
    Error::Refused { key, origin, rule }
}

impl Listener {
    fn bodies_rule(&self) -> (&'static str, Option<String>) {
        let holds = self.bodies_limit_bytes / 2 >= self.body_limit_bytes;
        let rule = "must be at least twice `listener.body_limit_bytes`: a quarter is left to known invoices";
        ("listener.bodies_limit_bytes", broken(holds, rule))
    }
}

/// The rule, when it does not hold.
fn broken(holds: bool, rule: &str) -> Option<String> {
    (!holds).then(|| rule.to_owned())
}

fn client_name_rule(name: &str) -> Option<String> {
    let length = name.chars().count();
    broken(
        (1..=LONGEST_CLIENT_NAME).contains(&length) && !name.chars().any(char::is_control),
        "must be 1 to 64 characters, none of them a control character",
    )
}

fn presentations_rule(presentations: &Presentations) -> Option<String> {
    let Presentations::Only(places) = presentations else {
        return None;
    };
    let sized = |place: &String| (1..=LONGEST_PRESENTATION).contains(&place.len());
    broken(
        (1..=MOST_PRESENTATIONS).contains(&places.len()) && places.iter().all(sized),
        "must be `auto` or a list of 1 to 16 places",
    )
}

/// What a file of TLS must be, when it is not.
fn tls_rule(file: Option<&PathBuf>, other: Option<&PathBuf>, key: &str) -> Option<String> {
    let file = file?;
    if !file.is_absolute() {
        return broken(false, "must be an absolute path");
    }
    other.is_none().then(|| format!("goes with `{key}` only"))
}

/// What an address must be, when it is not.
fn address_rule(address: Option<&str>, plain_http: bool) -> Option<String> {
    let url = match parsed(address?, plain_http) {
        Ok(url) => url,
        Err(rule) => return broken(false, rule),
    };
    let bare = is_anonymous(&url) && url.query().is_none() && url.fragment().is_none();
    broken(bare, "must have no user, password, query or fragment")
}

/// What the shop's address must be, when it is not. Unlike the others it is used as it stands, and many a shop tells its
/// pages apart by the query: `https://HOST/index.php?route=tilld`.
fn post_rule(address: &str) -> Option<String> {
    let url = match parsed(address, false) {
        Ok(url) => url,
        Err(rule) => return broken(false, rule),
    };
    broken(
        is_anonymous(&url) && url.fragment().is_none(),
        "must have no user, password or fragment",
    )
}

fn is_anonymous(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none()
}

/// The address, when it is one that may be asked; else the rule it breaks.
fn parsed(address: &str, plain_http: bool) -> Result<Url, &'static str> {
    let url =
        Url::parse(address).map_err(|_unshown| "must be an address such as `https://HOST/PATH`")?;
    let encrypted = match url.scheme() {
        "https" => true,
        "http" => plain_http || is_loopback(&url),
        _ => false,
    };
    if encrypted {
        Ok(url)
    } else {
        Err("must begin with `https://`; `http://` is for loopback only")
    }
}

/// What a proxy must be, when it is not.
fn proxy_rule(proxy: &str) -> Option<String> {
    if proxy == PROXY_OF_ENVIRONMENT {
        return None;
    }
    let url = Url::parse(proxy).ok().filter(Url::has_host);
    let Some(url) = url.filter(|url| url.scheme() == "http") else {
        return broken(false, "must be `environment` or `http://HOST:PORT`");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return broken(
            false,
            "must have no user or password: a config holds no secrets. `environment` takes a proxy with a login from \
             `HTTPS_PROXY`",
        );
    }
    broken(
        url.path() == "/" && url.query().is_none() && url.fragment().is_none(),
        "must end after the port",
    )
}

/// True for hosts that never leave the machine: 127.0.0.0/8, `::1` and `localhost` (RFC 6761 section 6.3).
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    }
}

/// Looks at every whole number in `value`.
fn in_range(spelled: &str, plain: &str, value: &Value, origin: OriginOf<'_>) -> Result<(), Error> {
    match value {
        Value::Dict(_, dict) => dict.iter().try_for_each(|(name, value)| {
            in_range(&join(spelled, name), &join(plain, name), value, origin)
        }),
        Value::Array(_, items) => items.iter().enumerate().try_for_each(|(place, item)| {
            in_range(&format!("{spelled}[{}]", place + 1), plain, item, origin)
        }),
        Value::Num(_, number) => {
            let number = number.to_u128();
            let all = ranges();
            let range = all
                .get(plain)
                .map(|(least, most)| u128::from(*least)..=u128::from(*most));
            let inside = number
                .zip(range)
                .is_some_and(|(number, range)| range.contains(&number));
            if inside {
                return Ok(());
            }
            let list = spelled.split('[').next().unwrap_or(spelled);
            let origin = origin(if spelled == plain { plain } else { list });
            // Of a list, one entry broke it.
            let shape = known().find(plain).unwrap_or(&Shape::Whole);
            let shape = if spelled.ends_with(']') {
                &Shape::Whole
            } else {
                shape
            };
            let rule = shape.rule(plain);
            Err(refused(spelled, origin, rule))
        }
        Value::String(..) | Value::Char(..) | Value::Bool(..) | Value::Empty(..) => Ok(()),
    }
}
