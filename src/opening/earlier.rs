//! Checks an earlier invoice of the order that may have been paid, before the order gets another.
//!
//! Relies on the ledger to judge, and on the poller's one road for a poll. Promises that each such invoice is polled once in a try,
//! and that silence, an error or an unclear answer never makes room for a second payable invoice.

use std::fmt;
use std::time::Duration;

use super::{Error, Opener};
use crate::client::error::Error as FetchError;
use crate::client::gate::{Caller, Closed};
use crate::invoice::polled::NEW;
use crate::invoice::transition::Decision;
use crate::ledger::{InvoiceKey, InvoiceRow};
use crate::poller::now::{self, Inquirer, Nothing};
use crate::shutdown::Shutdown;
use crate::telemetry::chain;

/// When a repeated create is worth it, if the service says nothing else.
const AGAIN_IN: Duration = Duration::from_secs(5);
/// The same where the date of the answer was rounded down to before the end.
const NEXT_SECOND_IN: Duration = Duration::from_secs(1);
/// The same where a second answer must agree with the first, which the poller asks for 30 s later.
const SECOND_ANSWER_IN: Duration = Duration::from_secs(30);

/// Why an earlier invoice is not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A poll brought no answer about it.
    NoAnswer {
        /// Why.
        reason: String,
        /// When to try again.
        again_in: Duration,
    },
    /// The service has no such invoice, or keeps it from this login. A second answer must say the same.
    Gone,
    /// The answer contradicts what is stored. A second one must agree.
    Doubt,
    /// The answer is dated before the end of its payment window: dates have whole seconds.
    Early,
    /// The service gives it this status, which does not say that it was not paid.
    Status(String),
}

impl Why {
    /// When a repeated create may find it settled; `None` when only a person can settle it.
    pub(crate) const fn again_in(&self) -> Option<Duration> {
        match self {
            Self::NoAnswer { again_in, .. } => Some(*again_in),
            Self::Gone => Some(AGAIN_IN),
            Self::Early => Some(NEXT_SECOND_IN),
            Self::Doubt => Some(SECOND_ANSWER_IN),
            Self::Status(_) => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { reason, .. } => write!(f, "{reason}"),
            Self::Gone => write!(f, "the service does not know it, and must say so twice"),
            Self::Early => write!(f, "the service's last answer is from before its end"),
            Self::Doubt => write!(f, "the service's answers contradict each other"),
            Self::Status(status) => {
                write!(f, "its status `{status}` does not say whether it was paid")
            }
        }
    }
}

/// The earlier invoices that were polled in this try, each with what its poll brought.
#[derive(Default)]
pub(super) struct Checked(Vec<(InvoiceKey, Result<Decision, now::Error>)>);

impl Checked {
    pub(super) fn keys(&self) -> Vec<InvoiceKey> {
        self.0.iter().map(|(key, _)| *key).collect()
    }
}

impl Opener<'_> {
    /// Polls an earlier invoice. An error when it was polled before and the answer settled nothing.
    pub(super) async fn check(
        &self,
        row: Box<InvoiceRow>,
        checked: &mut Checked,
        stop: &Shutdown,
    ) -> Result<(), Error> {
        if let Some((_, polled)) = checked.0.iter().find(|(key, _)| *key == row.key) {
            let why = why(&row, polled);
            return Err(Error::Unsettled { row, why });
        }
        // It leaves by the create's lane, so that no pace of polls holds a customer up, and the service may want none.
        let opens_in = self.gate.shut_for(Caller::Operator);
        if !opens_in.is_zero() {
            let closed = now::Error::Gate(Closed { opens_in });
            checked.0.push((row.key, Err(closed)));
            return Ok(());
        }
        let inquirer = Inquirer::new(
            Caller::Create,
            (self.writer.clone(), self.reader.clone()),
            self.client.clone(),
            self.gate.clone(),
            self.token.clone(),
        );
        match inquirer.ask_unless(row.key, stop).await {
            Err(now::Error::Stopping) => Err(Error::Stopping),
            polled => {
                checked.0.push((row.key, polled));
                Ok(())
            }
        }
    }
}

fn why(row: &InvoiceRow, polled: &Result<Decision, now::Error>) -> Why {
    let error = match polled {
        Ok(_) if row.doubt => return Why::Doubt,
        Ok(Decision::Pending | Decision::Doubt) => return Why::Doubt,
        Ok(Decision::Overtaken) => {
            return Why::NoAnswer {
                reason: "it changed while the poll was under way".to_owned(),
                again_in: AGAIN_IN,
            };
        }
        Ok(_) if row.status.as_deref() == Some(NEW) => return Why::Early,
        Ok(_) => return Why::Status(row.status.clone().unwrap_or_default()),
        Err(error) => error,
    };
    let again_in = match error {
        now::Error::Nothing(Nothing::Fetch { source, .. }) => match source {
            FetchError::NotFound { .. } | FetchError::Forbidden { .. } => return Why::Gone,
            source => source.retry_after(),
        },
        now::Error::Gate(closed) => Some(closed.opens_in),
        _ => None,
    };
    Why::NoAnswer {
        reason: chain(error),
        again_in: again_in.unwrap_or(AGAIN_IN),
    }
}
