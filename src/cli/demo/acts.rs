//! What happens in each step, and the check that it went as promised. Customers and merchant act through the sandbox's
//! pages, tilld through its own commands; what came of it is read in the ledger and in the script's log.

use serde_json::{Value, json};

use super::files::{CANCELLED, FULFIL};
use super::step::Step;
use crate::cli::stage::command::Running;
use crate::cli::stage::trouble::Trouble;
use crate::cli::stage::{Look, Stage, wait};
use crate::invoice::observation::Source;
use crate::invoice::status::Outcome;
use crate::ledger::{InvoiceRow, RefusalFilter};

/// The orders of the demo.
pub(super) const PAID_ORDER: &str = "demo-1";
pub(super) const LOST_ORDER: &str = "demo-2";
pub(super) const CANCELLED_ORDER: &str = "demo-3";

/// The shop the merchant chooses in the cabinet.
const SHOP: &str = "Tea on Rails";
/// How often the repeated notification comes, all at once.
const REPEATS: usize = 3;
/// A token of the right length that somebody guessed.
const GUESSED_TOKEN: &str = "a-token-that-somebody-guessed-a-token-that-";
/// What the script's attempt must end with.
const DONE: &str = "exit 0";
/// Refusals that are looked at. The demo makes one.
const MOST_REFUSALS: u32 = 10;

