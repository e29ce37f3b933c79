//! What a person with a browser does at the sandbox, and a test with its control listener: reads a page, presses a button
//! that is really on it, tells the sandbox what to do wrong. For demonstrations and tests; speaks to this machine only.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::guard;
use super::notifier::{OwnNames, SetupError, provide_tls};

/// A page has so long to come. It comes from this machine and is made in memory.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The header in which notifications carry their token, as the sandbox sends it by default.
const TOKEN_HEADER: &str = "X-Notification-Token";

/// Why a visit led to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VisitError {
    /// Visits lead to this machine only.
    #[error("`{0}` is no address of this machine")]
    NotLoopback(String),
    /// No answer.
    #[error("`{address}` did not answer")]
    Unanswered {
        /// Where.
        address: String,
        /// The library's word.
        #[source]
        source: reqwest::Error,
    },
    /// An answer that does not fit what was wanted.
    #[error("`{address}` answered {status} instead of {wanted}")]
    Answered {
        /// Where.
        address: String,
        /// HTTP status.
        status: u16,
        /// What would have fitted.
        wanted: &'static str,
    },
    /// An answer of the control listener that is no JSON.
    #[error("`{address}` answered with something that is no JSON")]
    NotJson {
        /// Where.
        address: String,
        /// The parser's word.
        #[source]
        source: serde_json::Error,
    },
    /// The page has nothing of that kind to choose.
    #[error("the page `{address}` does not offer {name} `{value}`")]
    NotOffered {
        /// Which page.
        address: String,
        /// The field's name.
        name: &'static str,
        /// What was to be chosen.
        value: String,
    },
}

/// Somebody in front of a browser. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    client: Client,
}

/// A page as the browser holds it.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    url: Url,
    html: String,
}

impl Visitor {
    /// A browser with nothing open.
    pub(crate) fn new() -> Result<Self, SetupError> {
        provide_tls();
        let client = Client::builder()
            .no_proxy()
            // Followed here, so that each address is judged first.
            .redirect(Policy::none())
            .dns_resolver(Arc::new(OwnNames))
            .timeout(ANSWER_TIME)
            .user_agent("tilld-sandbox-visitor")
            .build()
            .map_err(SetupError)?;
        Ok(Self { client })
    }

    /// Opens a page.
    pub(crate) async fn open(&self, address: &str) -> Result<Page, VisitError> {
        let url = local(address)?;
        let (status, _, html) = self.ask(self.client.get(url.clone())).await?;
        if status != 200 {
            return Err(answered(&url, status, "200"));
        }
        Ok(Page { url, html })
    }

