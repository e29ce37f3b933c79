//! What runs beside what, each with the ledger's handles: listener, control socket, poller and outbox in threads of their own;
//! the alarms, the looks over what is stored, and the admin listener, which goes on while the others stop.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::handed::Socket;
use super::kept::{Kept, Names};
use super::loops::Loops;
use super::reload::Taker;
use super::schedule::CronBell;
use super::{Error, admin, alarm, clock_watch, control, reassess, retention, serving_time, takers};
use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::Gate;
use crate::config::Settings;
use crate::ledger::{self, Ledger};
use crate::listener::{self, LedgerBook};
use crate::shutdown::Shutdown;
use crate::{outbox, parts, poller};

/// What stands before anything runs.
pub(super) struct Ground<'a> {
    pub(super) settings: &'a Settings,
    pub(super) state_dir: &'a Path,
    pub(super) public_url: &'a str,
    pub(super) client: Client,
    pub(super) ledger: &'a Ledger,
    pub(super) gate: Gate,
    pub(super) names: Names,
}

/// The listener's, the control socket's, and the admin listener's when there is one.
pub(super) type Sockets = (Socket, Kept, Option<(admin::Taken, String)>);

/// What all that runs is told.
#[derive(Default)]
pub(super) struct Wishes {
    pub(super) stop: Shutdown,
    pub(super) hurry: Shutdown,
    /// For what can be asked while all others stop.
    pub(super) last: Shutdown,
}

/// Begins all that runs. Gives with it who takes up other settings meanwhile.
pub(super) fn begin(
    (socket, asked, admin_place): Sockets,
    bell: CronBell,
    ground: Ground<'_>,
    wishes: &Wishes,
) -> Result<(Loops, JoinSet<&'static str>, Vec<Taker>), Error> {
    let Ground {
        settings,
        state_dir,
        public_url,
        client,
        ledger,
        gate,
        names,
    } = ground;
    let heard = parts::listener_settings(settings, public_url)?;
    let store = Store::new(state_dir).hiding(&heard.hidden);
    // Before the first notification comes. What is wrong with the login, the poller tells.
    drop(store.find(&Elsewhere::of_daemon(), &client.origin()));
    let served = control::settings(settings, public_url);
    let bells = ledger.bells();
    let others = heard.drain.max(served.stop_within()).max(alarm::GRACE);
    let handed_over = parts::outbox_settings(settings, state_dir);
    let runs = Arc::clone(&handed_over.runs);
    let (hooks, hooks_in_use) = watch::channel(handed_over);
    let mut loops = Loops::new(settings, others, hooks_in_use.clone());
    let counted = Arc::clone(&heard.heard);
    let certificates = heard.certificates.clone();
    let (reader, writer) = (ledger.reader(), ledger.writer());
    let book = LedgerBook {
        reader: reader.for_a_thread(),
        writer: writer.clone(),
    };
    let stop = wishes.stop.clone();
    loops.begin("listener", "the listener", None, move |_pulse| {
        listen(socket, heard, book, stop)
    })?;
    let parts = poller::Parts {
        writer: writer.clone(),
        reader: reader.for_a_thread(),
        client: client.clone(),
        gate: gate.clone(),
        store: store.clone(),
        elsewhere: Elsewhere::of_daemon(),
    };
    let (polls, stop) = (parts::poller_settings(settings), wishes.stop.clone());
    let turns = Some(polls.turns_within());
    let poller = loops.begin("poller", "the poller", turns, move |pulse| async move {
        parts.reader.furnish().await;
        poller::run(parts, polls, bell, (bells.ask, pulse), stop).await;
    })?;
    let (in_use, settings_in_use) = watch::channel(settings.clone());
    let look_by = |reader| {
        let known = (names.clone(), poller.clone(), Arc::clone(&runs));
        admin::look(reader, settings_in_use.clone(), state_dir.to_owned(), known)
    };
    // The alarms' own, which nobody's asking holds up.
    let (look, own_look) = (look_by(reader.for_status()), look_by(reader.clone()));
    let parts = control::parts(
        (Arc::clone(&look), store),
        (writer.clone(), reader.clone()),
        (client.clone(), gate),
        bells.told,
    );
    let stop = wishes.stop.clone();
    loops.begin("control", "the control socket", None, move |_pulse| {
        answer(asked, served, parts, stop)
    })?;
    look_after(
        &mut loops.running,
        (&writer, &reader),
        (settings, &client),
        &wishes.stop,
    );
    let mut takers = takers::all(in_use, (writer.clone(), hooks), state_dir);
    takers.extend(certificates.map(takers::certificates));
    if let Some(parts) = admin::alarm(
        (writer.clone(), reader.clone()),
        &own_look,
        settings,
        state_dir,
    ) {
        let stop = wishes.stop.clone();
        loops.running.spawn(async move {
            alarm::run(parts, stop).await;
            "the alarms"
        });
    }
    let parts = crate::admin::Parts {
        writer: writer.clone(),
        reader: reader.for_status(),
        look,
        heard: counted,
        runs,
        client,
        poller,
        listed: admin::listed(settings),
        draining: wishes.stop.clone(),
    };
    let aside = admin::begin(admin_place, parts, wishes.last.clone())?;
    let Wishes { stop, hurry, .. } = wishes;
    let (stop, hurry) = (stop.clone(), hurry.clone());
    let turns = Some(outbox::TURNS_WITHIN);
    loops.begin("outbox", "the outbox", turns, move |pulse| {
        let wishes = outbox::Wishes { stop, hurry, pulse };
        outbox::run(writer, reader, hooks_in_use, bells.owed, wishes)
    })?;
    Ok((loops, aside, takers))
}

