//! The settings about hooks: how they are run in general, each of them, and who is told of a delivery that was given up.
//! Plain data, as in `settings`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::settings::Settings;

/// `[outbox]`: how hooks are run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outbox {
    /// Runs of one hook at once; each hook has places of its own. Default 4: scripts share the shop's machine.
    pub concurrency: u64,
    /// Runs of one hook at once beyond those, for runs that last: they leave their places to others. Default 4, so that a
    /// few programs that hang hold nobody up.
    pub slow_concurrency: u64,
    /// Seconds before each attempt, counted from the one before it; their number is the number of attempts. Up to a
    /// tenth is added at random. Default: at once, then with growing gaps over about three days.
    pub schedule_s: Vec<u64>,
    /// Seconds between TERM and KILL for a hook that ran into its timeout. Default 10.
    pub grace_s: u64,
    /// Seconds running hooks are given at a stop before they are ended. Default 20.
    pub drain_s: u64,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            concurrency: 4,
            slow_concurrency: 4,
            schedule_s: vec![
                0, 5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 86_400, 86_400,
            ],
            grace_s: 10,
            drain_s: 20,
        }
    }
}

/// `[[hook]]`: a script or an address of the shop that is told of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// 1 to 64 of `a-z 0-9 _ -`, unlike every other hook's. Deliveries belong to a name: what waits is lost to a new one.
    pub name: String,
    /// The events it wants: `paid`, `paid_again`, `failed`, `reversed`, `late`, `mismatch`, `second_payment`, `unresolved`,
    /// `status:NAME`, `*`.
    pub on: Vec<String>,
    /// The program by its absolute path, then its arguments. No shell reads them. Empty for a hook with `post`.
    #[serde(default)]
    pub run: Vec<String>,
    /// The shop's address the document is posted to, instead of a program.
    #[serde(default)]
    pub post: Option<String>,
    /// The file with the secret that signs what is posted: an absolute path. Needed with `post`.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// Seconds one attempt may take. Default 30.
    #[serde(default = "Hook::default_timeout_s")]
    pub timeout_s: u64,
    /// Seconds an event may be undelivered before it is an alert, counted while tilld serves. Default 900; 0 is never.
    #[serde(default = "Hook::default_undelivered_after_s")]
    pub undelivered_after_s: u64,
    /// Runs of this hook at once, at most and whatever `outbox` says: 1 for a script that must never run twice at a
    /// time. No default: `outbox.concurrency` and `outbox.slow_concurrency` hold.
    #[serde(default)]
    pub concurrency: Option<u64>,
}

impl Hook {
    /// The default of `timeout_s`: a script that needs longer usually waits for something that does not come.
    pub const fn default_timeout_s() -> u64 {
        30
    }

    /// The default of `undelivered_after_s`: a customer waits for a quarter of an hour, and then asks.
    pub const fn default_undelivered_after_s() -> u64 {
        900
    }
}

/// `[on_abandoned]`: the script or address that is told when a delivery was given up. Runs like a hook, under the same
/// schedule; that it was given up itself is told nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnAbandoned {
    /// As a hook's.
    #[serde(default)]
    pub run: Vec<String>,
    /// As a hook's.
    #[serde(default)]
    pub post: Option<String>,
    /// As a hook's.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// As a hook's. Default 30.
    #[serde(default = "Hook::default_timeout_s")]
    pub timeout_s: u64,
    /// As a hook's. Default 900.
    #[serde(default = "Hook::default_undelivered_after_s")]
    pub undelivered_after_s: u64,
}

/// The name under which `[on_abandoned]` is a hook. No `[[hook]]` may have it.
pub use crate::hook::abandonment::ON_ABANDONED;

impl OnAbandoned {
    /// The hook it is; it is told of no event by itself.
    pub fn hook(&self) -> Hook {
        let Self {
            run,
            post,
            secret_file,
            timeout_s,
            undelivered_after_s,
        } = self.clone();
        Hook {
            name: ON_ABANDONED.to_owned(),
            on: Vec::new(),
            run,
            post,
            secret_file,
            timeout_s,
            undelivered_after_s,
            concurrency: None,
        }
    }
}

impl Settings {
    /// All that is run or posted to: the hooks, and the one that is told of what was given up.
    pub fn every_hook(&self) -> Vec<Hook> {
        let told = self.on_abandoned.as_ref().map(OnAbandoned::hook);
        self.hook.iter().cloned().chain(told).collect()
    }
}
