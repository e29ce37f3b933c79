//! What a create asks for: the sandbox's own checks on it, where the contract shows none, and the amounts beside the one that
//! was asked for.

use rust_decimal::Decimal;
use url::Url;

use super::pool::Method;
use crate::invoice::notify_token::SHORTEST_TOKEN;
use crate::wire::create::CreateRequest;

/// Longest text of a request's field, in characters. The contract shows no bound; memory has one.
pub(crate) const LONGEST_FIELD: usize = 2_048;
/// Longest currency, in characters.
const LONGEST_CURRENCY: usize = 16;

/// Judges a request. `Err` names the field.
pub(super) fn check(request: &CreateRequest) -> Result<Method, &'static str> {
    let is_short = |text: &str| text.chars().count() <= LONGEST_FIELD;
    let web = |text: &str| {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        // What a reader mends by himself (blanks around it, backslashes) others do not.
        let as_it_is = |url: &Url| text.starts_with(&format!("{}://", url.scheme()));
        is_short(text) && !text.contains([' ', '\\']) && url.as_ref().is_some_and(as_it_is)
    };
    if !is_short(&request.internal_id) {
        return Err("internalId");
    }
    if request.currency.chars().count() > LONGEST_CURRENCY {
        return Err("currency");
    }
    if !web(&request.notification_url) {
        return Err("notificationUrl");
    }
    let token = request.notification_token.expose();
    if token.chars().count() < SHORTEST_TOKEN || !is_short(token) {
        return Err("notificationToken");
    }
    if let Some(urls) = &request.return_urls {
        for (name, url) in [
            ("successUrl", &urls.success),
            ("cancelUrl", &urls.cancel),
            ("errorUrl", &urls.error),
        ] {
            if !web(url) {
                return Err(name);
            }
        }
    }
    Method::parse(&request.method).ok_or("paymentMethod")
}

/// Less than was asked, and more than nothing: one unit of money less, or half where that would leave nothing. `None`
/// where there is no such amount.
pub(super) fn less(asked: &str) -> Option<String> {
    let amount = Decimal::from_str_exact(asked).ok()?;
    let less = if amount > Decimal::ONE {
        amount - Decimal::ONE
    } else {
        (amount / Decimal::TWO).normalize()
    };
    (less > Decimal::ZERO && less < amount).then(|| less.to_string())
}

/// More than was asked: one unit of money more. `None` where there is no such amount.
pub(super) fn more(asked: &str) -> Option<String> {
    let amount = Decimal::from_str_exact(asked).ok()?;
    let more = amount.checked_add(Decimal::ONE)?;
    (more > amount).then(|| more.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_amount_is_another_one_or_there_is_none() {
        let smallest = "0.0000000000000000000000000001";
        let largest = "79228162514264337593543950335";
        for (asked, lower, higher) in [
            ("1500.00", Some("1499.00"), Some("1501.00")),
            ("1", Some("0.5"), Some("2")),
            ("0.01", Some("0.005"), Some("1.01")),
            (largest, Some("79228162514264337593543950334"), None),
        ] {
            assert_eq!(less(asked).as_deref(), lower, "{asked}");
            assert_eq!(more(asked).as_deref(), higher, "{asked}");
        }
        assert_eq!(less(smallest), None);
    }
}
