//! The shop and its customers: an invoice is opened over the control socket, as a shop does it, and paid or not on its
//! payment page.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::book::Booked;
use super::draw::Asked;
use super::scene::Scene;
use super::step::Ends;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stage::trouble::Trouble;
use crate::clock;
use crate::invoice::amount::Amount;
use crate::invoice::ids::OrderId;
use crate::invoice::opening::{Mode, Opening, Wanted};
use crate::invoice::sum::Sum;
use crate::opening::Order;
use crate::opening::patient::Patience;
use crate::sandbox::{Page, VisitError};
use crate::shutdown::Shutdown;
use crate::wire::create::ReturnUrls;

/// The currency of all orders.
const CURRENCY: &str = "RUB";
/// Between two tries to open an invoice.
const PAUSE: Duration = Duration::from_millis(50);
/// An invoice is there after so long, whatever goes wrong meanwhile.
const SURELY: Duration = Duration::from_secs(40);

/// A token of the right length that somebody guessed.
const GUESSED_TOKEN: &str = "a-token-that-somebody-guessed-a-token-that-";

impl Scene<'_> {
    /// Opens an invoice, with one try. `Err` is an end that no step can expect.
    pub(super) async fn open(&self, asked: &Asked, another: bool) -> Result<Ends, Trouble> {
        let order = order(asked, another)?;
        let patience = Patience {
            wait: Duration::ZERO,
            fallback: None,
            stop: Shutdown::new(),
        };
        let failure = match self.remote.create(&order, &patience, || ()).await {
            Ok(created) => created.failure,
            Err(failure) => Some(failure),
        };
        match failure {
            None => Ok(Ends::Open),
            Some(failure) if failure.exit() == Exit::NoRequisites => Ok(Ends::NoRequisites),
            Some(failure) if failure.exit() == Exit::Unknown => Ok(Ends::Unknown),
            Some(failure) => Err(unexpected(&asked.order, &failure)),
        }
    }

    /// Opens an invoice, whatever goes wrong: as a merchant does who looks into the cabinet after each try that failed, takes
    /// the invoice that is there, and opens another one when there is none.
    pub(super) async fn open_surely(&self, asked: &Asked) -> Result<(), Trouble> {
        let until = Instant::now() + SURELY;
        let mut another = false;
        loop {
            let tried = self.open(asked, another).await;
            if matches!(tried, Ok(Ends::Open)) {
                return Ok(());
            }
            let rows = self.reader.invoices_of_order(&asked.order).await?;
            let is_there = |opening| opening == Opening::Answered;
            if rows.iter().any(|row| is_there(row.opening)) {
                return Ok(());
            }
            let book = self.book().await?;
            if let Some(booked) = book.iter().find(|one| one.order == asked.order) {
                self.adopt(booked).await;
            } else {
                let now = clock::wall_ms();
                another = rows.iter().any(|row| row.is_lost(now));
            }
            if Instant::now() >= until {
                return Err(tried.err().unwrap_or_else(|| {
                    let expected = format!("an invoice for order {}", asked.order);
                    Trouble::otherwise(expected, format!("none after {} s", SURELY.as_secs()))
                }));
            }
            sleep(PAUSE).await;
        }
    }

    /// Settles a create whose answer was lost.
    async fn adopt(&self, booked: &Booked) {
        let words = ["invoice", "adopt", &booked.order, "--id", &booked.id];
        let words = [&words[..], &["--ref", booked.reference()]].concat();
        let adopted = self.tilld(&words).await;
        // Its notification may have settled it meanwhile; when nothing did, the next try finds that out.
        tracing::debug!(?adopted, "a create is settled by what the cabinet shows");
    }

    /// What a customer does on the payment page of an order's newest invoice.
    pub(super) async fn happen(&self, order: &str, what: &'static str) -> Result<(), Trouble> {
        self.happen_by(order, "SBP", what).await
    }

    /// The same, of a customer who pays by this method.
    pub(super) async fn happen_by(
        &self,
        order: &str,
        method: &str,
        what: &'static str,
    ) -> Result<(), Trouble> {
        let page = self.told_where(order, method).await?;
        self.visitor.press(&page, ("happening", what), &[]).await?;
        Ok(())
    }

    /// Opens the payment page of an order's newest invoice, and chooses how to pay where that is still to be chosen: whoever
    /// cancels or lets the time pass may pay after it, and that needs a place to pay to.
    pub(super) async fn told_where(&self, order: &str, method: &str) -> Result<Page, Trouble> {
        let page = self.visitor.open(&self.booked(order).await?.page).await?;
        match self.visitor.press(&page, ("method", method), &[]).await {
            Ok(chosen) => Ok(chosen),
            // An invoice that has its requisites or is over; or no requisite is free, which only a payment would miss.
            Err(VisitError::NotOffered { .. } | VisitError::Answered { status: 409, .. }) => {
                Ok(page)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A stranger who knows the address says that it is paid. Gives the HTTP status; `None` when nobody listens.
    pub(super) async fn forge(&self, order: &str) -> Result<Option<u16>, Trouble> {
        let booked = self.booked(order).await?;
        let mut lie = booked.object;
        let paid = self.sandbox.statuses().paid.first().cloned();
        if let (Some(status), Some(paid)) = (lie.get_mut("status"), paid) {
            *status = paid.into();
        }
        let told = self.visitor.notify(&booked.address, GUESSED_TOKEN, &lie);
        match told.await {
            Ok(status) => Ok(Some(status)),
            // Its text would show the address, which nobody else need know.
            Err(VisitError::Unanswered { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn order(asked: &Asked, another: bool) -> Result<Order, Trouble> {
    let amount = Amount::parse_payable(&asked.amount);
    let sum = amount
        .ok()
        .and_then(|amount| Sum::new(amount, CURRENCY).ok());
    let known = OrderId::new(asked.order.as_str()).ok().zip(sum);
    let (order_id, sum) = known.ok_or_else(|| {
        let found = format!("order `{}` with `{}`", asked.order, asked.amount);
        Trouble::otherwise("an order id and an amount", found)
    })?;
    let shop = |end: &str| format!("https://shop.example/{end}");
    Ok(Order {
        order_id,
        wanted: Wanted {
            sum,
            method: asked.method.to_owned(),
            mode: if asked.is_redirect {
                Mode::Redirect
            } else {
                Mode::H2h
            },
            anew: another,
        },
        return_urls: asked.is_redirect.then(|| ReturnUrls {
            success: shop("success"),
            cancel: shop("cancel"),
            error: shop("error"),
        }),
    })
}

fn unexpected(order: &str, failure: &Failure) -> Trouble {
    let found = failure.line();
    Trouble::otherwise(format!("an invoice for order {order}"), found)
}
