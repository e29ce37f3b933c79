//! `POST /v1/invoices/{name}/poll`: asks the service about an invoice now, and gives what the ledger says then.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

use super::Inner;
use super::call::json;
use super::problem;
use crate::answer::failure::Failure;
use crate::answer::find::{find, meant, not_found};
use crate::answer::poll::{failure, nothing_to_ask, remark};
use crate::answer::{REMARK, invoice, service};
use crate::http::Response;
use crate::poller::now::{Error, Inquirer};

/// Asks, whether the invoice is due or not and however it stands.
pub(super) async fn run(inner: &Arc<Inner>, name: &str) -> Result<Response, Failure> {
    let parts = &inner.parts;
    let found = find(&parts.reader, name).await?;
    let row = meant(found).ok_or_else(|| not_found(name))?;
    if row.invoice_id.is_none() {
        let shown = serde_json::to_value(invoice::json(&row)).expect("plain data");
        return Ok(problem::with_invoice(&nothing_to_ask(&row), &shown));
    }
    let token = parts.store.find(&parts.elsewhere, &parts.client.origin())?;
    let token = token.ok_or_else(service::no_login)?;
    let inquirer = Inquirer::new(
        (parts.writer.clone(), parts.reader.clone()),
        parts.client.clone(),
        parts.gate.clone(),
        token.token,
    );
    let asked = inquirer.ask(row.key).await;
    let row = parts.reader.invoice(row.key).await?.unwrap_or(row);
    let failed = match asked {
        Ok(decided) => {
            let mut response = json(StatusCode::OK, &invoice::json(&row));
            if let Some(remark) = remark(decided) {
                let (name, remark) = (
                    HeaderName::from_static(REMARK),
                    HeaderValue::from_static(remark),
                );
                response.headers_mut().insert(name, remark);
            }
            return Ok(response);
        }
        Err(Error::NoId) => nothing_to_ask(&row),
        Err(error) => failure(error, token.source),
    };
    let shown = serde_json::to_value(invoice::json(&row)).expect("plain data");
    Ok(problem::with_invoice(&failed, &shown))
}
