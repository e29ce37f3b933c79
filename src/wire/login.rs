//! The device login (contract 4.1, 4.2): a login request, its device code, and the token it yields.

use serde_json::{Value, json};

use super::address::is_for_browsers;
use super::fields::{Field, Fields};
use super::json::Object;
use crate::secret::{Cutter, Secret};

/// Lifetime taken when the service names none or nonsense: the 600 s of contract 8.
const DEFAULT_LIFETIME_S: u64 = 600;
/// Interval taken when the service names none or nonsense: the 5 s of contract 8.
const DEFAULT_INTERVAL_S: u64 = 5;
/// Longest lifetime taken, a day: more is a mistake of the service, and would outlast the merchant who is to confirm.
const LONGEST_LIFETIME_S: u64 = 86_400;

/// Longest code a merchant compares, in bytes. The contract's has 9 characters (contract 2.1).
const LONGEST_CODE: usize = 64;
/// Longest address a merchant opens, in bytes: browsers and terminals take no longer one.
const LONGEST_URL: usize = 2_048;
/// Longest secret, in bytes. It has to fit a header, of which no server takes more than 8 KiB.
const LONGEST_SECRET: usize = 4_096;
/// Longest name of a shop that is kept whole, in characters.
const LONGEST_NAME: usize = 200;

/// Access tokens of tilld's own sandbox begin with this. No service issues such tokens: they are ours, and are good for nothing
/// anywhere else.
pub const SANDBOX_TOKEN: &str = "sandbox-tilld-";

/// A login request that was created (contract 2.1).
#[derive(Clone, Debug)]
pub struct LoginStarted {
    /// `deviceCode`: secret, sent when polling for the token.
    pub device_code: Secret,
    /// `userCode`: for the merchant to compare.
    pub user_code: String,
    /// `verificationUrl`: for the merchant to open.
    pub verification_url: String,
    /// `expiresIn`, seconds, 1 to 86400.
    pub expires_in_s: u64,
    /// `interval`, seconds, at least 1.
    pub interval_s: u64,
}

/// A token that was issued (contract 2.2).
#[derive(Clone, Debug)]
pub struct TokenIssued {
    /// `token`: the secret Bearer token of one shop.
    pub token: Secret,
    /// `shopName`: the shop the merchant chose.
    pub shop_name: String,
}

/// The body of `POST /api/v1/agent/login`.
pub fn login_request(client_name: &str) -> String {
    json!({ "clientName": client_name }).to_string()
}

