//! The invoice object (contract 2.3): the answer to a create, the answer to a status check, the body of a notification.
//!
//! Only `id` and `status` are needed. `null`, `""` and a missing field are the same; a number where a string belongs is
//! read as its digits; anything else odd is named in [`Report::odd`] and loses nothing but itself (A08, A11). An amount, a
//! currency or an order of another type is there and agrees with nothing.

use serde_json::{Value, json};

use super::address::is_for_browsers;
use super::fields::{Field, Fields, Kind};
use super::json::{Object, text};
use crate::invoice::amount::Amount;
use crate::invoice::ids::InvoiceId;
use crate::invoice::moment::{Moment, Zone};
use crate::invoice::observation::{How, Odd, Report, Reported};
use crate::invoice::status::Status;

/// Longest address of a payment page, bytes: browsers and proxies take no longer one.
const LONGEST_URL: usize = 4_096;
/// Layers of JSON-in-a-string that are undone for `dealRequisites`. The contract shows one; senders add one (A11).
const LAYERS: usize = 3;

/// Every field of contract 2.3 but `dealRequisites`, in its order.
const NAMES: [&str; 15] = [
    "id",
    "direction",
    "status",
    "paymentMethod",
    "paymentOption",
    "amount",
    "currency",
    "expireAt",
    "requisiteId",
    "dealRate",
    "createdAt",
    "updatedAt",
    "internalId",
    "merchantName",
    "paymentUrl",
];
/// Those of them that are judged as times.
const TIMES: [&str; 2] = ["updatedAt", "expireAt"];

/// Why an object is no invoice. The reason is a fixed word; nothing of the body is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnInvoice {
    /// `id` is missing or is no invoice id.
    #[error("`id` is missing or is not an invoice id")]
    Id,
    /// `status` is missing, empty, longer than 128 bytes or not a string.
    #[error("`status` is missing or is not a status")]
    Status,
}

/// The fields that are looked at, found in one pass. None of them stands twice.
#[derive(Default)]
struct Own<'f> {
    id: Option<&'f Field<'f>>,
    status: Option<&'f Field<'f>>,
    order_id: Option<&'f Field<'f>>,
    amount: Option<&'f Field<'f>>,
    currency: Option<&'f Field<'f>>,
    updated_at: Option<&'f Field<'f>>,
    expire_at: Option<&'f Field<'f>>,
    method: Option<&'f Field<'f>>,
    payment_url: Option<&'f Field<'f>>,
    requisites: Option<&'f Field<'f>>,
}

impl<'f> Own<'f> {
    fn of(object: &'f Fields<'f>) -> Self {
        let mut own = Self::default();
        for (name, field) in object.iter() {
            let place = match name {
                "id" => &mut own.id,
                "status" => &mut own.status,
                "internalId" => &mut own.order_id,
                "amount" => &mut own.amount,
                "currency" => &mut own.currency,
                "updatedAt" => &mut own.updated_at,
                "expireAt" => &mut own.expire_at,
                "paymentMethod" => &mut own.method,
                "paymentUrl" => &mut own.payment_url,
                "dealRequisites" => &mut own.requisites,
                _ => continue,
            };
            *place = Some(field);
        }
        own
    }
}

/// Reads an invoice object. Every text is kept whole in the report, the document in one spelling: only so every occurrence of a
/// secret is found and cut. Numbers keep their digits, names their order.
pub fn decode(object: &Fields<'_>) -> Result<Report, NotAnInvoice> {
    let own = Own::of(object);
    let text = |field: Option<&'_ Field<'_>>| field.and_then(Field::text).map(str::to_owned);
    let id = own
        .id
        .and_then(Field::text)
        .and_then(|id| InvoiceId::new(id).ok())
        .ok_or(NotAnInvoice::Id)?;
    let status = own
        .status
        .and_then(Field::as_str)
        .and_then(Status::new)
        .ok_or(NotAnInvoice::Status)?;
    let mut odd = retyped(object);
    let (updated_at, updated_at_text) = time(own.updated_at, "updatedAt", &mut odd);
    let (expire_at, _) = time(own.expire_at, "expireAt", &mut odd);
    let payment_url = text(own.payment_url);
    let fits = payment_url
        .as_ref()
        .is_none_or(|url| url.len() <= LONGEST_URL);
    if !fits {
        let field = "paymentUrl";
        let how = How::TooLong;
        odd.push(Odd { field, how });
    } else if own.payment_url.is_some_and(Field::is_given)
        && !payment_url.as_deref().is_some_and(is_for_browsers)
    {
        let (field, how) = ("paymentUrl", How::NoAddress);
        odd.push(Odd { field, how });
    }
    let given = own.requisites.filter(|field| field.is_given());
    let requisites = given.and_then(requisites);
    if given.is_some() && requisites.is_none() {
        let field = "dealRequisites";
        let how = How::NoObject;
        odd.push(Odd { field, how });
    }
    Ok(Report {
        id,
        status,
        order_id: reported(own.order_id, |text| Some(text.to_owned())),
        amount: reported(own.amount, |text| Amount::read(text).ok()),
        currency: own
            .currency
            .filter(|field| field.is_given())
            .map(to_the_letter),
        updated_at,
        updated_at_text,
        service_ms: None,
        expire_at,
        method: text(own.method),
        payment_url: payment_url.filter(|url| fits && is_for_browsers(url)),
        requisites,
        raw: object.to_json(),
        odd,
    })
}

