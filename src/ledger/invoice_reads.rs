//! What is read of invoices: by their names, of an order, and page by page.
//!
//! Relies on [`Reader::ask`] for a connection and a thread. Promises that no answer holds more of the service's texts than
//! [`InvoicePage`] does, but for one invoice.

use super::apply::standing;
use super::error::ReadError;
use super::fact::SERVICE_AHEAD_MS;
use super::reader::Reader;
use super::row::{InvoiceKey, InvoicePage, InvoiceRow};
use super::sqlite::Filter;
use crate::fault;
use crate::invoice::opening::Standing;

impl Reader {
    /// The invoices of an order: the one that stands for it, then the newest, 1000 in all, and as many as a page holds.
    pub async fn invoices_of_order(&self, order_id: &str) -> Result<Vec<InvoiceRow>, ReadError> {
        let page = self.page_of_order(order_id, None, usize::MAX).await?;
        Ok(page.rows)
    }

    /// So many of them, behind the one with this ref.
    pub(crate) async fn page_of_order(
        &self,
        order_id: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<InvoicePage, ReadError> {
        let (order, after) = (order_id.to_owned(), after.map(str::to_owned));
        self.ask(move |store| store.invoices_of_order(&order, after.as_deref(), most))
            .await
    }

    /// The money that came for an order, as the view `orders` has it.
    pub(crate) async fn received(&self, order: &str) -> Result<Option<String>, ReadError> {
        let order = order.to_owned();
        self.ask(move |store| store.received(&order)).await
    }

    /// The invoices of an order that decide whether it may be given another, newest first, however many others it has. `None` where
    /// a foreign hand made one of them unreadable.
    pub async fn standing_of_order(
        &self,
        order_id: &str,
        window_ms: i64,
    ) -> Result<Option<Vec<(InvoiceRow, Standing)>>, ReadError> {
        let order_id = order_id.to_owned();
        // Most orders are new, and a rush of them would wait for threads to learn nothing.
        let new = order_id.clone();
        if !self.glance(move |store| store.has_order(&new)).await? {
            return Ok(Some(Vec::new()));
        }
        self.ask(move |store| {
            let ahead_ms = store.fact(&SERVICE_AHEAD_MS)?.unwrap_or(0);
            let earlier = store.standing_of_order(&order_id)?.into_iter();
            let standing = earlier.map(|earlier| {
                standing(&earlier, window_ms, ahead_ms).map(|standing| (earlier.row, standing))
            });
            Ok(standing.collect())
        })
        .await
    }

    /// The invoice with this id of the service.
    pub async fn invoice_by_id(&self, id: &str) -> Result<Option<InvoiceRow>, ReadError> {
        let id = id.to_owned();
        self.ask(move |store| store.invoice_by_id(&id)).await
    }

    /// The invoice with this ref.
    pub async fn invoice_by_ref(&self, reference: &str) -> Result<Option<InvoiceRow>, ReadError> {
        let reference = reference.to_owned();
        self.ask(move |store| store.invoice_by_ref(&reference))
            .await
    }

    /// The invoice with this key.
    pub async fn invoice(&self, key: InvoiceKey) -> Result<Option<InvoiceRow>, ReadError> {
        self.ask(move |store| store.invoice_by_key(key)).await
    }

    /// A page of the invoices below a key with a reason that ends with `tilld ack`, newest first.
    pub async fn to_acknowledge(
        &self,
        below: InvoiceKey,
        limit: u32,
    ) -> Result<InvoicePage, ReadError> {
        self.ask(move |store| store.to_acknowledge(below, limit))
            .await
    }

    /// A page of the invoices below a key, newest first.
    pub async fn list_invoices(
        &self,
        filter: Filter,
        below: InvoiceKey,
        limit: u32,
    ) -> Result<InvoicePage, ReadError> {
        self.ask(move |store| {
            fault::point("list");
            store.list_invoices(filter, below, limit)
        })
        .await
    }
}