/// Looks over what is stored, beside all that comes from outside: once after the lists changed, and for what is old.
fn look_after(
    loops: &mut JoinSet<&'static str>,
    (writer, reader): (&ledger::Writer, &ledger::Reader),
    (settings, service): (&Settings, &Client),
    stop: &Shutdown,
) {
    let (over, all, stopping) = (writer.clone(), reader.clone(), stop.clone());
    loops.spawn(async move {
        reassess::run(over, all, stopping).await;
        "the look over stored invoices"
    });
    let (noting, asking, stopping) = (writer.clone(), reader.clone(), stop.clone());
    let asked = service.clone();
    loops.spawn(async move {
        clock_watch::run(noting, asking, asked, stopping).await;
        "the look at the clock"
    });
    let (noting, asking, stopping) = (writer.clone(), reader.clone(), stop.clone());
    loops.spawn(async move {
        serving_time::run(noting, asking, stopping).await;
        "the count of the time served"
    });
    let (emptier, walker, stopping) = (writer.clone(), reader.clone(), stop.clone());
    let (keep, clock) = (retention::Keep::of(settings), service.fetches().clock());
    loops.spawn(async move {
        retention::run((emptier, walker), keep, clock, stopping).await;
        "the emptying of old invoices"
    });
}

/// Hears notifications until the stop.
async fn listen(socket: Socket, settings: listener::Settings, book: LedgerBook, stop: Shutdown) {
    let socket = match socket.waited_for() {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(reason = %error, "the listener's socket could not be waited for");
            return;
        }
    };
    book.reader.furnish().await;
    let served = listener::run(socket, settings, book, stop).await;
    tracing::info!(?served, "the listener has stopped");
}

/// Answers the shop until the stop.
async fn answer(
    socket: Kept,
    settings: crate::control::Settings,
    parts: crate::control::Parts,
    stop: Shutdown,
) {
    let socket = match socket.waited_for() {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(reason = %error, "the control socket could not be waited for");
            return;
        }
    };
    parts.own.furnish().await;
    let served = crate::control::run(socket, settings, parts, stop).await;
    tracing::info!(?served, "the control socket is closed");
}
