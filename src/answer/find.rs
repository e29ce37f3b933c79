//! Which invoices a name means, and whether there is anything left to wait for.
//!
//! Relies on [`Lookup`] for what there is under one name. Promises that a name of one kind never finds what only a name of
//! another kind means: a failure says what that other kind would have found.

use std::collections::BTreeSet;
use std::future::Future;

use super::failure::{Exit, Failure};
use super::invoice::typed;
use super::name::{Kind, Name};
use crate::invoice::opening::Opening;
use crate::invoice::status::Outcome;
use crate::ledger::{InvoiceKey, InvoiceRow, Reader};

/// The way out where nothing goes by a text.
const LIST: &str = "`tilld invoice list` shows what is there";

/// Where invoices are looked up: the ledger, or a daemon that has it.
pub(crate) trait Lookup {
    /// What goes by exactly this name: the invoice that stands for its order, then the newest.
    fn look(&self, name: &Name) -> impl Future<Output = Result<Vec<InvoiceRow>, Failure>> + Send;
}

impl Lookup for Reader {
    async fn look(&self, name: &Name) -> Result<Vec<InvoiceRow>, Failure> {
        let one = match name.kind {
            Kind::Order => return Ok(self.invoices_of_order(&name.text).await?),
            Kind::Id => self.invoice_by_id(&name.text).await?,
            Kind::Ref => self.invoice_by_ref(&name.text).await?,
        };
        Ok(one.into_iter().collect())
    }
}

/// What one text means as a name of one kind: never nothing.
struct Meaning {
    name: Name,
    rows: Vec<InvoiceRow>,
}

/// The invoices that go by this name: the one that stands for its order, then the newest; never none.
pub(crate) async fn find(from: &impl Lookup, name: &Name) -> Result<Vec<InvoiceRow>, Failure> {
    let rows = from.look(name).await?;
    if rows.is_empty() {
        return Err(not_found(name, &meanings(from, &name.text).await?));
    }
    Ok(rows)
}

/// The one invoice that `wait`, `poll` and a page mean by this name.
pub(crate) async fn find_one(from: &impl Lookup, name: &Name) -> Result<InvoiceRow, Failure> {
    let found = find(from, name).await?.into_iter().next();
    Ok(found.expect("found are one at least"))
}

/// The key that the invoices opened before the one with this ref lie below; above all of them when none is given.
pub(crate) async fn below(from: &impl Lookup, before: Option<&str>) -> Result<InvoiceKey, Failure> {
    match before {
        None => Ok(InvoiceKey(i64::MAX)),
        Some(text) => Ok(find_one(from, &Kind::Ref.of(text)).await?.key),
    }
}

/// The invoices of an order, for a command that takes an order id and nothing else. `hint` is for a text that means nothing.
pub(crate) async fn find_order(
    reader: &Reader,
    order: &str,
    hint: &str,
) -> Result<Vec<InvoiceRow>, Failure> {
    let rows = reader.invoices_of_order(order).await?;
    if !rows.is_empty() {
        return Ok(rows);
    }
    let others = meanings(reader, order).await?;
    let orders = others.iter().flat_map(|other| &other.rows);
    let orders: BTreeSet<&str> = orders.map(|row| row.order_id.as_str()).collect();
    let hint = if orders.is_empty() {
        hint.to_owned()
    } else {
        let orders: Vec<String> = orders.iter().map(|order| format!("`{order}`")).collect();
        format!("this command takes an order id: {}", orders.join(" or "))
    };
    Err(not_found(&Kind::Order.of(order), &others).hint(hint))
}

/// The invoices that go by this text, whatever kind of name it is. A text with two meanings is refused.
pub(crate) async fn guess(from: &impl Lookup, text: &str) -> Result<Vec<InvoiceRow>, Failure> {
    pick(text, meanings(from, text).await?)
}

async fn meanings(from: &impl Lookup, text: &str) -> Result<Vec<Meaning>, Failure> {
    let mut meanings = Vec::new();
    for kind in Kind::ALL {
        let name = kind.of(text);
        let rows = from.look(&name).await?;
        if !rows.is_empty() {
            meanings.push(Meaning { name, rows });
        }
    }
    Ok(meanings)
}

fn pick(text: &str, meanings: Vec<Meaning>) -> Result<Vec<InvoiceRow>, Failure> {
    let same = |one: &Meaning, other: &Meaning| {
        let refs = |meaning: &Meaning| -> Vec<String> {
            let refs = meaning.rows.iter().map(|row| row.reference.as_str());
            refs.map(str::to_owned).collect()
        };
        refs(one) == refs(other)
    };
    // An order whose only invoice has the order's own id is one thing with two names.
    if meanings
        .iter()
        .zip(meanings.iter().skip(1))
        .all(|(a, b)| same(a, b))
    {
        let first = meanings.into_iter().next().map(|meaning| meaning.rows);
        return first.ok_or_else(|| {
            let error =
                format!("no invoice with the order id, invoice id or ref `{text}` in the ledger");
            Failure::new(Exit::NotFound, error).hint(LIST)
        });
    }
    let several: Vec<String> = meanings.iter().map(in_words).collect();
    let flags: Vec<String> = meanings
        .iter()
        .map(|meaning| format!("`{}`", meaning.name.flag()))
        .collect();
    let error = format!("`{text}` has more than one meaning: {}", several.join("; "));
    Err(Failure::new(Exit::Usage, error).hint(format!("say which: {}", flags.join(" or "))))
}