impl Stage<'_> {
    /// Plays a step. Gives what came of it in words, or what went otherwise.
    pub(super) async fn play(&mut self, step: Step) -> Result<String, Trouble> {
        match step {
            Step::Login => self.log_in().await,
            Step::Paid => self.pay().await,
            Step::Lost => self.pay_unheard().await,
            Step::Cancelled => self.cancel().await,
            Step::Repeated => self.repeat().await,
            Step::Forged => self.forge().await,
            Step::Sandbox | Step::Daemon | Step::Stopped => {
                unreachable!("start and stop are not played on the stage")
            }
        }
    }

    async fn log_in(&mut self) -> Result<String, Trouble> {
        let mut login = Running::start(&self.directory.config(), &["login"])?;
        let begun = login.line().await?;
        let (address, code) = (text(&begun, "verification_url"), text(&begun, "user_code"));
        let page = self.visitor.open(address).await?;
        if code.is_empty() || !page.html().contains(code) {
            let expected = format!("the cabinet to show the code `{code}`");
            return Err(Trouble::otherwise(expected, "another page"));
        }
        let button = ("decision", "confirm");
        self.visitor.press(&page, button, &[("shop", SHOP)]).await?;
        let issued = login.line().await;
        login.end().await?;
        let issued = issued?;
        match text(&issued, "shop_name") {
            SHOP => Ok(format!("code {code} confirmed in the cabinet, shop {SHOP}")),
            other => Err(Trouble::otherwise(
                format!("a login for shop {SHOP}"),
                format!("one for `{other}`"),
            )),
        }
    }

    async fn pay(&mut self) -> Result<String, Trouble> {
        let invoice = self.create(PAID_ORDER, "1500.00", &[]).await?;
        if !invoice.get("requisites").is_some_and(Value::is_object) {
            let found = "none in the answer";
            return Err(Trouble::otherwise("requisites of an H2H invoice", found));
        }
        let page = self.payment_page(PAID_ORDER).await?;
        self.visitor
            .press(&page, ("happening", "paid"), &[])
            .await?;
        let row = self.outcome(PAID_ORDER, Outcome::Paid).await?;
        found_by(&row, Source::Notification)?;
        self.answered(PAID_ORDER, &json!(200)).await?;
        let result = self.fulfilled(PAID_ORDER).await?;
        Ok(format!(
            "order {PAID_ORDER}: notification accepted, fulfil ran ({result})"
        ))
    }

    async fn pay_unheard(&mut self) -> Result<String, Trouble> {
        let shop = "https://shop.example";
        let back = ["success", "cancel", "error"].map(|end| format!("{shop}/{end}"));
        let [success, cancel, error] = back.each_ref().map(String::as_str);
        let redirect = [
            "--redirect",
            "--success-url",
            success,
            "--cancel-url",
            cancel,
            "--error-url",
            error,
        ];
        let invoice = self.create(LOST_ORDER, "749.50", &redirect).await?;
        // The customer is sent to the payment page and chooses there how to pay.
        let page = self.visitor.open(text(&invoice, "payment_url")).await?;
        let page = self.visitor.press(&page, ("method", "SBP"), &[]).await?;
        self.answered(LOST_ORDER, &json!(200)).await?;
        self.control("/faults", &json!({ "lose": 1 })).await?;
        self.visitor
            .press(&page, ("happening", "paid"), &[])
            .await?;
        let row = self.outcome(LOST_ORDER, Outcome::Paid).await?;
        self.answered(LOST_ORDER, &json!("lost on purpose")).await?;
        found_by(&row, Source::Poll)?;
        let result = self.fulfilled(LOST_ORDER).await?;
        Ok(format!(
            "order {LOST_ORDER}: notification lost on the way,\nfound paid by a poll, fulfil ran ({result})"
        ))
    }

    async fn cancel(&mut self) -> Result<String, Trouble> {
        self.create(CANCELLED_ORDER, "99.00", &[]).await?;
        let page = self.payment_page(CANCELLED_ORDER).await?;
        let button = ("happening", "cancel");
        self.visitor.press(&page, button, &[]).await?;
        self.outcome(CANCELLED_ORDER, Outcome::Failed).await?;
        let result = self.hook_done(CANCELLED_ORDER, CANCELLED).await?;
        expect_done(CANCELLED, &result)?;
        self.expect_handed_over(CANCELLED_ORDER, 0)?;
        Ok(format!(
            "order {CANCELLED_ORDER}: failed, cancelled ran ({result}), fulfil did not"
        ))
    }

    async fn repeat(&mut self) -> Result<String, Trouble> {
        let before = self.standing(PAID_ORDER).await?;
        let path = format!("/invoices/{PAID_ORDER}/notify");
        let sent = self.control(&path, &json!({ "times": REPEATS })).await?;
        let wanted = Value::from(vec![200; REPEATS]);
        if sent.get("answers") != Some(&wanted) {
            let found = sent.get("answers").unwrap_or(&Value::Null).to_string();
            return Err(Trouble::otherwise(wanted.to_string(), found));
        }
        self.unchanged(PAID_ORDER, &before).await?;
        self.expect_handed_over(PAID_ORDER, 1)?;
        Ok(format!(
            "order {PAID_ORDER}: {REPEATS} times more, each answered 200, no change"
        ))
    }

    async fn forge(&mut self) -> Result<String, Trouble> {
        let before = self.standing(CANCELLED_ORDER).await?;
        let fetches = self.fetches().await?;
        let told = self.told_of(CANCELLED_ORDER).await?;
        let address = told.pointer("/for_tests/notificationUrl");
        let address = address.and_then(Value::as_str).unwrap_or_default();
        let mut lie = told.get("invoice").cloned().unwrap_or_default();
        let paid = self.sandbox.statuses().paid.first().cloned();
        if let (Some(status), Some(paid)) = (lie.get_mut("status"), paid) {
            *status = paid.into();
        }
        let status = self.visitor.notify(address, GUESSED_TOKEN, &lie).await?;
        if status != 401 {
            return Err(Trouble::otherwise("the answer 401", status.to_string()));
        }
        self.until("the refusal in the ledger", async |reader| {
            let refusals = reader
                .refusals(RefusalFilter::default(), MOST_REFUSALS)
                .await?;
            let ours = |order: &Option<String>| order.as_deref() == Some(CANCELLED_ORDER);
            let count = refusals.iter().filter(|row| ours(&row.order_id)).count();
            Ok(match count {
                1 => Look::There(()),
                other => Look::NotYet(format!("{other} of them")),
            })
        })
        .await?;
        self.asked_since(fetches).await?;
        self.unchanged(CANCELLED_ORDER, &before).await?;
        self.expect_handed_over(CANCELLED_ORDER, 0)?;
        Ok(format!(
            "order {CANCELLED_ORDER}: a stranger says paid, answered 401;\nthe service, asked, says {}: nothing changed",
            before.status
        ))
    }

    /// Opens an invoice as the shop does, and looks that it is open.
    async fn create(&self, order_id: &str, amount: &str, more: &[&str]) -> Result<Value, Trouble> {
        let mut words = vec!["invoice", "create", "--order", order_id, "--amount", amount];
        words.extend(["--currency", "RUB", "--method", "SBP"]);
        words.extend(more);
        let invoice = self.tilld(&words).await?;
        match text(&invoice, "outcome") {
            "open" => Ok(invoice),
            other => Err(Trouble::otherwise(
                format!("an open invoice for order {order_id}"),
                format!("one that is `{other}`"),
            )),
        }
    }

    /// Waits until the last notification of an order ended so, by the service's book.
    async fn answered(&self, order_id: &str, wanted: &Value) -> Result<(), Trouble> {
        wait(&format!("a notification answered {wanted}"), async || {
            let told = self.told_of(order_id).await?;
            let attempts = told.get("attempts").and_then(Value::as_array);
            let last = attempts.and_then(|all| all.last());
            let last = last.and_then(|attempt| attempt.get("answer"));
            Ok(match last {
                Some(answer) if answer == wanted => Look::There(()),
                Some(other) => Look::NotYet(other.to_string()),
                None => Look::NotYet("none yet".to_owned()),
            })
        })
        .await
    }

    /// Waits until the service was asked about an invoice again.
    async fn asked_since(&self, fetches: u64) -> Result<(), Trouble> {
        wait("the service to be asked", async || {
            Ok(if self.fetches().await? > fetches {
                Look::There(())
            } else {
                Look::NotYet("no request".to_owned())
            })
        })
        .await
    }

    /// Waits until the script is done with an order and has handed it over once.
    async fn fulfilled(&mut self, order_id: &str) -> Result<String, Trouble> {
        let result = self.hook_done(order_id, FULFIL).await?;
        expect_done(FULFIL, &result)?;
        self.expect_handed_over(order_id, 1)?;
        Ok(result)
    }

    fn expect_handed_over(&self, order_id: &str, wanted: usize) -> Result<(), Trouble> {
        let found = self.handed_over(order_id)?;
        if found == wanted {
            return Ok(());
        }
        Err(Trouble::otherwise(
            format!("order {order_id} handed over {wanted} times"),
            format!("{found} times in the script's log"),
        ))
    }

    async fn standing(&self, order_id: &str) -> Result<Standing, Trouble> {
        let rows = self.reader.invoices_of_order(order_id).await?;
        let newest = rows.first();
        Ok(Standing {
            invoices: rows.len(),
            status: newest
                .and_then(|row| row.status.clone())
                .unwrap_or_default(),
            outcome: newest
                .map(|row| row.outcome.to_string())
                .unwrap_or_default(),
            events: self.events(order_id).await?.len(),
        })
    }

    async fn unchanged(&self, order_id: &str, before: &Standing) -> Result<(), Trouble> {
        let now = self.standing(order_id).await?;
        if now == *before {
            return Ok(());
        }
        let expected = format!("order {order_id} to stay as it was, {before:?}");
        Err(Trouble::otherwise(expected, format!("{now:?}")))
    }
}

/// How an order stands in the ledger, as far as a notification could change it.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    invoices: usize,
    status: String,
    outcome: String,
    events: usize,
}

fn found_by(row: &InvoiceRow, wanted: Source) -> Result<(), Trouble> {
    if row.found_by == Some(wanted) {
        return Ok(());
    }
    let found = row.found_by.map_or("nobody", Source::as_str);
    let expected = format!("order {} to be found by {}", row.order_id, wanted.as_str());
    Err(Trouble::otherwise(expected, format!("found by {found}")))
}

fn expect_done(hook: &str, result: &str) -> Result<(), Trouble> {
    if result == DONE {
        return Ok(());
    }
    Err(Trouble::otherwise(
        format!("`{hook}` to end with {DONE}"),
        result,
    ))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
