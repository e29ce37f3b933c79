//! For the benches alone: the ledger's work for one notification, and for a batch of them, in the caller's own thread.
//! Every step is the daemon's; what is left out are the threads and the waiting between them, so that what is counted
//! here is the same each time.

use super::apply::Rules;
use super::batch;
use super::command::{Command, Reply};
use super::error::{OpenError, WriteError};
use super::row::{InvoiceKey, Watched};
use super::seal::Sealer;
use super::sqlite::{ReadStore, Staying};
use super::store::Store as _;
use super::{Options, Parts, parts};
use crate::invoice::ids::InvoiceRef;
use crate::invoice::observation::Observation;
use crate::invoice::transition::Decision;
use std::sync::Arc;

/// An open ledger without threads.
pub(crate) struct Direct {
    store: Staying,
    rules: Rules,
    reader: ReadStore,
    sealer: Arc<Sealer>,
}

impl Direct {
    /// Opens the ledger as [`super::Ledger::open`] does.
    pub(crate) fn open(options: Options) -> Result<Self, OpenError> {
        let Parts {
            path,
            sealer,
            store,
            rules,
            ..
        } = parts(options)?;
        Ok(Self {
            reader: ReadStore::open(&path)?,
            store: store.stay(),
            rules,
            sealer,
        })
    }

    /// What SQLite says of how durable its commits are: 2 is FULL.
    pub(crate) fn synchronous(&self) -> Result<i64, WriteError> {
        let asked = self.store.synchronous();
        asked.map_err(|error| WriteError::NotStored(Arc::new(error)))
    }

    /// The invoice behind a ref, with its token opened.
    pub(crate) fn watched(&self, reference: &InvoiceRef) -> Result<Option<Watched>, WriteError> {
        let found = self.reader.sealed_by_ref(reference);
        let found = found.map_err(|error| WriteError::NotStored(Arc::new(error)))?;
        Ok(found.map(|(key, sealed)| Watched {
            key,
            token: sealed.and_then(|sealed| self.sealer.open(&sealed, reference)),
        }))
    }

    /// Records a batch in one durable commit, and tidies behind it.
    pub(crate) fn record(
        &mut self,
        batch: Vec<(InvoiceKey, Observation)>,
    ) -> Result<Vec<Decision>, WriteError> {
        let commands: Vec<Command> = batch
            .into_iter()
            .map(|(key, observation)| Command::Record(key, Box::new(observation)))
            .collect();
        let commands: Vec<&Command> = commands.iter().collect();
        let replies = batch::run(&mut self.store, &self.rules, &commands);
        let replies = replies.map_err(|error| WriteError::NotStored(Arc::new(error)))?;
        let decided = replies.into_iter().map(|reply| match reply {
            Ok(Reply::Recorded(recorded)) => Ok(recorded.decision),
            Ok(other) => unreachable!("a record was answered with {other:?}"),
            Err(error) => Err(error.into()),
        });
        let decided = decided.collect();
        self.store.tidy(false);
        decided
    }
}
