//! Other hooks while it runs: the settings were read again.
//!
//! Promises that a run goes on as it began, by the settings it began with; that what was claimed ahead is given back; and that a
//! hook that stays, or is gone and comes back, has no more runs at once than it has places, those counted that began before.

use std::sync::Arc;

use super::hand::Hand;
use super::{Desk, Outbox, Settings, unowned};

impl Outbox {
    /// Goes on with these settings.
    pub(super) async fn renew(&mut self, settings: Settings) {
        self.hand.give_back();
        self.hand = Hand::new(&settings.rooms());
        let whose = |name: &str| settings.hook_named(name);
        self.places.furnish_anew(settings.named_rooms(), whose);
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
