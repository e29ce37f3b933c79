//! Which invoice a command means: an order id without a flag, an invoice id behind `--id`, a ref behind `--ref`.
//!
//! Relies on [`Name`] for what each is. Promises that a command which changes or polls takes a text for what it was typed as.
//! A command that only shows takes any text, and refuses one with two meanings.

use super::failure::Failure;
use crate::answer::find::{Lookup, find, guess};
use crate::answer::name::{Kind, Name};
use crate::invoice::ids::{IdError, InvoiceId, InvoiceRef, OrderId};
use crate::ledger::InvoiceRow;

/// One invoice, by exactly one name.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["order", "id", "reference"]))]
pub(super) struct Which {
    /// The order id
    #[arg(value_name = "ORDER", value_parser = parse_order)]
    order: Option<OrderId>,
    /// The service's id of one invoice, instead of an order id
    #[arg(long, value_name = "ID", value_parser = parse_id, allow_hyphen_values = true)]
    id: Option<InvoiceId>,
    /// The ref of one invoice, instead of an order id
    #[arg(long = "ref", value_name = "REF", value_parser = parse_ref, allow_hyphen_values = true)]
    reference: Option<InvoiceRef>,
}

/// A name behind the flag of its kind, or none. What it is for, the command says.
#[derive(Debug, clap::Args)]
pub(super) struct Flags {
    /// The order with this id
    #[arg(long, value_name = "ORDER", value_parser = parse_order, allow_hyphen_values = true)]
    order: Option<OrderId>,
    /// The invoice with this id of the service
    #[arg(long, value_name = "ID", value_parser = parse_id, allow_hyphen_values = true)]
    id: Option<InvoiceId>,
    /// The invoice with this ref
    #[arg(long = "ref", value_name = "REF", value_parser = parse_ref, allow_hyphen_values = true)]
    reference: Option<InvoiceRef>,
}

/// Invoices to show, by any name.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["name", "order", "id", "reference"]))]
pub(super) struct AnyName {
    /// The order id, or the service's id or the ref of one invoice; a flag says which
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

impl Which {
    /// The name.
    pub(super) fn name(&self) -> Name {
        let name = named(
            self.order.as_ref(),
            self.id.as_ref(),
            self.reference.as_ref(),
        );
        name.expect("one of them is required")
    }
}

impl Flags {
    /// The name, if one was given.
    pub(super) fn name(&self) -> Option<Name> {
        named(
            self.order.as_ref(),
            self.id.as_ref(),
            self.reference.as_ref(),
        )
    }
}

impl AnyName {
    /// The invoices, newest first; never none.
    pub(super) async fn find(&self, from: &impl Lookup) -> Result<Vec<InvoiceRow>, Failure> {
        match (self.flags.name(), &self.name) {
            (Some(name), _) => find(from, &name).await,
            (None, text) => guess(from, text.as_deref().unwrap_or_default()).await,
        }
    }
}

fn named(
    order: Option<&OrderId>,
    id: Option<&InvoiceId>,
    reference: Option<&InvoiceRef>,
) -> Option<Name> {
    let order = order.map(|order| Kind::Order.of(order.as_str()));
    let id = id.map(|id| Kind::Id.of(id.as_str()));
    let reference = reference.map(|reference| Kind::Ref.of(reference.as_str()));
    order.or(id).or(reference)
}

pub(super) fn parse_order(text: &str) -> Result<OrderId, IdError> {
    OrderId::new(text)
}

pub(super) fn parse_id(text: &str) -> Result<InvoiceId, IdError> {
    InvoiceId::new(text)
}

fn parse_ref(text: &str) -> Result<InvoiceRef, &'static str> {
    InvoiceRef::parse(text).ok_or("a ref has 22 characters: letters, digits, `-` and `_`")
}
