//! An invoice as one JSON object, the same at every door.
//!
//! Relies on rows holding nothing secret. Promises that fields are only ever added, and that every field is always there
//! (`null` when there is nothing to say).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::{Kind, Name};
use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::status::Outcome;
use crate::ledger::{InvoiceKey, InvoiceRow, SupersededBy};
use crate::telemetry::word;
use crate::wire::stored::Stored;

/// One invoice in the words of `--json`. Amounts are decimal text, times UTC with milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Shown<'a> {
    order_id: Cow<'a, str>,
    invoice_id: Option<Cow<'a, str>>,
    r#ref: Cow<'a, str>,
    mode: Cow<'a, str>,
    method: Cow<'a, str>,
    status: Option<Cow<'a, str>>,
    outcome: Cow<'a, str>,
    opening: Cow<'a, str>,
    opening_note: Option<Cow<'a, str>>,
    amount_asked: Cow<'a, str>,
    amount_agreed: Cow<'a, str>,
    amount_reported: Option<Cow<'a, str>>,
    currency: Cow<'a, str>,
    currency_reported: Option<Cow<'a, str>>,
    doubt: bool,
    attention: Vec<Cow<'a, str>>,
    unresolved: bool,
    found_by: Option<Cow<'a, str>>,
    expire_at: Option<String>,
    created_at: String,
    updated_at: String,
    payment_url: Option<Cow<'a, str>>,
    requisites: Option<Stored>,
    currency_asked: Cow<'a, str>,
    service: Option<Stored>,
    superseded_by: Option<Cow<'a, SupersededBy>>,
}

/// The JSON object of an invoice.
pub(crate) fn json(row: &InvoiceRow) -> Shown<'_> {
    let reasons = row.attention.iter();
    Shown {
        order_id: row.order_id.as_str().into(),
        invoice_id: row.invoice_id.as_deref().map(Into::into),
        r#ref: row.reference.as_str().into(),
        mode: row.mode.as_str().into(),
        method: row.method.as_str().into(),
        status: row.status.as_deref().map(Into::into),
        outcome: row.outcome.as_str().into(),
        opening: row.opening.as_str().into(),
        opening_note: row.opening_note.as_deref().map(Into::into),
        amount_asked: row.amount_asked.as_str().into(),
        amount_agreed: row.amount_agreed.as_str().into(),
        amount_reported: row.amount_reported.as_deref().map(Into::into),
        currency: row.currency_agreed.as_str().into(),
        currency_reported: row.currency_reported.as_deref().map(Into::into),
        doubt: row.doubt,
        attention: reasons.map(|reason| reason.as_str().into()).collect(),
        unresolved: row.unresolved,
        found_by: row.found_by.map(Source::as_str).map(Into::into),
        expire_at: row.expire_ms.map(time),
        created_at: time(row.created_ms),
        updated_at: time(row.updated_ms),
        payment_url: row.payment_url.as_deref().map(Into::into),
        requisites: row.requisites.as_deref().map(Stored::new),
        currency_asked: row.currency_asked.as_str().into(),
        service: row.raw.as_deref().map(Stored::new),
        superseded_by: row.superseded.as_ref().map(Cow::Borrowed),
    }
}

impl<'a> Shown<'a> {
    /// The same with what only a poll can show, and what needs a person, at any of these invoices.
    pub(super) fn with_others(mut self, others: &'a [InvoiceRow]) -> Self {
        self.doubt = others.iter().any(|row| row.doubt);
        for reason in others.iter().flat_map(|row| &row.attention) {
            let word = Cow::Borrowed(reason.as_str());
            if !self.attention.contains(&word) {
                self.attention.push(word);
            }
        }
        self
    }
}

