//! `tilld whoami --check`: whether the service takes the token. It knows no request that only asks this, so the newest
//! invoice the ledger knows is fetched, and its answer is said for what it is.

use serde_json::{Value, json};

use super::super::context::Context;
use super::super::failure::{Exit, Failure, report};
use super::super::{ledger, service};
use crate::client::error::Error;
use crate::invoice::ids::InvoiceId;
use crate::ledger::{FILE_NAME, Filter, InvoiceKey};

/// Newest invoices looked through for one whose id is known; only a create that was lost or refused leaves it unknown.
const LOOKED_THROUGH: u32 = 1_000;

/// What is known of the token.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The service gave the invoice for it.
    Valid(InvoiceId),
    /// The service did not give the invoice, but for another reason than the token.
    NotRefused(InvoiceId, Error),
    /// 401.
    Refused(InvoiceId, Failure),
    /// A token that cannot even be sent: nobody was asked.
    Unusable(Failure),
    /// There is no invoice to ask about.
    Unknown,
    /// No answer that says anything about the token.
    Unreachable(InvoiceId, Failure),
}

impl Verdict {
    /// The word of `--json`.
    const fn word(&self) -> &'static str {
        match self {
            Self::Valid(_) => "valid",
            Self::NotRefused(..) => "not_refused",
            Self::Refused(..) | Self::Unusable(_) => "refused",
            Self::Unknown => "unknown",
            Self::Unreachable(..) => "unreachable",
        }
    }

    const fn invoice(&self) -> Option<&InvoiceId> {
        match self {
            Self::Valid(id)
            | Self::NotRefused(id, _)
            | Self::Refused(id, _)
            | Self::Unreachable(id, _) => Some(id),
            Self::Unusable(_) | Self::Unknown => None,
        }
    }

    /// What is known, in a sentence for a person.
    pub(super) fn sentence(&self) -> String {
        let known =
            |id: &InvoiceId, text: &str| format!("{text} (asked about invoice {})", id.as_str());
        match self {
            Self::Valid(id) => known(id, "valid: the service answers with it"),
            Self::NotRefused(id, error) => known(
                id,
                &format!("not refused, but the invoice was not given either: {error}"),
            ),
            Self::Refused(id, _) => known(id, "refused"),
            Self::Unusable(_) => "cannot be sent: the service was not asked".to_owned(),
            Self::Unknown => "cannot be checked yet: no invoice is known to ask about".to_owned(),
            Self::Unreachable(id, _) => known(id, "cannot be checked now"),
        }
    }

    /// As `--json` has it.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "state": self.word(),
            "invoice_id": self.invoice().map(InvoiceId::as_str),
            "detail": self.sentence(),
        })
    }

    /// How the command ends. The answer is out already: only the talk of a failure is left.
    pub(super) fn end(self) -> Exit {
        match self {
            Self::Valid(_) | Self::NotRefused(..) | Self::Unknown => Exit::Ok,
            Self::Refused(_, failure) | Self::Unreachable(_, failure) | Self::Unusable(failure) => {
                report(&failure, false)
            }
        }
    }
}

/// Asks the service.
pub(super) async fn check(context: &Context) -> Result<Verdict, Failure> {
    let client = service::client(context)?;
    let found = service::token(context, &client)?;
    let Some(id) = newest(context).await? else {
        return Ok(Verdict::Unknown);
    };
    let Err(error) = client.fetch_invoice((&found.token, None), &id).await else {
        return Ok(Verdict::Valid(id));
    };
    let failure = |error| {
        service::failure(error, Some(found.source)).context("could not check the access token")
    };
    Ok(match error {
        error @ (Error::Forbidden { .. } | Error::NotFound { .. } | Error::Refused { .. }) => {
            Verdict::NotRefused(id, error)
        }
        error @ Error::LoginNeeded => Verdict::Refused(id, failure(error)),
        error @ Error::TokenUnusable => Verdict::Unusable(failure(error)),
        error @ (Error::NotSent { .. }
        | Error::Unanswered { .. }
        | Error::Busy { .. }
        | Error::Redirected { .. }
        | Error::Page { .. }
        | Error::NotTheService { .. }) => Verdict::Unreachable(id, failure(error)),
    })
}

/// The newest invoice whose id is known. A ledger that is not there yet knows none.
async fn newest(context: &Context) -> Result<Option<InvoiceId>, Failure> {
    if !context.state_dir()?.join(FILE_NAME).exists() {
        return Ok(None);
    }
    let reader = ledger::open_reader(context)?;
    let page = reader
        .list_invoices(Filter::All, InvoiceKey(i64::MAX), LOOKED_THROUGH)
        .await?;
    let id = page.rows.into_iter().find_map(|row| row.invoice_id);
    Ok(id.and_then(|id| InvoiceId::new(id).ok()))
}
