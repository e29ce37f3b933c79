//! The connections that all readers of an open ledger share, the places to read at, and what they open sealed tokens with. A
//! connection that could not answer, or whose question panicked, is dropped and opened anew. Promises that what clients read
//! takes no place of the daemon's own, and that a place is taken for as long as a connection reads, whoever waits for it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::OpenError;
use super::health::{Health, Sight};
use super::opener::Opener;
use super::row::Watched;
use super::seal::Sealer;
use super::sqlite::{Found, ReadStore};
use super::store::StoreError;
use super::trouble::Trouble;

/// What the daemon itself reads at once. Reads are short; more would only take memory from each other.
const OF_DAEMON: usize = 8;
/// What clients of the control socket, who may list all there is, read at once.
const OF_CLIENTS: usize = 4;
/// How often whoever asks how everything stands looks at once: no list holds that up.
const OF_STATUS: usize = 2;
/// Between two lines about a row that cannot be read: no time mends it.
const UNREADABLE_EVERY: Duration = Duration::from_hours(1);

/// Whom a read is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Asker {
    /// The daemon itself, or a command.
    #[default]
    Daemon,
    /// A client of the control socket.
    Clients,
    /// Whoever wants to know how everything stands.
    Status,
}

/// The places of each.
struct Places {
    daemon: Arc<Semaphore>,
    clients: Arc<Semaphore>,
    status: Arc<Semaphore>,
}

impl Places {
    fn new() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            daemon: places(OF_DAEMON),
            clients: places(OF_CLIENTS),
            status: places(OF_STATUS),
        }
    }
}

/// See above.
pub(super) struct Pool {
    pub(super) path: PathBuf,
    /// Opens sealed tokens; `None` for those who may only read.
    pub(super) opener: Option<Opener>,
    /// A row that cannot be read; held for a moment, to take note.
    unreadable: Mutex<Trouble>,
    /// Connections at rest; whoever takes one owns it until it is back.
    resting: Mutex<Vec<ReadStore>>,
    places: Places,
}

impl Pool {
    /// The first connection is opened here.
    pub(super) fn open(path: PathBuf, sealer: Option<Arc<Sealer>>) -> Result<Self, OpenError> {
        let first = ReadStore::open(&path)?;
        let resting = Mutex::new(vec![first]);
        Ok(Self {
            path,
            opener: sealer.map(Opener::new),
            unreadable: Mutex::new(Trouble::told_every(UNREADABLE_EVERY)),
            resting,
            places: Places::new(),
        })
    }

    /// A place, to be held by whatever reads until it has read.
    pub(super) async fn place(&self, asker: Asker) -> OwnedSemaphorePermit {
        let places = match asker {
            Asker::Daemon => &self.places.daemon,
            Asker::Clients => &self.places.clients,
            Asker::Status => &self.places.status,
        };
        let place = Arc::clone(places).acquire_owned().await;
        place.expect("the semaphore is never closed")
    }

    /// With its token opened, or after as much work for none.
    pub(super) fn watched(&self, found: Option<Found>) -> Option<Watched> {
        match (found, &self.opener) {
            (Some((key, reference, sealed)), Some(opener)) => {
                Some(opener.watched(key, sealed.as_ref(), &reference))
            }
            (Some((key, ..)), None) => Some(Watched { key, token: None }),
            (None, opener) => {
                if let Some(opener) = opener {
                    opener.nobody();
                }
                None
            }
        }
    }

    /// Asks one question. For a blocking thread.
    pub(super) fn answer<T>(
        &self,
        question: impl FnOnce(&ReadStore) -> Result<T, StoreError>,
        health: Option<&Health>,
    ) -> Result<T, StoreError> {
        let resting = self
            .resting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let store = match resting {
            Some(store) => store,
            None => ReadStore::open(&self.path).map_err(|error| StoreError::Io(Box::new(error)))?,
        };
        let answer = question(&store)?;
        self.note(store.seen(), health);
        self.resting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(store);
        Ok(answer)
    }

    /// Takes note whether what is due can be read, or why not.
    pub(super) fn note(&self, seen: Sight, health: Option<&Health>) {
        let trouble = || {
            let held = self.unreadable.lock();
            held.unwrap_or_else(PoisonError::into_inner)
        };
        let unreadable = match seen {
            Sight::None => return,
            Sight::Clear => {
                if trouble().over().is_some() {
                    tracing::info!("every invoice that is due can be read again");
                }
                None
            }
            Sight::Spoilt(reason) => {
                if trouble().is_to_be_told(&reason, Instant::now()) {
                    tracing::error!(
                        %reason,
                        "an invoice of the ledger cannot be read and is not asked about: {reason}; hint: another program has \
                         written to it; `tilld db check` looks the file over"
                    );
                }
                Some(reason)
            }
        };
        if let Some(health) = health {
            health.change(|state| state.unreadable = unreadable);
        }
    }
}