impl Shown<'_> {
    /// The invoice again, for whoever is told of it and shows it. What only the ledger's owner needs is not in it: its number,
    /// its creator, how often it changed, since when its outcome stands. `None` when a word or a time is none of ours.
    pub(crate) fn row(self) -> Option<InvoiceRow> {
        let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let ms = |text: &str| Moment::parse(text).map(Moment::as_ms);
        Some(InvoiceRow {
            key: InvoiceKey(0),
            reference: InvoiceRef::parse(&self.r#ref)?,
            order_id: self.order_id.into_owned(),
            invoice_id: text(self.invoice_id),
            mode: Mode::parse(&self.mode)?,
            method: self.method.into_owned(),
            opening: Opening::parse(&self.opening)?,
            opening_note: text(self.opening_note),
            creator: None,
            creator_deadline_ms: 0,
            status: text(self.status),
            outcome: Outcome::parse(&self.outcome)?,
            outcome_ms: 0,
            found_by: match self.found_by {
                Some(word) => Some(Source::parse(&word)?),
                None => None,
            },
            amount_asked: self.amount_asked.into_owned(),
            currency_asked: self.currency_asked.into_owned(),
            amount_agreed: self.amount_agreed.into_owned(),
            currency_agreed: self.currency.into_owned(),
            amount_reported: text(self.amount_reported),
            currency_reported: text(self.currency_reported),
            doubt: self.doubt,
            // A daemon of another version may have more of them.
            attention: self
                .attention
                .iter()
                .filter_map(|word| Attention::parse(word))
                .collect(),
            unresolved: self.unresolved,
            requisites: self.requisites.map(Stored::into_text),
            payment_url: text(self.payment_url),
            raw: self.service.map(Stored::into_text),
            expire_ms: match self.expire_at {
                Some(at) => Some(ms(&at)?),
                None => None,
            },
            created_ms: ms(&self.created_at)?,
            updated_ms: ms(&self.updated_at)?,
            revision: 0,
            superseded: self.superseded_by.map(Cow::into_owned),
        })
    }
}

/// The name that means this invoice and no other: the service's id, or the ref while there is none.
pub(crate) fn name(row: &InvoiceRow) -> Name {
    match &row.invoice_id {
        Some(id) => Kind::Id.of(id.as_str()),
        None => Kind::Ref.of(row.reference.as_str()),
    }
}

/// The same for the invoice that stands for the order instead.
pub(crate) fn other(by: &SupersededBy) -> Name {
    match &by.invoice_id {
        Some(id) => Kind::Id.of(id.as_str()),
        None => Kind::Ref.of(by.r#ref.as_str()),
    }
}

/// The command that accepts the reported amount; with a word for it where none can be read.
pub(crate) fn accepting(row: &InvoiceRow) -> String {
    // An amount of before is not that of a payment without one.
    let amount = row.amount_reported.as_deref();
    let own = amount.filter(|_| !row.needs(Attention::AmountMissing));
    let payable = own.filter(|text| Amount::parse_payable(text).is_ok());
    let amount = payable.unwrap_or("AMOUNT");
    format!(
        "tilld invoice accept-amount {} --amount {amount}",
        name(row).flag()
    )
}

/// An id as it is typed in a shell: others chose it, and a person copies the command it stands in.
pub(crate) fn quoted(id: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_.~:/#%+@=,№".contains(c);
    if !id.starts_with(['-', '#', '~', '=']) && id.chars().all(plain) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("'{}'", id.replace('\'', r"'\''")))
}

/// The same where a command takes it without a flag.
pub(crate) fn typed(id: &str) -> Cow<'_, str> {
    // Behind `--` it is no flag.
    if id.starts_with('-') {
        return Cow::Owned(format!("-- {}", quoted(id)));
    }
    quoted(id)
}

/// What the service reported, with a dash for what it did not say.
pub(crate) fn reported(row: &InvoiceRow) -> String {
    let part = |text: &Option<String>| or_dash(text.as_deref());
    format!(
        "{} {}",
        part(&row.amount_reported),
        part(&row.currency_reported)
    )
}

/// An amount with its currency.
pub(crate) fn sum(amount: &str, currency: &str) -> String {
    format!("{amount} {currency}")
}

/// UTC with milliseconds.
pub(crate) fn time(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}

/// The service's word for how it stands, for people.
pub(crate) fn status(status: Option<&str>) -> String {
    or_dash(status.map(word).as_deref())
}

