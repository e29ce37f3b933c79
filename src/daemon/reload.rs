//! The settings read again while it runs (SIGHUP, `systemctl reload`).
//!
//! Promises that settings with a mistake change nothing and are told with their mistake; that what can change without a new
//! start does, at once and as a whole; and that what cannot is named and stays as it was. Who takes up what is the list of
//! [`Taker`]s: each is told at every reload, so that one which looks at a file of its own sees that it changed.

use std::pin::Pin;

use super::systemd::{self, Word};
use crate::answer::failure::Failure;
use crate::config::{Settings, changed};

/// Reads the settings from where they were read at the start, and looks over them as a start does.
pub(crate) type Read = Box<dyn Fn() -> Result<Settings, Failure> + Send>;

/// Takes settings up. Why it could not is told, and then all it takes up stays as it was.
pub(super) type Take = Box<dyn FnMut(&Settings) -> Taking + Send>;

/// Until they are taken up.
pub(super) type Taking = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Somebody who takes up settings while the daemon runs.
pub(super) struct Taker {
    /// The keys it takes up; one that ends in a dot is a table with all that is in it.
    pub(super) keys: &'static [&'static str],
    /// Takes them up.
    pub(super) take: Take,
}

impl Taker {
    fn takes(&self, key: &str) -> bool {
        let is_it = |own: &&str| {
            own.strip_suffix('.')
                .map_or(*own == key, |_| key.starts_with(*own))
        };
        self.keys.iter().any(is_it)
    }
}

/// What is needed for it.
pub(super) struct Reload {
    read: Read,
    /// Those of the start, which hold for all that nobody takes up.
    started: Settings,
    /// Those that were read last.
    last: Settings,
    takers: Vec<Taker>,
    /// The keys that count for nothing, after a new start as little as now.
    unheeded: Vec<&'static str>,
}

impl Reload {
    pub(super) fn new(
        read: Read,
        started: Settings,
        takers: Vec<Taker>,
        unheeded: Vec<&'static str>,
    ) -> Self {
        Self {
            read,
            last: started.clone(),
            started,
            takers,
            unheeded,
        }
    }

    /// Reads them again. `serves` is what systemd shows afterwards.
    pub(super) async fn again(&mut self, serves: &str) {
        systemd::tell(&[
            Word::Reloading,
            Word::Status("reading the settings again".to_owned()),
        ]);
        let status = match (self.read)() {
            Ok(new) => match self.take(new).await {
                None => serves.to_owned(),
                Some(keys) => format!("{serves}; `{keys}` stay as they were"),
            },
            Err(failure) => {
                let line = failure.line();
                let hint = failure.way_out().unwrap_or_default();
                tracing::error!(
                    hint = %hint,
                    "the settings could not be read again, and those that were there stay: {line}"
                );
                format!("{serves}; the settings on disk are not in use: {line}")
            }
        };
        systemd::tell(&[Word::Ready, Word::Status(status)]);
    }

    /// Gives the keys that could not be taken up; they are as new to the next reload as they are now.
    async fn take(&mut self, new: Settings) -> Option<String> {
        let mut kept = None;
        let news = changed(&self.last, &new);
        let (unheeded, late): (Vec<String>, Vec<String>) = changed(&self.started, &new)
            .into_iter()
            .filter(|key| !self.takers.iter().any(|taker| taker.takes(key)))
            .partition(|key| self.unheeded.contains(&key.as_str()));
        let mut taken: Vec<&str> = Vec::new();
        for taker in &mut self.takers {
            match (taker.take)(&new).await {
                Ok(()) => {
                    let own = news.iter().filter(|key| taker.takes(key));
                    taken.extend(own.map(String::as_str));
                }
                Err(reason) => {
                    let keys = taker.keys.join("`, `");
                    tracing::error!(reason = %reason, "`{keys}` stay as they were: {reason}");
                    kept = Some(keys);
                }
            }
        }
        if taken.is_empty() && kept.is_none() {
            tracing::info!("the settings were read again: nothing is different by it");
        } else if !taken.is_empty() {
            let keys = taken.join("`, `");
            tracing::info!("the settings were read again: `{keys}` changed");
        }
        if !late.is_empty() {
            let keys = late.join("`, `");
            tracing::warn!(
                "`{keys}` changed too, and count after a new start: `systemctl restart tilld`"
            );
        }
        if !unheeded.is_empty() {
            let keys = unheeded.join("`, `");
            tracing::warn!(
                "`{keys}` changed too, and count for nothing, now and after a new start: systemd hands the socket over; \
                 hint: change the socket unit, or disable it"
            );
        }
        if kept.is_none() {
            self.last = new;
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_taken_up_with_all_that_is_in_it() {
        let taker = Taker {
            keys: &["hook", "outbox."],
            take: Box::new(|_| Box::pin(async { Ok(()) })),
        };
        for (key, wanted) in [
            ("hook", true),
            ("hooks", false),
            ("outbox.drain_s", true),
            ("outbox", false),
            ("listener.listen", false),
        ] {
            assert_eq!(taker.takes(key), wanted, "{key}");
        }
    }
}
