//! The freedom the contract leaves: in which order fields come, what else is told beside them, which of those that no client
//! needs are left away or null, and how values are spelt ([`spelling`](super::spelling)). A client that was proved against
//! this does not rely on what nobody promised it.
//!
//! Two answers about the same thing are spelt differently; one seed spells the same ones alike.

use serde_json::{Value, json};

use super::State;
use super::dice::Dice;
use super::spelling::vary;

/// Left away now and then: what the contract shows in an example and gives no meaning that a client could act on.
const ABSENT: [&str; 5] = [
    "paymentOption",
    "requisiteId",
    "dealRate",
    "createdAt",
    "merchantName",
];
/// One of so many is left away.
const ONE_OF: u64 = 4;

/// What an invoice object of one of the two modes does not have, which others write as null.
const OF_THE_OTHER_MODE: [&str; 6] = [
    "paymentMethod",
    "paymentOption",
    "expireAt",
    "requisiteId",
    "dealRequisites",
    "paymentUrl",
];

impl State {
    /// An object of the contract as a text, spelt with the freedom the contract leaves.
    pub(crate) fn spell(&mut self, object: &Value) -> String {
        match self.next_dice() {
            None => object.to_string(),
            Some(dice) => spell(object, dice),
        }
    }

    /// The invoice with this id as the service tells of it.
    pub(crate) fn tell(&mut self, id: &str) -> Option<String> {
        let dice = self.next_dice();
        let invoice = self.invoices.get(self.by_id.get(id)?)?;
        let mut body = invoice.body(&self.rules.payment_url);
        let Some(mut dice) = dice else {
            return Some(body.to_string());
        };
        if let Value::Object(fields) = &mut body {
            vary(fields, invoice.exact, &mut dice);
            for name in OF_THE_OTHER_MODE {
                if !fields.contains_key(name) && dice.roll().is_multiple_of(ONE_OF) {
                    fields.insert(name.to_owned(), Value::Null);
                }
            }
        }
        Some(spell(&body, dice))
    }

    /// What the next object is spelt by. `None` when it is to be plain.
    fn next_dice(&mut self) -> Option<Dice> {
        self.spelt += 1;
        (!self.rules.is_plain).then(|| Dice::of(self.faults.seed(), [0, 0, self.spelt]))
    }
}

fn spell(object: &Value, mut dice: Dice) -> String {
    let Value::Object(fields) = object else {
        return object.to_string();
    };
    let mut left: Vec<(String, String)> = Vec::new();
    for (name, value) in fields {
        let is_away = ABSENT.contains(&name.as_str()) && dice.roll().is_multiple_of(ONE_OF);
        // Nothing is said by leaving it away or by writing null.
        if !is_away {
            left.push((name.clone(), value.to_string()));
        } else if dice.roll().is_multiple_of(2) {
            left.push((name.clone(), "null".to_owned()));
        }
    }
    let extra = match dice.roll() % 3 {
        0 => ("schemaVersion", json!(dice.roll() % 100)),
        1 => ("traceId", json!(dice.token(12))),
        _ => ("sandboxExtra", json!({ "unknown": [null, true, "…"] })),
    };
    left.push((extra.0.to_owned(), extra.1.to_string()));
    let mut text = String::from("{");
    while !left.is_empty() {
        let count = u64::try_from(left.len()).unwrap_or(1);
        let at = usize::try_from(dice.roll() % count).unwrap_or(0);
        let (name, value) = left.swap_remove(at);
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(&value);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({ "id": "a", "status": "new", "amount": "1.50", "dealRate": "1", "merchantName": "Лавка", "createdAt": "x", "requisiteId": "r", "paymentOption": "o" })
    }

    #[test]
    fn nothing_a_client_needs_is_lost_and_nothing_is_said_otherwise() {
        let whole = object();
        let (mut orders, mut away, mut nulls, mut extras) = (Vec::new(), 0, 0, Vec::new());
        for number in 0..200 {
            let text = spell(&whole, Dice::of(5, [0, 0, number]));
            let read: Value = serde_json::from_str(&text).expect("JSON");
            let read = read.as_object().expect("an object");
            for name in ["id", "status", "amount"] {
                assert_eq!(read.get(name), whole.get(name), "{text}");
            }
            for (name, value) in read {
                match whole.get(name) {
                    Some(_) if value.is_null() => nulls += 1,
                    Some(wanted) => assert_eq!(value, wanted),
                    None => extras.push(name.clone()),
                }
            }
            away += 9 - read.len();
            orders.push(text.chars().take(6).collect::<String>());
        }
        orders.sort();
        orders.dedup();
        extras.sort();
        extras.dedup();
        assert!(orders.len() > 5, "{orders:?}");
        assert_eq!(extras, ["sandboxExtra", "schemaVersion", "traceId"]);
        assert!((75..175).contains(&away), "{away} of 1000 left away");
        assert!((75..175).contains(&nulls), "{nulls} of 1000 null");
    }
}