/// A dash for what is not there.
pub(crate) fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// Stored JSON as JSON; what is none is passed on as text.
pub(crate) fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_no_json| Value::String(text.to_owned()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An H2H invoice as it stands after its create.
    pub(crate) fn row() -> InvoiceRow {
        InvoiceRow {
            key: InvoiceKey(1),
            reference: InvoiceRef::parse("AAAAAAAAAAAAAAAAAAAAAA").expect("a ref"),
            order_id: "1042".to_owned(),
            invoice_id: Some("inv-1".to_owned()),
            mode: Mode::H2h,
            method: "SBP".to_owned(),
            opening: Opening::Answered,
            opening_note: None,
            creator: None,
            creator_deadline_ms: 0,
            status: Some("new".to_owned()),
            outcome: Outcome::Open,
            outcome_ms: 1_795_860_120_004,
            found_by: None,
            amount_asked: "599.80".to_owned(),
            currency_asked: "RUB".to_owned(),
            amount_agreed: "599.80".to_owned(),
            currency_agreed: "RUB".to_owned(),
            amount_reported: Some("599.8".to_owned()),
            currency_reported: Some("RUB".to_owned()),
            doubt: false,
            attention: Vec::new(),
            unresolved: false,
            requisites: Some(r#"{"bankName":"Б","phoneNumber":"+70000000000"}"#.to_owned()),
            payment_url: None,
            raw: Some(r#"{"id":"inv-1","status":"new","dealRate":0.10,"extra":1}"#.to_owned()),
            expire_ms: Some(1_795_860_720_000),
            created_ms: 1_795_860_120_004,
            updated_ms: 1_795_860_120_004,
            revision: 1,
            superseded: None,
        }
    }

    #[test]
    fn the_json_object_is_what_scripts_rely_on() {
        let wanted = concat!(
            r#"{"order_id":"1042","invoice_id":"inv-1","ref":"AAAAAAAAAAAAAAAAAAAAAA","mode":"h2h","method":"SBP","#,
            r#""status":"new","outcome":"open","opening":"answered","opening_note":null,"amount_asked":"599.80","#,
            r#""amount_agreed":"599.80","amount_reported":"599.8","currency":"RUB","currency_reported":"RUB","#,
            r#""doubt":false,"attention":[],"unresolved":false,"found_by":null,"#,
            r#""expire_at":"2026-11-28T10:12:00.000Z","created_at":"2026-11-28T10:02:00.004Z","#,
            r#""updated_at":"2026-11-28T10:02:00.004Z","payment_url":null,"#,
            r#""requisites":{"bankName":"Б","phoneNumber":"+70000000000"},"currency_asked":"RUB","#,
            r#""service":{"dealRate":0.10,"extra":1,"id":"inv-1","status":"new"},"superseded_by":null}"#,
        );
        assert_eq!(
            serde_json::to_string(&json(&row())).expect("plain data"),
            wanted
        );
    }

    #[test]
    fn the_command_that_accepts_an_amount_can_be_copied() {
        for (amount, needs, wanted) in [
            (Some("590.00"), Vec::new(), "590.00"),
            (None, Vec::new(), "AMOUNT"),
            (Some("-5"), Vec::new(), "AMOUNT"),
            // It was reported before the payment without one.
            (Some("590.00"), vec![Attention::AmountMissing], "AMOUNT"),
        ] {
            let row = InvoiceRow {
                amount_reported: amount.map(str::to_owned),
                attention: needs,
                ..row()
            };
            let wanted = format!("tilld invoice accept-amount --id inv-1 --amount {wanted}");
            assert_eq!(accepting(&row), wanted);
        }
    }

    #[test]
    fn what_was_told_is_read_back_and_told_the_same() {
        let full = InvoiceRow {
            amount_agreed: "6".to_owned(),
            currency_agreed: "USD".to_owned(),
            opening_note: Some("note".to_owned()),
            found_by: Some(Source::Poll),
            outcome: Outcome::Mismatch,
            attention: vec![Attention::Mismatch],
            payment_url: Some("https://pay.example/1".to_owned()),
            requisites: Some("no JSON".to_owned()),
            ..row()
        };
        for row in [row(), full] {
            let told = serde_json::to_string(&json(&row)).expect("plain data");
            let read: Shown<'_> = serde_json::from_str(&told).expect("as it was told");
            let again = read.row().expect("our own words");
            assert_eq!(again.currency_asked, row.currency_asked);
            assert_eq!(
                serde_json::to_string(&json(&again)).expect("plain data"),
                told
            );
        }
    }

    #[test]
    fn foreign_words_are_refused_but_for_a_reason_of_another_version() {
        let told = serde_json::to_value(json(&row())).expect("plain data");
        let with = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut told = told.clone();
            change(told.as_object_mut().expect("an object"));
            let read: Shown<'_> = serde_json::from_value(told).expect("its fields");
            read.row()
        };
        for (field, word) in [
            ("outcome", "x"),
            ("mode", ""),
            ("ref", "x"),
            ("created_at", "now"),
        ] {
            let foreign = with(&|told| drop(told.insert(field.to_owned(), word.into())));
            assert!(foreign.is_none(), "{field}");
        }
        let reasons = serde_json::json!(["newer", "rewound"]);
        let newer = with(&|told| drop(told.insert("attention".to_owned(), reasons.clone())));
        let newer = newer.map(|row| row.attention);
        assert_eq!(newer, Some(vec![Attention::Rewound]));
    }
}
