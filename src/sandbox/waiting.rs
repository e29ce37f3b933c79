//! Requests that are kept waiting: held creates, and those that hang. None waits for ever: a reset of what it waits for lets
//! it go, time does, and the leaving of a client whom nothing would have been answered.

use std::time::Duration;

use tokio::time::sleep;

use super::state::faults::Ticket;
use super::world::World;
use crate::http::Caller;

/// What hangs does so for this long at most. Longer than the patience of any client that has some.
const LONGEST_HANG: Duration = Duration::from_mins(1);

/// A request among those that wait. Dropped with it, so that a client that leaves frees its place.
struct Waiting<'a> {
    world: &'a World,
    ticket: Ticket,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let ticket = self.ticket;
        self.world.with(|state, _| state.faults.end_waiting(ticket));
    }
}

impl Waiting<'_> {
    /// Resolves when it is let go.
    async fn let_go(&self) {
        let mut releases = self.world.releases();
        // Only one that was let go changes anything, and the world outlives its requests.
        while self.world.with(|state, _| state.faults.waits(self.ticket)) {
            if releases.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Waits for so long. A client that sends nothing more may still want its answer.
pub(super) async fn hold(world: &World, ticket: Ticket, time: Duration) {
    let waiting = Waiting { world, ticket };
    tokio::select! {
        () = sleep(time) => {}
        () = waiting.let_go() => {}
    }
}

/// Waits until the client has had enough.
pub(super) async fn hang(world: &World, ticket: Ticket, caller: &Caller) {
    let waiting = Waiting { world, ticket };
    tokio::select! {
        () = caller.sends_no_more() => {}
        () = sleep(LONGEST_HANG) => {}
        () = waiting.let_go() => {}
    }
}