/// `clientName` of a login request; for the sandbox.
pub fn client_name(object: &Object) -> Option<String> {
    object
        .get("clientName")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// The body of `POST /api/v1/agent/token`. Holds the device code.
pub fn token_request(device_code: &Secret) -> Secret {
    Secret::new(json!({ "deviceCode": device_code.expose() }).to_string())
}

/// `deviceCode` of a token request; for the sandbox.
pub fn device_code(object: &Object) -> Option<Secret> {
    object
        .get("deviceCode")
        .and_then(Value::as_str)
        .map(Secret::new)
}

impl LoginStarted {
    /// Reads the answer to a login request. `Err` names the first field that is missing or too long to be one, or holds an
    /// address that no browser is to be sent to. Lifetime and interval fall back to the contract's constants (A34): each when it
    /// is missing, 0 or nonsense, the interval also when it leaves no room for a single question within the lifetime.
    pub fn from_json(object: &Fields<'_>) -> Result<Self, &'static str> {
        let need = |name, longest| needed(object, name, longest);
        let seconds = |name: &str, default| {
            object
                .get(name)
                .and_then(Field::text)
                .and_then(|text| text.parse().ok())
                .filter(|s| *s > 0)
                .unwrap_or(default)
        };
        let expires_in_s = seconds("expiresIn", DEFAULT_LIFETIME_S).min(LONGEST_LIFETIME_S);
        let interval_s = Some(seconds("interval", DEFAULT_INTERVAL_S))
            .filter(|interval_s| *interval_s < expires_in_s)
            .unwrap_or(DEFAULT_INTERVAL_S);
        Ok(Self {
            device_code: Secret::new(need("deviceCode", LONGEST_SECRET)?),
            user_code: need("userCode", LONGEST_CODE)?.to_owned(),
            verification_url: need("verificationUrl", LONGEST_URL)
                .ok()
                .filter(|url| is_for_browsers(url))
                .ok_or("verificationUrl")?
                .to_owned(),
            expires_in_s,
            interval_s,
        })
    }

    /// The JSON text the service answers with; for the sandbox. Holds the device code.
    pub fn to_json(&self) -> String {
        json!({
            "deviceCode": self.device_code.expose(),
            "userCode": self.user_code,
            "verificationUrl": self.verification_url,
            "expiresIn": self.expires_in_s,
            "interval": self.interval_s,
        })
        .to_string()
    }
}

impl TokenIssued {
    /// Reads an issued token. `Err` names the field that is missing or too long; a missing shop name is shown as empty, a long
    /// one is cut, and one with the token in it shown without that.
    pub fn from_json(object: &Fields<'_>) -> Result<Self, &'static str> {
        let token = Secret::new(needed(object, "token", LONGEST_SECRET)?);
        let shop_name = object.get("shopName").and_then(Field::text);
        let mut shop_name = shop_name.map_or_else(String::new, str::to_owned);
        Cutter::new(&[&token]).cut(&mut shop_name);
        let shop_name = shortened(shop_name);
        Ok(Self { token, shop_name })
    }

    /// The JSON text the service answers with; for the sandbox. Holds the token.
    pub fn to_json(&self) -> String {
        json!({ "token": self.token.expose(), "shopName": self.shop_name }).to_string()
    }
}

/// A text that is there and no longer than this.
fn needed<'o>(
    object: &'o Fields<'_>,
    name: &'static str,
    longest: usize,
) -> Result<&'o str, &'static str> {
    let text = object.get(name).and_then(Field::as_str);
    text.filter(|text| (1..=longest).contains(&text.len()))
        .ok_or(name)
}

fn shortened(name: String) -> String {
    if name.chars().nth(LONGEST_NAME).is_none() {
        return name;
    }
    let mut kept: String = name.chars().take(LONGEST_NAME).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code, an address or a name of a mebibyte was printed whole.
    #[test]
    fn what_is_too_long_is_none_and_a_long_name_is_cut() {
        let long = "x".repeat(1 << 20);
        for field in ["deviceCode", "userCode", "verificationUrl"] {
            let body = r#"{"deviceCode":"d","userCode":"d","verificationUrl":"d"}"#;
            let own = format!("\"{field}\":\"{long}\"");
            let body = body.replace(&format!("\"{field}\":\"d\""), &own);
            let body = Fields::read(body.as_bytes()).expect("an object");
            assert_eq!(LoginStarted::from_json(&body).err(), Some(field));
        }
        let issued = |token: &str| {
            let body = json!({ "token": token, "shopName": long }).to_string();
            TokenIssued::from_json(&Fields::read(body.as_bytes()).expect("an object"))
        };
        assert_eq!(issued(&long).err(), Some("token"));
        let name = issued("a:b").expect("readable").shop_name;
        assert_eq!(name.chars().count(), LONGEST_NAME + 1);
        assert!(name.ends_with("x…"));
    }

    #[test]
    fn interval_and_lifetime_fall_back_to_the_contract() {
        let body = br#"{"deviceCode":"dc_secret","userCode":"ABCD-EFGH","verificationUrl":"https://c/activate?code=ABCD-EFGH","interval":0}"#;
        let started =
            LoginStarted::from_json(&Fields::read(body).expect("an object")).expect("readable");
        assert_eq!((started.expires_in_s, started.interval_s), (600, 5));
        assert!(!format!("{started:?}").contains("dc_secret"));
        let back = LoginStarted::from_json(
            &Fields::read(started.to_json().as_bytes()).expect("an object"),
        );
        assert!(back.is_ok_and(|b| b.device_code.expose() == "dc_secret"));
    }

    #[test]
    fn what_no_login_can_live_by_is_not_taken_over() {
        let body = br#"{"deviceCode":"dc","userCode":"A","verificationUrl":"javascript:alert(1)"}"#;
        let refused = LoginStarted::from_json(&Fields::read(body).expect("an object"));
        assert_eq!(refused.err(), Some("verificationUrl"));
        for (fields, wanted) in [
            (r#""expiresIn":600,"interval":5"#, (600, 5)),
            (r#""expiresIn":"300","interval":"10""#, (300, 10)),
            (r#""x":0"#, (600, 5)),
            (r#""expiresIn":null,"interval":null"#, (600, 5)),
            (r#""expiresIn":0,"interval":0"#, (600, 5)),
            (r#""expiresIn":-600,"interval":-5"#, (600, 5)),
            (r#""expiresIn":600.5,"interval":0.001"#, (600, 5)),
            (r#""expiresIn":"soon","interval":[1]"#, (600, 5)),
            (
                r#""expiresIn":18446744073709551615,"interval":1"#,
                (86_400, 1),
            ),
            (r#""expiresIn":1e300,"interval":600"#, (600, 5)),
            (r#""expiresIn":600,"interval":86400000"#, (600, 5)),
            (r#""expiresIn":3,"interval":4"#, (3, 5)),
        ] {
            let body = format!(
                r#"{{"deviceCode":"dc","userCode":"A","verificationUrl":"https://c",{fields}}}"#
            );
            let started =
                LoginStarted::from_json(&Fields::read(body.as_bytes()).expect("an object"))
                    .expect("readable");
            assert_eq!(
                (started.expires_in_s, started.interval_s),
                wanted,
                "{fields}"
            );
        }
    }

    #[test]
    fn a_missing_code_is_named() {
        assert_eq!(
            LoginStarted::from_json(&Fields::read(b"{}").expect("an object")).err(),
            Some("deviceCode")
        );
        assert_eq!(
            TokenIssued::from_json(&Fields::read(b"{\"token\":\"\"}").expect("an object")).err(),
            Some("token")
        );
    }
}