/// The fields that are no strings although the contract says so, and a direction it does not show.
fn retyped(object: &Fields<'_>) -> Vec<Odd> {
    let is_usual = |(name, field): (&str, &Field<'_>)| match field {
        Field::Text(text) => name != "direction" || text == "in",
        Field::Other(..) => false,
    };
    // Looked up one by one only when there is something to find.
    if object.iter().all(is_usual) {
        return Vec::new();
    }
    let odd = |field: &'static str| {
        let how = match object.get(field)? {
            Field::Text(text) if field == "direction" && text != "in" && !text.is_empty() => {
                How::Unknown(text.to_string())
            }
            Field::Text(_) | Field::Other(Kind::Null, _) => return None,
            Field::Other(..) => How::Retyped,
        };
        Some(Odd { field, how })
    };
    let texts = NAMES.into_iter().filter(|name| !TIMES.contains(name));
    texts.filter_map(odd).collect()
}

/// A time as an instant; or, when there is one and it is not readable, as it was written.
fn time(
    value: Option<&Field<'_>>,
    field: &'static str,
    odd: &mut Vec<Odd>,
) -> (Option<Moment>, Option<String>) {
    let Some(value) = value.filter(|value| value.is_given()) else {
        return (None, None);
    };
    match value.as_str().and_then(Moment::read) {
        Some((moment, Zone::Given)) => (Some(moment), None),
        Some((moment, Zone::Missing)) => {
            let how = How::NoZone;
            odd.push(Odd { field, how });
            (Some(moment), None)
        }
        None => {
            let how = How::NoTime;
            odd.push(Odd { field, how });
            (None, Some(to_the_letter(value)))
        }
    }
}

/// `dealRequisites` as JSON text of an object, whatever number of string layers it came in. `None` when it is no object.
fn requisites(field: &Field<'_>) -> Option<String> {
    match field {
        Field::Text(text) => within(text),
        Field::Other(kind, json) => (*kind == Kind::Object).then(|| json.clone().into_owned()),
    }
}

/// The object within this text.
fn within(text: &str) -> Option<String> {
    // As it nearly always is: one layer, with each name once. `serde_json` gives a meaning of its own to a name with this
    // sign when it reads a value.
    let plain = |fields: &Fields<'_>| fields.iter().all(|(name, _)| !name.starts_with('$'));
    if let Ok(fields) = Fields::strict(text)
        && plain(&fields)
    {
        return Some(fields.into_sorted_json());
    }
    unwrapped(text, LAYERS)
}

/// The object within so many layers of text.
fn unwrapped(text: &str, layers: usize) -> Option<String> {
    match serde_json::from_str(text).ok()? {
        Field::Text(inner) if layers > 1 => unwrapped(&inner, layers - 1),
        Field::Other(Kind::Object, json) => Some(json.into_owned()),
        Field::Text(_) | Field::Other(..) => None,
    }
}

/// A field that is compared. What is there and cannot be read is not missing.
fn reported<T>(field: Option<&Field<'_>>, read: impl Fn(&str) -> Option<T>) -> Reported<T> {
    match field.filter(|field| field.is_given()) {
        None => Reported::Missing,
        Some(field) => field
            .text()
            .and_then(read)
            .map_or(Reported::Unreadable, Reported::Value),
    }
}

/// Its text, or the JSON text of what is no text.
fn to_the_letter(field: &Field<'_>) -> String {
    field.text().map_or_else(|| field.to_json(), str::to_owned)
}

/// The invoice object as the service writes it; for the sandbox, which plays the service. Absent fields are left out.
#[derive(Clone, Debug, Default)]
pub struct InvoiceBody {
    /// `id`
    pub id: String,
    /// `status`
    pub status: String,
    /// `paymentMethod` (H2H)
    pub method: Option<String>,
    /// `paymentOption` (H2H)
    pub option: Option<String>,
    /// `amount`, a decimal written as a string
    pub amount: String,
    /// `currency`
    pub currency: String,
    /// `expireAt` (H2H)
    pub expire_at: Option<String>,
    /// `requisiteId` (H2H)
    pub requisite_id: Option<String>,
    /// `dealRequisites` (H2H): the object, before it is encoded into a string
    pub requisites: Option<Value>,
    /// `dealRate`
    pub rate: String,
    /// `createdAt`
    pub created_at: String,
    /// `updatedAt`
    pub updated_at: String,
    /// `internalId`
    pub internal_id: String,
    /// `merchantName`
    pub merchant: String,
    /// `paymentUrl` (Redirect)
    pub payment_url: Option<String>,
}

impl InvoiceBody {
    /// The JSON object of contract 2.3.
    pub fn to_json(&self) -> Value {
        let all = json!({
            "id": self.id,
            "direction": "in",
            "status": self.status,
            "paymentMethod": self.method,
            "paymentOption": self.option,
            "amount": self.amount,
            "currency": self.currency,
            "expireAt": self.expire_at,
            "requisiteId": self.requisite_id,
            "dealRequisites": self.requisites.as_ref().map(Value::to_string),
            "dealRate": self.rate,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "internalId": self.internal_id,
            "merchantName": self.merchant,
            "paymentUrl": self.payment_url,
        });
        let Value::Object(all) = all else { return all };
        Value::Object(
            all.into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect(),
        )
    }
}

/// Every contract field of an invoice object with its value as text, in the contract's order; for people to read.
/// `dealRequisites` is left to [`Report::requisites`].
pub fn fields(object: &Object) -> Vec<(&'static str, String)> {
    let shown = |value: &Value| {
        text(Some(value)).or_else(|| (!value.is_null() && value != "").then(|| value.to_string()))
    };
    NAMES
        .into_iter()
        .filter_map(|name| Some((name, shown(object.get(name)?)?)))
        .collect()
}

#[cfg(test)]
mod tests;
