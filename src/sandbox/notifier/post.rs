//! One notification as one request: where the token stands, what of the body comes and how soon. Only loopback addresses
//! are ever spoken to.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Url};
use serde_json::{Map, Value};

use super::Notifier;
use super::flow::Told;
use crate::sandbox::guard;
use crate::sandbox::presented::{self, Message};
use crate::sandbox::state::faults::{Flow, Presentation, Token, Treatment};
use crate::sandbox::state::notice::{Answer, Notice};
use crate::secret::Secret;

impl Notifier {
    /// One request, and what came of it. `flow` is how its body comes.
    pub(super) async fn send(&self, notice: &Notice, how: &Treatment, flow: Flow) -> Answer {
        let Some(mut url) = loopback(&notice.url) else {
            return Answer::NotLoopback;
        };
        // Never closed: the notifier owns it.
        let Ok(_slot) = self.slots.acquire().await else {
            return Answer::None("stopping");
        };
        let wrong = (how.token == Token::Wrong).then(|| wrong_token(&notice.token));
        let token = wrong.as_ref().unwrap_or(&notice.token);
        let presentation = match how.token {
            Token::Missing => &Presentation::Missing,
            Token::Right | Token::Wrong => &how.presentation,
        };
        let mut body = notice.body.to_string();
        let headers = match presentation {
            Presentation::Query(name) => {
                url.query_pairs_mut().append_pair(name, token.expose());
                Vec::new()
            }
            Presentation::Body(pointer) => {
                body = with_token(&body, pointer, token.expose());
                Vec::new()
            }
            in_headers => {
                let message = Message {
                    id: format!("msg_{}_{}", notice.invoice, notice.number),
                    sent_s: self.world.with(|_, now| now) / 1_000,
                    body: &body,
                };
                presented::headers(in_headers, token, &message)
            }
        };
        let mut request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json");
        if let Some(ms) = how.give_up_ms {
            request = request.timeout(Duration::from_millis(ms));
        }
        for (name, text) in headers {
            let Ok(mut value) = HeaderValue::from_str(&text) else {
                return Answer::None("the token does not fit into a header");
            };
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let body = match flow {
            Flow::Whole => Body::from(body),
            Flow::Torn | Flow::Slow => Body::wrap(Told::new(body, flow)),
        };
        match request.body(body).send().await {
            Ok(response) => Answer::Code(response.status().as_u16()),
            Err(_cut) if flow == Flow::Torn => Answer::None("torn on purpose"),
            Err(error) if error.is_timeout() => Answer::None("time-out"),
            Err(error) if error.is_connect() => Answer::None("no connection"),
            Err(_cut_short) => Answer::None("connection closed"),
        }
    }
}

/// The address, when it is one of this machine.
fn loopback(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    url.host_str()
        .is_some_and(guard::is_loopback)
        .then_some(url)
}

/// A token of the same length that is not this one.
fn wrong_token(token: &Secret) -> Secret {
    let length = token.expose().chars().count();
    let guess = "x".repeat(length);
    Secret::new(if guess == token.expose() {
        "y".repeat(length)
    } else {
        guess
    })
}

/// The document with the token at a JSON pointer; objects on the way are made.
fn with_token(body: &str, pointer: &str, token: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<Value>(body) else {
        return body.to_owned();
    };
    let mut place = &mut document;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(object) = place else { break };
        place = object.entry(name).or_insert(Value::Null);
    }
    *place = token.into();
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_stands_where_it_was_told_to() {
        assert_eq!(
            with_token("{\"id\":\"a\"}", "/notificationToken", "secret"),
            "{\"id\":\"a\",\"notificationToken\":\"secret\"}"
        );
        assert_eq!(with_token("{}", "/a/b~1c", "s"), "{\"a\":{\"b/c\":\"s\"}}");
    }

    #[test]
    fn only_loopback_is_spoken_to() {
        assert!(loopback("http://127.0.0.1:8480/n/ref").is_some());
        assert!(loopback("http://[::1]:8480/n").is_some());
        for elsewhere in [
            "https://shop.example/n",
            "http://10.0.0.1/",
            "http://127.0.0.1@shop.example/",
            "n",
        ] {
            assert!(loopback(elsewhere).is_none(), "{elsewhere}");
        }
    }

    #[test]
    fn a_wrong_token_is_as_long_and_not_the_same() {
        for text in ["t".repeat(43), "x".repeat(43)] {
            let wrong = wrong_token(&Secret::new(text.clone()));
            assert!(wrong.expose().len() == 43 && wrong.expose() != text);
        }
    }
}
