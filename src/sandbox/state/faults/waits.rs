//! Requests that are kept waiting on purpose. They hold a connection each, so they are counted and end together: a sandbox
//! whose every connection hangs could not even be told to stop that.

use std::collections::BTreeMap;

/// Requests kept waiting at once: a quarter of a listener's connections. The next one is cut instead.
pub(crate) const MOST_WAITING: usize = 128;

/// One that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Those that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    made: u64,
    /// With the names of whose they are: id and order, as far as they are known.
    going: BTreeMap<Ticket, [String; 2]>,
    /// How often some were let go.
    releases: u64,
}

impl Waits {
    /// One more. `None`: too many wait.
    pub(super) fn begin(&mut self, names: &[String; 2]) -> Option<Ticket> {
        if self.going.len() >= MOST_WAITING {
            return None;
        }
        self.made += 1;
        let ticket = Ticket(self.made);
        self.going.insert(ticket, names.clone());
        Some(ticket)
    }

    /// Whether it is still to wait.
    pub(super) fn goes_on(&self, ticket: Ticket) -> bool {
        self.going.contains_key(&ticket)
    }

    /// It waits no more.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.going.remove(&ticket);
    }

    /// Lets all go, or those of one.
    pub(super) fn release(&mut self, name: Option<&str>) {
        self.releases += 1;
        match name {
            None => self.going.clear(),
            Some(name) => self
                .going
                .retain(|_, names| names.iter().all(|own| own != name)),
        }
    }

    /// How often some were let go, for those that wait to look.
    pub(super) fn releases(&self) -> u64 {
        self.releases
    }
}
