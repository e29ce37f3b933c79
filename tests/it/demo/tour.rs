//! The guided tour, taken to its end: every command as it is printed, every page opened, and between them what a stop asks for.

use std::net::SocketAddr;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Playing, authority, talk};
use crate::harness::{PATIENCE, request_to, wait_for, wait_until};
use crate::sandbox::press;

/// What is to be typed stands so far in.
const TYPED: &str = "      ";
/// What is to be opened stands behind this.
const OPENED: &str = "   > ";

/// Something to do, as it was printed.
#[derive(Debug, PartialEq, Eq)]
enum Do {
    Type(String),
    Open(String),
}

/// What the tour has one do, in order, and before that the function of the shell. A command goes on behind a backslash.
fn read(lines: &[String]) -> (String, Vec<Do>) {
    let begins = |line: &&String| line.trim() == "tilld() {";
    let function = lines.iter().skip_while(|line| !begins(line));
    let function: Vec<&str> = function
        .map_while(|line| line.strip_prefix(TYPED))
        .collect();
    let mut all = Vec::new();
    let mut goes_on = false;
    for line in lines
        .iter()
        .skip_while(|line| !begins(line))
        .skip(function.len())
    {
        if let Some(address) = line.strip_prefix(OPENED) {
            all.push(Do::Open(address.to_owned()));
        } else if let Some(typed) = line.strip_prefix(TYPED) {
            match all.last_mut() {
                Some(Do::Type(command)) if goes_on => command.extend(["\n", typed]),
                _ => all.push(Do::Type(typed.to_owned())),
            }
            goes_on = typed.ends_with('\\');
        }
    }
    (function.join("\n"), all)
}

/// A tourist.
struct Tourist {
    setup: String,
    sandbox: SocketAddr,
    control: SocketAddr,
}

impl Tourist {
    fn types(&self, command: &str) -> Output {
        let line = format!("{}\n{command}", self.setup);
        let output = Command::new("sh").args(["-c", &line]).output();
        output.expect("a shell")
    }

    /// Types it until it shows that what takes a moment has happened. A person is slower than that.
    fn waits_for(&self, command: &str, shown: impl Fn(&Output) -> bool) {
        wait_until(PATIENCE, command, || shown(&self.types(command)));
    }

