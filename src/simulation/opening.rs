//! Opening invoices: what a shop's command does, row first, then the request, then the record. Each command is a process
//! of its own that writes the ledger itself and may die between any two steps.

use super::scenario::{MINUTE, SECOND};
use super::world::{Created, Happens, Sabotage, World, Written, say};
use crate::invoice::amount::Amount;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Asked, Observation, Source};
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::sum::Sum;
use crate::ledger::{Begun, Intent, InvoiceKey, LedgerCommand, LedgerReply, Sealed, Settled};
use crate::process_mark::ProcessMark;
use crate::wire::create::CreateRequest;

/// How long the command waits for the service's answer.
const PATIENCE: i64 = 30 * SECOND;
/// The shop repeats the command after it was answered that an earlier invoice is not settled.
const TRY_AGAIN: i64 = 10 * MINUTE;
/// An opening is given up so long after that.
const SLACK: i64 = 5 * SECOND;

impl World {
    /// The shop runs the command for an order; `again`: it did before.
    pub(super) fn open(&mut self, order: usize, again: bool) {
        let Some(planned) = self.scenario.orders.get(order) else {
            return;
        };
        let insists = again && self.dice.chance(600);
        // The customer's cart has changed.
        let changed = insists && self.dice.chance(500);
        let amount = if changed { "160" } else { planned.amount };
        let amount = Amount::parse_payable(amount).expect("payable");
        let sum = Sum::new(amount, "RUB").expect("a currency");
        let reference = InvoiceRef::from_entropy(self.dice.bytes());
        let token = NotifyToken::from_entropy(self.dice.bytes());
        let intent = Intent {
            order_id: OrderId::new(format!("order-{order}")).expect("an order id"),
            wanted: Wanted {
                sum: sum.clone(),
                method: "SBP".to_owned(),
                mode: Mode::H2h,
                anew: insists || self.sabotage == Sabotage::OpenUnsettled,
            },
            reference: reference.clone(),
            // Nothing opens it here: the listener's comparison is given the token itself.
            instead_of: None,
            sealed: Sealed(Vec::new()),
            creator: ProcessMark::own(),
            now_ms: self.wall_ms(),
            deadline_ms: self.wall_ms() + PATIENCE + SLACK,
            window_ms: 3_600_000,
            polled: Vec::new(),
        };
        let request = CreateRequest {
            internal_id: format!("order-{order}"),
            amount: sum.amount,
            currency: sum.currency,
            start_deal: true,
            method: "SBP".to_owned(),
            notification_url: format!("http://127.0.0.1:9/n/{}", reference.as_str()),
            notification_token: token.secret().clone(),
            return_urls: None,
        };
        match self.write_one(&LedgerCommand::Begin(Box::new(intent))) {
            Some(LedgerReply::Begun(Begun::Fresh(key))) => {
                say!(self, "shop", "opens order {order} as invoice {}", key.0);
                self.tokens.insert(key, token);
                if !insists {
                    self.see_second(&format!("order-{order}"), key);
                }
                let wait = self.dice.between(5, 500);
                let asked_ms = self.wall_ms();
                let arrives = Happens::CreateArrives(order, key, Box::new(request), asked_ms);
                self.after(wait, arrives);
            }
            Some(LedgerReply::Begun(Begun::Unsettled(row))) => {
                say!(
                    self,
                    "shop",
                    "invoice {} of order {order} is not settled",
                    row.key.0
                );
                if self.now < self.scenario.heals_at {
                    self.after(TRY_AGAIN, Happens::Open(order, again));
                }
            }
            Some(other) => say!(self, "shop", "does not open order {order}: {other:?}"),
            None => say!(self, "shop", "could not begin order {order}"),
        }
    }

    /// The request is at the service's door.
    pub(super) fn create_arrives(
        &mut self,
        order: usize,
        key: InvoiceKey,
        request: CreateRequest,
        asked_ms: i64,
    ) {
        let ends = |created| Happens::CreateEnds(key, created, asked_ms);
        if self.is_out() {
            return self.after(SECOND, ends(Created::Refused));
        }
        let lost = self.dice.chance(self.faults.create_lost);
        if lost && self.dice.chance(300) {
            say!(self, "network", "the request for invoice {} is lost", key.0);
            return self.after(PATIENCE, ends(Created::Unknown));
        }
        let now = self.service_ms();
        let Ok(invoice) = self.service.create_invoice(0, request, now) else {
            return self.after(SECOND, ends(Created::Refused));
        };
        let id = InvoiceId::new(invoice.id.as_str()).expect("an id");
        let closes = invoice.expires_ms - now + 1;
        self.after(closes, Happens::Window);
        self.opened.entry(order).or_default().push(id.clone());
        self.see_bodies();
        if lost {
            say!(self, "network", "the answer for invoice {} is lost", key.0);
            return self.after(PATIENCE, ends(Created::Unknown));
        }
        let report = self.book.last(&id).expect("just seen").report.clone();
        let slow = self.dice.chance(self.faults.poll_slow);
        let wait = self.dice.between(20, if slow { PATIENCE - 1 } else { 500 });
        self.after(wait, ends(Created::Answered(Box::new(report))));
    }

    /// The command records how it ended.
    pub(super) fn create_ends(&mut self, key: InvoiceKey, created: Created, asked_ms: i64) {
        let settled = match created {
            Created::Answered(report) => Settled::Answered(Box::new(Observation {
                source: Source::Create,
                report: *report,
                asked: Some(Asked {
                    revision: 0,
                    at_ms: asked_ms,
                }),
                received_ms: self.wall_ms(),
            })),
            Created::Refused => Settled::Refused("the service did not take it".to_owned()),
            Created::Unknown => Settled::Unknown("no answer".to_owned()),
        };
        let ended = self.write_one(&LedgerCommand::Settle(key, settled));
        if let Some(LedgerReply::Settled(row, recorded)) = &ended {
            say!(
                self,
                "shop",
                "invoice {} is {} ({:?})",
                key.0,
                row.opening.as_str(),
                recorded.as_ref().map(|recorded| recorded.decision)
            );
        } else {
            say!(self, "shop", "could not record the end of {}", key.0);
        }
    }

    /// One transaction of a command; the daemon finds what it left by its scan.
    fn write_one(&mut self, command: &LedgerCommand) -> Option<LedgerReply> {
        let written = self.write(&[command]);
        self.plan_looks();
        match written {
            Written::Done(replies) => replies.into_iter().next()?.ok(),
            Written::Failed | Written::Died => None,
        }
    }
}
