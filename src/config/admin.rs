//! `[admin]`: the listener that tells programs and people of this machine how tilld is. `[attention]`: the program that is
//! run when something needs a person, and what counts as that beside what the ledger says.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::control::LONGEST_PATH;
use super::hooks::Hook;

/// Where `/healthz`, `/readyz`, `/metrics` and the status page are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// `IP:PORT` on loopback, or the absolute path of a Unix socket. No default, and then there is no such listener: a port
    /// of loopback is open to every user of the machine, and the page names orders and amounts.
    pub listen: Option<String>,
}

/// A place to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminPlace {
    /// A port of this machine alone.
    Port(SocketAddr),
    /// A Unix socket.
    Socket(PathBuf),
}

impl Admin {
    /// The place, if one is set; loaded settings hold none that cannot be read.
    pub fn place(&self) -> Option<AdminPlace> {
        let text = self.listen.as_deref()?;
        if Path::new(text).is_absolute() {
            return (text.len() <= LONGEST_PATH && !text.contains('\0'))
                .then(|| AdminPlace::Socket(text.into()));
        }
        let address: SocketAddr = text.parse().ok()?;
        address
            .ip()
            .to_canonical()
            .is_loopback()
            .then_some(AdminPlace::Port(address))
    }

    /// The key with a rule beyond a range, and the rule it breaks.
    pub(super) fn rule(&self) -> (&'static str, Option<String>) {
        let holds = self.listen.is_none() || self.place().is_some();
        let rule = (!holds).then(|| {
            "must be `IP:PORT` with an address of this machine alone, such as `127.0.0.1:9464`, or the absolute path of a \
             Unix socket of at most 107 bytes"
                .to_owned()
        });
        ("admin.listen", rule)
    }
}

/// Who is told when something needs a person, and after how much silence of notifications that is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attention {
    /// The program by its absolute path, then its arguments. Default none: nobody is told, `tilld status` says it all the
    /// same.
    pub run: Vec<String>,
    /// Seconds a run may take. Default 30, as for a hook.
    pub timeout_s: u64,
    /// So many changes in a row, found by asking and none by a notification, need a person; 0 for never. Default 3: one or
    /// two are lost now and then, three are a wrong address.
    pub polled_in_a_row: u64,
    /// Seconds without an answer of the service after which that is an alert; 0 for never. Default 900.
    pub outage_after_s: u64,
    /// Seconds without any notification after which a person is needed; 0 for never. Default 0: how long a shop is quiet at
    /// night only the merchant knows.
    pub silent_after_s: u64,
}

impl Default for Attention {
    fn default() -> Self {
        Self {
            run: Vec::new(),
            timeout_s: 30,
            polled_in_a_row: 3,
            outage_after_s: 900,
            silent_after_s: 0,
        }
    }
}

impl Attention {
    /// The program as a hook is, to be looked at before a start; `None` when none is set.
    pub fn program(&self) -> Option<Hook> {
        (!self.run.is_empty()).then(|| Hook {
            name: "attention".to_owned(),
            run: self.run.clone(),
            timeout_s: self.timeout_s,
            ..Hook::default()
        })
    }

    /// The key with a rule beyond a range, and the rule it breaks.
    pub(super) fn rule(&self) -> (&'static str, Option<String>) {
        let program = self.run.first();
        let absolute = program.is_none_or(|program| Path::new(program).is_absolute());
        let whole = self.run.iter().all(|part| !part.contains('\0'));
        let rule = (!(absolute && whole))
            .then(|| "must begin with the absolute path of a program".to_owned());
        ("attention.run", rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_ask() {
        let place = |text: &str| {
            let admin = Admin {
                listen: Some(text.to_owned()),
            };
            assert_eq!(admin.rule().1.is_none(), admin.place().is_some(), "{text}");
            admin.place()
        };
        for good in [
            "127.0.0.1:9464",
            "[::1]:9464",
            "127.9.9.9:0",
            "[::ffff:127.0.0.1]:1",
        ] {
            let port = good.parse().map(AdminPlace::Port);
            assert_eq!(place(good), port.ok(), "{good}");
        }
        let socket = AdminPlace::Socket("/run/tilld/admin.sock".into());
        assert_eq!(place("/run/tilld/admin.sock"), Some(socket));
        let long = format!("/{}", "x".repeat(LONGEST_PATH));
        for bad in [
            "0.0.0.0:9464",
            "[::]:1",
            "10.0.0.1:80",
            "localhost:80",
            "9464",
            "",
            "a.sock",
            &long,
        ] {
            assert_eq!(place(bad), None, "{bad}");
        }
        assert_eq!(Admin::default().rule().1, None);
    }
}