    fn ask(address: SocketAddr, method: &str, path: &str, body: &Value) -> String {
        let host = address.to_string();
        let answer = request_to(&host, address, method, path, &[], &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    fn state(&self) -> Value {
        let state = Self::ask(self.control, "GET", "/state", &Value::Null);
        serde_json::from_str(&state).expect("JSON")
    }

    /// What the sandbox knows of an order.
    fn invoice(&self, order: &str) -> Value {
        let state = self.state();
        let all = state.get("invoices").and_then(Value::as_array);
        let found = all.into_iter().flatten().find(|invoice| {
            invoice
                .pointer("/invoice/internalId")
                .and_then(Value::as_str)
                == Some(order)
        });
        found.cloned().expect("an invoice")
    }

    /// Presses a button of an order's payment page.
    fn presses(&self, order: &str, fields: &str) {
        let invoice = self.invoice(order);
        let page = invoice.get("page").and_then(Value::as_str);
        let (_, opaque) = page.and_then(|page| page.rsplit_once('/')).expect("a page");
        let answer = press(self.sandbox, &format!("/pay/{opaque}"), fields);
        assert_eq!(answer.status, 303, "{answer:?}");
    }

    /// Does what a stop asks for before this command is typed.
    fn prepares(&self, command: &str, is_again: bool) {
        match command {
            "tilld invoice wait tour-1" => {
                self.presses("tour-1", "method=SBP");
                self.presses("tour-1", "happening=paid");
            }
            "tilld invoice wait tour-2" => {
                let fields = "invoice=tour-2&what=lose&times=true&act=count";
                let set = press(self.sandbox, "/cabinet/faults?invoice=tour-2", fields);
                assert_eq!(set.status, 303, "{set:?}");
                self.presses("tour-2", "happening=paid");
            }
            "tilld invoice show tour-3" => {
                self.presses("tour-3", "happening=paid-less");
                // A notification of another amount is asked about first.
                self.waits_for(command, |output| holds(output, "mismatch"));
            }
            command if command.starts_with("cat ") => {
                self.waits_for(command, |output| holds(output, "order=tour-1 "));
            }
            "tilld status" if !is_again => {
                let state = self.state();
                let id = state.pointer("/tokens/0/id").expect("a token");
                Self::ask(
                    self.control,
                    "POST",
                    "/tokens/revoke",
                    &json!({ "token": id }),
                );
                self.waits_for(command, |output| output.status.code() == Some(16));
            }
            _ => {}
        }
    }

    /// Types `tilld login` and confirms on the page it names.
    fn logs_in(&self, command: &str) -> Output {
        std::thread::scope(|scope| {
            let login = scope.spawn(|| self.types(command));
            let code = wait_for(PATIENCE, "a login to confirm", || {
                let state = self.state();
                let all = state.get("logins").and_then(Value::as_array)?;
                let waits = |login: &&Value| login.get("decision") == Some(&json!("pending"));
                let code = all.iter().find(waits)?.get("userCode")?;
                code.as_str().map(str::to_owned)
            });
            let page = format!("/activate?code={code}");
            Self::ask(self.sandbox, "GET", &page, &Value::Null);
            Self::ask(
                self.control,
                "POST",
                "/login/confirm",
                &json!({ "userCode": code }),
            );
            login.join().expect("it ends")
        })
    }
}

fn holds(output: &Output, text: &str) -> bool {
    String::from_utf8_lossy(&output.stdout).contains(text)
}

#[test]
fn the_tour_can_be_taken_as_it_is_printed() {
    let temp = tempfile::tempdir().expect("a directory");
    let mut playing = Playing::start(temp.path(), &["--stay"]);
    let mut lines = Vec::new();
    let mut control = None;
    loop {
        let line = playing.lines.next().expect("it goes on").expect("readable");
        if line.starts_with("Ctrl-C") {
            break;
        }
        if let Some(address) = line.strip_prefix("control ") {
            control = authority(address.trim()).parse().ok();
        }
        lines.push(line);
    }
    let (setup, all) = read(&lines);
    assert!(setup.ends_with('}') && all.len() > 20, "{lines:#?}");
    let sandbox = all.iter().find_map(|one| match one {
        Do::Open(address) => authority(address).parse().ok(),
        Do::Type(_) => None,
    });
    let tourist = Tourist {
        setup,
        sandbox: sandbox.expect("a page to open"),
        control: control.expect("the control listener"),
    };
    let mut said = Vec::new();
    for one in &all {
        let command = match one {
            Do::Open(address) => {
                let (_, path) = address.split_once("://").expect("an address");
                let (_, path) = path.split_once('/').expect("a path");
                Tourist::ask(tourist.sandbox, "GET", &format!("/{path}"), &Value::Null);
                continue;
            }
            Do::Type(command) => command.as_str(),
        };
        let is_again = said.iter().any(|(typed, _)| typed == command);
        tourist.prepares(command, is_again);
        let output = if command == "tilld login" {
            tourist.logs_in(command)
        } else {
            tourist.types(command)
        };
        // It says that a person is needed.
        let wanted = if command == "tilld status" && !is_again {
            16
        } else {
            0
        };
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let ended = output.status.code();
        let trouble = talk(&output);
        assert_eq!(ended, Some(wanted), "{command}: {out}{trouble}{said:#?}");
        said.push((command.to_owned(), out));
    }
    // What each stop is there to show is really seen.
    let shows = |command: &str, wanted: &str| {
        let (_, out) = said
            .iter()
            .find(|(typed, _)| typed == command)
            .expect(command);
        assert!(out.contains(wanted), "{command}: {wanted}: {out}");
    };
    shows("tilld invoice list", "demo-3");
    shows("tilld explain demo-2", "poll");
    shows("tilld invoice wait tour-1", "paid");
    shows("tilld explain tour-2", "poll");
    shows("tilld invoice show tour-3", "mismatch");
    shows("tilld status", "login");
    assert!(said.iter().any(|(typed, _)| typed.contains("sandbox run ")));
    assert!(
        said.iter()
            .any(|(typed, out)| typed.starts_with("cat ") && out.contains("order=tour-1 "))
    );
    playing.signal(Signal::INT);
    assert_eq!(playing.child.wait().expect("ends").code(), Some(0));
}
