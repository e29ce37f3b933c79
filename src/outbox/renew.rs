//! Other hooks while it runs: the settings were read again.
//!
//! Promises that a run goes on as it began, by the settings it began with; that what was claimed ahead is given back; and that a
//! hook that stays has no more runs at once than it has places, those counted that began before.

use std::sync::Arc;

use super::hand::Hand;
use super::places::Room;
use super::{Desk, Outbox, Settings, unowned};

impl Outbox {
    /// Goes on with these settings.
    pub(super) async fn renew(&mut self, settings: Settings) {
        let rooms: Vec<Room> = settings.hooks.iter().map(|hook| hook.room).collect();
        let old = &self.desk.settings.hooks;
        let numbers: Vec<Option<usize>> = old
            .iter()
            .map(|old| settings.hooks.iter().position(|new| new.name == old.name))
            .collect();
        self.hand.give_back();
        self.hand = Hand::new(&rooms);
        self.places.furnish_anew(rooms, |hook| *numbers.get(hook)?);
        self.longest_grace = self.longest_grace.max(settings.longest_grace());
        unowned::tell(&self.reader, &settings).await;
        let Desk {
            writer,
            settings: _old,
            stopping,
            ending,
            over,
        } = &*self.desk;
        self.desk = Arc::new(Desk {
            writer: writer.clone(),
            settings,
            stopping: stopping.clone(),
            ending: ending.clone(),
            over: over.clone(),
        });
    }
}