/// Nothing goes by this name. What goes by it as a name of another kind is named, and how it is reached.
fn not_found(name: &Name, others: &[Meaning]) -> Failure {
    let text = &name.text;
    let mut error = format!("no {name} in the ledger");
    let mut ways = Vec::new();
    // One of its own kind came between the two looks: the next try finds it.
    for other in others.iter().filter(|other| other.name.kind != name.kind) {
        error = format!("{error}; {}", in_words(other));
        let typed = match other.name.kind {
            Kind::Order => format!("`{}` without a flag", typed(text)),
            Kind::Id | Kind::Ref => format!("`{}`", other.name.flag()),
        };
        ways.push(format!(
            "{typed}, or `{}` on the control socket",
            other.name.path()
        ));
    }
    let failure = Failure::new(Exit::NotFound, error);
    if ways.is_empty() {
        return failure.hint(LIST);
    }
    failure.hint(format!("use {}", ways.join("; or ")))
}

/// What it is, in words.
fn in_words(meaning: &Meaning) -> String {
    let Meaning { name, rows } = meaning;
    match (name.kind, rows.first()) {
        (Kind::Id | Kind::Ref, Some(row)) => {
            format!("the {name} belongs to order `{}`", row.order_id)
        }
        (Kind::Order, _) | (_, None) => format!("there is an {name}"),
    }
}

/// The end of the wait, if it has come: paid is 0, any other final outcome 5, and what nobody will ever tell is 9.
pub(crate) fn end(row: &InvoiceRow, now_ms: i64) -> Option<Result<Exit, Failure>> {
    let unknown =
        |text: String, hint: &str| Some(Err(Failure::new(Exit::Unknown, text).hint(hint)));
    match row.outcome {
        Outcome::Paid => Some(Ok(Exit::Ok)),
        Outcome::Failed | Outcome::Reversed | Outcome::Mismatch | Outcome::SecondPayment => {
            Some(Ok(Exit::NotPaid))
        }
        Outcome::Open if row.unresolved => unknown(
            format!(
                "the service never gave a final answer about order `{}`",
                row.order_id
            ),
            "look the order up in the cabinet",
        ),
        // Without a daemon nobody writes down that a creator is gone; a notification would have named the id.
        Outcome::Open if row.is_lost(now_ms) => unknown(
            format!(
                "nobody knows whether the create of order `{}` reached the service",
                row.order_id
            ),
            "look the order up in the cabinet; `tilld invoice adopt ORDER --id ID` settles it",
        ),
        Outcome::Open if row.opening == Opening::Refused => {
            let text = format!("the create of order `{}` opened no invoice", row.order_id);
            Some(Err(
                Failure::new(Exit::NotPaid, text).hint("run `tilld invoice create` again")
            ))
        }
        Outcome::Open => None,
    }
}

/// It was waited for as long as was wished.
pub(crate) fn still_open(row: &InvoiceRow, seconds: u64) -> Failure {
    let text = format!(
        "order `{}` is still {} after {seconds} s",
        row.order_id, row.outcome
    );
    Failure::new(Exit::TimeOut, text).hint("run it again to go on waiting")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::invoice::tests::row;
    use crate::invoice::ids::InvoiceRef;

    fn of(order: &str, bytes: u8) -> InvoiceRow {
        InvoiceRow {
            order_id: order.to_owned(),
            reference: InvoiceRef::from_entropy([bytes; 16]),
            ..row()
        }
    }

    fn meaning(kind: Kind, rows: Vec<InvoiceRow>) -> Meaning {
        let name = kind.of("501");
        Meaning { name, rows }
    }

    #[test]
    fn a_text_with_two_meanings_is_refused_with_the_flag_of_each() {
        let meanings = vec![
            meaning(Kind::Order, vec![of("501", 1)]),
            meaning(Kind::Id, vec![of("500", 2)]),
        ];
        let refused = pick("501", meanings).expect_err("two meanings");
        assert_eq!(refused.code(), 2);
        assert_eq!(
            refused.line(),
            "`501` has more than one meaning: there is an order `501`; the invoice id `501` belongs to order `500`"
        );
        let hint = refused.way_out();
        assert_eq!(
            hint.as_deref(),
            Some("say which: `--order 501` or `--id 501`")
        );
    }

    #[test]
    fn two_names_of_one_invoice_are_one_meaning() {
        let meanings = || {
            vec![
                meaning(Kind::Order, vec![of("501", 1)]),
                meaning(Kind::Id, vec![of("501", 1)]),
            ]
        };
        assert_eq!(pick("501", meanings()).map(|rows| rows.len()).ok(), Some(1));
        // With an older invoice the order is more than the one that has the id.
        let mut more = meanings();
        if let Some(order) = more.first_mut() {
            order.rows.push(of("501", 2));
        }
        assert!(pick("501", more).is_err());
        assert_eq!(pick("501", Vec::new()).expect_err("nothing").code(), 3);
    }

    #[test]
    fn nothing_of_one_kind_names_what_the_others_mean() {
        let others = [meaning(Kind::Id, vec![of("500", 2)])];
        let failure = not_found(&Kind::Order.of("501"), &others);
        assert_eq!(
            failure.line(),
            "no order `501` in the ledger; the invoice id `501` belongs to order `500`"
        );
        assert_eq!(
            failure.way_out().as_deref(),
            Some("use `--id 501`, or `/v1/invoices/by-id/501` on the control socket")
        );
        let others = [meaning(Kind::Order, vec![of("501", 1)])];
        let failure = not_found(&Kind::Id.of("501"), &others);
        assert_eq!(
            failure.line(),
            "no invoice id `501` in the ledger; there is an order `501`"
        );
    }
}
