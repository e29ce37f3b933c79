//! `[control]`: the socket through which the shop uses tilld without holding its secrets.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The longest path of a Unix socket on Linux, bytes.
pub(crate) const LONGEST_PATH: usize = 107;

/// Connections kept for calls that wait for nothing, at least.
const KEPT: u64 = 16;

/// Where the socket is, who may connect, and what clients may cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Control {
    /// An absolute path. Not set: `control.sock` in `$RUNTIME_DIRECTORY`, which systemd sets, else in the state directory.
    pub socket: Option<PathBuf>,
    /// The socket's mode, octal: whoever may write may connect. Default `0660`: the owner and the group.
    pub mode: String,
    /// The socket's group, by name: the shop's users are its members. Not set: the group tilld runs as. tilld's user must be a
    /// member too.
    pub group: Option<String>,
    /// Connections at once. Default 256.
    pub connections: u64,
    /// Followers of events and waits for an invoice at once, among the connections. Default 200.
    pub followers: u64,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            socket: None,
            mode: "0660".to_owned(),
            group: None,
            connections: 256,
            followers: 200,
        }
    }
}

impl Control {
    /// The mode as a number.
    pub fn mode_bits(&self) -> Option<u32> {
        let digits = self.mode.strip_prefix("0o").unwrap_or(&self.mode);
        let is_octal = (3..=4).contains(&digits.len());
        u32::from_str_radix(digits, 8)
            .ok()
            .filter(|bits| is_octal && *bits <= 0o777)
    }

    /// Calls that may wait for something at once: all connections but an eighth, which is [`KEPT`] at least and half at most.
    pub fn waits(&self) -> u64 {
        let kept = (self.connections / 8).max(KEPT).min(self.connections / 2);
        self.connections - kept
    }

    /// The keys with a rule beyond a range, and the rule each breaks.
    pub(super) fn rules(&self) -> [(&'static str, Option<String>); 4] {
        let must = |holds: bool, rule: &str| (!holds).then(|| rule.to_owned());
        let path = self.socket.as_deref();
        let bytes = |path: &std::path::Path| path.as_os_str().len();
        [
            (
                "control.socket",
                path.and_then(|path| {
                    must(
                        path.is_absolute() && bytes(path) <= LONGEST_PATH,
                        "must be an absolute path of at most 107 bytes, as Unix sockets have it",
                    )
                }),
            ),
            (
                "control.followers",
                must(
                    self.followers <= self.waits(),
                    "must leave an eighth of `control.connections`, and 16 at least, to calls that wait for nothing",
                ),
            ),
            (
                "control.mode",
                must(
                    self.mode_bits()
                        .is_some_and(|bits| bits % 0o10 == 0 || bits == 0o666),
                    "must be an octal mode such as 0660; others may connect with 0666 only",
                ),
            ),
            (
                "control.group",
                self.group.as_deref().and_then(|group| {
                    must(
                        !group.is_empty() && !group.contains(char::is_whitespace),
                        "must be the name of a group",
                    )
                }),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_connections_are_kept_for_calls_that_wait_for_nothing() {
        for (connections, waits) in [
            (1, 1),
            (2, 1),
            (20, 10),
            (64, 48),
            (256, 224),
            (8_000, 7_000),
        ] {
            let control = Control {
                connections,
                followers: waits,
                ..Control::default()
            };
            assert_eq!(control.waits(), waits, "{connections}");
            let broken = |control: &Control| {
                let rules = control.rules().into_iter();
                rules
                    .filter_map(|(key, rule)| rule.map(|_| key))
                    .collect::<Vec<_>>()
            };
            assert_eq!(broken(&control), Vec::<&str>::new());
            let more = Control {
                followers: waits + 1,
                ..control
            };
            assert_eq!(broken(&more), ["control.followers"]);
        }
    }

    #[test]
    fn modes_are_octal() {
        for (mode, bits) in [
            ("0660", Some(0o660)),
            ("600", Some(0o600)),
            ("0o660", Some(0o660)),
            ("660 ", None),
            ("0680", None),
            ("06600", None),
            ("", None),
        ] {
            let control = Control {
                mode: mode.to_owned(),
                ..Control::default()
            };
            assert_eq!(control.mode_bits(), bits, "{mode}");
        }
    }
}
