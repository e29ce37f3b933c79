//! What a person with a browser does and sees: opens, reads, clicks, types, presses keys. And what nobody sees: the
//! console, and where requests went.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::driver::{Driver, Scripts};
use crate::harness::{PATIENCE, wait_until};

/// Keys by their place in the `WebDriver` standard (section 17.4.2).
pub(super) const TAB: &str = "\u{e004}";
pub(super) const ENTER: &str = "\u{e007}";
pub(super) const SPACE: &str = " ";
pub(super) const DOWN: &str = "\u{e015}";

/// What a request may begin with: this machine, and what the browser carries within itself.
const WITHIN: [&str; 3] = ["http://127.0.0.1:", "data:", "about:"];

/// More stops than any page has.
const MOST_STOPS: usize = 60;

/// Somebody in front of a browser.
#[derive(Debug)]
pub(super) struct Person {
    driver: Driver,
}

impl Person {
    /// Somebody who reads these languages, the best one first.
    #[track_caller]
    pub(super) fn reading(languages: &str, scripts: Scripts) -> Self {
        let driver = Driver::start(languages, scripts);
        Self { driver }
    }

    /// Opens an address.
    #[track_caller]
    pub(super) fn open(&self, address: &str) {
        self.driver.tell("/url", &json!({ "url": address }));
    }

    /// Where the browser is.
    #[track_caller]
    pub(super) fn address(&self) -> String {
        text(&self.driver.ask("/url"))
    }

    /// What the page is called.
    #[track_caller]
    pub(super) fn title(&self) -> String {
        text(&self.driver.ask("/title"))
    }

    /// What a piece of script gives in the page; from outside, so also where the page may run none.
    #[track_caller]
    pub(super) fn script(&self, text: &str, args: &[Value]) -> Value {
        self.driver
            .tell("/execute/sync", &json!({ "script": text, "args": args }))
    }

    /// The same for one that calls back: the function that takes its result is its last argument.
    #[track_caller]
    pub(super) fn slow_script(&self, text: &str, args: &[Value]) -> Value {
        self.driver
            .tell("/execute/async", &json!({ "script": text, "args": args }))
    }

    /// What the first element of this selector says; nothing when there is none.
    #[track_caller]
    pub(super) fn read(&self, css: &str) -> String {
        let read = "const found = document.querySelector(arguments[0]); return found ? found.innerText : ''";
        text(&self.script(read, &[css.into()]))
    }

    /// Waits until an element of this selector says this, among other things.
    #[track_caller]
    pub(super) fn sees(&self, css: &str, wanted: &str) {
        wait_until(PATIENCE, &format!("{css} to say `{wanted}`"), || {
            self.read(css).contains(wanted)
        });
    }

    /// Waits until the browser is at an address that begins so.
    #[track_caller]
    pub(super) fn arrives(&self, address: &str) {
        wait_until(PATIENCE, &format!("the browser to be at {address}"), || {
            self.address().starts_with(address)
        });
    }

    /// Clicks the first element of this selector, once there is one. The page it leads to may not be there yet.
    #[track_caller]
    pub(super) fn click(&self, css: &str) {
        let element = self.element(css);
        self.driver
            .tell(&format!("/element/{element}/click"), &json!({}));
    }

    /// Types into the first element of this selector.
    #[track_caller]
    pub(super) fn fill(&self, css: &str, typed: &str) {
        let element = self.element(css);
        self.driver.tell(
            &format!("/element/{element}/value"),
            &json!({ "text": typed }),
        );
    }

    #[track_caller]
    fn element(&self, css: &str) -> String {
        let wish = json!({ "using": "css selector", "value": css });
        let found = self.driver.tell("/element", &wish);
        let id = found.as_object().and_then(|fields| fields.values().next());
        text(id.expect("an element"))
    }

    /// Presses keys, one after the other.
    #[track_caller]
    pub(super) fn press(&self, keys: &[&str]) {
        let strokes = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })));
        let strokes: Vec<Value> = strokes.collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        self.driver
            .tell("/actions", &json!({ "actions": [keyboard] }));
    }

    /// Presses Tab until the focus is at this selector.
    #[track_caller]
    pub(super) fn tab_to(&self, css: &str) {
        let here = "const at = document.activeElement; return !!at && at.matches(arguments[0])";
        for _stop in 0..MOST_STOPS {
            self.press(&[TAB]);
            if self.script(here, &[css.into()]) == true {
                return;
            }
        }
        panic!("no Tab leads to {css} on {}", self.address());
    }

    /// One command of the browser's own protocol.
    #[track_caller]
    pub(super) fn command(&self, name: &str, parameters: &Value) -> Value {
        let wish = json!({ "cmd": name, "params": parameters });
        self.driver.tell("/goog/cdp/execute", &wish)
    }

    /// Writes what the screen shows into a file, as PNG.
    #[track_caller]
    pub(super) fn shoot(&self, file: &Path) {
        let wish = json!({ "optimizeForSpeed": true });
        let taken = self.command("Page.captureScreenshot", &wish);
        let data = text(taken.get("data").expect("a picture"));
        fs::write(file, STANDARD.decode(data).expect("base64")).expect("written");
    }

    /// What the console got since the last question.
    #[track_caller]
    pub(super) fn complaints(&self) -> Vec<String> {
        let lines = self.log("browser");
        lines
            .iter()
            .filter_map(|line| line.get("message"))
            .map(text)
            .collect()
    }

    /// Addresses of the requests since the last question that would have left this machine.
    #[track_caller]
    pub(super) fn strays(&self) -> Vec<String> {
        self.asked()
            .into_iter()
            .filter(|url| !is_within(url))
            .collect()
    }

    /// Addresses of all requests since the last question.
    #[track_caller]
    pub(super) fn asked(&self) -> Vec<String> {
        let lines = self.log("performance");
        let events = lines.iter().filter_map(|line| {
            let event: Value = serde_json::from_str(line.get("message")?.as_str()?).ok()?;
            let sent = event.pointer("/message/method")? == "Network.requestWillBeSent";
            let url = event.pointer("/message/params/request/url")?;
            sent.then(|| text(url))
        });
        events.collect()
    }

    #[track_caller]
    fn log(&self, kind: &str) -> Vec<Value> {
        let lines = self.driver.tell("/se/log", &json!({ "type": kind }));
        lines.as_array().expect("lines").clone()
    }

    /// Ends the visit: the console was quiet, and all requests stayed on this machine.
    #[track_caller]
    pub(super) fn leaves(self) {
        let asked = self.asked();
        assert!(
            asked.iter().any(|url| url.starts_with("http://127.0.0.1:")),
            "the requests were seen: {asked:?}"
        );
        assert!(asked.iter().all(|url| is_within(url)), "{asked:?}");
        assert_eq!(self.complaints(), [""; 0]);
    }
}

fn is_within(url: &str) -> bool {
    WITHIN.iter().any(|start| url.starts_with(start))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
