//! The request that opens an invoice (contract 4.3). The amount travels as the digits the merchant gave: `599.80` is
//! sent as the JSON number `599.80`, never through a float (A09).

use serde_json::{Map, Number, Value};

use super::address::is_for_browsers;
use super::json::Object;
use crate::invoice::amount::Amount;
use crate::secret::Secret;

/// The three addresses that make an invoice a Redirect one. All or none (contract 4.3, mode rules).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnUrls {
    /// `successUrl`
    pub success: String,
    /// `cancelUrl`
    pub cancel: String,
    /// `errorUrl`
    pub error: String,
}

/// What is asked for. `Debug` shows no token.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// `internalId`
    pub internal_id: String,
    /// `amount`
    pub amount: Amount,
    /// `currency`
    pub currency: String,
    /// `startDeal`: sent as true in the shown usage, its effect is not shown.
    pub start_deal: bool,
    /// `paymentMethod`
    pub method: String,
    /// `notificationUrl`
    pub notification_url: String,
    /// `notificationToken`
    pub notification_token: Secret,
    /// The return addresses, for Redirect mode.
    pub return_urls: Option<ReturnUrls>,
}

impl CreateRequest {
    /// The JSON text to send. Holds the notify token: it goes to the service and nowhere else.
    pub fn to_json(&self) -> Secret {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        put("internalId", self.internal_id.as_str().into());
        put("direction", "in".into());
        put("amount", number(&self.amount));
        put("currency", self.currency.as_str().into());
        put("startDeal", self.start_deal.into());
        put("paymentMethod", self.method.as_str().into());
        put("notificationUrl", self.notification_url.as_str().into());
        put("notificationToken", self.notification_token.expose().into());
        if let Some(urls) = &self.return_urls {
            put("successUrl", urls.success.as_str().into());
            put("cancelUrl", urls.cancel.as_str().into());
            put("errorUrl", urls.error.as_str().into());
        }
        Secret::new(Value::Object(body).to_string())
    }

    /// Reads a request; for the sandbox, which is strict where the contract shows nothing: what is there has the form that
    /// contract 4.3 shows, and null is none. `Err` names the first field that is missing or has the wrong form.
    pub fn from_json(object: &Object) -> Result<Self, &'static str> {
        let string = |name: &'static str| match object.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(name),
        };
        let need = |name: &'static str| string(name)?.ok_or(name);
        let address = |name: &'static str| match string(name)? {
            Some(text) if !is_for_browsers(&text) => Err(name),
            read => Ok(read),
        };
        if need("direction")? != "in" {
            return Err("direction");
        }
        let amount = match object.get("amount") {
            Some(Value::Number(number)) => Amount::read(number.as_str()).ok(),
            Some(_) | None => None,
        };
        let start_deal = match object.get("startDeal") {
            None => false,
            Some(Value::Bool(start_deal)) => *start_deal,
            Some(_) => return Err("startDeal"),
        };
        let return_urls = match (
            address("successUrl")?,
            address("cancelUrl")?,
            address("errorUrl")?,
        ) {
            (None, None, None) => None,
            (Some(success), Some(cancel), Some(error)) => Some(ReturnUrls {
                success,
                cancel,
                error,
            }),
            (None, _, _) => return Err("successUrl"),
            (_, None, _) => return Err("cancelUrl"),
            (_, _, None) => return Err("errorUrl"),
        };
        Ok(Self {
            internal_id: need("internalId")?,
            amount: amount
                .and_then(|amount| Amount::parse_payable(amount.as_str()).ok())
                .ok_or("amount")?,
            currency: need("currency")?,
            start_deal,
            method: need("paymentMethod")?,
            notification_url: need("notificationUrl")?,
            notification_token: Secret::new(need("notificationToken")?),
            return_urls,
        })
    }
}

/// The amount as a JSON number with exactly its digits.
fn number(amount: &Amount) -> Value {
    let number: Number = amount
        .as_str()
        .parse()
        .expect("a payable amount is a JSON number");
    Value::Number(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::object;

    fn request(amount: &str) -> CreateRequest {
        CreateRequest {
            internal_id: "order-1".into(),
            amount: Amount::parse_payable(amount).expect(amount),
            currency: "RUB".into(),
            start_deal: true,
            method: "SBP".into(),
            notification_url: "https://shop.example/n/ref".into(),
            notification_token: Secret::new("t".repeat(43)),
            return_urls: None,
        }
    }

    #[test]
    fn the_digits_given_are_the_digits_sent() {
        for amount in ["599.80", "0.10", "1000000000000.01", "5"] {
            let sent = request(amount).to_json();
            assert!(
                sent.expose().contains(&format!("\"amount\":{amount},")),
                "{}",
                sent.expose()
            );
        }
    }

    #[test]
    fn it_reads_back_and_debug_shows_no_token() {
        let sent = request("599.80");
        let back = CreateRequest::from_json(
            &object(sent.to_json().expose().as_bytes()).expect("an object"),
        )
        .expect("readable");
        assert_eq!(back.amount.as_str(), "599.80");
        assert!(!format!("{sent:?}{back:?}").contains("tttt"));
    }

    #[test]
    fn return_addresses_are_all_or_none() {
        let mut asked = request("1");
        asked.return_urls = Some(ReturnUrls {
            success: "https://a".into(),
            cancel: "https://b".into(),
            error: "https://c".into(),
        });
        let mut body = object(asked.to_json().expose().as_bytes()).expect("an object");
        assert!(CreateRequest::from_json(&body).is_ok_and(|r| r.return_urls.is_some()));
        let good = body.insert("errorUrl".to_owned(), "javascript:alert(1)".into());
        assert_eq!(CreateRequest::from_json(&body).err(), Some("errorUrl"));
        body.extend(good.map(|good| ("errorUrl".to_owned(), good)));
        body.remove("cancelUrl");
        assert_eq!(CreateRequest::from_json(&body).err(), Some("cancelUrl"));
        // What has the wrong form is not passed over as if it were not there.
        for name in ["successUrl", "startDeal"] {
            for odd in [Value::from(17), Value::Null, Value::from("")] {
                let mut body =
                    object(request("1").to_json().expose().as_bytes()).expect("an object");
                body.insert(name.to_owned(), odd);
                assert_eq!(CreateRequest::from_json(&body).err(), Some(name));
            }
        }
    }

    /// Contract 4.3: a number, and JSON has more spellings of one than tilld sends.
    #[test]
    fn an_exponent_moves_the_point_and_loses_no_digit() {
        for (number, wanted) in [
            ("1e2", Ok("100")),
            ("1.505E+2", Ok("150.5")),
            ("1e400", Err("amount")),
            ("0e1", Err("amount")),
            ("-1e2", Err("amount")),
        ] {
            let mut body = object(request("1").to_json().expose().as_bytes()).expect("an object");
            let number: Number = number.parse().expect("a number");
            body.insert("amount".to_owned(), Value::Number(number));
            let read = CreateRequest::from_json(&body);
            let read = read.as_ref().map(|read| read.amount.as_str());
            assert_eq!(read.map_err(|field| *field), wanted);
        }
    }
}
