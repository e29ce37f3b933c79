//! The sandbox as a merchant starts it: the real program by its flags, from outside.

mod guards;
mod pages;
mod probed;
mod spelling;
mod statuses;
mod times;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    Answer, PATIENCE, Process, Ran, next_name, request_to, run, under_test, wait_for,
};

/// A notify token.
const TOKEN: &str = "a-notify-token-of-more-than-32-characters";
/// How a body of the API says what it is.
const JSON: (&str, &str) = ("Content-Type", "application/json");
/// How a browser says what its form is.
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A sandbox that was started with these flags and nothing else.
#[derive(Debug)]
struct Started {
    process: Process,
    announced: Value,
    dir: tempfile::TempDir,
}

impl Started {
    #[track_caller]
    fn new(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = tilld(dir.path());
        command.args(["--json", "sandbox", "--listen=127.0.0.1:0"]);
        command.arg("--control=127.0.0.1:0").args(flags);
        let mut process = Process::spawn(&mut command, dir.path(), "sandbox");
        let announced = wait_for(PATIENCE, "the sandbox to say where it is", || {
            assert!(process.ended().is_none(), "{}", process.stderr());
            let said = process.stdout();
            let (line, _) = said.split_once('\n')?;
            serde_json::from_str(line).ok()
        });
        Self {
            process,
            announced,
            dir,
        }
    }

    /// `service` or `control`.
    fn at(&self, name: &str) -> SocketAddr {
        let url = self.announced.get(name).and_then(Value::as_str);
        let url = url.and_then(|url| url.strip_prefix("http://")?.parse().ok());
        url.expect("an address")
    }

    /// One request to the service: its API, or a page.
    #[track_caller]
    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let address = self.at("service");
        request_to(&address.to_string(), address, method, target, headers, body)
    }

    /// One request to the control listener that goes well.
    #[track_caller]
    fn control(&self, method: &str, path: &str, body: &Value) -> Value {
        let address = self.at("control");
        let body = body.to_string();
        let answer = request_to(&address.to_string(), address, method, path, &[], &body);
        assert_eq!(answer.status, 200, "{method} {path}: {answer:?}");
        answer.json()
    }

    /// The only invoice as the control listener shows it, or what stands in it there.
    #[track_caller]
    fn invoice(&self, pointer: &str) -> Value {
        let state = self.control("GET", "/state", &json!({}));
        let place = format!("/invoices/0{pointer}");
        state.pointer(&place).cloned().unwrap_or_default()
    }

    /// A token of the first shop, as a header's value.
    #[track_caller]
    fn bearer(&self) -> String {
        let issued = self.control("POST", "/tokens/issue", &json!({}));
        let token = issued.get("token").and_then(Value::as_str);
        format!("Bearer {}", token.expect("a token"))
    }

    /// Asks for an invoice of 150.00 RUB that is notified of at `url`, with these further fields.
    #[track_caller]
    fn create(&self, bearer: &str, url: &str, more: &Value) -> Answer {
        let mut wish = json!({
            "internalId": "1042", "direction": "in", "amount": 150, "currency": "RUB", "startDeal": true,
            "paymentMethod": "SBP", "notificationUrl": url, "notificationToken": TOKEN,
        });
        let fields = wish.as_object_mut().expect("fields");
        fields.extend(more.as_object().cloned().unwrap_or_default());
        let headers = [("Authorization", bearer), JSON];
        self.ask("POST", "/api/v1/invoices", &headers, &wish.to_string())
    }

    /// Posts a page's form as a browser does: what is hidden in it goes along, and the page it came from is named.
    #[track_caller]
    fn press(&self, page: &str, fields: &str) -> Answer {
        press(self.at("service"), page, fields)
    }

    /// Ends it as Ctrl-C does.
    #[track_caller]
    fn ends(mut self) {
        self.process.signal(Signal::INT);
        assert_eq!(self.process.wait(PATIENCE), 0);
    }
}

/// Posts a form of a page of the sandbox at this address, see [`Started::press`].
#[track_caller]
pub(crate) fn press(sandbox: SocketAddr, page: &str, fields: &str) -> Answer {
    let host = sandbox.to_string();
    let shown = request_to(&host, sandbox, "GET", page, &[], "");
    assert_eq!(shown.status, 200, "{page}");
    let token = shown.body.split_once("name=\"form_token\" value=\"");
    let token = token.and_then(|(_, rest)| rest.split('"').next());
    let body = format!("form_token={}&{fields}", token.expect("a form"));
    let origin = format!("http://{host}");
    let headers = [FORM, ("Origin", origin.as_str())];
    request_to(&host, sandbox, "POST", page, &headers, &body)
}

/// tilld with nothing of the test's own environment.
fn tilld(home: &Path) -> Command {
    let mut command = Command::new(under_test());
    command.env_clear().env("HOME", home);
    command
}

/// A merchant beside a sandbox: tilld with the config that sandbox wrote.
struct Merchant<'a> {
    sandbox: &'a Started,
    config: PathBuf,
}

impl<'a> Merchant<'a> {
    /// Logs in; the cabinet confirms.
    #[track_caller]
    fn logs_in(sandbox: &'a Started) -> Self {
        let config = sandbox.announced.get("config").and_then(Value::as_str);
        let config = PathBuf::from(config.expect("a config"));
        let merchant = Self { sandbox, config };
        let mut login = merchant.starts(&["login", "--json"]);
        let code = wait_for(PATIENCE, "the code to compare", || {
            let line: Value = serde_json::from_str(login.stdout().lines().next()?).ok()?;
            Some(line.get("user_code")?.clone())
        });
        let confirmed = json!({ "userCode": code });
        sandbox.control("POST", "/login/confirm", &confirmed);
        assert_eq!(login.wait(PATIENCE), 0, "{}", login.stderr());
        merchant
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = tilld(self.sandbox.dir.path());
        command.arg("--config").arg(&self.config).args(args);
        command
    }

    #[track_caller]
    fn starts(&self, args: &[&str]) -> Process {
        let dir = self.sandbox.dir.path();
        Process::spawn(&mut self.command(args), dir, &next_name())
    }

    #[track_caller]
    fn runs(&self, args: &[&str]) -> Ran {
        let dir = self.sandbox.dir.path();
        run(&mut self.command(args), dir, &next_name())
    }

    /// Starts the daemon; it listens once this returns.
    #[track_caller]
    fn serves(&self) -> Process {
        let mut serve = self.starts(&["serve", "--json"]);
        wait_for(PATIENCE, "the daemon to listen", || {
            assert!(serve.ended().is_none(), "{}", serve.stderr());
            serve.stdout().contains('\n').then_some(())
        });
        serve
    }

    /// An order's invoice as `invoice show --json` has it.
    #[track_caller]
    fn shows(&self, order: &str) -> Value {
        let shown = self
            .runs(&["invoice", "show", order, "--json"])
            .ends_with(0);
        serde_json::from_str(&shown.stdout).expect("JSON")
    }
}

/// Writes a file beside the sandbox-to-be, and gives its path as text.
#[track_caller]
fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).expect("written");
    path.display().to_string()
}