    /// Presses the button `name`=`value` of a page, with these other fields of its form chosen, and opens the page it
    /// leads to. The form's hidden fields go along, as a browser sends them.
    pub(crate) async fn press(
        &self,
        page: &Page,
        (name, value): (&'static str, &str),
        chosen: &[(&'static str, &str)],
    ) -> Result<Page, VisitError> {
        let (url, body) = page.filled(name, value, chosen)?;
        let request = self
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        let (status, location, _) = self.ask(request).await?;
        let next = location.and_then(|next| url.join(&next).ok());
        match next.filter(|_| status == 303) {
            Some(next) => self.open(next.as_str()).await,
            None => Err(answered(&url, status, "the next page")),
        }
    }

    /// Everything the sandbox knows: `GET /state` of its control listener.
    pub(crate) async fn state(&self, control_url: &str) -> Result<Value, VisitError> {
        let url = local(&format!("{control_url}/state"))?;
        self.told(url.clone(), self.client.get(url)).await
    }

    /// Has the control listener do something: a POST of `what` to `path`.
    pub(crate) async fn control(
        &self,
        control_url: &str,
        path: &str,
        what: &Value,
    ) -> Result<Value, VisitError> {
        let url = local(&format!("{control_url}{path}"))?;
        self.told(url.clone(), self.client.post(url).json(what))
            .await
    }

    /// Sends a notification as a stranger who knows the address and guesses the token. Gives the HTTP status.
    pub(crate) async fn notify(
        &self,
        address: &str,
        token: &str,
        invoice: &Value,
    ) -> Result<u16, VisitError> {
        let request = self.client.post(local(address)?);
        let request = request.header(TOKEN_HEADER, token).json(invoice);
        self.ask(request).await.map(|(status, _, _)| status)
    }

    async fn told(&self, url: Url, request: RequestBuilder) -> Result<Value, VisitError> {
        let (status, _, text) = self.ask(request).await?;
        if status != 200 {
            return Err(answered(&url, status, "200"));
        }
        serde_json::from_str(&text).map_err(|source| VisitError::NotJson {
            address: url.to_string(),
            source,
        })
    }

    /// Status, `Location` and text of an answer.
    async fn ask(
        &self,
        request: RequestBuilder,
    ) -> Result<(u16, Option<String>, String), VisitError> {
        let unanswered = |source: reqwest::Error| VisitError::Unanswered {
            address: source.url().map(Url::to_string).unwrap_or_default(),
            source: source.without_url(),
        };
        let response = request.send().await.map_err(unanswered)?;
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        let (status, location) = (response.status().as_u16(), location.map(str::to_owned));
        // Not bounded: the sandbox of this machine made it, and a stranger's answer is at most a listener's short word.
        let text = response.text().await.map_err(unanswered)?;
        Ok((status, location, text))
    }
}

impl Page {
    /// What the page says, tags and all.
    pub(crate) fn html(&self) -> &str {
        &self.html
    }

    /// Address and body of the form with this button, filled in.
    fn filled(
        &self,
        name: &'static str,
        value: &str,
        chosen: &[(&'static str, &str)],
    ) -> Result<(Url, String), VisitError> {
        let not_offered = |name, value: &str| VisitError::NotOffered {
            address: self.url.to_string(),
            name,
            value: value.to_owned(),
        };
        let form = forms(&self.html)
            .find(|form| offers(form, "button", name, value))
            .ok_or_else(|| not_offered(name, value))?;
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        for hidden in tags(form, "input").filter(|tag| attribute(tag, "type") == Some("hidden")) {
            let field = attribute(hidden, "name").zip(attribute(hidden, "value"));
            if let Some((name, value)) = field {
                body.append_pair(name, &plain(value));
            }
        }
        for (name, value) in chosen {
            if !offers(form, "input", name, value) {
                return Err(not_offered(name, value));
            }
            body.append_pair(name, value);
        }
        body.append_pair(name, value);
        let action = tags(form, "form").find_map(|tag| attribute(tag, "action"));
        let url = self.url.join(&plain(action.unwrap_or_default()));
        let url = url.map_err(|_no_url| VisitError::NotLoopback(self.url.to_string()))?;
        Ok((local(url.as_str())?, body.finish()))
    }
}

fn answered(url: &Url, status: u16, wanted: &'static str) -> VisitError {
    VisitError::Answered {
        address: url.to_string(),
        status,
        wanted,
    }
}

/// The address, when it is one of this machine.
fn local(address: &str) -> Result<Url, VisitError> {
    guard::on_this_machine(address).map_err(|_host| VisitError::NotLoopback(address.to_owned()))
}

/// The forms of a page, each from its first tag to its end. The sandbox's pages are simple: no form in a form, no script,
/// double quotes round every value.
fn forms(html: &str) -> impl Iterator<Item = &str> {
    html.split_inclusive("</form>")
        .filter_map(|part| part.get(part.find("<form ")?..))
}

/// The tags of this name, without what stands between them.
fn tags<'h>(html: &'h str, name: &str) -> impl Iterator<Item = &'h str> {
    let start = format!("<{name} ");
    html.split_inclusive('>')
        .filter_map(move |part| part.get(part.rfind(start.as_str())?..))
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn offers(form: &str, tag: &str, name: &str, value: &str) -> bool {
    tags(form, tag).any(|tag| {
        attribute(tag, "name") == Some(name)
            && attribute(tag, "value").is_some_and(|offered| plain(offered) == value)
    })
}

/// Text of an attribute, its entities read.
fn plain(text: &str) -> String {
    [
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (entity, character)| {
        text.replace(entity, character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let html = "<form method=\"get\" action=\"/find\"><input type=\"text\" name=\"code\"></form>\
            <form method=\"post\" action=\"/act\">\
            <input type=\"hidden\" name=\"form_token\" value=\"a&amp;b\">\
            <input type=\"radio\" name=\"shop\" value=\"Tea &quot;on&quot; Rails\" checked> Tea\
            <button class=\"main\" name=\"decision\" value=\"confirm\">Yes</button></form>";
        Page {
            url: Url::parse("http://127.0.0.1:1/activate?code=A").expect("a URL"),
            html: html.to_owned(),
        }
    }

    #[test]
    fn a_form_is_filled_in_as_a_browser_does_it() {
        let shop = [("shop", "Tea \"on\" Rails")];
        let filled = page().filled("decision", "confirm", &shop);
        let (url, body) = filled.expect("it is on the page");
        assert_eq!(url.as_str(), "http://127.0.0.1:1/act");
        assert_eq!(
            body,
            "form_token=a%26b&shop=Tea+%22on%22+Rails&decision=confirm"
        );
    }

    #[test]
    fn only_what_the_page_offers_can_be_chosen() {
        assert!(page().filled("decision", "refuse", &[]).is_err());
        let elsewhere = [("shop", "Another")];
        assert!(page().filled("decision", "confirm", &elsewhere).is_err());
    }

    #[test]
    fn only_this_machine_is_visited() {
        assert!(local("http://127.0.0.1:8490/cabinet").is_ok());
        assert!(local("http://[::1]:8490/").is_ok());
        assert!(local("https://cabinet.example/").is_err());
        assert!(local("cabinet").is_err());
    }
}
